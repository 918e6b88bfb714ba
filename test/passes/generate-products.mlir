// REQUIRES: avx512-bf16
// RUN: dlc compile %s --emit=linalg | FileCheck %s
// RUN: dlc compile %s --emit=llvm | FileCheck %s --check-prefix=LLVM
nn.model @m attributes {stage = "exec", target = "cpu:avx512-bf16", threads = 1 : i64, math = "fast"} {

  // A tile is three rows of b and all of a, 24 vectors of sums; what the next block reads is fetched ahead.
  // CHECK-LABEL: func.func @dots_0
  // CHECK-SAME: (%[[A:.*]]: memref<8x4096xf32>, %[[B:.*]]: memref<100x4096xf32>, %{{.*}}: memref<100xf32>, %{{.*}}: memref<8x100xf32>, %{{.*}}: index, %{{.*}}: index)
  // CHECK: memref.alloca() {alignment = 64 : i64} : memref<384x16xf32>
  // CHECK: memref.prefetch %[[B]]
  // CHECK-COUNT-24: math.fma
  // CHECK-NOT: math.fma
  // CHECK: scf.yield
  exec.cluster @dots {
  ^bb0(%a: tensor<8x4096xf32>, %b: tensor<100x4096xf32>, %c: tensor<100xf32>):
    %y = nn.matmul %a, %b, %c {transpose_b} : (tensor<8x4096xf32>, tensor<100x4096xf32>, tensor<100xf32>) -> tensor<8x100xf32>
    nn.yield %y : tensor<8x100xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 3, chunk = 1, buffers = [0, 1, 2, 3], reads = 3, bytes = 1773072, flops = 6553600>], scratch = [], shares = []>, nn.tiles = [array<i64: 48>]}

  // Pairs of two rows of bf16 are interleaved and multiplied at once.
  // LLVM-LABEL: define {{.*}} @sums_0.body
  // LLVM: shufflevector <32 x i16>
  // LLVM-COUNT-16: call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512
  // LLVM-NOT: dpbf16ps
  // LLVM: ret void
  exec.cluster @sums {
  ^bb0(%a: tensor<8x64xbf16>, %b: tensor<64x1024xbf16>):
    %y = nn.matmul %a, %b : (tensor<8x64xbf16>, tensor<64x1024xbf16>) -> tensor<8x1024xbf16>
    nn.yield %y : tensor<8x1024xbf16>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 2, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 148480, flops = 1048576>], scratch = [], shares = []>, nn.tiles = [array<i64: 768>]}
}
