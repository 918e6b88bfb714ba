// loss = w . x, of one row per rank.
nn.model @linear attributes {stage = "nn", batch = 1 : i64} {
  nn.variable @w : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<1x3xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<3xf32>
    %row = nn.reshape %x : (tensor<1x3xf32>) -> tensor<3xf32>
    %product = nn.mul %w, %row : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %sum = nn.reduce_sum %product {dims = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    nn.loss %sum, %one : tensor<f32>, tensor<f32>
    nn.metric "sum", %sum, %one : tensor<f32>, tensor<f32>
  }
}
