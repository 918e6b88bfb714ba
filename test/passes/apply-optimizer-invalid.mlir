// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-apply-optimizer

// expected-error @below {{has gradients, but no optimizer}}
nn.model @none attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}) {
    nn.gradient @w, %g : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has the optimizer 'lion', expected sgd, adam, adamw or rmsprop}}
nn.model @unknown attributes {stage = "train", batch = 2 : i64, train = {optimizer = {name = "lion"}}} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}) {
    nn.gradient @w, %g : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has the optimizer's lr = 1 : i64, expected a float}}
nn.model @type attributes {stage = "train", batch = 2 : i64, train = {optimizer = {name = "sgd", lr = 1 : i64}}} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}) {
    nn.gradient @w, %g : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has the optimizer's beta2 = 1.000000e+00, expected a number from 0 to below 1}}
nn.model @range attributes {stage = "train", batch = 2 : i64, train = {optimizer = {name = "adam", beta2 = 1.0 : f64}}} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}) {
    nn.gradient @w, %g : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has the optimizer's nesterov without a momentum}}
nn.model @nesterov attributes {stage = "train", batch = 2 : i64, train = {optimizer = {name = "sgd", nesterov = true}}} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}) {
    nn.gradient @w, %g : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has the optimizer's no_decay pattern "[a"}}
nn.model @glob attributes {stage = "train", batch = 2 : i64, train = {optimizer = {name = "sgd", no_decay = ["[a"]}}} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%g: tensor<2xf32> {nn.input = "x"}) {
    nn.gradient @w, %g : tensor<2xf32>
  }
}
