// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-plan-kernels --dlc-convert-nn-to-exec | FileCheck %s

// The gradient is written into its bucket, the variable is updated in place; equal inputs and the forecast are recorded.
// CHECK-LABEL: nn.model @in_place
// CHECK-SAME: inputs = [{name = "x", type = tensor<4xf32>}]
// CHECK-SAME: stage = "exec"
nn.model @in_place attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @w : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<normal, 0.0, 1.0>}
  // CHECK: exec.program @train attributes {forecast = {compute_ns = 5 : i64}}
  nn.program @train(%x: tensor<4xf32> {nn.input = "x"}) attributes {forecast = {compute_ns = 5 : i64}} {
    // CHECK-DAG: %[[X:.*]] = exec.buffer {{.*}}input = "x"
    // CHECK-DAG: %[[BUCKET:.*]] = exec.buffer {{.*}}gradients{{.*}} : <tensor<16xf32>>
    // CHECK-DAG: %[[SLICE:.*]] = exec.view %[[BUCKET]][0]
    // CHECK-DAG: %[[W:.*]] = exec.buffer {{.*}}variable = @w
    %w = nn.read @w : tensor<4xf32>
    // CHECK: exec.dispatch @pointwise_0(%[[X]], %[[W]], %[[SLICE]])
    %g = nn.fused (%a = %x, %b = %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    }
    // CHECK: exec.start %[[BUCKET]]
    %f = comm.start %g {bucket = 0 : i64} : tensor<4xf32> -> !comm.future<tensor<4xf32>>
    // CHECK: exec.wait 0
    %r = comm.wait %f : !comm.future<tensor<4xf32>> -> tensor<4xf32>
    // CHECK: exec.dispatch @optimizer_0(%[[W]], %[[SLICE]], %[[W]])
    %n = nn.fused (%a = %w, %b = %r) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {nn.role = #nn.role<update>} {
      %0 = nn.sub %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    }
    nn.assign @w, %n : tensor<4xf32>
  }
}

// -----

// Two variables change places: neither may be overwritten before the other was read.
// CHECK-LABEL: nn.model @swap
nn.model @swap attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @a : tensor<4xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @b : tensor<4xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train() {
    // CHECK-DAG: %[[A:.*]] = exec.buffer {{.*}}variable = @a
    // CHECK-DAG: %[[B:.*]] = exec.buffer {{.*}}variable = @b
    // CHECK: exec.copy %[[B]], %[[T1:.*]] {
    // CHECK: exec.copy %[[A]], %[[T2:.*]] {
    // CHECK: exec.copy %[[T1]], %[[A]]
    // CHECK: exec.copy %[[T2]], %[[B]]
    %a = nn.read @a : tensor<4xf32>
    %b = nn.read @b : tensor<4xf32>
    nn.assign @a, %b : tensor<4xf32>
    nn.assign @b, %a : tensor<4xf32>
  }
}

// -----

// A later reader wants the old value: the update goes through a temporary.
// CHECK-LABEL: nn.model @late_reader
nn.model @late_reader attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @w : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<normal, 0.0, 1.0>}
  nn.program @train() {
    // CHECK-DAG: %[[W:.*]] = exec.buffer {{.*}}variable = @w
    %w = nn.read @w : tensor<4xf32>
    // CHECK: exec.dispatch @optimizer_0(%[[W]], %[[NEW:.*]])
    %n = nn.fused (%a = %w) : (tensor<4xf32>) -> tensor<4xf32> attributes {nn.role = #nn.role<update>} {
      %0 = nn.neg %a : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    }
    // CHECK: exec.dispatch @pointwise_0(%[[W]]
    %y = nn.fused (%a = %w) : (tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.exp %a : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    }
    nn.assign @w, %n : tensor<4xf32>
    nn.output "y", %y : tensor<4xf32>
    // CHECK: exec.copy %[[NEW]], %[[W]]
    // CHECK: exec.download "y"
  }
}

// -----

// A transient that dies in an elementwise cluster lends its memory to the result; equal clusters are one kernel.
// CHECK-LABEL: nn.model @share
nn.model @share attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4xf32> {nn.input = "x"}) {
    // CHECK: exec.dispatch @pointwise_0(%{{.*}}, %[[T:.*]])
    %y = nn.fused (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.exp %a : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    }
    // CHECK: exec.dispatch @pointwise_0(%[[T]], %[[T]])
    %z = nn.fused (%b = %y) : (tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.exp %b : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    }
    nn.output "z", %z : tensor<4xf32>
  }
}

// -----

// An op that neither a library nor a cluster runs is named.
nn.model @unfused attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4xf32> {nn.input = "x"}) {
    // expected-error @below {{has no kernel: neither a library nor a cluster runs it}}
    %y = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    nn.output "y", %y : tensor<4xf32>
  }
}

// -----

// expected-error @below {{is at stage 'train', expected schedule}}
nn.model @early attributes {stage = "train"} {
}
