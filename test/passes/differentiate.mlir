// RUN: dlc-opt %s --dlc-differentiate --split-input-file --verify-diagnostics | FileCheck %s

// A loss with a constant count: the seed is folded; the stage becomes train.
// CHECK-LABEL: nn.model @constant_count attributes {stage = "train"}
// CHECK: nn.loss
// CHECK: %[[SEED:.*]] = nn.constant dense<5.000000e-01> : tensor<f32>
// CHECK: %[[DX:.*]] = nn.broadcast %[[SEED]]
// CHECK-NOT: nn.mul
// CHECK: nn.gradient @w, %[[DX]] : tensor<4xf32>
nn.model @constant_count attributes {stage = "nn"} {
  nn.variable @w : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<4xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<4xf32>
    %y = nn.add %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %sum = nn.reduce_sum %y {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    %count = nn.constant dense<4.0> : tensor<f32>
    nn.loss %sum, %count {weight = 2.0} : tensor<f32>, tensor<f32>
  }
}

// -----

// A count that depends on data, even on the parameter, is a constant to the gradient.
// CHECK-LABEL: nn.model @data_count
// CHECK: nn.program @train(%[[X:.*]]: tensor<f32>
// CHECK: %[[W:.*]] = nn.read @w
// CHECK: nn.loss %{{.*}}, %[[COUNT:.*]] :
// CHECK-NEXT: %[[WEIGHT:.*]] = nn.constant dense<1.000000e+00>
// CHECK-NEXT: %[[SEED:.*]] = nn.div %[[WEIGHT]], %[[COUNT]]
// CHECK-NEXT: %[[DW:.*]] = nn.mul %[[SEED]], %[[X]]
// CHECK-NEXT: nn.gradient @w, %[[DW]]
nn.model @data_count attributes {stage = "nn"} {
  nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<f32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<f32>
    %sum = nn.mul %w, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %count = nn.mul %w, %w : (tensor<f32>, tensor<f32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// Contributions of several uses, several reads and several losses add up.
// CHECK-LABEL: nn.model @accumulate
// CHECK: nn.loss %{{.*}}, %{{.*}} {
// CHECK: %[[ONE:.*]] = nn.constant dense<1.000000e+00>
// CHECK: %[[HALF:.*]] = nn.constant dense<5.000000e-01>
// CHECK: %[[SEED:.*]] = nn.add %[[ONE]], %[[HALF]]
// CHECK: %[[DB:.*]] = nn.mul %[[SEED]], %[[A:.*]] :
// CHECK: %[[DA:.*]] = nn.mul %[[SEED]],
// CHECK: %[[DW:.*]] = nn.add %[[DB]], %[[DA]]
// CHECK: nn.gradient @w, %[[DW]]
// CHECK-NOT: nn.gradient
// CHECK: }
nn.model @accumulate attributes {stage = "nn"} {
  nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train() {
    %a = nn.read @w : tensor<f32>
    %b = nn.read @w : tensor<f32>
    %sum = nn.mul %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    nn.loss %sum, %one : tensor<f32>, tensor<f32>
    nn.loss %sum, %one {weight = 0.5} : tensor<f32>, tensor<f32>
  }
}

// -----

// Only what a parameter needs is built: no data gradient of the first convolution, none of a frozen weight, and none
// through integers and statistics.
// CHECK-LABEL: nn.model @wanted
// CHECK: nn.loss
// CHECK-NOT: nn.conv_grad_data
// CHECK: %{{.*}}, %[[DS:.*]], %{{.*}} = nn.batch_norm_grad
// CHECK-NOT: nn.conv
// CHECK-NOT: nn.sqrt
// CHECK: nn.gradient @s, %[[DS]]
// CHECK-NOT: nn.gradient
// CHECK: }
nn.model @wanted attributes {stage = "nn"} {
  nn.variable @w : tensor<2x1x1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>, trainable = false}
  nn.variable @s : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @v : tensor<2xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<4x1x3xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<2x1x1xf32>
    %s = nn.read @s : tensor<2xf32>
    %v = nn.read @v : tensor<2xf32>
    %c = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<4x1x3xf32>, tensor<2x1x1xf32>) -> tensor<4x2x3xf32>
    %y, %mean, %var = nn.batch_norm %c, %s, %v, %v, %v {epsilon = 1.0e-5, training = true} : (tensor<4x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2x3xf32>, tensor<2xf32>, tensor<2xf32>)
    %deviation = nn.sqrt %var : (tensor<2xf32>) -> tensor<2xf32>
    nn.assign @v, %deviation : tensor<2xf32>
    %total = nn.reduce_sum %y {dims = array<i64: 0, 1, 2>} : (tensor<4x2x3xf32>) -> tensor<f32>
    %spread = nn.reduce_sum %deviation {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    %sum = nn.add %total, %spread : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %count = nn.constant dense<4.0> : tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// What asks for it is a constant: of w * stop_gradient(w) the gradient is w.
// CHECK-LABEL: nn.model @constant_to_gradient
// CHECK: %[[STOPPED:.*]] = nn.stop_gradient
// CHECK: nn.loss
// CHECK: %[[DW:.*]] = nn.mul %{{.*}}, %[[STOPPED]] {
// CHECK-NEXT: nn.gradient @w, %[[DW]]
nn.model @constant_to_gradient attributes {stage = "nn"} {
  nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train() {
    %w = nn.read @w : tensor<f32>
    %stopped = nn.stop_gradient %w : (tensor<f32>) -> tensor<f32>
    %sum = nn.mul %w, %stopped : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %count = nn.constant dense<1.0> : tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// CHECK-LABEL: nn.model @unused_parameter
nn.model @unused_parameter attributes {stage = "nn"} {
  nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // expected-warning @below {{parameter @v gets no gradient: no loss depends on it}}
  nn.variable @v : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train() {
    %w = nn.read @w : tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    nn.loss %w, %one : tensor<f32>, tensor<f32>
  }
}

// -----

nn.model @no_rule attributes {stage = "nn"} {
  nn.variable @w : tensor<4x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%l: tensor<4xi32> {nn.input = "l"}, %d: tensor<4xf32> {nn.input = "d"}) {
    %w = nn.read @w : tensor<4x3xf32>
    // expected-error @below {{is not differentiable, but the loss depends on parameter @w through it}}
    %g = nn.softmax_cross_entropy_grad %w, %l, %d : (tensor<4x3xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4x3xf32>
    %s = nn.reduce_sum %g {dims = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    nn.loss %s, %one : tensor<f32>, tensor<f32>
  }
}

// -----

nn.model @no_rule_for_operand attributes {stage = "nn"} {
  nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train() {
    %w = nn.read @w : tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    // expected-error @below {{is not differentiable in operand 1, but the loss depends on parameter @w through it}}
    %y = nn.pow %one, %w : (tensor<f32>, tensor<f32>) -> tensor<f32>
    nn.loss %y, %one : tensor<f32>, tensor<f32>
  }
}
