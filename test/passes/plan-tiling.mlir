// RUN: dlc-opt %s --split-input-file --dlc-plan-tiling | FileCheck %s
// RUN: dlc-opt %s --split-input-file --dlc-plan-tiling --remarks-filter=dlc-tiling 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A level of a U-Net: 1 + 1 (convolutions at full and half resolution, the latter counting twice) and 1 of the pooling's window
// reach 4 pixels; the total stride is 2.
// CHECK-LABEL: nn.model @unet
// CHECK-SAME: tiling = {alignment = array<i64: 2, 2>, overlap = array<i64: 4, 4>}
nn.model @unet attributes {stage = "nn"} {
  nn.variable @w : tensor<4x1x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @v : tensor<4x4x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @u : tensor<4x4x2x2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @b : tensor<8xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2x1x8x16xf32> {nn.input = "image"}) {
    %w = nn.read @w : tensor<4x1x3x3xf32>
    %v = nn.read @v : tensor<4x4x3x3xf32>
    %u = nn.read @u : tensor<4x4x2x2xf32>
    %b = nn.read @b : tensor<8xf32>
    %skip = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
        : (tensor<2x1x8x16xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x8x16xf32>
    %low, %index = nn.max_pool %skip {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>}
        : (tensor<2x4x8x16xf32>) -> (tensor<2x4x4x8xf32>, tensor<2x4x4x8xi8>)
    %deep = nn.conv %low, %v {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
        : (tensor<2x4x4x8xf32>, tensor<4x4x3x3xf32>) -> tensor<2x4x4x8xf32>
    %up = nn.conv_transpose %deep, %u {strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
        : (tensor<2x4x4x8xf32>, tensor<4x4x2x2xf32>) -> tensor<2x4x8x16xf32>
    %both = nn.concat %skip, %up {dim = 1 : i64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> tensor<2x8x8x16xf32>
    %bias = nn.broadcast %b {dims = array<i64: 1>} : (tensor<8xf32>) -> tensor<2x8x8x16xf32>
    %sum = nn.add %both, %bias : (tensor<2x8x8x16xf32>, tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32>
    nn.output "y", %sum : tensor<2x8x8x16xf32>
  }
}

// -----

// An output of half the size; the overlap of 1 is rounded up to the total stride. The softmax over channels looks at one pixel.
// CHECK-LABEL: nn.model @strided
// CHECK-SAME: tiling = {alignment = array<i64: 2>, overlap = array<i64: 2>}
nn.model @strided attributes {stage = "nn"} {
  nn.variable @w : tensor<4x1x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %w = nn.read @w : tensor<4x1x3xf32>
    %y = nn.conv %x, %w {strides = array<i64: 2>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, dilations = array<i64: 1>}
        : (tensor<2x1x8xf32>, tensor<4x1x3xf32>) -> tensor<2x4x4xf32>
    %most = nn.reduce_max %y {dims = array<i64: 1>} : (tensor<2x4x4xf32>) -> tensor<2x4xf32>
    %all = nn.broadcast %most {dims = array<i64: 0, 2>} : (tensor<2x4xf32>) -> tensor<2x4x4xf32>
    %z = nn.sub %y, %all : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    nn.output "y", %z : tensor<2x4x4xf32>
  }
}

// -----

// Upsampling by repetition between a pooling and a dilated convolution: windows of 2, then 2 pixels to either side.
// CHECK-LABEL: nn.model @repeated
// CHECK-SAME: tiling = {alignment = array<i64: 2>, overlap = array<i64: 4>}
nn.model @repeated attributes {stage = "nn"} {
  nn.variable @w : tensor<1x1x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %low, %index = nn.max_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, padding_low = array<i64: 0>, padding_high = array<i64: 0>}
        : (tensor<2x1x8xf32>) -> (tensor<2x1x4xf32>, tensor<2x1x4xi8>)
    %twice = nn.broadcast %low {dims = array<i64: 0, 1, 2>} : (tensor<2x1x4xf32>) -> tensor<2x1x4x2xf32>
    %up = nn.reshape %twice : (tensor<2x1x4x2xf32>) -> tensor<2x1x8xf32>
    %w = nn.read @w : tensor<1x1x3xf32>
    %y = nn.conv %up, %w {strides = array<i64: 1>, padding_low = array<i64: 2>, padding_high = array<i64: 2>, dilations = array<i64: 2>}
        : (tensor<2x1x8xf32>, tensor<1x1x3xf32>) -> tensor<2x1x8xf32>
    nn.output "y", %y : tensor<2x1x8xf32>
  }
}

// -----

// Without padding the output is smaller than the input; a stale attribute goes, and the convolution is named.
// CHECK-LABEL: nn.model @unpadded
// CHECK-NOT: tiling =
// CHECK-SAME: untiled = "makes 6 elements of 8 pixels; padding could keep the size"
nn.model @unpadded attributes {stage = "nn", tiling = {alignment = array<i64: 1>, overlap = array<i64: 1>}} {
  nn.variable @w : tensor<1x1x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %w = nn.read @w : tensor<1x1x3xf32>
    %y = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>}
        : (tensor<2x1x8xf32>, tensor<1x1x3xf32>) -> tensor<2x1x6xf32>
    nn.output "y", %y : tensor<2x1x6xf32>
  }
}

// -----

// REMARK: remark: [Missed] untiled {{.*}}model.dl:12:7: gate reads the whole image along axis 2
// A mean over all pixels depends on the whole image, also where it is combined with each pixel.
// CHECK-LABEL: nn.model @global
// CHECK-NOT: tiling =
// CHECK-SAME: untiled = "model.dl:12:7: gate reads the whole image along axis 2"
nn.model @global attributes {stage = "nn"} {
  nn.program @predict(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %sum = nn.reduce_sum %x {dims = array<i64: 2>} : (tensor<2x1x8xf32>) -> tensor<2x1xf32> loc("gate"("models/model.dl":12:7))
    %all = nn.broadcast %sum {dims = array<i64: 0, 1>} : (tensor<2x1xf32>) -> tensor<2x1x8xf32>
    %y = nn.sub %x, %all : (tensor<2x1x8xf32>, tensor<2x1x8xf32>) -> tensor<2x1x8xf32>
    nn.output "y", %y : tensor<2x1x8xf32>
  }
}

// -----

// A variable that differs from pixel to pixel.
// CHECK-LABEL: nn.model @position
// CHECK-NOT: tiling =
// CHECK-SAME: combines pixels with values that have fixed places in the image"
nn.model @position attributes {stage = "nn"} {
  nn.variable @p : tensor<2x1x8xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %p = nn.read @p : tensor<2x1x8xf32>
    %y = nn.add %x, %p : (tensor<2x1x8xf32>, tensor<2x1x8xf32>) -> tensor<2x1x8xf32>
    nn.output "y", %y : tensor<2x1x8xf32>
  }
}

// -----

// A gate of one channel multiplies every channel: dimensions of extent 1 come and go.
// CHECK-LABEL: nn.model @gate
// CHECK-SAME: tiling = {alignment = array<i64: 1, 1>, overlap = array<i64: 0, 0>, parameters = ["height", "width"]}
nn.model @gate attributes {stage = "nn", untiled = "stale"} {
  nn.program @predict(%x: tensor<2x4x8x8xf32> {nn.input = "image", nn.parameters = ["batch", "", "height", "width"]}) {
    %sum = nn.reduce_sum %x {dims = array<i64: 1>} : (tensor<2x4x8x8xf32>) -> tensor<2x8x8xf32>
    %kept = nn.reshape %sum : (tensor<2x8x8xf32>) -> tensor<2x1x8x8xf32>
    %gate = nn.sigmoid %kept : (tensor<2x1x8x8xf32>) -> tensor<2x1x8x8xf32>
    %plane = nn.reshape %gate : (tensor<2x1x8x8xf32>) -> tensor<2x8x8xf32>
    %all = nn.broadcast %plane {dims = array<i64: 0, 2, 3>} : (tensor<2x8x8xf32>) -> tensor<2x4x8x8xf32>
    %y = nn.mul %x, %all : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
    nn.output "y", %y : tensor<2x4x8x8xf32>
    nn.output "plane", %plane : tensor<2x8x8xf32>
  }
}

// -----

// Rows of the image are no channels, although a convolution takes them for such.
// CHECK-LABEL: nn.model @rows
// CHECK-NOT: tiling =
// CHECK-SAME: takes an axis of the image for its channels"
nn.model @rows attributes {stage = "nn"} {
  nn.variable @w : tensor<8x8x1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2x4x8x8xf32> {nn.input = "image"}) {
    %sum = nn.reduce_sum %x {dims = array<i64: 1>} : (tensor<2x4x8x8xf32>) -> tensor<2x8x8xf32>
    %w = nn.read @w : tensor<8x8x1xf32>
    %y = nn.conv %sum, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>}
        : (tensor<2x8x8xf32>, tensor<8x8x1xf32>) -> tensor<2x8x8xf32>
    nn.output "y", %y : tensor<2x8x8xf32>
  }
}

// -----

// Zeros around the image keep its size, so that the convolution reaches as far as with a padding of its own: 3 pixels ahead, 1 behind.
// CHECK-LABEL: nn.model @padded
// CHECK-SAME: tiling = {alignment = array<i64: 1>, overlap = array<i64: 3>}
nn.model @padded attributes {stage = "nn"} {
  nn.variable @w : tensor<1x1x5xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %w = nn.read @w : tensor<1x1x5xf32>
    %wide = nn.pad %x {low = array<i64: 0, 0, 3>, high = array<i64: 0, 0, 1>, value = 0.0 : f64} : (tensor<2x1x8xf32>) -> tensor<2x1x12xf32>
    %y = nn.conv %wide, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>}
        : (tensor<2x1x12xf32>, tensor<1x1x5xf32>) -> tensor<2x1x8xf32>
    nn.output "y", %y : tensor<2x1x8xf32>
  }
}

// -----

// Resized to half by a whole factor and back by another: the pairs' means, each for two pixels.
// CHECK-LABEL: nn.model @resized
// CHECK-SAME: tiling = {alignment = array<i64: 2>, overlap = array<i64: 2>}
nn.model @resized attributes {stage = "nn"} {
  nn.program @predict(%x: tensor<2x1x8xf32> {nn.input = "image"}) {
    %half = nn.avg_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, count_padding = true}
        : (tensor<2x1x8xf32>) -> tensor<2x1x4xf32>
    %y = nn.upsample %half {scale = array<i64: 2>} : (tensor<2x1x4xf32>) -> tensor<2x1x8xf32>
    nn.output "y", %y : tensor<2x1x8xf32>
  }
}
