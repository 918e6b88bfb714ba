// RUN: dlc-opt %s --dlc-differentiate --dlc-insert-all-reduce --dlc-apply-optimizer | FileCheck %s
// RUN: sed 's/"f16"/"bf16"/' %s | dlc-opt --dlc-differentiate --dlc-insert-all-reduce --dlc-apply-optimizer | FileCheck %s --check-prefix=NONE

// In f16 the seed is scaled, sums over ranks are unscaled, and each variable keeps its value unless all of them are
// finite. In bf16 there is nothing of it.
// NONE-NOT: loss_scale
// CHECK-DAG: nn.variable @optimizer.loss_scale : tensor<f32> {init = #nn.init<constant, 6.553600e+04, 0.000000e+00>, kind = #nn<kind slot>, slot = "loss_scale"}
// CHECK-DAG: nn.variable @optimizer.good_steps : tensor<f32>
// CHECK-DAG: nn.variable @optimizer.skipped_steps : tensor<f32>
nn.model @m attributes {stage = "nn", precision = "f16", batch = 2 : i64, train = {optimizer = {name = "sgd"}}} {
  nn.variable @w : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @mean : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK-LABEL: nn.program @train
  nn.program @train(%x: tensor<2x3xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<3xf32>
    %ws = nn.broadcast %w {dims = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf32>
    %y = nn.mul %x, %ws : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %s = nn.reduce_sum %y {dims = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    nn.loss %s, %two : tensor<f32>, tensor<f32>
    nn.assign @mean, %w : tensor<3xf32>
    // CHECK: nn.loss
    // CHECK: %[[S:.*]] = nn.read @optimizer.loss_scale
    // CHECK: %[[SEED:.*]] = nn.mul %{{.*}}, %[[S]] {{.*}}: (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: nn.broadcast %[[SEED]]
    // CHECK: %[[SUM:.*]] = comm.all_reduce
    // CHECK: %[[INVERSE:.*]] = nn.div
    // CHECK-NEXT: %[[WILD:.*]] = nn.count_nonfinite %[[SUM]], %[[INVERSE]]
    // CHECK: %[[FINITE:.*]] = nn.compare eq %[[WILD]], {{.*}} -> tensor<i1>
    // CHECK: nn.broadcast %[[INVERSE]]
    // CHECK: nn.mul %[[SUM]],
    // CHECK: nn.assign @optimizer.loss_scale
    // CHECK: nn.assign @optimizer.good_steps
    // CHECK: nn.assign @optimizer.skipped_steps
    // CHECK: nn.sub
    // CHECK-NEXT: %[[OLD:.*]] = nn.read @w
    // CHECK-NEXT: %[[DONE:.*]] = nn.broadcast %[[FINITE]]
    // CHECK-NEXT: %[[NEW:.*]] = nn.select %[[DONE]], %{{.*}}, %[[OLD]]
    // CHECK-NEXT: nn.assign @w, %[[NEW]]
    // CHECK-NEXT: %[[BEFORE:.*]] = nn.read @mean
    // CHECK-NEXT: %[[DONE:.*]] = nn.broadcast %[[FINITE]]
    // CHECK-NEXT: nn.select %[[DONE]], %{{.*}}, %[[BEFORE]]
    // CHECK-NEXT: nn.assign @mean
    // CHECK-NOT: nn.select
  }
}
