// RUN: dlc-opt %s --pass-pipeline="builtin.module(nn.model(dlc-lower-composites,dlc-assign-layouts{target=test:rules},dlc-fuse,dlc-plan-kernels,dlc-combine-all-reduces,dlc-overlap-all-reduces,dlc-verify-schedule))" | FileCheck %s

// The whole stage on a convolution with batch norm: kernels, collectives and sinks are left at the top; the
// running statistics travel in an ordinary bucket.
// CHECK-LABEL: nn.model @m
// CHECK-SAME: stage = "schedule"
nn.model @m attributes {stage = "train"} {
  nn.variable @w : tensor<16x16x1x1xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @scale : tensor<16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @bias : tensor<16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @mean : tensor<16xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @var : tensor<16xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.program @train
  // CHECK-SAME: forecast =
  nn.program @train(%x: tensor<2x16x8x8xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<16x16x1x1xf32>
    %scale = nn.read @scale : tensor<16xf32>
    %bias = nn.read @bias : tensor<16xf32>
    %rm = nn.read @mean : tensor<16xf32>
    %rv = nn.read @var : tensor<16xf32>
    // CHECK: %[[Y:.*]] = nn.conv
    %y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x16x8x8xf32>, tensor<16x16x1x1xf32>) -> tensor<2x16x8x8xf32>
    %z, %mean, %var = nn.batch_norm %y, %scale, %bias, %rm, %rv {epsilon = 1.0e-05, training = true} : (tensor<2x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<2x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>)
    %s = nn.reduce_sum %z {dims = array<i64: 0, 1, 2, 3>} : (tensor<2x16x8x8xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32> : tensor<f32>
    nn.loss %s, %one : tensor<f32>, tensor<f32>
    %dz = nn.broadcast %one {dims = array<i64>} : (tensor<f32>) -> tensor<2x16x8x8xf32>
    %dy, %dscale, %dbias = nn.batch_norm_grad %dz, %y, %scale, %mean, %var {epsilon = 1.0e-05} : (tensor<2x16x8x8xf32>, tensor<2x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<2x16x8x8xf32>, tensor<16xf32>, tensor<16xf32>)
    %dw = nn.conv_grad_filter %x, %dy {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x16x8x8xf32>, tensor<2x16x8x8xf32>) -> tensor<16x16x1x1xf32>
    %am = comm.all_reduce %mean : tensor<16xf32>
    %av = comm.all_reduce %var : tensor<16xf32>
    %aw = comm.all_reduce %dw : tensor<16x16x1x1xf32>
    %as = comm.all_reduce %dscale : tensor<16xf32>
    %ab = comm.all_reduce %dbias : tensor<16xf32>
    nn.assign @mean, %am {nn.role = #nn.role<update>} : tensor<16xf32>
    nn.assign @var, %av {nn.role = #nn.role<update>} : tensor<16xf32>
    nn.assign @scale, %as {nn.role = #nn.role<update>} : tensor<16xf32>
    nn.assign @bias, %ab {nn.role = #nn.role<update>} : tensor<16xf32>
    // CHECK-NOT: nn.batch_norm
    // CHECK: %[[DW:.*]] = nn.conv_grad_filter
    // CHECK-NEXT: %[[F:.*]] = comm.start %{{.*}}, %[[DW]] {bucket = 0 : i64,
    // CHECK-NEXT: %[[R:.*]]:5 = comm.wait %[[F]]
    // CHECK-DAG: nn.assign @w, %[[R]]#4
    // CHECK-DAG: nn.assign @mean, %[[R]]#
    nn.assign @w, %aw {nn.role = #nn.role<update>} : tensor<16x16x1x1xf32>
  }
}
