// RUN: dlc-opt %s --split-input-file --dlc-apply-optimizer | FileCheck %s

// Plain SGD: w - lr * (sum of gradients / ranks).
// CHECK-LABEL: nn.model @sgd
nn.model @sgd attributes {stage = "train", batch = 2 : i64, train = {optimizer = {name = "sgd", lr = 0.5 : f64}}} {
  // CHECK-DAG: nn.variable @lr : tensor<f32> {init = #nn.init<constant, 5.000000e-01, 0.000000e+00>, kind = #nn<kind scalar>}
  // CHECK-DAG: nn.variable @inverse_world : tensor<f32>
  // CHECK-NOT: optimizer.
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.program @train(%[[G:.*]]: tensor<2xf32>
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}) {
    // CHECK-DAG: %[[IW:.*]] = nn.read @inverse_world
    // CHECK-DAG: %[[LR:.*]] = nn.read @lr
    // CHECK-DAG: %[[W:.*]] = nn.read @w
    // CHECK: %[[IWS:.*]] = nn.broadcast %[[IW]] {dims = array<i64>, nn.role = #nn.role<update, @w>} : (tensor<f32>) -> tensor<2xf32>
    // CHECK: %[[MEAN:.*]] = nn.mul %[[G]], %[[IWS]]
    // CHECK: %[[LRS:.*]] = nn.broadcast %[[LR]]
    // CHECK: %[[STEP:.*]] = nn.mul %[[LRS]], %[[MEAN]]
    // CHECK: %[[NEXT:.*]] = nn.sub %[[W]], %[[STEP]]
    // CHECK: nn.assign @w, %[[NEXT]]
    // CHECK-NOT: nn.gradient
    nn.gradient @w, %g : tensor<2xf32>
  }
}

// -----

// Nesterov momentum and weight decay; a parameter of no_decay has none.
// CHECK-LABEL: nn.model @nesterov
nn.model @nesterov attributes {stage = "train", batch = 2 : i64, train = {optimizer = {
    name = "sgd", lr = 0.5 : f64, momentum = 0.75 : f64, nesterov = true, weight_decay = 0.25 : f64, no_decay = ["*.bias"]}}} {
  nn.variable @conv.weight : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.variable @optimizer.momentum_buffer.conv.weight : tensor<2xf32> {init = #nn.init<constant, 0.000000e+00, 0.000000e+00>, kind = #nn<kind slot>, owner = @conv.weight, slot = "momentum_buffer"}
  nn.variable @conv.bias : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}) {
    // CHECK: %[[W:.*]] = nn.read @conv.weight
    // CHECK: %[[MEAN:.*]] = nn.mul
    // CHECK: %[[WD:.*]] = nn.constant dense<2.500000e-01>
    // CHECK: %[[DECAY:.*]] = nn.mul %[[W]], %[[WD]]
    // CHECK: %[[GRAD:.*]] = nn.add %[[MEAN]], %[[DECAY]]
    // CHECK: %[[OLD:.*]] = nn.read @optimizer.momentum_buffer.conv.weight
    // CHECK: %[[MU:.*]] = nn.constant dense<7.500000e-01>
    // CHECK: %[[KEPT:.*]] = nn.mul %[[OLD]], %[[MU]]
    // CHECK: %[[BUFFER:.*]] = nn.add %[[KEPT]], %[[GRAD]]
    // CHECK: nn.assign @optimizer.momentum_buffer.conv.weight, %[[BUFFER]]
    // CHECK: %[[AHEAD:.*]] = nn.mul %[[BUFFER]]
    // CHECK: %[[DIRECTION:.*]] = nn.add %[[GRAD]], %[[AHEAD]]
    // CHECK: nn.mul %{{.*}}, %[[DIRECTION]]
    // CHECK: nn.assign @conv.weight
    nn.gradient @conv.weight, %g : tensor<2xf32>
    // CHECK: nn.read @conv.bias
    // CHECK-NOT: dense<2.500000e-01>
    // CHECK: nn.assign @conv.bias
    nn.gradient @conv.bias, %g : tensor<2xf32>
  }
}

// -----

// Adam. 1 - beta^t is 2 tanh / (1 + tanh) of -t log(beta) / 2, formed once for all parameters.
// CHECK-LABEL: nn.model @adam
nn.model @adam attributes {stage = "train", batch = 2 : i64, train = {optimizer = {name = "adam", weight_decay = 0.25 : f64}}} {
  // CHECK-DAG: nn.variable @lr : tensor<f32> {init = #nn.init<constant, 1.000000e-03
  // CHECK-DAG: nn.variable @step : tensor<i64>
  // CHECK-DAG: nn.variable @optimizer.exp_avg.w
  // CHECK-DAG: nn.variable @optimizer.exp_avg_sq.w
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @b : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}, %h: tensor<3xf32> {nn.input = "y"}) {
    // CHECK: %[[LR:.*]] = nn.read @lr
    // CHECK: %[[STEP:.*]] = nn.read @step : tensor<i64>
    // CHECK: %[[DONE:.*]] = nn.cast %[[STEP]] {nn.role = #nn.role<update>} : (tensor<i64>) -> tensor<f32>
    // CHECK: %[[T:.*]] = nn.add %[[DONE]]
    // CHECK: %[[RATE1:.*]] = nn.constant dense<0.0526802{{.*}}> : tensor<f32>
    // CHECK: %[[X1:.*]] = nn.mul %[[T]], %[[RATE1]]
    // CHECK: %[[TANH1:.*]] = nn.tanh %[[X1]]
    // CHECK: %[[BC1:.*]] = nn.div
    // CHECK: %[[SIZE:.*]] = nn.div %[[LR]], %[[BC1]]
    // CHECK: nn.constant dense<5.00250142E-4> : tensor<f32>
    // CHECK: %[[BC2:.*]] = nn.div
    // CHECK: %[[ROOT:.*]] = nn.sqrt %[[BC2]]

    // CHECK: %[[W:.*]] = nn.read @w
    // CHECK: %[[GRAD:.*]] = nn.add
    // CHECK: %[[M:.*]] = nn.read @optimizer.exp_avg.w
    // CHECK: %[[V:.*]] = nn.read @optimizer.exp_avg_sq.w
    // CHECK: %[[TOWARDS:.*]] = nn.sub %[[GRAD]], %[[M]]
    // CHECK: %[[PART:.*]] = nn.mul %[[TOWARDS]]
    // CHECK: %[[M1:.*]] = nn.add %[[M]], %[[PART]]
    // CHECK: %[[KEPT:.*]] = nn.mul %[[V]]
    // CHECK: %[[SQUARE:.*]] = nn.mul %[[GRAD]], %[[GRAD]]
    // CHECK: %[[NEW:.*]] = nn.mul %[[SQUARE]]
    // CHECK: %[[V1:.*]] = nn.add %[[KEPT]], %[[NEW]]
    // CHECK: nn.assign @optimizer.exp_avg.w, %[[M1]]
    // CHECK: nn.assign @optimizer.exp_avg_sq.w, %[[V1]]
    // CHECK: %[[DEVIATION:.*]] = nn.sqrt %[[V1]]
    // CHECK: %[[ROOTS:.*]] = nn.broadcast %[[ROOT]]
    // CHECK: %[[CORRECTED:.*]] = nn.div %[[DEVIATION]], %[[ROOTS]]
    // CHECK: %[[EPS:.*]] = nn.constant dense<9.99999993E-9>
    // CHECK: %[[DENOMINATOR:.*]] = nn.add %[[CORRECTED]], %[[EPS]]
    // CHECK: %[[SIZES:.*]] = nn.broadcast %[[SIZE]]
    // CHECK: %[[DIRECTION:.*]] = nn.div %[[M1]], %[[DENOMINATOR]]
    // CHECK: %[[UPDATE:.*]] = nn.mul %[[SIZES]], %[[DIRECTION]]
    // CHECK: %[[NEXT:.*]] = nn.sub %[[W]], %[[UPDATE]]
    // CHECK: nn.assign @w, %[[NEXT]]
    nn.gradient @w, %g : tensor<2xf32>
    // CHECK-NOT: nn.tanh
    // CHECK: nn.assign @b
    nn.gradient @b, %h : tensor<3xf32>
  }
}

// -----

// AdamW takes the decay off the parameter: w (1 - lr wd), and leaves it out of the moments.
// CHECK-LABEL: nn.model @adamw
nn.model @adamw attributes {stage = "train", batch = 2 : i64, train = {optimizer = {name = "adamw", weight_decay = 0.25 : f64}}} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}) {
    // What is left of a weight is one number, so that no two updates share a tensor.
    // CHECK: %[[LR:.*]] = nn.read @lr
    // CHECK: %[[WD:.*]] = nn.constant dense<2.500000e-01> : tensor<f32>
    // CHECK: %[[SHARE:.*]] = nn.mul %[[LR]], %[[WD]]
    // CHECK: %[[LEFT:.*]] = nn.sub %{{.*}}, %[[SHARE]]
    // CHECK: %[[W:.*]] = nn.read @w
    // CHECK: %[[GRAD:.*]] = nn.mul
    // CHECK: %[[REST:.*]] = nn.broadcast %[[LEFT]]
    // CHECK: %[[DECAYED:.*]] = nn.mul %[[W]], %[[REST]]
    // CHECK: nn.mul %[[GRAD]], %[[GRAD]]
    // CHECK: %[[NEXT:.*]] = nn.sub %[[DECAYED]]
    // CHECK: nn.assign @w, %[[NEXT]]
    nn.gradient @w, %g : tensor<2xf32>
  }
}
