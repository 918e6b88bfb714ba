// RUN: dlc-opt %s --split-input-file --dlc-tile-evaluation | FileCheck %s

// The sum leaves out pixels at either end, a constant count shrinks, a count of pixels is a sum like others. The window of
// the convolution reaches one pixel.
// CHECK-LABEL: nn.model @pixels
// CHECK-SAME: eval_tiling = {alignment = array<i64: 1>, overlap = array<i64: 1>}
// CHECK: nn.variable @skip_low_0 : tensor<f32> {init = #nn.init<constant, 0.000000e+00, 0.000000e+00>, kind = #nn<kind scalar>}
// CHECK-DAG: %[[LOW:.*]] = nn.read @skip_low_0
// CHECK-DAG: %[[HIGH:.*]] = nn.read @skip_high_0
// CHECK: %[[Y:.*]] = nn.conv
// CHECK: %[[END:.*]] = nn.sub %{{.*}}, %{{.*}} : (tensor<8xf32>, tensor<8xf32>)
// CHECK: %[[BEGINS:.*]] = nn.compare ge
// CHECK: %[[ENDS:.*]] = nn.compare lt %{{.*}}, %[[END]]
// CHECK: %[[BOTH:.*]] = nn.and %[[BEGINS]], %[[ENDS]]
// CHECK: %[[COUNTED:.*]] = nn.broadcast %[[BOTH]] {dims = array<i64: 2>} : (tensor<8xi1>) -> tensor<2x1x8xi1>
// CHECK: %[[KEPT:.*]] = nn.select %[[COUNTED]], %[[Y]],
// CHECK: %[[SUM:.*]] = nn.reduce_sum %[[KEPT]]
// CHECK: %[[SKIPPED:.*]] = nn.add %[[LOW]], %[[HIGH]]
// CHECK: %[[LEFT:.*]] = nn.sub %{{.*}}, %[[SKIPPED]]
// CHECK: %[[SHARE:.*]] = nn.div %[[LEFT]]
// CHECK: %[[COUNT:.*]] = nn.mul %{{.*}}, %[[SHARE]]
// CHECK: nn.loss %[[SUM]], %[[COUNT]]
// CHECK: nn.metric "ratio", %[[SUM]], %[[SUM]]
nn.model @pixels attributes {stage = "nn"} {
  nn.variable @w : tensor<1x1x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @eval(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %count = nn.constant dense<16.0> : tensor<f32>
    %w = nn.read @w : tensor<1x1x3xf32>
    %y = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, dilations = array<i64: 1>}
        : (tensor<2x1x8xf32>, tensor<1x1x3xf32>) -> tensor<2x1x8xf32>
    %sum = nn.reduce_sum %y {dims = array<i64: 0, 1, 2>} : (tensor<2x1x8xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
    nn.metric "ratio", %sum, %sum : tensor<f32>, tensor<f32>
  }
}

// -----

// Labels of pixels are images without an axis of channels. A loss depends on what its logits and its label do.
// CHECK-LABEL: nn.model @labels
// CHECK-SAME: eval_tiling = {alignment = array<i64: 1, 1>, overlap = array<i64: 0, 1>}
// CHECK: %[[LOSS:.*]] = nn.softmax_cross_entropy
// CHECK: %[[COUNTED:.*]] = nn.broadcast %{{.*}} {dims = array<i64: 1>} : (tensor<6xi1>) -> tensor<2x6x8xi1>
// CHECK: %[[KEPT:.*]] = nn.select %[[COUNTED]], %[[LOSS]],
// CHECK: %[[COUNTED:.*]] = nn.broadcast %{{.*}} {dims = array<i64: 2>} : (tensor<8xi1>) -> tensor<2x6x8xi1>
// CHECK: nn.select %[[COUNTED]], %[[KEPT]],
nn.model @labels attributes {stage = "nn"} {
  nn.variable @w : tensor<3x1x1x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @eval(%x: tensor<2x1x6x8xf32> {nn.input = "image"}, %label: tensor<2x6x8xi32> {nn.input = "label"}) {
    %count = nn.constant dense<96.0> : tensor<f32>
    %w = nn.read @w : tensor<3x1x1x3xf32>
    %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 1>, padding_high = array<i64: 0, 1>, dilations = array<i64: 1, 1>}
        : (tensor<2x1x6x8xf32>, tensor<3x1x1x3xf32>) -> tensor<2x3x6x8xf32>
    %loss = nn.softmax_cross_entropy %y, %label : (tensor<2x3x6x8xf32>, tensor<2x6x8xi32>) -> tensor<2x6x8xf32>
    %sum = nn.reduce_sum %loss {dims = array<i64: 0, 1, 2>} : (tensor<2x6x8xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// Labels of other pixels than the logits'.
// CHECK-LABEL: nn.model @turned
// CHECK-NOT: skip_low
nn.model @turned attributes {stage = "nn"} {
  nn.program @eval(%x: tensor<2x3x8x8xf32> {nn.input = "image"}, %label: tensor<2x8x8xi32> {nn.input = "label"}) {
    %count = nn.constant dense<128.0> : tensor<f32>
    %turned = nn.transpose %label {permutation = array<i64: 0, 2, 1>} : (tensor<2x8x8xi32>) -> tensor<2x8x8xi32>
    %loss = nn.softmax_cross_entropy %x, %turned : (tensor<2x3x8x8xf32>, tensor<2x8x8xi32>) -> tensor<2x8x8xf32>
    %sum = nn.reduce_sum %loss {dims = array<i64: 0, 1, 2>} : (tensor<2x8x8xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// A label of an image, which is none of its pixels.
// CHECK-LABEL: nn.model @classified
// CHECK-NOT: skip_low
nn.model @classified attributes {stage = "nn"} {
  nn.program @eval(%x: tensor<2x1x8xf32> {nn.input = "image"}, %label: tensor<2xi32> {nn.input = "label"}) {
    %count = nn.constant dense<16.0> : tensor<f32>
    %class = nn.cast %label : (tensor<2xi32>) -> tensor<2xf32>
    %spread = nn.broadcast %class {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x1x8xf32>
    %y = nn.mul %x, %spread : (tensor<2x1x8xf32>, tensor<2x1x8xf32>) -> tensor<2x1x8xf32>
    %sum = nn.reduce_sum %y {dims = array<i64: 0, 1, 2>} : (tensor<2x1x8xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// The index of a channel is the same in all tiles.
// CHECK-LABEL: nn.model @channels
// CHECK-SAME: eval_tiling
nn.model @channels attributes {stage = "nn"} {
  nn.program @eval(%x: tensor<2x3x8xf32> {nn.input = "image"}) {
    %count = nn.constant dense<48.0> : tensor<f32>
    %index = nn.iota {dim = 1} : tensor<2x3x8xi32>
    %place = nn.cast %index : (tensor<2x3x8xi32>) -> tensor<2x3x8xf32>
    %y = nn.mul %x, %place : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    %sum = nn.reduce_sum %y {dims = array<i64: 0, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// The index of a pixel is another one in each tile.
// CHECK-LABEL: nn.model @places
// CHECK-NOT: skip_low
nn.model @places attributes {stage = "nn"} {
  nn.program @eval(%x: tensor<2x3x8xf32> {nn.input = "image"}) {
    %count = nn.constant dense<48.0> : tensor<f32>
    %index = nn.iota {dim = 2} : tensor<2x3x8xi32>
    %place = nn.cast %index : (tensor<2x3x8xi32>) -> tensor<2x3x8xf32>
    %y = nn.mul %x, %place : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    %sum = nn.reduce_sum %y {dims = array<i64: 0, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// A function of a row's sum that is not linear is none of its tiles' sums.
// CHECK-LABEL: nn.model @dice
// CHECK-NOT: skip_low
nn.model @dice attributes {stage = "nn"} {
  nn.program @eval(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %count = nn.constant dense<2.0> : tensor<f32>
    %row = nn.reduce_sum %x {dims = array<i64: 1, 2>} : (tensor<2x1x8xf32>) -> tensor<2xf32>
    %share = nn.div %row, %row : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %sum = nn.reduce_sum %share {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// Pixels that need the mean of all pixels are not known from a tile.
// CHECK-LABEL: nn.model @centred
// CHECK-NOT: skip_low
nn.model @centred attributes {stage = "nn"} {
  nn.program @eval(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %count = nn.constant dense<16.0> : tensor<f32>
    %all = nn.reduce_sum %x {dims = array<i64: 0, 1, 2>} : (tensor<2x1x8xf32>) -> tensor<f32>
    %spread = nn.broadcast %all {dims = array<i64>} : (tensor<f32>) -> tensor<2x1x8xf32>
    %y = nn.sub %x, %spread : (tensor<2x1x8xf32>, tensor<2x1x8xf32>) -> tensor<2x1x8xf32>
    %sum = nn.reduce_sum %y {dims = array<i64: 0, 1, 2>} : (tensor<2x1x8xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// What is masked already stays: a count would shrink twice.
// CHECK-LABEL: nn.model @again
// CHECK-NOT: nn.select
nn.model @again attributes {stage = "nn", eval_tiling = {alignment = array<i64: 1>, overlap = array<i64: 0>}} {
  nn.program @eval(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %count = nn.constant dense<16.0> : tensor<f32>
    %sum = nn.reduce_sum %x {dims = array<i64: 0, 1, 2>} : (tensor<2x1x8xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}
