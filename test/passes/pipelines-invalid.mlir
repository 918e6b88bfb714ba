// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-exec-pipeline=target=test:rules

// Text that claims to be at a stage is verified before the next stage relies on it.
nn.model @train attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // expected-error @below {{is left: no optimizer consumed it}}
    nn.gradient @w, %x : tensor<2xf32>
  }
}

// -----

// So is what the user wrote.
// expected-error @below {{has no program}}
nn.model @nn attributes {stage = "nn", batch = 2 : i64} {
}
