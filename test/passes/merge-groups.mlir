// RUN: dlc-opt %s --split-input-file --dlc-assign-layouts=target=test:rules | FileCheck %s

// Groups of two channels become groups of four: the weight has zeros between different ones, of its
// gradient only the others' part is read. Forward and backward pass share what is expanded.
// CHECK-LABEL: nn.program @train
// CHECK: %[[W:.*]] = nn.read @w : tensor<16x2x3x3xf32>
// CHECK: %[[SPLIT:.*]] = nn.reshape %[[W]] {{.*}} -> tensor<4x2x2x18xf32>
// CHECK: %[[ALL:.*]] = nn.broadcast %[[SPLIT]] {dims = array<i64: 0, 1, 2, 4>} {{.*}} -> tensor<4x2x2x2x18xf32>
// CHECK: %[[DIAGONAL:.*]] = nn.select %{{.*}}, %[[ALL]]
// CHECK: %[[WIDE:.*]] = nn.reshape %[[DIAGONAL]] {{.*}} -> tensor<16x4x3x3xf32>
// CHECK: nn.conv %{{.*}}, %[[WIDE]] {{.*}}groups = 4
// CHECK: nn.conv_grad_data %{{.*}}, %[[WIDE]] {{.*}}groups = 4
// CHECK: %[[DW:.*]] = nn.conv_grad_filter {{.*}}groups = 4 : i64, nn.role = #nn.role<backward>{{.*}} -> tensor<16x4x3x3xf32
// CHECK: nn.reduce_sum {{.*}}{dims = array<i64: 3>, nn.role = #nn.role<backward, @w>} : (tensor<4x2x2x2x18xf32>)
// CHECK: nn.assign @w, {{.*}} : tensor<16x2x3x3xf32>
nn.model @pairs attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<16x2x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2x16x8x8xf32> {nn.input = "x"}, %dy: tensor<2x16x8x8xf32> {nn.input = "dy"}) {
    %w = nn.read @w : tensor<16x2x3x3xf32>
    %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 8 : i64}
        : (tensor<2x16x8x8xf32>, tensor<16x2x3x3xf32>) -> tensor<2x16x8x8xf32>
    %g = nn.mul %y, %dy : (tensor<2x16x8x8xf32>, tensor<2x16x8x8xf32>) -> tensor<2x16x8x8xf32>
    %dx = nn.conv_grad_data %g, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 8 : i64, nn.role = #nn.role<backward>}
        : (tensor<2x16x8x8xf32>, tensor<16x2x3x3xf32>) -> tensor<2x16x8x8xf32>
    %dw = nn.conv_grad_filter %dx, %g {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 8 : i64, nn.role = #nn.role<backward, @w>}
        : (tensor<2x16x8x8xf32>, tensor<2x16x8x8xf32>) -> tensor<16x2x3x3xf32>
    nn.assign @w, %dw {nn.role = #nn.role<update, @w>} : tensor<16x2x3x3xf32>
  }
}

// -----

// Groups of eight channels stay.
// CHECK-LABEL: nn.model @eights
// CHECK: nn.conv {{.*}}groups = 2
nn.model @eights attributes {stage = "train", batch = 2 : i64} {
  nn.program @predict(%x: tensor<2x16x8x8xf32> {nn.input = "x"}, %w: tensor<16x8x3x3xf32> {nn.input = "w"}) {
    %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64}
        : (tensor<2x16x8x8xf32>, tensor<16x8x3x3xf32>) -> tensor<2x16x8x8xf32>
    nn.output "y", %y : tensor<2x16x8x8xf32>
  }
}
