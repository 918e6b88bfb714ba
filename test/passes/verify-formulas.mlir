// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-nn

// A metric that is a function of two others, which the monitor may watch.
nn.model @good attributes {stage = "nn", batch = 2 : i64,
    train = {optimizer = {name = "sgd"}, monitor = {name = "f", goal = "max"}}} {
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"})
      attributes {formulas = [{name = "f", means = 2 : i64, expression = "m0 m1 div"}]} {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
    nn.metric "f.0", %s, %s : tensor<f32>, tensor<f32>
    nn.metric "f.1", %s, %s : tensor<f32>, tensor<f32>
  }
}

// -----

nn.model @list attributes {stage = "nn"} {
  // expected-error @below {{has formula "m0", expected a list}}
  nn.program @train() attributes {formulas = "m0"} {
    %0 = nn.constant dense<0.0> : tensor<f32>
  }
}

// -----

nn.model @form attributes {stage = "nn"} {
  // expected-error @below {{expected {name, means, expression}}}
  nn.program @train() attributes {formulas = ["m0"]} {
    %0 = nn.constant dense<0.0> : tensor<f32>
  }
}

// -----

nn.model @name attributes {stage = "nn"} {
  // expected-error @below {{which has the name of another result}}
  nn.program @train() attributes {formulas = [{name = "loss", means = 1 : i64, expression = "m0"}]} {
    %0 = nn.constant dense<0.0> : tensor<f32>
  }
}

// -----

nn.model @mean attributes {stage = "nn"} {
  // expected-error @below {{but there is no metric 'f.1'}}
  nn.program @train(%x: tensor<f32> {nn.input = "x"})
      attributes {formulas = [{name = "f", means = 2 : i64, expression = "m0"}]} {
    nn.metric "f.0", %x, %x : tensor<f32>, tensor<f32>
  }
}

// -----

nn.model @expression attributes {stage = "nn"} {
  // expected-error @below {{whose expression is none of its means}}
  nn.program @train(%x: tensor<f32> {nn.input = "x"})
      attributes {formulas = [{name = "f", means = 1 : i64, expression = "m1 neg"}]} {
    nn.metric "f.0", %x, %x : tensor<f32>, tensor<f32>
  }
}
