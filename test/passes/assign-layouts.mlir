// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-assign-layouts=target=test:rules | FileCheck %s

// A parameter, its slot and its gradient share the filter gradient's layout; the data gradient, which
// wants another, gets a reorder of the weight; the one-channel image stays plain.
// CHECK-LABEL: nn.model @train_step
// CHECK-SAME: math = "fast", stage = "schedule", target = "test:rules", threads = 1 : i64
// CHECK: nn.variable @w0 : tensor<32x1x3x3xf32, #nn.layout<Nchw16n>>
// CHECK: nn.variable @w1 : tensor<64x32x3x3xf32, #nn.layout<NChw16c16n>>
// CHECK: nn.variable @m1 : tensor<64x32x3x3xf32, #nn.layout<NChw16c16n>>
nn.model @train_step attributes {stage = "train"} {
  nn.variable @w0 : tensor<32x1x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @w1 : tensor<64x32x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @m1 : tensor<64x32x3x3xf32> {kind = #nn<kind slot>, init = #nn.init<constant, 0.0, 0.0>, owner = @w1, slot = "momentum"}
  // CHECK: nn.program @train(%[[IMAGE:.*]]: tensor<8x1x28x28xf32> {
  nn.program @train(%image: tensor<8x1x28x28xf32> {nn.input = "image"}) {
    %w0 = nn.read @w0 : tensor<32x1x3x3xf32>
    // CHECK: %[[W1:.*]] = nn.read @w1 : tensor<64x32x3x3xf32, #nn.layout<NChw16c16n>>
    %w1 = nn.read @w1 : tensor<64x32x3x3xf32>
    %m1 = nn.read @m1 : tensor<64x32x3x3xf32>
    // CHECK: nn.conv %[[IMAGE]], {{.*}} -> tensor<8x32x26x26xf32, #nn.layout<nChw16c>>
    %y0 = nn.conv %image, %w0 {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<8x1x28x28xf32>, tensor<32x1x3x3xf32>) -> tensor<8x32x26x26xf32>
    // CHECK-NEXT: %[[A0:.*]] = nn.relu
    %a0 = nn.relu %y0 : (tensor<8x32x26x26xf32>) -> tensor<8x32x26x26xf32>
    // CHECK-NEXT: %[[Y1:.*]] = nn.conv %[[A0]], %[[W1]]
    %y1 = nn.conv %a0, %w1 {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<8x32x26x26xf32>, tensor<64x32x3x3xf32>) -> tensor<8x64x24x24xf32>
    // A reshape takes logical order.
    // CHECK-NEXT: %[[PLAIN:.*]] = nn.reorder %[[Y1]]
    // CHECK-NEXT: nn.reshape %[[PLAIN]]
    %f = nn.reshape %y1 : (tensor<8x64x24x24xf32>) -> tensor<8x36864xf32>
    %s = nn.reduce_sum %f {dims = array<i64: 0, 1>} : (tensor<8x36864xf32>) -> tensor<f32>
    %c = nn.constant dense<8.0> : tensor<f32> : tensor<f32>
    nn.loss %s, %c : tensor<f32>, tensor<f32>
    // A broadcast is made in the layout of its user.
    // CHECK: nn.broadcast {{.*}} -> tensor<8x64x24x24xf32, #nn.layout<nChw16c>>
    %g = nn.broadcast %c {dims = array<i64>} : (tensor<f32>) -> tensor<8x64x24x24xf32>
    %dy = nn.mul %g, %y1 : (tensor<8x64x24x24xf32>, tensor<8x64x24x24xf32>) -> tensor<8x64x24x24xf32>
    // CHECK: nn.conv_grad_filter %[[A0]], {{.*}} -> tensor<64x32x3x3xf32, #nn.layout<NChw16c16n>>
    %dw1 = nn.conv_grad_filter %a0, %dy {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<8x32x26x26xf32>, tensor<8x64x24x24xf32>) -> tensor<64x32x3x3xf32>
    // CHECK: %[[W1D:.*]] = nn.reorder %[[W1]] : {{.*}} -> tensor<64x32x3x3xf32, #nn.layout<NChw16n16c>>
    // CHECK-NEXT: nn.conv_grad_data %{{.*}}, %[[W1D]]
    %da = nn.conv_grad_data %dy, %w1 {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<8x64x24x24xf32>, tensor<64x32x3x3xf32>) -> tensor<8x32x26x26xf32>
    // CHECK: nn.conv_grad_filter %[[IMAGE]]
    %dw0 = nn.conv_grad_filter %image, %da {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<8x1x28x28xf32>, tensor<8x32x26x26xf32>) -> tensor<32x1x3x3xf32>
    %r0 = comm.all_reduce %dw0 : tensor<32x1x3x3xf32>
    // CHECK: comm.all_reduce %{{.*}} : tensor<64x32x3x3xf32, #nn.layout<NChw16c16n>>
    %r1 = comm.all_reduce %dw1 : tensor<64x32x3x3xf32>
    %n1 = nn.add %m1, %r1 : (tensor<64x32x3x3xf32>, tensor<64x32x3x3xf32>) -> tensor<64x32x3x3xf32>
    nn.assign @m1, %n1 : tensor<64x32x3x3xf32>
    %n2 = nn.sub %w1, %n1 : (tensor<64x32x3x3xf32>, tensor<64x32x3x3xf32>) -> tensor<64x32x3x3xf32>
    // CHECK-NOT: nn.reorder
    // CHECK: nn.assign @w1
    nn.assign @w1, %n2 : tensor<64x32x3x3xf32>
    %n3 = nn.sub %w0, %r0 : (tensor<32x1x3x3xf32>, tensor<32x1x3x3xf32>) -> tensor<32x1x3x3xf32>
    nn.assign @w0, %n3 : tensor<32x1x3x3xf32>
  }
  // The other programs read the variables as training laid them out.
  // CHECK: nn.program @predict
  nn.program @predict(%image: tensor<2x1x28x28xf32> {nn.input = "image"}) {
    // CHECK: nn.read @w0 : tensor<32x1x3x3xf32, #nn.layout<Nchw16n>>
    %w0 = nn.read @w0 : tensor<32x1x3x3xf32>
    %y0 = nn.conv %image, %w0 {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x1x28x28xf32>, tensor<32x1x3x3xf32>) -> tensor<2x32x26x26xf32>
    // CHECK: %[[P:.*]] = nn.reorder
    // CHECK-NEXT: nn.output "y", %[[P]] : tensor<2x32x26x26xf32>
    nn.output "y", %y0 : tensor<2x32x26x26xf32>
  }
}

// -----

// A concatenation stays blocked where no block is cut, and falls back to logical order where one is.
// CHECK-LABEL: nn.model @concat
nn.model @concat attributes {stage = "train"} {
  nn.program @predict(%x: tensor<1x32x8x8xf32> {nn.input = "x"}) {
    %p, %i = nn.max_pool %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 0, 0>} : (tensor<1x32x8x8xf32>) -> (tensor<1x32x4x4xf32>, tensor<1x32x4x4xi8>)
    // CHECK: %[[POOL:.*]], %{{.*}} = nn.max_pool {{.*}} -> (tensor<1x32x4x4xf32, #nn.layout<nChw16c>>, tensor<1x32x4x4xi8, #nn.layout<nChw16c>>)
    // CHECK: nn.concat %[[POOL]], %[[POOL]] {{.*}} -> tensor<1x64x4x4xf32, #nn.layout<nChw16c>>
    %c = nn.concat %p, %p {dim = 1 : i64} : (tensor<1x32x4x4xf32>, tensor<1x32x4x4xf32>) -> tensor<1x64x4x4xf32>
    // CHECK: nn.slice {{.*}} -> tensor<1x16x4x4xf32, #nn.layout<nChw16c>>
    %s = nn.slice %c {start = array<i64: 0, 16, 0, 0>, size = array<i64: 1, 16, 4, 4>} : (tensor<1x64x4x4xf32>) -> tensor<1x16x4x4xf32>
    // CHECK: nn.slice {{.*}} -> tensor<1x8x4x4xf32>
    %t = nn.slice %c {start = array<i64: 0, 24, 0, 0>, size = array<i64: 1, 8, 4, 4>} : (tensor<1x64x4x4xf32>) -> tensor<1x8x4x4xf32>
    nn.output "s", %s : tensor<1x16x4x4xf32>
    nn.output "t", %t : tensor<1x8x4x4xf32>
  }
}

// -----

// The library pools blocked tensors sooner, but where windows tile a tensor, generated code pools it at the same price in
// either layout, and no slice cuts a block where channels come last.
// CHECK-LABEL: nn.model @tiling
nn.model @tiling attributes {stage = "train"} {
  nn.program @predict(%x: tensor<1x32x8x8xf32> {nn.input = "x"}) {
    // CHECK: nn.max_pool {{.*}} -> (tensor<1x32x4x4xf32, #nn.layout<nhwc>>, tensor<1x32x4x4xi8, #nn.layout<nhwc>>)
    %p, %i = nn.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<1x32x8x8xf32>) -> (tensor<1x32x4x4xf32>, tensor<1x32x4x4xi8>)
    %t = nn.slice %p {start = array<i64: 0, 8, 0, 0>, size = array<i64: 1, 8, 4, 4>} : (tensor<1x32x4x4xf32>) -> tensor<1x8x4x4xf32>
    nn.output "t", %t : tensor<1x8x4x4xf32>
  }
}

// -----

// An op that the library cannot run in any layout is an error.
nn.model @refused attributes {stage = "train"} {
  nn.program @predict(%x: tensor<2x3xf64> {nn.input = "x"}) {
    // expected-error @below {{has no kernel on this target in any layout, of 'tensor<2x3xf64>', 'tensor<2x3xf64>': the test planner has rules for f32, bf16 and f16 alone}}
    %y = nn.matmul %x, %x {transpose_b} : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x2xf64>
    nn.output "y", %y : tensor<2x2xf64>
  }
}

// -----

// An input that is read in another type and layout is narrowed and moved in one pass; where somebody wants it as it lies, it is
// narrowed for all.
// CHECK-LABEL: nn.model @narrowed
nn.model @narrowed attributes {stage = "train"} {
  nn.variable @w : tensor<32x32x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.program @train(%[[X:.*]]: tensor<2x32x8x8xf32>
  nn.program @train(%x: tensor<2x32x8x8xf32> {nn.input = "x"}) {
    // CHECK-NOT: nn.cast %[[X]]
    // CHECK: %[[N:.*]] = nn.reorder %[[X]] : (tensor<2x32x8x8xf32>) -> tensor<2x32x8x8xbf16, #nn.layout<[[L:.*]]>>
    // CHECK: nn.conv %[[N]]
    %n = nn.cast %x : (tensor<2x32x8x8xf32>) -> tensor<2x32x8x8xbf16>
    %w = nn.read @w : tensor<32x32x3x3xf32>
    %c = nn.cast %w : (tensor<32x32x3x3xf32>) -> tensor<32x32x3x3xbf16>
    %y = nn.conv %n, %c {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x32x8x8xbf16>, tensor<32x32x3x3xbf16>) -> tensor<2x32x8x8xbf16>
    nn.output "y", %y : tensor<2x32x8x8xbf16>
  }
  // CHECK: nn.program @predict(%[[X:.*]]: tensor<2x32x8x8xf32>
  nn.program @predict(%x: tensor<2x32x8x8xf32> {nn.input = "x"}) {
    // CHECK: %[[C:.*]] = nn.cast %[[X]]
    // CHECK: %[[N:.*]] = nn.reorder %[[C]] : (tensor<2x32x8x8xbf16>) -> tensor<2x32x8x8xbf16, #nn.layout<[[L]]>>
    // CHECK: nn.conv %[[N]]
    // CHECK: nn.output "x", %[[C]]
    %n = nn.cast %x : (tensor<2x32x8x8xf32>) -> tensor<2x32x8x8xbf16>
    %w = nn.read @w : tensor<32x32x3x3xf32>
    %c = nn.cast %w : (tensor<32x32x3x3xf32>) -> tensor<32x32x3x3xbf16>
    %y = nn.conv %n, %c {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x32x8x8xbf16>, tensor<32x32x3x3xbf16>) -> tensor<2x32x8x8xbf16>
    nn.output "y", %y : tensor<2x32x8x8xbf16>
    nn.output "x", %n : tensor<2x32x8x8xbf16>
  }
}

// -----

// No convolution of 11 x 11 takes a bias, one of 3 x 3 does.
// CHECK-LABEL: nn.model @bias
nn.model @bias attributes {stage = "train"} {
  nn.program @predict(%x: tensor<1x4x16x16xf32> {nn.input = "x"}, %v: tensor<4x4x11x11xf32> {nn.input = "v"}, %w: tensor<4x4x3x3xf32> {nn.input = "w"}, %b: tensor<4xf32> {nn.input = "b"}) {
    // CHECK: nn.conv %{{[^,]*}}, %{{[^,]*}}, %arg3
    %0 = nn.conv %x, %w, %b {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x4x16x16xf32>, tensor<4x4x3x3xf32>, tensor<4xf32>) -> tensor<1x4x16x16xf32>
    // CHECK: %[[Y:.*]] = nn.conv %{{[^,]*}}, %{{[^,]*}} {
    // CHECK: %[[B:.*]] = nn.broadcast %arg3 {dims = array<i64: 1>}
    // CHECK: nn.add %[[Y]], %[[B]]
    // CHECK-NOT: nn.relu
    %1 = nn.conv %0, %v, %b {strides = array<i64: 1, 1>, padding_low = array<i64: 5, 5>, padding_high = array<i64: 5, 5>, dilations = array<i64: 1, 1>} : (tensor<1x4x16x16xf32>, tensor<4x4x11x11xf32>, tensor<4xf32>) -> tensor<1x4x16x16xf32>
    nn.output "y", %1 : tensor<1x4x16x16xf32>
  }
}

// -----

// A ReLU stays behind the bias.
// CHECK-LABEL: nn.model @bias_and_relu
nn.model @bias_and_relu attributes {stage = "train"} {
  nn.program @predict(%x: tensor<1x4x16x16xf32> {nn.input = "x"}, %v: tensor<4x4x11x11xf32> {nn.input = "v"}, %b: tensor<4xf32> {nn.input = "b"}) {
    // CHECK: nn.conv
    // CHECK-NOT: relu
    // CHECK: %[[S:.*]] = nn.add
    // CHECK: nn.relu %[[S]]
    %1 = nn.conv %x, %v, %b {relu, strides = array<i64: 1, 1>, padding_low = array<i64: 5, 5>, padding_high = array<i64: 5, 5>, dilations = array<i64: 1, 1>} : (tensor<1x4x16x16xf32>, tensor<4x4x11x11xf32>, tensor<4xf32>) -> tensor<1x4x16x16xf32>
    nn.output "y", %1 : tensor<1x4x16x16xf32>
  }
}

// -----

// Where kernels in f16 have nothing in f32, a bias is rounded, a result widened; a transposed convolution, which takes no
// bias then, has it added in f32 behind what is widened.
// CHECK-LABEL: nn.model @narrow
nn.model @narrow attributes {stage = "train"} {
  nn.program @predict(%x: tensor<1x4x16x16xf16> {nn.input = "x"}, %w: tensor<4x4x3x3xf16> {nn.input = "w"}, %b: tensor<4xf32> {nn.input = "b"}) {
    // CHECK: %[[B:.*]] = nn.cast %arg2 : (tensor<4xf32>) -> tensor<4xf16>
    // CHECK: nn.conv %{{[^,]*}}, %{{[^,]*}}, %[[B]] {{.*}}relu
    %y = nn.conv %x, %w, %b {relu, strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x4x16x16xf16>, tensor<4x4x3x3xf16>, tensor<4xf32>) -> tensor<1x4x16x16xf16>
    nn.output "y", %y : tensor<1x4x16x16xf16>
    // CHECK: %[[M:.*]] = nn.conv_transpose %{{[^,]*}}, %{{[^,]*}} {{.*}} -> tensor<1x4x16x16xf16
    // CHECK: %[[W:.*]] = nn.cast %[[M]]
    // CHECK: %[[T:.*]] = nn.broadcast %arg2
    // CHECK: nn.add %[[W]], %[[T]]
    %z = nn.conv_transpose %x, %w, %b {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x4x16x16xf16>, tensor<4x4x3x3xf16>, tensor<4xf32>) -> tensor<1x4x16x16xf32>
    nn.output "z", %z : tensor<1x4x16x16xf32>
    // CHECK: %[[G:.*]] = nn.conv_grad_filter {{.*}} -> tensor<4x4x3x3xf16
    // CHECK: nn.cast %[[G]] : {{.*}} -> tensor<4x4x3x3xf32
    %g = nn.conv_grad_filter %x, %x {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x4x16x16xf16>, tensor<1x4x16x16xf16>) -> tensor<4x4x3x3xf32>
    nn.output "g", %g : tensor<4x4x3x3xf32>
  }
}

// -----

// A copy in 16 bits that is only ever reordered is not kept: the reorder narrows the parameter, which lies as a kernel in
// f32 wants it. A copy that a kernel reads as it lies is kept, and is what others reorder.
// CHECK-LABEL: nn.model @copies
nn.model @copies attributes {stage = "train"} {
  // CHECK: nn.variable @v : tensor<32x32x3x3xf32, #nn.layout<NChw16c16n>>
  // CHECK-NEXT: nn.variable @w : tensor<32x32x3x3xf32, #nn.layout<NChw16c16n>>
  // CHECK-NEXT: nn.variable @w.bf16 : tensor<32x32x3x3xbf16, #nn.layout<NChw16c16n>>
  // CHECK-NOT: nn.variable
  nn.variable @v : tensor<32x32x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @v.bf16 : tensor<32x32x3x3xbf16> {kind = #nn<kind copy>, init = #nn.init<constant, 0.0, 0.0>, owner = @v}
  nn.variable @w : tensor<32x32x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @w.bf16 : tensor<32x32x3x3xbf16> {kind = #nn<kind copy>, init = #nn.init<constant, 0.0, 0.0>, owner = @w}
  // CHECK: nn.program @train
  nn.program @train(%x: tensor<2x32x8x8xbf16> {nn.input = "x"}) {
    // CHECK: %[[OLD:.*]] = nn.read @v : tensor<32x32x3x3xf32, #nn.layout<NChw16c16n>>
    %old = nn.read @v : tensor<32x32x3x3xf32>
    // CHECK: nn.conv %{{.*}}, %[[OLD]]
    %x32 = nn.cast %x : (tensor<2x32x8x8xbf16>) -> tensor<2x32x8x8xf32>
    %y32 = nn.conv %x32, %old {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x32x8x8xf32>, tensor<32x32x3x3xf32>) -> tensor<2x32x8x8xf32>
    nn.output "y", %y32 : tensor<2x32x8x8xf32>
    // CHECK: %[[V:.*]] = nn.read @v : tensor<32x32x3x3xf32, #nn.layout<NChw16c16n>>
    %v = nn.read @v.bf16 : tensor<32x32x3x3xbf16>
    // CHECK: %[[W:.*]] = nn.read @w.bf16 : tensor<32x32x3x3xbf16, #nn.layout<NChw16c16n>>
    %w = nn.read @w.bf16 : tensor<32x32x3x3xbf16>
    // CHECK: nn.conv %{{.*}}, %[[W]]
    %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x32x8x8xbf16>, tensor<32x32x3x3xbf16>) -> tensor<2x32x8x8xbf16>
    // CHECK: %[[WD:.*]] = nn.reorder %[[W]] : (tensor<32x32x3x3xbf16, #nn.layout<NChw16c16n>>) -> tensor<32x32x3x3xbf16, #nn.layout<NChw16n16c>>
    // CHECK-NEXT: nn.conv_grad_data %{{.*}}, %[[WD]]
    %dw = nn.conv_grad_data %y, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x32x8x8xbf16>, tensor<32x32x3x3xbf16>) -> tensor<2x32x8x8xbf16>
    // CHECK: %[[VD:.*]] = nn.reorder %[[V]] : (tensor<32x32x3x3xf32, #nn.layout<NChw16c16n>>) -> tensor<32x32x3x3xbf16, #nn.layout<NChw16n16c>>
    // CHECK-NEXT: nn.conv_grad_data %{{.*}}, %[[VD]]
    %dv = nn.conv_grad_data %y, %v {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x32x8x8xbf16>, tensor<32x32x3x3xbf16>) -> tensor<2x32x8x8xbf16>
    %gv = nn.conv_grad_filter %x, %dv {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x32x8x8xbf16>, tensor<2x32x8x8xbf16>) -> tensor<32x32x3x3xf32>
    // CHECK: nn.assign @v,
    // CHECK-NEXT: %[[G:.*]] = nn.conv_grad_filter
    %new = nn.sub %old, %gv : (tensor<32x32x3x3xf32>, tensor<32x32x3x3xf32>) -> tensor<32x32x3x3xf32>
    nn.assign @v, %new : tensor<32x32x3x3xf32>
    %rounded = nn.cast %new : (tensor<32x32x3x3xf32>) -> tensor<32x32x3x3xbf16>
    nn.assign @v.bf16, %rounded : tensor<32x32x3x3xbf16>
    %g = nn.conv_grad_filter %x, %dw {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x32x8x8xbf16>, tensor<2x32x8x8xbf16>) -> tensor<32x32x3x3xf32>
    // CHECK-NEXT: nn.assign @w, %[[G]] :
    nn.assign @w, %g : tensor<32x32x3x3xf32>
    // CHECK-NEXT: %[[R:.*]] = nn.cast %[[G]]
    // CHECK-NEXT: nn.assign @w.bf16, %[[R]]
    %narrow = nn.cast %g : (tensor<32x32x3x3xf32>) -> tensor<32x32x3x3xbf16>
    nn.assign @w.bf16, %narrow : tensor<32x32x3x3xbf16>
  }
}
