// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-nn

// Numbers of the blocks data and train, and what a plan is for, are in the range that makes sense of them.
// expected-error @below {{has data.validation = 5.000000e+00 : f64, expected a number from 0 to below 1}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, data = {validation = 5.0}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has data.validation = -1.000000e+00 : f64, expected a number from 0 to below 1}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, data = {validation = -1.0}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has data.validation = 0x7FF8000000000000 : f64, expected a number from 0 to below 1}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, data = {validation = 0x7FF8000000000000 : f64}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has data.chains[0].steps[0].std = 0.000000e+00 : f64, expected a number finite and above 0}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, data = {chains = [{inputs = ["x"], outputs = ["x"], steps = [{name = "normalize", mean = [0.0], std = [0.0]}]}]}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has train.epochs = 0 : i64, expected a number from 1 to 1000000000}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {epochs = 0 : i64}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has train.steps_per_epoch = -1 : i64, expected a number from 0 to 1000000000}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {steps_per_epoch = -1 : i64}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has train.optimizer.lr = -5.000000e-01 : f64, expected a number finite and at least 0}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "sgd", lr = -0.5}}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has train.optimizer.beta2 = 1.000000e+00 : f64, expected a number from 0 to below 1}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "adam", beta2 = 1.0}}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has train.schedule[0].at = 1.000000e+300 : f64, expected a number from 0 to 1000000000}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {schedule = [{name = "step", at = [3.0, 1.0e300], factor = 0.1}]}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has train.early_stop.patience = -3 : i64, expected a number from 0 to 1000000000}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {early_stop = {name = "early_stop", patience = -3 : i64}}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has math = "quick", expected one of strict|fast}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, math = "quick"} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @below {{has link.gbit_per_s = 0.000000e+00 : f64, expected a number finite and above 0}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, link = {gbit_per_s = 0.0, latency_us = 1.0}} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
  }
}
