// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-train

// Variables, constants and reduced values may be assigned.
nn.model @good attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @v : tensor<2xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %sum = comm.all_reduce %x : tensor<2xf32>
    %w = nn.read @w : tensor<2xf32>
    %c = nn.constant dense<2.0> : tensor<2xf32>
    %scaled = nn.mul %sum, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %next = nn.sub %w, %scaled : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    nn.assign @w, %next {nn.role = #nn.role<update>} : tensor<2xf32>
    nn.assign @v, %w {nn.role = #nn.role<update>} : tensor<2xf32>
  }
}

// -----

// The rank's own rows, however deep.
nn.model @input attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // expected-note @below {{it derives from input 'x'}}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<2xf32>
    %e = nn.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %next = nn.sub %w, %e : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // expected-error @below {{makes @w differ between ranks: its value is not all-reduced}}
    nn.assign @w, %next {nn.role = #nn.role<update>} : tensor<2xf32>
  }
}

// -----

// Reducing one of two terms is not enough.
nn.model @half attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // expected-note @below {{it derives from input 'x'}}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %sum = comm.all_reduce %x : tensor<2xf32>
    %next = nn.sub %sum, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // expected-error @below {{makes @w differ between ranks}}
    nn.assign @w, %next {nn.role = #nn.role<update>} : tensor<2xf32>
  }
}

// -----

// A dropout mask depends on where in the global batch a rank's rows are.
nn.model @mask attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @seed : tensor<i64> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @first_row : tensor<i64> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train() {
    %w = nn.read @w : tensor<2xf32>
    %seed = nn.read @seed : tensor<i64>
    // expected-note @below {{it derives from @first_row}}
    %row = nn.read @first_row : tensor<i64>
    %d = nn.dropout %w, %seed, %seed, %row {rate = 0.5 : f64, stream = 7 : i64}
        : (tensor<2xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2xf32>
    // expected-error @below {{makes @w differ between ranks}}
    nn.assign @w, %d {nn.role = #nn.role<update>} : tensor<2xf32>
  }
}

// -----

nn.model @gradient attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{is left: no optimizer consumed it}}
    nn.gradient @w, %x : tensor<2xf32>
  }
}

// -----

nn.model @eval attributes {stage = "train", batch = 2 : i64} {
  nn.program @eval(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{is in @eval; only @train communicates}}
    %sum = comm.all_reduce %x : tensor<2xf32>
  }
}

// -----

nn.model @foreign attributes {stage = "train", batch = 2 : i64} {
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{is neither an nn nor a comm op}}
    %y = arith.addf %x, %x : tensor<2xf32>
  }
}

// -----

// What stage nn promises holds of text that claims to be past it.
nn.model @batch attributes {stage = "train", batch = 2 : i64} {
  // expected-error @below {{has input 'x' of type 'tensor<3xf32>'; dimension 0 must be the batch of 2}}
  nn.program @eval(%x: tensor<3xf32> {nn.input = "x"}) {
  }
}

// -----

nn.model @later attributes {stage = "train", batch = 2 : i64} {
  nn.program @predict(%x: tensor<2x3xf32> {nn.input = "x"}) {
    // expected-error @below {{belongs to a later stage than train}}
    %y = nn.reorder %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "y", %y : tensor<2x3xf32>
  }
}

// -----

// expected-error @below {{is at stage 'nn', expected train}}
nn.model @early attributes {stage = "nn", batch = 2 : i64} {
}

// -----

nn.model @rows attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{belongs to a later stage than train}}
    %w = nn.read @w {row = 1} : tensor<1xf32>
  }
}

// -----

// A copy follows its parameter.
nn.model @stale attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // expected-error @below {{is a copy of @w, but @train does not assign the same of both}}
  nn.variable @w.bf16 : tensor<2xbf16> {kind = #nn<kind copy>, owner = @w, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %sum = comm.all_reduce %x : tensor<2xf32>
    nn.assign @w, %sum {nn.role = #nn.role<update>} : tensor<2xf32>
  }
}

// -----

nn.model @wide attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // expected-error @below {{is of kind copy and type 'tensor<2xf32>', which is no narrower form of a parameter's, @w, 'tensor<2xf32>'}}
  nn.variable @same : tensor<2xf32> {kind = #nn<kind copy>, owner = @w, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
  }
}

// -----

// Roles: what changes variables is an update, and what an update computes is read by updates.
nn.model @no_update attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<2xf32>
    // expected-error @+1 {{'nn.assign' op changes a variable, but is of the backward pass and no update}}
    nn.assign @w, %w {nn.role = #nn.role<backward>} : tensor<2xf32>
  }
}

// -----

nn.model @late attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<2xf32>
    %y = nn.neg %w {nn.role = #nn.role<update>} : (tensor<2xf32>) -> tensor<2xf32>
    // expected-error @+1 {{'nn.exp' op reads what an update computes, but is of the forward pass}}
    %z = nn.exp %y : (tensor<2xf32>) -> tensor<2xf32>
    nn.assign @w, %y {nn.role = #nn.role<update>} : tensor<2xf32>
  }
}

// -----

nn.model @late_sum attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @+1 {{'comm.all_reduce' op is a part of an update; ranks meet before}}
    %y = comm.all_reduce %x {nn.role = #nn.role<update>} : tensor<2xf32>
    nn.assign @w, %y {nn.role = #nn.role<update>} : tensor<2xf32>
  }
}

// -----

nn.model @summed attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %y = comm.all_reduce %x {nn.role = #nn.role<backward, @w>} : tensor<2xf32>
    // expected-error @+1 {{'nn.neg' op reads what ranks have summed up for @w, but its nn.role is of the backward pass and no update}}
    %z = nn.neg %y {nn.role = #nn.role<backward>} : (tensor<2xf32>) -> tensor<2xf32>
    nn.assign @w, %z {nn.role = #nn.role<update>} : tensor<2xf32>
  }
}

// -----

nn.model @unknown attributes {stage = "train", batch = 2 : i64} {
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @+1 {{'nn.exp' op is for @w, which is no variable}}
    %y = nn.exp %x {nn.role = #nn.role<backward, @w>} : (tensor<2xf32>) -> tensor<2xf32>
    nn.output "y", %y : tensor<2xf32>
  }
}

// -----

nn.model @no_role attributes {stage = "train", batch = 2 : i64} {
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @+1 {{'nn.exp' op nn.role is 1 : i64, expected a #nn.role}}
    %y = nn.exp %x {nn.role = 1} : (tensor<2xf32>) -> tensor<2xf32>
    nn.output "y", %y : tensor<2xf32>
  }
}

// -----

nn.model @sync attributes {stage = "train", batch = 4 : i64} {
  nn.variable @s : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<4x3xf32> {nn.input = "x"}) {
    %s = nn.read @s : tensor<3xf32>
    // expected-error @+1 {{'nn.batch_norm' op has `sync`, which dlc-insert-all-reduce turns into sums over ranks}}
    %y, %m, %v = nn.batch_norm %x, %s, %s, %s, %s {epsilon = 1.0e-5 : f64, training = true, sync}
        : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %sum = nn.reduce_sum %y {dims = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
    %four = nn.constant dense<4.0> : tensor<f32>
    nn.loss %sum, %four : tensor<f32>, tensor<f32>
  }
}
