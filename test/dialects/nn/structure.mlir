// RUN: dlc-opt %s --verify-roundtrip | FileCheck %s

// A model with every kind of variable and every sink.
// CHECK-LABEL: nn.model @m attributes {batch = 2 : i64, stage = "train"}
// CHECK: nn.variable @w : tensor<3xf32> {init = #nn.init<normal, 0.000000e+00, 5.000000e-01>, kind = #nn<kind parameter>}
// CHECK: nn.variable @running : tensor<3xf32> {init = #nn.init<constant, 1.000000e+00, 0.000000e+00>, kind = #nn<kind state>}
// CHECK: nn.variable @optimizer.m.w : tensor<3xf32> {{{.*}}kind = #nn<kind slot>, owner = @w, slot = "m"}
// CHECK: nn.variable @lr : tensor<f32> {init = #nn.init<uniform, {{.*}}>, kind = #nn<kind scalar>}
nn.model @m attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<normal, 0.0, 0.5>}
  nn.variable @running : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @optimizer.m.w : tensor<3xf32> {kind = #nn<kind slot>, init = #nn.init<constant, 0.0, 0.0>, owner = @w, slot = "m"}
  nn.variable @lr : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<uniform, -1.0, 1.0>}
  // CHECK: nn.program @train(%[[X:.*]]: tensor<3xf32> {nn.input = "x"}) {
  // CHECK: %[[W:.*]] = nn.read @w : tensor<3xf32>
  // CHECK: nn.loss %{{.*}}, %{{.*}} {weight = 5.000000e-01 : f64} : tensor<f32>, tensor<f32>
  // CHECK: nn.metric "error", %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>
  // CHECK: nn.gradient @w, %[[X]] : tensor<3xf32>
  // CHECK: nn.assign @w, %[[X]] : tensor<3xf32>
  nn.program @train(%x: tensor<3xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<3xf32>
    %lr = nn.read @lr : tensor<f32>
    nn.loss %lr, %lr {weight = 0.5} : tensor<f32>, tensor<f32>
    nn.metric "error", %lr, %lr : tensor<f32>, tensor<f32>
    nn.gradient @w, %x : tensor<3xf32>
    nn.assign @w, %x : tensor<3xf32>
  }
  // CHECK: nn.program @predict(%[[X:.*]]: tensor<3xf32> {nn.input = "x"}) {
  // CHECK: nn.output "y", %[[X]] : tensor<3xf32>
  nn.program @predict(%x: tensor<3xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<3xf32>
  }
}
