// REQUIRES: avx512-bf16
// RUN: dlc compile %s --emit=llvm | FileCheck %s

// A target that has instructions for it widens bf16 in one, a permutation, and rounds to it in one.
// CHECK-LABEL: define {{.*}} @scale_0.body
// CHECK: load <16 x i16>
// CHECK: shufflevector <16 x i16> {{.*}}, <32 x i32> <i32 16, i32 0, i32 16, i32 1,
// CHECK: bitcast <32 x i16> %{{.*}} to <16 x float>
// CHECK: fmul <16 x float>
// CHECK: fptrunc <16 x float> %{{.*}} to <16 x bfloat>
// CHECK: ret void

// Non-temporal stores are of halves, of integers.
// CHECK-LABEL: define {{.*}} @stream_0.body
// CHECK: store <2 x i64> %{{.*}}, align 16, !nontemporal
// CHECK: store <2 x i64> %{{.*}}, align 16, !nontemporal
// CHECK-NOT: store <16 x bfloat>
// CHECK: ret void
nn.model @m attributes {stage = "exec", target = "cpu:avx512-bf16", threads = 1 : i64, math = "fast"} {
  exec.cluster @scale {
  ^bb0(%0: tensor<2x32x8x8xbf16, #nn.layout<nhwc>>, %1: tensor<32xf32>):
    %2 = nn.cast %0 : (tensor<2x32x8x8xbf16, #nn.layout<nhwc>>) -> tensor<2x32x8x8xf32, #nn.layout<nhwc>>
    %3 = nn.broadcast %1 {dims = array<i64: 1>} : (tensor<32xf32>) -> tensor<2x32x8x8xf32, #nn.layout<nhwc>>
    %4 = nn.mul %2, %3 : (tensor<2x32x8x8xf32, #nn.layout<nhwc>>, tensor<2x32x8x8xf32, #nn.layout<nhwc>>) -> tensor<2x32x8x8xf32, #nn.layout<nhwc>>
    %5 = nn.relu %4 : (tensor<2x32x8x8xf32, #nn.layout<nhwc>>) -> tensor<2x32x8x8xf32, #nn.layout<nhwc>>
    %6 = nn.cast %5 : (tensor<2x32x8x8xf32, #nn.layout<nhwc>>) -> tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
    nn.yield %6 : tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 16512, flops = 16384>], scratch = [], shares = [0, 0]>, nn.tiles = [array<i64: 128, 32>]}  exec.cluster @stream {
  ^bb0(%0: tensor<2x32x8x8xbf16, #nn.layout<nhwc>>):
    %1 = nn.relu %0 : (tensor<2x32x8x8xbf16, #nn.layout<nhwc>>) -> tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
    nn.yield %1 : tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
  } {nontemporal = array<i64: 0>, nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 1, bytes = 16384, flops = 4096>], scratch = [], shares = [0, 0]>, nn.tiles = [array<i64: 4096>]}
}
