// RUN: dlc-opt %s --split-input-file --dlc-assign-streams | FileCheck %s

// Kernels and copies go to compute, the collective to comm, behind an event.
// CHECK-LABEL: exec.program @train
nn.model @m attributes {stage = "exec"} {
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    // CHECK: exec.dispatch {{.*}}stream = #exec<stream compute>
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>} : !exec.buffer<tensor<16xf32>>
    // CHECK-NEXT: exec.record 0 {stream = #exec<stream compute>}
    // CHECK-NEXT: exec.wait_event 0 {stream = #exec<stream comm>}
    // CHECK-NEXT: exec.start {{.*}}stream = #exec<stream comm>
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"]} : <tensor<16xf32>>
    // CHECK-NEXT: exec.wait 0 {stream = #exec<stream compute>}
    exec.wait 0
  }
}

// -----

// Inputs go up on copy, and compute waits for them; scalars go up on compute.
// CHECK-LABEL: nn.model @host
nn.model @host attributes {stage = "exec"} {
  nn.variable @lr : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, input = "x"} : <tensor<16xf32>>
    %lr = exec.buffer {arena = #exec<arena_kind variables>, variable = @lr} : <tensor<f32>>
    // CHECK: exec.upload(%{{.*}}) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.upload (%x) : !exec.buffer<tensor<16xf32>>
    // CHECK-NEXT: exec.record 0 {stream = #exec<stream copy>}
    // CHECK-NEXT: exec.wait_event 0 {stream = #exec<stream compute>}
    // CHECK-NEXT: exec.upload(%{{.*}}) {stream = #exec<stream compute>} : !exec.buffer<tensor<f32>>
    exec.upload (%lr) : !exec.buffer<tensor<f32>>
  }
}
