// REQUIRES: avx2
// RUN: dlc compile %s --emit=linalg | FileCheck %s
// RUN: dlc compile %s --emit=llvm | FileCheck %s --check-prefix=LLVM

// A kernel is a record of its body, its contract (nobody calls this one) and its sizes.
// LLVM: @relu_0 = {{.*}}constant { ptr, [1 x i64] } { ptr @relu_0.body, [1 x i64] zeroinitializer }

// The target's vectors have 8 lanes.
// LLVM: define internal void @relu_0.body(ptr {{.*}}, i64 {{.*}}, i64 {{.*}}, ptr {{.*}})
// LLVM: load <8 x float>

// Factors of a channel block that is one vector are loaded once for all pixels.
// LLVM-LABEL: define {{.*}} @factors_0.body
// LLVM: %[[FACTORS:.*]] = load <8 x float>
// LLVM: phi i64
// LLVM: %[[PIXEL:.*]] = load <8 x float>
// LLVM-NEXT: fmul <8 x float> %[[FACTORS]], %[[PIXEL]]

// Elements of f32 are added in f64, since a variance may be the difference of their sums.
// LLVM-LABEL: define {{.*}} @sum_0.body
// LLVM: phi <8 x double>
// LLVM-NOT: phi <8 x float>
// LLVM: fpext <8 x float> %{{.*}} to <8 x double>
// LLVM: fadd <8 x double>

// What is rounded to f32 is added in f32 for a while: two loops, whose accumulators are f64 and f32.
// LLVM-LABEL: define {{.*}} @products_0.body
// LLVM: phi <8 x double>
// LLVM: phi <8 x float>
// LLVM-NOT: <8 x double>
// LLVM: call <8 x float> @llvm.fma.v8f32
// LLVM: fpext <8 x float> %{{.*}} to <8 x double>
// LLVM: fadd <8 x double>

// Sums of many operands have one body, which takes from the sizes how many there are and where they lie.
// LLVM: @many_0 = {{.*}}constant { ptr, [30 x i64] } { ptr @sum_of_operands_f32_2_2_streams,
// LLVM-SAME: [i64 0, i64 5, i64 1, i64 24, i64 1, i64 8192, i64 0, i64 0, i64 8192, i64 0, {{.*}}] }

// Results that are far from being read have non-temporal stores, in whole lines, and ordered at the end.
// LLVM-LABEL: define {{.*}} @far_0.body
// LLVM: store <8 x float> {{.*}} align 32, {{.*}}!nontemporal
// LLVM: call void @llvm.x86.sse.sfence()
// LLVM-LABEL: define internal void @sum_of_operands_f32_2_2_streams
// LLVM: store <8 x float> {{.*}} align 32, {{.*}}!nontemporal
// LLVM: call void @llvm.x86.sse.sfence()
nn.model @m attributes {stage = "exec", target = "cpu:avx2", threads = 1 : i64, math = "fast"} {

  // What is contiguous for all operands is one loop, split where an item holds 8192 elements.
  // CHECK-LABEL: func.func @relu_0
  // CHECK-SAME: (%{{.*}}: memref<24x8192xf32>, %{{.*}}: memref<24x8192xf32>, %{{.*}}: memref<24x8192xf32>)
  // CHECK: linalg.generic
  // CHECK-SAME: iterator_types = ["parallel", "parallel"]
  // CHECK: arith.addf
  // CHECK: arith.cmpf olt
  // CHECK: arith.select
  exec.cluster @relu {
  ^bb0(%0: tensor<3x16x64x64xf32>, %1: tensor<3x16x64x64xf32>):
    %2 = nn.add %0, %1 : (tensor<3x16x64x64xf32>, tensor<3x16x64x64xf32>) -> tensor<3x16x64x64xf32>
    %3 = nn.relu %2 : (tensor<3x16x64x64xf32>) -> tensor<3x16x64x64xf32>
    nn.yield %3 : tensor<3x16x64x64xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 24, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 2359296, flops = 393216>], scratch = [], shares = [0, 0, 1, 0]>, nn.tiles = [array<i64: 8192>]}

  exec.cluster @factors {
  ^bb0(%0: tensor<2x8x32x32xf32, #nn.layout<nChw8c>>, %1: tensor<8xf32>):
    %2 = nn.broadcast %1 {dims = array<i64: 1>} : (tensor<8xf32>) -> tensor<2x8x32x32xf32, #nn.layout<nChw8c>>
    %3 = nn.mul %0, %2 : (tensor<2x8x32x32xf32, #nn.layout<nChw8c>>, tensor<2x8x32x32xf32, #nn.layout<nChw8c>>) -> tensor<2x8x32x32xf32, #nn.layout<nChw8c>>
    nn.yield %3 : tensor<2x8x32x32xf32, #nn.layout<nChw8c>>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 2, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 131104, flops = 16384>], scratch = [], shares = [0, 0]>, nn.tiles = [array<i64: 1024, 8>]}

  // A factor per channel keeps the channel blocks apart: images, blocks, pixels, lanes.
  // CHECK-LABEL: func.func @scale_0
  // CHECK-SAME: (%{{.*}}: memref<2x2x64x16xf32>, %{{.*}}: memref<2x16xf32>, %{{.*}}: memref<2x2x64x16xf32>)
  exec.cluster @scale {
  ^bb0(%0: tensor<2x32x8x8xf32, #nn.layout<nChw16c>>, %1: tensor<32xf32>):
    %2 = nn.broadcast %1 {dims = array<i64: 1>} : (tensor<32xf32>) -> tensor<2x32x8x8xf32, #nn.layout<nChw16c>>
    %3 = nn.mul %0, %2 : (tensor<2x32x8x8xf32, #nn.layout<nChw16c>>, tensor<2x32x8x8xf32, #nn.layout<nChw16c>>) -> tensor<2x32x8x8xf32, #nn.layout<nChw16c>>
    nn.yield %3 : tensor<2x32x8x8xf32, #nn.layout<nChw16c>>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 32896, flops = 4096>], scratch = [], shares = [0, 0]>, nn.tiles = [array<i64: 2, 2, 64, 16>]}

  // Lanes past the last channel are written as zero, and the factor is not read for them.
  // CHECK-LABEL: func.func @ragged_0
  // CHECK: %[[CHANNEL:.*]] = affine.apply #{{.*}}
  // CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[CHANNEL]], %c20
  // CHECK: scf.if %[[EXISTS]]
  // CHECK-NEXT: memref.load
  // CHECK: arith.mulf
  // CHECK: %[[WRITTEN:.*]] = arith.cmpi ult, %[[CHANNEL]], %c20
  // CHECK: arith.select %[[WRITTEN]]
  exec.cluster @ragged {
  ^bb0(%0: tensor<2x20x8x8xf32, #nn.layout<nChw16c>>, %1: tensor<20xf32>):
    %2 = nn.broadcast %1 {dims = array<i64: 1>} : (tensor<20xf32>) -> tensor<2x20x8x8xf32, #nn.layout<nChw16c>>
    %3 = nn.mul %0, %2 : (tensor<2x20x8x8xf32, #nn.layout<nChw16c>>, tensor<2x20x8x8xf32, #nn.layout<nChw16c>>) -> tensor<2x20x8x8xf32, #nn.layout<nChw16c>>
    nn.yield %3 : tensor<2x20x8x8xf32, #nn.layout<nChw16c>>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 32848, flops = 4096>], scratch = [], shares = [0, 0]>, nn.tiles = [array<i64: 2, 2, 64, 16>]}

  // A sum over images and pixels: f64 partial sums per image and piece of the pixels, then their sum, rounded once.
  // CHECK-LABEL: func.func @sum_0
  // CHECK-SAME: (%{{.*}}: memref<4x3x2x8192xf32>, %[[PARTIAL:.*]]: memref<24xf64>)
  // CHECK: linalg.fill ins(%{{.*}} : f64) outs(%[[PARTIAL]]
  // CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  // CHECK: arith.extf
  // CHECK: arith.addf %{{.*}} : f64
  // CHECK-LABEL: func.func @sum_1
  // CHECK-SAME: (%{{.*}}: memref<8x3xf64>, %[[RESULT:.*]]: memref<3xf32>)
  // CHECK: memref.alloca() : memref<3xf64>
  // CHECK: iterator_types = ["reduction", "parallel"]
  // CHECK: iterator_types = ["parallel"]{{.*}} outs(%[[RESULT]]
  // CHECK: arith.truncf
  exec.cluster @sum {
  ^bb0(%0: tensor<4x3x128x128xf32>):
    %1 = nn.reduce_sum %0 {dims = array<i64: 0, 2, 3>} : (tensor<4x3x128x128xf32>) -> tensor<3xf32>
    nn.yield %1 : tensor<3xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 24, chunk = 4, buffers = [0, 2], reads = 1, bytes = 786624, flops = 196608>, #nn.stage<extent = 1, chunk = 1, buffers = [2, 1], reads = 1, bytes = 204, flops = 24>], scratch = [tensor<8x3xf64>], shares = []>, nn.sums = f64, nn.tiles = [array<i64: 1, 1, 8192>, array<i64: 8, 3>]}

  // CHECK-LABEL: func.func @products_0
  // CHECK: iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  // CHECK: arith.mulf %{{.*}} : f32
  // CHECK: arith.addf %{{.*}} : f64
  exec.cluster @products {
  ^bb0(%0: tensor<4x3x128x128xf32>):
    %1 = nn.relu %0 : (tensor<4x3x128x128xf32>) -> tensor<4x3x128x128xf32>
    %2 = nn.mul %0, %1 : (tensor<4x3x128x128xf32>, tensor<4x3x128x128xf32>) -> tensor<4x3x128x128xf32>
    %3 = nn.reduce_sum %2 {dims = array<i64: 0, 2, 3>} : (tensor<4x3x128x128xf32>) -> tensor<3xf32>
    nn.yield %3 : tensor<3xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 24, chunk = 4, buffers = [0, 2], reads = 1, bytes = 786624, flops = 589824>, #nn.stage<extent = 1, chunk = 1, buffers = [2, 1], reads = 1, bytes = 204, flops = 24>], scratch = [tensor<8x3xf64>], shares = []>, nn.sums = f64, nn.tiles = [array<i64: 1, 1, 8192>, array<i64: 8, 3>]}

  exec.cluster @far {
  ^bb0(%0: tensor<3x16x64x64xf32>):
    %1 = nn.neg %0 : (tensor<3x16x64x64xf32>) -> tensor<3x16x64x64xf32>
    nn.yield %1 : tensor<3x16x64x64xf32>
  } {nontemporal = array<i64: 0>, nn.plan = #nn.plan<stages = [#nn.stage<extent = 24, chunk = 2, buffers = [0, 1], reads = 1, bytes = 1572864, flops = 196608>], scratch = [], shares = [0, 0]>, nn.tiles = [array<i64: 8192>]}

  // CHECK-LABEL: func.func @sum_of_operands_f32_2_2_streams
  exec.cluster @many {
  ^bb0(%0: tensor<3x16x64x64xf32>, %1: tensor<3x16x64x64xf32>, %2: tensor<3x16x64x64xf32>, %3: tensor<3x16x64x64xf32>, %4: tensor<3x16x64x64xf32>):
    %5 = nn.add %0, %1 : (tensor<3x16x64x64xf32>, tensor<3x16x64x64xf32>) -> tensor<3x16x64x64xf32>
    %6 = nn.add %5, %2 : (tensor<3x16x64x64xf32>, tensor<3x16x64x64xf32>) -> tensor<3x16x64x64xf32>
    %7 = nn.add %6, %3 : (tensor<3x16x64x64xf32>, tensor<3x16x64x64xf32>) -> tensor<3x16x64x64xf32>
    %8 = nn.add %7, %4 : (tensor<3x16x64x64xf32>, tensor<3x16x64x64xf32>) -> tensor<3x16x64x64xf32>
    nn.yield %8 : tensor<3x16x64x64xf32>
  } {nontemporal = array<i64: 0>, nn.plan = #nn.plan<stages = [#nn.stage<extent = 24, chunk = 1, buffers = [0, 1, 2, 3, 4, 5], reads = 5, bytes = 4718592, flops = 786432>], scratch = [], shares = [0, 0, 1, 0, 2, 0, 3, 0, 4, 0]>, nn.tiles = [array<i64: 8192>]}

  // Each input of a concatenation is written to its place.
  // CHECK-LABEL: func.func @concat_0
  // CHECK-LABEL: func.func @concat_1
  exec.cluster @concat {
  ^bb0(%0: tensor<2x16x8x8xf32>, %1: tensor<2x3x8x8xf32>):
    %2 = nn.concat %0, %1 {dim = 1 : i64} : (tensor<2x16x8x8xf32>, tensor<2x3x8x8xf32>) -> tensor<2x19x8x8xf32>
    nn.yield %2 : tensor<2x19x8x8xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 2], reads = 1, bytes = 16384, flops = 0, part = 2048>, #nn.stage<extent = 1, chunk = 1, buffers = [1, 2], reads = 1, bytes = 3072, flops = 0, part = 384>], scratch = [], shares = []>, nn.tiles = [array<i64: 2, 1024>, array<i64: 2, 192>]}

  // Random bits stay one call until vectors are made of it: four elements share a counter.
  // CHECK-LABEL: func.func @dropout_0
  // CHECK: call @random_bits
  // LLVM-LABEL: define {{.*}} @dropout_0.body
  // LLVM-NOT: call
  // LLVM: mul nuw {{.*}}<8 x i64> {{.*}} splat (i64 3528531795)
  // LLVM: shufflevector
  // LLVM: ret void
  exec.cluster @dropout {
  ^bb0(%0: tensor<2x64xf32>, %1: tensor<i64>, %2: tensor<i64>, %3: tensor<i64>):
    %4 = nn.dropout %0, %1, %2, %3 {rate = 0.5 : f64, stream = 7 : i64} : (tensor<2x64xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x64xf32>
    nn.yield %4 : tensor<2x64xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2, 3, 4], reads = 4, bytes = 1048, flops = 128>], scratch = [], shares = [0, 0]>, nn.tiles = [array<i64: 128>]}
}

// LLVM: "target-features"="{{.*}}+avx2
