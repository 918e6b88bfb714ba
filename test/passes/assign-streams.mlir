// RUN: dlc-opt %s --dlc-assign-streams | FileCheck %s

// Kernels and copies go to compute, the collective to comm, behind an event.
// CHECK-LABEL: exec.program @train
nn.model @m attributes {stage = "exec"} {
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    // CHECK: exec.fill {{.*}}stream = #exec<stream compute>
    exec.fill %a {phase = #exec<phase backward>, value = 0 : i64} : <tensor<16xf32>>
    // CHECK-NEXT: exec.record 0 {stream = #exec<stream compute>}
    // CHECK-NEXT: exec.wait_event 0 {stream = #exec<stream comm>}
    // CHECK-NEXT: exec.start {{.*}}stream = #exec<stream comm>
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"]} : <tensor<16xf32>>
    // CHECK-NEXT: exec.wait 0 {stream = #exec<stream compute>}
    exec.wait 0
  }
}
