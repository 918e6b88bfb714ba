// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-nn

// A correct model.
nn.model @good attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @w : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @valid_rows : tensor<i64> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train(%x: tensor<2x3xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
    %w = nn.read @w : tensor<3xf32>
    nn.assign @w, %w : tensor<3xf32>
  }
  // Prediction may have a size of its own.
  nn.program @predict(%x: tensor<1x5xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<1x5xf32>
  }
}

// -----

// expected-error @below {{expected exactly one nn.model, found 0}}
module {
}

// -----

// expected-error @below {{expected exactly one nn.model, found 2}}
module {
  nn.model @a attributes {stage = "nn"} {
    nn.program @train() {
      %c = nn.constant dense<1.0> : tensor<f32>
      nn.loss %c, %c : tensor<f32>, tensor<f32>
    }
  }
  nn.model @b attributes {stage = "nn"} {
    nn.program @train() {
      %c = nn.constant dense<1.0> : tensor<f32>
      nn.loss %c, %c : tensor<f32>, tensor<f32>
    }
  }
}

// -----

// expected-error @below {{has no program}}
nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @w : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
}

// -----

// expected-error @below {{needs the attribute `batch`, the rows per rank, at least 1}}
nn.model @m attributes {stage = "nn", batch = 0 : i64} {
  nn.program @predict(%x: tensor<3xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<3xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  // expected-error @below {{has input 'x' of type 'tensor<3xf32>'; dimension 0 must be the batch of 2}}
  nn.program @eval(%x: tensor<3xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.program @eval(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
  }
  // expected-error @below {{has input 'x' of type 'tensor<1xi32>', but @eval has it as 'tensor<2xf32>'}}
  nn.program @predict(%x: tensor<1xi32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<1xi32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  // expected-error @below {{has two inputs 'x'}}
  nn.program @predict(%x: tensor<1xi32> {nn.input = "x"}, %y: tensor<1xi32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<1xi32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  // expected-error @below {{has the name of a scalar that the host writes, but kind parameter}}
  nn.variable @step : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{is no nn op}}
    %y = arith.addf %x, %x : tensor<2xf32>
    nn.output "y", %y : tensor<2xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{belongs to a later stage than nn}}
    nn.gradient @w, %x : tensor<2xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @w : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{belongs to a later stage than nn}}
    nn.assign @w, %x {row = 1} : tensor<2xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  // expected-error @below {{which the host writes, but the host knows only lr, step, seed, inverse_world, first_row, valid_rows}}
  nn.variable @learning_rate : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  // expected-error @below {{must be a 'tensor<f32>', got 'tensor<f64>'}}
  nn.variable @lr : tensor<f64> {kind = #nn<kind scalar>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @lr : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
    // expected-error @below {{changes a scalar, which only the host writes}}
    nn.assign @lr, %s : tensor<f32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  // expected-error @below {{has no nn.loss, so there is nothing to train}}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @eval(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{is in @eval; only @train changes variables}}
    nn.assign @w, %x : tensor<2xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    // expected-error @below {{is in @predict, which has outputs only}}
    nn.metric "m", %s, %s : tensor<f32>, tensor<f32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.program @eval(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{is in @eval; only @predict has outputs}}
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// Attributes have the entries and types with which they are read.
// expected-error @below {{has data.sources[0] = {nme = "x"} without 'name'}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, data = {sources = [{nme = "x"}]}} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has data.sources[0] = "x", expected a dictionary}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, data = {sources = ["x"]}} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has train.freeze[0] = "v.*", which matches no parameter of the model; near it are 'w.a', 'other'}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {freeze = ["v.*"]}} {
  nn.variable @other : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @w.a : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @v.mean : tensor<f32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has train.clip_norm = 0.000000e+00 : f64, expected a number finite and above 0}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {clip_norm = 0.0}} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has train.lr_scale[0] = ["w"], expected [a pattern of parameters' names, a float]}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {lr_scale = [["w"]]}} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has train.lr_scale[0] = -1.000000e+00 : f64, expected a number finite and at least 0}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {lr_scale = [["w", -1.0]]}} {
  nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has train.schedule = "cosine", expected a list, each a call {name = "...", argument = value}}}
nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {schedule = "cosine"}} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// expected-error @below {{has batch = 2 : ui8, expected an integer}}
nn.model @m attributes {stage = "nn", batch = 2 : ui8} {
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  // expected-error @below {{has the name of a scalar that the host writes}}
  nn.model @step attributes {stage = "nn"} {
  }
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

// expected-error @below {{is at stage 'train', expected nn}}
nn.model @m attributes {stage = "train", batch = 2 : i64} {
}

// -----

// What is trained, and what the host reads, is f32.
nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  // expected-error @below {{is of kind parameter and type 'tensor<4xbf16>'; optimizers update f32}}
  nn.variable @w : tensor<4xbf16> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @predict(%x: tensor<2xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2xf32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.program @train(%x: tensor<2xf64> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf64>) -> tensor<f64>
    // expected-error @below {{adds up f32, got 'tensor<f64>'; convert by nn.cast}}
    nn.loss %s, %s : tensor<f64>, tensor<f64>
  }
}

// -----

// Rows are what a batch is made of: all inputs of a program have as many.
nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  // expected-error @below {{has input 'b' of type 'tensor<3x4xf32>', but input 'a' of 'tensor<2x4xf32>'; dimension 0 of all inputs must be the batch}}
  nn.program @predict(%a: tensor<2x4xf32> {nn.input = "a"}, %b: tensor<3x4xf32> {nn.input = "b"}) {
    nn.output "y", %a : tensor<2x4xf32>
  }
}

// -----

// An output has a row for each of the batch.
nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    // expected-error @below {{has type 'tensor<f32>'; dimension 0 must be the batch of @predict, 2}}
    nn.output "y", %s : tensor<f32>
  }
}

// -----

nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @w : tensor<3x4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<3x4xf32>
    // expected-error @below {{has type 'tensor<3x4xf32>'; dimension 0 must be the batch of @predict, 2}}
    nn.output "y", %w : tensor<3x4xf32>
  }
}

// -----

// Outputs are told apart by name.
nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.program @predict(%x: tensor<2x4xf32> {nn.input = "x"}) {
    nn.output "y", %x : tensor<2x4xf32>
    // expected-error @below {{is the second one of @predict}}
    nn.output "y", %x : tensor<2x4xf32>
  }
}
