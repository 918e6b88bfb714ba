// RUN: dlc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{stage is 'linalg', expected nn, train, schedule or exec}}
nn.model @m attributes {stage = "linalg"} {}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{attribute 'type' failed to satisfy constraint: type attribute of ranked tensor (static shape}}
  nn.variable @w : tensor<?xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{is of kind scalar and has rank 1}}
  nn.variable @lr : tensor<1xf32> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}
}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{a slot belongs to all variables of kind slot and to no others, an owner to all of kind copy, and to those of kind slot that are of one parameter}}
  nn.variable @m : tensor<1xf32> {kind = #nn<kind slot>, init = #nn.init<constant, 0.0, 0.0>}
}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{a slot belongs to all variables of kind slot and to no others, an owner to all of kind copy, and to those of kind slot that are of one parameter}}
  nn.variable @m : tensor<1xbf16> {kind = #nn<kind copy>, init = #nn.init<constant, 0.0, 0.0>}
}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{expected constant, normal or uniform}}
  nn.variable @w : tensor<1xf32> {kind = #nn<kind parameter>, init = #nn.init<orthogonal, 0.0, 0.0>}
}

// -----

// expected-error @below {{expects parent op 'nn.model'}}
nn.variable @w : tensor<1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{is named 'test', expected train, eval or predict}}
  nn.program @test() {
    %s = nn.constant dense<0.0> : tensor<f32>
  }
}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{argument 0 lacks nn.input, the name of an input}}
  nn.program @train(%x: tensor<f32>) {
    nn.output "x", %x : tensor<f32>
  }
}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{has input 'x' with nn.range = array<f64: 1.000000e+00, 0.000000e+00>, expected array<f64: low, high> with low <= high}}
  nn.program @train(%x: tensor<f32> {nn.input = "x", nn.range = array<f64: 1.0, 0.0>}) {
  }
}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{has input 'x' of type 'tensor<?xf32>', expected a tensor of static shape}}
  nn.program @train(%x: tensor<?xf32> {nn.input = "x"}) {
  }
}

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{has input 'x' of type 'i32', expected a tensor of static shape}}
  nn.program @train(%x: i32 {nn.input = "x"}) {
  }
}

// -----

nn.model @m attributes {stage = "nn"} {
  nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train() {
    %w = nn.read @w : tensor<f32>
    nn.assign @w, %w : tensor<f32>
    // expected-error @below {{is the second one of @w}}
    nn.assign @w, %w : tensor<f32>
  }
}

// -----

nn.model @m attributes {stage = "schedule"} {
  nn.variable @w : tensor<8xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train() {
    %a = nn.read @w {row = 0} : tensor<4xf32>
    %b = nn.read @w {row = 3} : tensor<5xf32>
    nn.assign @w, %a {row = 0} : tensor<4xf32>
    // expected-error @below {{is the second one of @w}}
    nn.assign @w, %b {row = 3} : tensor<5xf32>
  }
}

// -----

nn.model @m attributes {stage = "schedule"} {
  nn.variable @w : tensor<8xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train() {
    // expected-error @below {{has type 'tensor<4xf32>', which is not that of rows from 5 on of variable @w, 'tensor<8xf32>'}}
    %w = nn.read @w {row = 5} : tensor<4xf32>
  }
}

// -----

// Half a block of rows is not memory of its own.
nn.model @m attributes {stage = "schedule"} {
  nn.variable @w : tensor<32x4xf32, #nn.layout<Nc16n>> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train() {
    %a = nn.read @w {row = 16} : tensor<16x4xf32, #nn.layout<Nc16n>>
    // expected-error @below {{is not that of rows from 8 on of variable @w}}
    %w = nn.read @w {row = 8} : tensor<16x4xf32, #nn.layout<Nc16n>>
  }
}

// -----

nn.model @m attributes {stage = "nn"} {
  nn.program @train() {
    // expected-error @below {{names @w, which is no variable of the model}}
    %w = nn.read @w : tensor<f32>
  }
}

// -----

nn.model @m attributes {stage = "nn"} {
  nn.variable @w : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train() {
    // expected-error @below {{has type 'tensor<2xf32>', variable @w has 'tensor<f32>'}}
    %w = nn.read @w : tensor<2xf32>
  }
}

// -----

// A read has the variable's layout, a gradient may have another.
nn.model @m attributes {stage = "nn"} {
  nn.variable @w : tensor<1x2x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train(%x: tensor<1x2x3xf32, #nn.layout<nwc>> {nn.input = "x"}) {
    nn.gradient @w, %x : tensor<1x2x3xf32, #nn.layout<nwc>>
    // expected-error @below {{has type 'tensor<1x2x3xf32, #nn.layout<nwc>>', variable @w has 'tensor<1x2x3xf32>'}}
    nn.assign @w, %x : tensor<1x2x3xf32, #nn.layout<nwc>>
  }
}

// -----

%x = nn.constant dense<0.0> : tensor<2xf32>
%s = nn.constant dense<0.0> : tensor<f32>
// expected-error @below {{takes scalars, got 'tensor<2xf32>' and 'tensor<f32>'}}
nn.loss %x, %s : tensor<2xf32>, tensor<f32>

// -----

%x = nn.constant dense<0.0> : tensor<2xf32>
%s = nn.constant dense<0.0> : tensor<f32>
// expected-error @below {{takes scalars, got 'tensor<f32>' and 'tensor<2xf32>'}}
nn.metric "m", %s, %x : tensor<f32>, tensor<2xf32>

// -----

nn.model @m attributes {stage = "nn"} {
  // expected-error @below {{has input 'x' of type 'tensor<2x3xi16>', expected a tensor of static shape}}
  nn.program @predict(%x: tensor<2x3xi16> {nn.input = "x"}) {
  }
}
