// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-derive-programs

// The largest value over a batch is no sum over rows.
nn.model @maximum attributes {stage = "nn", batch = 2 : i64} {
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_max %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    %c = nn.constant dense<2.0> : tensor<f32>
    // expected-error @below {{has a sum that is no sum over the 2 rows of a batch}}
    nn.loss %s, %c : tensor<f32>, tensor<f32>
  }
}

// -----

// Neither is a product of two sums.
nn.model @product attributes {stage = "nn", batch = 2 : i64} {
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    %p = nn.mul %s, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // expected-error @below {{has a count that is no sum over the 2 rows of a batch}}
    nn.metric "m", %s, %p : tensor<f32>, tensor<f32>
  }
}

// -----

// expected-error @below {{needs the attribute `batch`}}
nn.model @batchless attributes {stage = "nn"} {
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
  }
}
