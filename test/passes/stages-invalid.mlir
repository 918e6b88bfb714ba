// RUN: not dlc-opt %s --dlc-derive-programs 2>&1 | FileCheck %s -DWANTED=nn
// RUN: not dlc-opt %s --dlc-mixed-precision 2>&1 | FileCheck %s -DWANTED=nn
// RUN: not dlc-opt %s --dlc-differentiate 2>&1 | FileCheck %s -DWANTED=nn
// RUN: not dlc-opt %s --dlc-insert-all-reduce 2>&1 | FileCheck %s -DWANTED=train
// RUN: not dlc-opt %s --dlc-apply-optimizer 2>&1 | FileCheck %s -DWANTED=train
// RUN: not dlc-opt %s --dlc-lower-composites 2>&1 | FileCheck %s -DWANTED=train
// RUN: not dlc-opt %s --dlc-assign-layouts 2>&1 | FileCheck %s -DWANTED=train
// RUN: not dlc-opt %s --dlc-assign-streams 2>&1 | FileCheck %s -DWANTED=exec
// RUN: not dlc-opt %s --dlc-plan-memory 2>&1 | FileCheck %s -DWANTED=exec
// RUN: not dlc-opt %s --dlc-combine-updates 2>&1 | FileCheck %s -DWANTED=exec
// RUN: sed s/schedule/exec/ %s | not dlc-opt --dlc-fuse 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: sed s/schedule/exec/ %s | not dlc-opt --dlc-rematerialize-producers 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: sed s/schedule/exec/ %s | not dlc-opt --dlc-plan-kernels 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: sed s/schedule/exec/ %s | not dlc-opt --dlc-combine-all-reduces 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: sed s/schedule/exec/ %s | not dlc-opt --dlc-overlap-all-reduces 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: sed s/schedule/exec/ %s | not dlc-opt --dlc-convert-nn-to-exec 2>&1 | FileCheck %s --check-prefix=SCHEDULE

// A pass refuses models of other stages than its own: it relies on what that stage's verifier promises.
// CHECK: is at stage 'schedule', expected [[WANTED]]
// SCHEDULE: is at stage 'exec', expected schedule
nn.model @m attributes {stage = "schedule", batch = 2 : i64} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}
