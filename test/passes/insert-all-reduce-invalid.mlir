// RUN: dlc-opt %s --verify-diagnostics --dlc-insert-all-reduce

// A gradient that does not start from weight / count cannot be corrected for other ranks' counts.
nn.model @counted attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %c = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    // expected-error @below {{has a count that depends on data, but no gradient is divided by it}}
    nn.loss %c, %c : tensor<f32>, tensor<f32>
    nn.gradient @w, %x : tensor<2xf32>
  }
}
