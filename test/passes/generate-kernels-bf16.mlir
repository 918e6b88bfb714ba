// REQUIRES: avx2
// RUN: dlc compile %s --emit=linalg | FileCheck %s
// RUN: dlc compile %s --emit=llvm | FileCheck %s --check-prefix=LLVM

nn.model @m attributes {stage = "exec", target = "cpu:avx2", threads = 1 : i64, math = "fast"} {

  // 16-bit floats are f32 outside of memory: one rounding, where the result is stored.
  // CHECK-LABEL: func.func @scale_0
  // CHECK-SAME: memref<{{.*}}xbf16>
  // CHECK: linalg.generic
  // CHECK: arith.extf %{{.*}} : bf16 to f32
  // CHECK: arith.mulf %{{.*}} : f32
  // CHECK: arith.cmpf olt, %{{.*}} : f32
  // CHECK-NOT: arith.truncf
  // CHECK: arith.select %{{.*}} : f32
  // CHECK-NEXT: arith.truncf %{{.*}} : f32 to bf16
  // CHECK: linalg.yield %{{.*}} : bf16

  // Without an instruction that rounds to bf16 it is done in integers, on whole vectors.
  // LLVM-LABEL: define {{.*}} @scale_0.body
  // LLVM: load <8 x i16>
  // LLVM: zext <8 x i16> %{{.*}} to <8 x i32>
  // LLVM: fmul <8 x float>
  // LLVM-NOT: fptrunc
  // LLVM: add <8 x i32> %{{.*}}, splat (i32 32767)
  // LLVM: fcmp uno <8 x float>
  // LLVM: trunc {{.*}}<8 x i32> %{{.*}} to <8 x i16>
  // LLVM: ret void
  exec.cluster @scale {
  ^bb0(%0: tensor<2x32x8x8xbf16, #nn.layout<nhwc>>, %1: tensor<32xf32>):
    %2 = nn.cast %0 : (tensor<2x32x8x8xbf16, #nn.layout<nhwc>>) -> tensor<2x32x8x8xf32, #nn.layout<nhwc>>
    %3 = nn.broadcast %1 {dims = array<i64: 1>} : (tensor<32xf32>) -> tensor<2x32x8x8xf32, #nn.layout<nhwc>>
    %4 = nn.mul %2, %3 : (tensor<2x32x8x8xf32, #nn.layout<nhwc>>, tensor<2x32x8x8xf32, #nn.layout<nhwc>>) -> tensor<2x32x8x8xf32, #nn.layout<nhwc>>
    %5 = nn.relu %4 : (tensor<2x32x8x8xf32, #nn.layout<nhwc>>) -> tensor<2x32x8x8xf32, #nn.layout<nhwc>>
    %6 = nn.cast %5 : (tensor<2x32x8x8xf32, #nn.layout<nhwc>>) -> tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
    nn.yield %6 : tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 16512, flops = 16384>], scratch = [], shares = [0, 0]>, nn.tiles = [array<i64: 128, 32>]}

  // Where a ReLU of rounded values is positive, so is what was rounded.
  // CHECK-LABEL: func.func @masked_0
  // CHECK: %[[VALUE:.*]] = arith.addf %{{.*}} : f32
  // CHECK: arith.cmpf ogt, %[[VALUE]], %{{.*}} : f32
  // LLVM-LABEL: define {{.*}} @masked_0.body
  // LLVM: %[[SUM:.*]] = fadd <8 x float>
  // LLVM: fcmp ogt <8 x float> %[[SUM]], zeroinitializer
  exec.cluster @masked {
  ^bb0(%0: tensor<2x32x8x8xbf16, #nn.layout<nhwc>>, %1: tensor<2x32x8x8xbf16, #nn.layout<nhwc>>):
    %2 = nn.constant dense<0.0> : tensor<2x32x8x8xbf16> : tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
    %3 = nn.add %0, %1 : (tensor<2x32x8x8xbf16, #nn.layout<nhwc>>, tensor<2x32x8x8xbf16, #nn.layout<nhwc>>) -> tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
    %4 = nn.relu %3 : (tensor<2x32x8x8xbf16, #nn.layout<nhwc>>) -> tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
    %5 = nn.compare gt %4, %2 : (tensor<2x32x8x8xbf16, #nn.layout<nhwc>>, tensor<2x32x8x8xbf16, #nn.layout<nhwc>>) -> tensor<2x32x8x8xi1, #nn.layout<nhwc>>
    %6 = nn.select %5, %1, %2 : (tensor<2x32x8x8xi1, #nn.layout<nhwc>>, tensor<2x32x8x8xbf16, #nn.layout<nhwc>>, tensor<2x32x8x8xbf16, #nn.layout<nhwc>>) -> tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
    nn.yield %6 : tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 24576, flops = 16384>], scratch = [], shares = [0, 0, 1, 0]>, nn.tiles = [array<i64: 4096>]}

  // A ReLU of a rounded value is taken before the rounding, which is then the only one.
  // CHECK-LABEL: func.func @rectified_0
  // CHECK: %[[VALUE:.*]] = arith.addf %{{.*}} : f32
  // CHECK-NEXT: arith.truncf
  // CHECK-NEXT: arith.extf
  // CHECK: %[[NEGATIVE:.*]] = arith.cmpf olt, %[[VALUE]], %{{.*}} : f32
  // CHECK-NEXT: %[[POSITIVE:.*]] = arith.select %[[NEGATIVE]], %{{.*}}, %[[VALUE]] : f32
  // CHECK-NEXT: %[[ROUNDED:.*]] = arith.truncf %[[POSITIVE]] : f32 to bf16
  // CHECK: linalg.yield %[[ROUNDED]] : bf16
  // LLVM-LABEL: define {{.*}} @rectified_0.body
  // LLVM: %[[SUM:.*]] = fadd <8 x float>
  // LLVM: fcmp olt <8 x float> %[[SUM]], zeroinitializer
  // LLVM: fcmp uno <8 x float>
  // LLVM-NOT: fcmp
  // LLVM: ret void
  exec.cluster @rectified {
  ^bb0(%0: tensor<2x32x8x8xbf16, #nn.layout<nhwc>>, %1: tensor<2x32x8x8xbf16, #nn.layout<nhwc>>):
    %2 = nn.add %0, %1 : (tensor<2x32x8x8xbf16, #nn.layout<nhwc>>, tensor<2x32x8x8xbf16, #nn.layout<nhwc>>) -> tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
    %3 = nn.relu %2 : (tensor<2x32x8x8xbf16, #nn.layout<nhwc>>) -> tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
    nn.yield %3 : tensor<2x32x8x8xbf16, #nn.layout<nhwc>>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 24576, flops = 8192>], scratch = [], shares = [0, 0, 1, 0]>, nn.tiles = [array<i64: 4096>]}
}
