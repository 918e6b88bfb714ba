// REQUIRES: avx2
// RUN: not dlc compile %s --emit=llvm 2>&1 | FileCheck %s
// RUN: sed 's/extent = 10,/extent = 5,/; s/array<i64: 10>/array<i64: 24>/' %s > %t.mlir
// RUN: dlc compile %t.mlir --emit=linalg | FileCheck %s --check-prefix=PLANNED

// An item of a product is of whole tiles of this target's emitter.
nn.model @m attributes {stage = "exec", batch = 1 : i64, target = "cpu:avx2", threads = 1 : i64, math = "fast", precision = "f32"} {
  // CHECK: 'exec.cluster' op is planned with items of 10 columns, expected a multiple of 12
  // PLANNED: memref.alloca() {{.*}} : memref<192x8xf32>
  exec.cluster @c {
  ^bb0(%a: tensor<8x64xf32>, %b: tensor<100x64xf32>):
    %y = nn.matmul %a, %b {transpose_b} : (tensor<8x64xf32>, tensor<100x64xf32>) -> tensor<8x100xf32>
    nn.yield %y : tensor<8x100xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 10, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 30848, flops = 102400>], scratch = [], shares = []>, nn.tiles = [array<i64: 10>]}
}
