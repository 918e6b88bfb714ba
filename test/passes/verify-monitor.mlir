// The monitor says which way is better, and is a figure of the evaluation.
// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-nn

// expected-error @below {{has train.monitor = "loss", expected {name = a metric or "loss", goal = "max" or "min"}}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {monitor = "loss"}} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// expected-error @below {{training makes the loss small, so its goal is "min"}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {monitor = {name = "loss", goal = "max"}}} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// A metric that only @train has is none of the evaluation.
// expected-error @below {{but @eval has no such metric; there are 'loss'}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {monitor = {name = "m", goal = "max"}}} {
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
    nn.metric "m", %s, %s : tensor<f32>, tensor<f32>
  }
  nn.program @eval(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
  }
}

// -----

// Evaluation is still to be derived.
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {monitor = {name = "m", goal = "min"}}} {
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
    nn.metric "m", %s, %s : tensor<f32>, tensor<f32>
  }
}
