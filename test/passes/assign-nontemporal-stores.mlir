// RUN: dlc-opt %s --dlc-assign-nontemporal-stores --split-input-file | FileCheck %s

// The test target's cache holds 1 MiB.

// What fills the cache by itself is gone when it is read.
// CHECK-LABEL: nn.model @large
nn.model @large attributes {stage = "exec", target = "test:rules", threads = 1 : i64, math = "fast"} {
  // CHECK: } {{.*}}, nontemporal = array<i64: 0>}
  exec.cluster @c {
  ^bb0(%0: tensor<160000xf32>):
    %1 = nn.relu %0 : (tensor<160000xf32>) -> tensor<160000xf32>
    nn.yield %1 : tensor<160000xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 20, chunk = 2, buffers = [0, 1], reads = 1, bytes = 1280000, flops = 160000>], scratch = [], shares = [0, 0]>}
  exec.kernel @k [tensor<160000xf32>, tensor<160000xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, function = "c_0", flops = 1 : i64, bytes = 1 : i64, nanoseconds = 1 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<160000xf32>>
    %b = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<160000xf32>>
    exec.dispatch @k(%a, %b) {phase = #exec<phase forward>} : !exec.buffer<tensor<160000xf32>>, !exec.buffer<tensor<160000xf32>>
    exec.dispatch @k(%b, %a) {phase = #exec<phase forward>} : !exec.buffer<tensor<160000xf32>>, !exec.buffer<tensor<160000xf32>>
    exec.copy %a, %b {phase = #exec<phase forward>} : <tensor<160000xf32>>
  }
}

// -----

// A small one is still there, unless much is touched in between; one kernel serves both, so it stays as it is.
// CHECK-LABEL: nn.model @disagreement
nn.model @disagreement attributes {stage = "exec", target = "test:rules", threads = 1 : i64, math = "fast"} {
  // CHECK: exec.cluster @c
  // CHECK-NOT: nontemporal
  // CHECK: exec.cluster @late
  // CHECK: } {{.*}}, nontemporal = array<i64: 0>}
  exec.cluster @c {
  ^bb0(%0: tensor<80000xf32>):
    %1 = nn.relu %0 : (tensor<80000xf32>) -> tensor<80000xf32>
    nn.yield %1 : tensor<80000xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 10, chunk = 2, buffers = [0, 1], reads = 1, bytes = 640000, flops = 80000>], scratch = [], shares = [0, 0]>}
  exec.cluster @late {
  ^bb0(%0: tensor<80000xf32>):
    %1 = nn.neg %0 : (tensor<80000xf32>) -> tensor<80000xf32>
    nn.yield %1 : tensor<80000xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 10, chunk = 2, buffers = [0, 1], reads = 1, bytes = 640000, flops = 80000>], scratch = [], shares = [0, 0]>}
  exec.kernel @k [tensor<80000xf32>, tensor<80000xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, function = "c_0", flops = 1 : i64, bytes = 1 : i64, nanoseconds = 1 : i64}
  exec.kernel @l [tensor<80000xf32>, tensor<80000xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @late, function = "late_0", flops = 1 : i64, bytes = 1 : i64, nanoseconds = 1 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<80000xf32>>
    %b = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<80000xf32>>
    %c = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<80000xf32>>
    %d = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<80000xf32>>
    exec.dispatch @l(%a, %d) {phase = #exec<phase forward>} : !exec.buffer<tensor<80000xf32>>, !exec.buffer<tensor<80000xf32>>
    exec.dispatch @k(%a, %b) {phase = #exec<phase forward>} : !exec.buffer<tensor<80000xf32>>, !exec.buffer<tensor<80000xf32>>
    exec.dispatch @k(%b, %c) {phase = #exec<phase forward>} : !exec.buffer<tensor<80000xf32>>, !exec.buffer<tensor<80000xf32>>
    exec.copy %d, %a {phase = #exec<phase forward>} : <tensor<80000xf32>>
    exec.copy %c, %a {phase = #exec<phase forward>} : <tensor<80000xf32>>
  }
}

// -----

// Lines that were read are stored as usual.
// CHECK-LABEL: nn.model @in_place
nn.model @in_place attributes {stage = "exec", target = "test:rules", threads = 1 : i64, math = "fast"} {
  // CHECK-NOT: nontemporal
  exec.cluster @c {
  ^bb0(%0: tensor<800000xf32>):
    %1 = nn.relu %0 : (tensor<800000xf32>) -> tensor<800000xf32>
    nn.yield %1 : tensor<800000xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 100, chunk = 2, buffers = [0, 1], reads = 1, bytes = 6400000, flops = 800000>], scratch = [], shares = [0, 0]>}
  exec.kernel @k [tensor<800000xf32>, tensor<800000xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, function = "c_0", flops = 1 : i64, bytes = 1 : i64, nanoseconds = 1 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<800000xf32>>
    %b = exec.view %a[0] : <tensor<800000xf32>> -> <tensor<800000xf32>>
    exec.dispatch @k(%a, %b) {phase = #exec<phase forward>} : !exec.buffer<tensor<800000xf32>>, !exec.buffer<tensor<800000xf32>>
    exec.download "y"(%b) {kind = #exec<result output>} : !exec.buffer<tensor<800000xf32>>
  }
}

// -----

// Rows of a variable are read in the next step: what is written behind them touches other rows, and much is touched until then.
// CHECK-LABEL: nn.model @rows
nn.model @rows attributes {stage = "exec", target = "test:rules", threads = 1 : i64, math = "fast"} {
  // CHECK: } {{.*}}, nontemporal = array<i64: 0>}
  nn.variable @w : tensor<2x80000xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  exec.cluster @c {
  ^bb0(%0: tensor<80000xf32>):
    %1 = nn.relu %0 : (tensor<80000xf32>) -> tensor<80000xf32>
    nn.yield %1 : tensor<80000xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 10, chunk = 2, buffers = [0, 1], reads = 1, bytes = 640000, flops = 80000>], scratch = [], shares = [0, 0]>}
  exec.kernel @k [tensor<80000xf32>, tensor<80000xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, function = "c_0", flops = 1 : i64, bytes = 1 : i64, nanoseconds = 1 : i64}
  exec.program @train {
    %w = exec.buffer {arena = #exec<arena_kind variables>, variable = @w} : <tensor<2x80000xf32>>
    %0 = exec.view %w[0] : <tensor<2x80000xf32>> -> <tensor<80000xf32>>
    %1 = exec.view %w[320000] : <tensor<2x80000xf32>> -> <tensor<80000xf32>>
    %a = exec.buffer {arena = #exec<arena_kind inputs>, input = "a"} : <tensor<80000xf32>>
    %b = exec.buffer {arena = #exec<arena_kind inputs>, input = "b"} : <tensor<80000xf32>>
    exec.dispatch @k(%a, %0) {phase = #exec<phase optimizer>} : !exec.buffer<tensor<80000xf32>>, !exec.buffer<tensor<80000xf32>>
    exec.dispatch @k(%b, %1) {phase = #exec<phase optimizer>} : !exec.buffer<tensor<80000xf32>>, !exec.buffer<tensor<80000xf32>>
  }
}
