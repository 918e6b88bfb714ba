// RUN: dlc-opt %s --dlc-lower-composites --canonicalize --cse --split-input-file | FileCheck %s

// Training batch norm: one pass over x gives both sums, in f64; y is one multiply-add per element.
// CHECK-LABEL: nn.model @training
nn.model @training attributes {stage = "train"} {
  nn.program @train(%x: tensor<2x3x4x4xf32> {nn.input = "x"}, %s: tensor<3xf32> {nn.input = "s"}) {
    // CHECK: %[[WIDE:.*]] = nn.cast %{{.*}} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf64>
    // CHECK: nn.reduce_sum %[[WIDE]] {dims = array<i64: 0, 2, 3>
    // CHECK: %[[SQUARE:.*]] = nn.mul %[[WIDE]], %[[WIDE]]
    // CHECK: nn.reduce_sum %[[SQUARE]] {dims = array<i64: 0, 2, 3>
    // CHECK: nn.rsqrt
    // CHECK: %[[SCALED:.*]] = nn.mul %arg0
    // CHECK: nn.add %[[SCALED]]
    // CHECK-NOT: nn.batch_norm
    %y, %m, %v = nn.batch_norm %x, %s, %s, %s, %s {epsilon = 1.0e-5 : f64, training = true} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
    nn.output "y", %y : tensor<2x3x4x4xf32>
    nn.output "m", %m : tensor<3xf32>
    nn.output "v", %v : tensor<3xf32>
  }
}

// -----

// Inference reads no statistics of the batch.
// CHECK-LABEL: nn.model @inference
// CHECK-NOT: nn.reduce_sum
// CHECK: nn.output
nn.model @inference attributes {stage = "train"} {
  nn.program @predict(%x: tensor<2x3x4x4xf32> {nn.input = "x"}, %s: tensor<3xf32> {nn.input = "s"}) {
    %y, %m, %v = nn.batch_norm %x, %s, %s, %s, %s {epsilon = 1.0e-5 : f64, training = false} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
    nn.output "y", %y : tensor<2x3x4x4xf32>
  }
}

// -----

// Softmax cross entropy subtracts the row's maximum before exp.
// CHECK-LABEL: nn.model @loss
nn.model @loss attributes {stage = "train"} {
  nn.program @train(%x: tensor<2x3xf32> {nn.input = "x"}, %t: tensor<2xi32> {nn.input = "t"}) {
    // CHECK: %[[MAX:.*]] = nn.reduce_max %arg0 {dims = array<i64: 1>, nn.role = #nn.role<forward, loss>}
    // CHECK: %[[ROW:.*]] = nn.broadcast %[[MAX]] {dims = array<i64: 0>
    // CHECK: %[[SHIFT:.*]] = nn.sub %arg0, %[[ROW]]
    // CHECK: %[[EXP:.*]] = nn.exp %[[SHIFT]]
    // CHECK: nn.reduce_sum %[[EXP]]
    // CHECK: nn.compare  eq
    %l = nn.softmax_cross_entropy %x, %t : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2xf32>
    nn.output "l", %l : tensor<2xf32>
  }
}

// -----

// A convolution to one channel with windows of one element is a sum over channels; its data gradient is a product, its filter
// gradient a sum.
// CHECK-LABEL: nn.model @projection
nn.model @projection attributes {stage = "train"} {
  nn.program @train(%x: tensor<2x3x4x5xf32> {nn.input = "x"}, %w: tensor<1x3x1x1xf32> {nn.input = "w"}, %b: tensor<1xf32> {nn.input = "b"}, %dy: tensor<2x1x4x5xf32> {nn.input = "dy"}) {
    // CHECK: %[[W:.*]] = nn.reshape %arg1{{.*}} : (tensor<1x3x1x1xf32>) -> tensor<3xf32>
    // CHECK: %[[ALONG:.*]] = nn.broadcast %[[W]] {dims = array<i64: 1>
    // CHECK: %[[PRODUCT:.*]] = nn.mul %arg0, %[[ALONG]]
    // CHECK: %[[SUM:.*]] = nn.reduce_sum %[[PRODUCT]] {dims = array<i64: 1>{{.*}}} : (tensor<2x3x4x5xf32>) -> tensor<2x4x5xf32>
    // CHECK: %[[Y:.*]] = nn.reshape %[[SUM]]{{.*}} : (tensor<2x4x5xf32>) -> tensor<2x1x4x5xf32>
    // CHECK: nn.add %[[Y]]
    // CHECK: %[[DY:.*]] = nn.broadcast %{{.*}} {dims = array<i64: 0, 2, 3>{{.*}}} : (tensor<2x4x5xf32>) -> tensor<2x3x4x5xf32>
    // CHECK: nn.mul %[[DY]], %[[ALONG]]
    // CHECK: %[[PRODUCTS:.*]] = nn.mul %arg0, %[[DY]]
    // CHECK: nn.reduce_sum %[[PRODUCTS]] {dims = array<i64: 0, 2, 3>{{.*}}} : (tensor<2x3x4x5xf32>) -> tensor<3xf32>
    %y = nn.conv %x, %w, %b {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x4x5xf32>, tensor<1x3x1x1xf32>, tensor<1xf32>) -> tensor<2x1x4x5xf32>
    %dx = nn.conv_grad_data %dy, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x1x4x5xf32>, tensor<1x3x1x1xf32>) -> tensor<2x3x4x5xf32>
    %dw = nn.conv_grad_filter %x, %dy {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x4x5xf32>, tensor<2x1x4x5xf32>) -> tensor<1x3x1x1xf32>
    nn.output "y", %y : tensor<2x1x4x5xf32>
    nn.output "dx", %dx : tensor<2x3x4x5xf32>
    nn.output "dw", %dw : tensor<1x3x1x1xf32>
  }
}

// -----

// Two output channels, or windows that step, are the library's.
// CHECK-LABEL: nn.model @no_projection
// CHECK: nn.conv
// CHECK: nn.conv
nn.model @no_projection attributes {stage = "train"} {
  nn.program @predict(%x: tensor<2x3x4x4xf32> {nn.input = "x"}, %w: tensor<2x3x1x1xf32> {nn.input = "w"}, %v: tensor<1x3x1x1xf32> {nn.input = "v"}) {
    %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x4x4xf32>, tensor<2x3x1x1xf32>) -> tensor<2x2x4x4xf32>
    %z = nn.conv %x, %v {strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<2x1x2x2xf32>
    nn.output "y", %y : tensor<2x2x4x4xf32>
    nn.output "z", %z : tensor<2x1x2x2xf32>
  }
}

// -----

// What a composite becomes has its role, and its kind, by which profiles tell clusters apart.
// CHECK-LABEL: nn.model @roles
nn.model @roles attributes {stage = "train"} {
  nn.variable @w : tensor<1x3x1x1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2x3x4x4xf32> {nn.input = "x"}, %s: tensor<3xf32> {nn.input = "s"}, %dy: tensor<2x1x4x4xf32> {nn.input = "dy"}) {
    // CHECK: nn.mul {{.*}} {nn.role = #nn.role<forward, norm>}
    %y, %m, %v = nn.batch_norm %x, %s, %s, %s, %s {epsilon = 1.0e-5 : f64, training = false} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
    // CHECK: nn.relu %{{[0-9]+}} :
    %r = nn.relu %y : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
    // CHECK: nn.mul {{.*}} {nn.role = #nn.role<backward, @w>}
    // CHECK: nn.reduce_sum {{.*}}nn.role = #nn.role<backward, @w>}
    %g = nn.conv_grad_filter %r, %dy {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.role = #nn.role<backward, @w>} : (tensor<2x3x4x4xf32>, tensor<2x1x4x4xf32>) -> tensor<1x3x1x1xf32>
    nn.output "g", %g : tensor<1x3x1x1xf32>
  }
}

// -----

// Sums over the same elements are alike, whether they keep a dimension of one element or not; those that keep more stay.
// CHECK-LABEL: nn.model @sums
nn.model @sums attributes {stage = "train"} {
  nn.program @train(%x: tensor<2x1x4x5xf32> {nn.input = "x"}) {
    // CHECK: %[[SUM:.*]] = nn.reduce_sum %arg0 {dims = array<i64: 0, 1, 2, 3>{{.*}}} : (tensor<2x1x4x5xf32>) -> tensor<f32>
    // CHECK: %[[SHAPED:.*]] = nn.reshape %[[SUM]]{{.*}} : (tensor<f32>) -> tensor<1xf32>
    // CHECK: %[[ROWS:.*]] = nn.reduce_sum %arg0 {dims = array<i64: 1, 2, 3>
    // CHECK: nn.output "all", %[[SUM]]
    // CHECK: nn.output "channels", %[[SHAPED]]
    // CHECK: nn.output "rows", %[[ROWS]]
    %a = nn.reduce_sum %x {dims = array<i64: 0, 1, 2, 3>} : (tensor<2x1x4x5xf32>) -> tensor<f32>
    %c = nn.reduce_sum %x {dims = array<i64: 0, 2, 3>} : (tensor<2x1x4x5xf32>) -> tensor<1xf32>
    %r = nn.reduce_sum %x {dims = array<i64: 1, 2, 3>} : (tensor<2x1x4x5xf32>) -> tensor<2xf32>
    nn.output "all", %a : tensor<f32>
    nn.output "channels", %c : tensor<1xf32>
    nn.output "rows", %r : tensor<2xf32>
  }
}

// -----

// What only differentiation asks for leaves nothing.
// CHECK-LABEL: nn.model @stop_gradient
// CHECK: nn.program @train(%[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: nn.output "y", %[[X]]
nn.model @stop_gradient attributes {stage = "train"} {
  nn.program @train(%x: tensor<4xf32> {nn.input = "x"}) {
    %y = nn.stop_gradient %x : (tensor<4xf32>) -> tensor<4xf32>
    nn.output "y", %y : tensor<4xf32>
  }
}

// -----

// Windows that step by one are sums of views moved along one dimension: tensors keep their dimensions, and their layouts.
// CHECK-LABEL: nn.model @means
// CHECK-NOT: nn.reshape
// CHECK: nn.pad %{{.*}} {high = array<i64: 0, 0, 0, 0>, low = array<i64: 0, 0, 1, 0>}
// CHECK: nn.add %{{.*}} : (tensor<2x3x4x6xf32>, tensor<2x3x4x6xf32>)
// CHECK-NOT: nn.reshape
// CHECK: nn.div
// CHECK-NOT: nn.reshape
// CHECK: nn.output "dx"
nn.model @means attributes {stage = "train"} {
  nn.program @train(%x: tensor<2x3x4x6xf32> {nn.input = "x"}) {
    %y = nn.avg_pool %x {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, count_padding = true} : (tensor<2x3x4x6xf32>) -> tensor<2x3x4x6xf32>
    %dx = nn.avg_pool_grad %y {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, count_padding = true} : (tensor<2x3x4x6xf32>) -> tensor<2x3x4x6xf32>
    nn.output "y", %y : tensor<2x3x4x6xf32>
    nn.output "dx", %dx : tensor<2x3x4x6xf32>
  }
}

// -----

// Windows that are tiles keep the tensor's dimensions, too. What is left of a tile has no part in a mean.

// CHECK-LABEL: nn.model @tiles
// CHECK-NOT: nn.reshape
// CHECK: nn.slice %arg0 {size = array<i64: 2, 3, 3, 4>, start = array<i64: 0, 0, 0, 0>}
// CHECK-NEXT: nn.subsample %{{.*}} {strides = array<i64: 1, 1, 2, 3>} : (tensor<2x3x3x4xf32>) -> tensor<2x3x2x2xf32>
// CHECK: nn.slice %arg0 {size = array<i64: 2, 3, 3, 4>, start = array<i64: 0, 0, 1, 0>}
// CHECK: %[[FIRST:.*]] = nn.add
// CHECK: nn.slice %arg0 {size = array<i64: 2, 3, 3, 4>, start = array<i64: 0, 0, 0, 1>}
// CHECK: %[[SECOND:.*]] = nn.add
// CHECK: nn.slice %arg0 {size = array<i64: 2, 3, 3, 4>, start = array<i64: 0, 0, 1, 2>}
// CHECK: nn.add %[[FIRST]], %[[SECOND]]
// CHECK: nn.div
// CHECK: nn.div
// CHECK: nn.repeat %{{.*}} {times = array<i64: 1, 1, 2, 3>} : (tensor<2x3x2x2xf32>) -> tensor<2x3x4x6xf32>
// CHECK: nn.pad %{{.*}} {high = array<i64: 0, 0, 1, 0>
// CHECK: nn.repeat %{{.*}} {times = array<i64: 1, 1, 1, 2>} : (tensor<2x3x5x6xf32>) -> tensor<2x3x5x12xf32>
// CHECK-NEXT: nn.output "z"
// CHECK: nn.subsample %{{.*}} {strides = array<i64: 1, 1, 1, 2>}
// CHECK: nn.subsample %{{.*}} {strides = array<i64: 1, 1, 1, 2>}
// CHECK-NEXT: nn.add
// CHECK-NOT: nn.reshape
nn.model @tiles attributes {stage = "train"} {
  nn.program @train(%x: tensor<2x3x5x6xf32> {nn.input = "x"}) {
    %y = nn.avg_pool %x {kernel = array<i64: 2, 3>, strides = array<i64: 2, 3>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, count_padding = true} : (tensor<2x3x5x6xf32>) -> tensor<2x3x2x2xf32>
    nn.output "y", %y : tensor<2x3x2x2xf32>
    %dx = nn.avg_pool_grad %y {kernel = array<i64: 2, 3>, strides = array<i64: 2, 3>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, count_padding = true} : (tensor<2x3x2x2xf32>) -> tensor<2x3x5x6xf32>
    nn.output "dx", %dx : tensor<2x3x5x6xf32>
    %z = nn.upsample %x {scale = array<i64: 1, 2>} : (tensor<2x3x5x6xf32>) -> tensor<2x3x5x12xf32>
    nn.output "z", %z : tensor<2x3x5x12xf32>
    %dz = nn.upsample_grad %z {scale = array<i64: 1, 2>} : (tensor<2x3x5x12xf32>) -> tensor<2x3x5x6xf32>
    nn.output "dz", %dz : tensor<2x3x5x6xf32>
  }
}

// -----

// One window, the whole image: one sum, in whatever layout the image has, and one broadcast.

// CHECK-LABEL: nn.model @global_means
// CHECK-NOT: nn.slice
// CHECK: nn.reduce
// CHECK-SAME: tensor<2x3x4x6xf32>) -> tensor<2x3xf32>
// CHECK: nn.reshape {{.*}} -> tensor<2x3x1x1xf32>
// CHECK: nn.div
// CHECK: nn.output "y"
// CHECK: nn.reshape {{.*}} -> tensor<2x3xf32>
// CHECK-NEXT: nn.broadcast {{.*}} -> tensor<2x3x4x6xf32>
// CHECK-NEXT: nn.output "dx"
nn.model @global_means attributes {stage = "train"} {
  nn.program @train(%x: tensor<2x3x4x6xf32> {nn.input = "x"}) {
    %y = nn.avg_pool %x {kernel = array<i64: 4, 6>, strides = array<i64: 4, 6>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, count_padding = true} : (tensor<2x3x4x6xf32>) -> tensor<2x3x1x1xf32>
    nn.output "y", %y : tensor<2x3x1x1xf32>
    %dx = nn.avg_pool_grad %y {kernel = array<i64: 4, 6>, strides = array<i64: 4, 6>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, count_padding = true} : (tensor<2x3x1x1xf32>) -> tensor<2x3x4x6xf32>
    nn.output "dx", %dx : tensor<2x3x4x6xf32>
  }
}
