// REQUIRES: avx2
// RUN: dlc compile %s --emit=linalg | FileCheck %s
// RUN: sed 's/ {nn.plan = .*//' %s > %t.mlir
// RUN: not dlc compile %t.mlir --emit=llvm 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/extent = 10,/extent = 20,/' %s > %t.mlir
// RUN: not dlc compile %t.mlir --emit=llvm 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/i64: 10000/i64: 0/' %s > %t.mlir
// RUN: not dlc compile %t.mlir --emit=llvm 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/, nn.tiles = .*/}/' %s > %t.mlir
// RUN: not dlc compile %t.mlir --emit=llvm 2>&1 | FileCheck %s --check-prefix=OTHER

// Dispatches follow the plan that a cluster carries, so code is made of no other: items are those of the plan, whatever the target would
// plan.
nn.model @m attributes {stage = "exec", batch = 1 : i64, target = "cpu:avx2", threads = 1 : i64, math = "fast", precision = "f32"} {
  // CHECK: func.func @c_0(%{{.*}}: memref<10x10000xf32>, %{{.*}}: memref<10x10000xf32>
  // NONE: 'exec.cluster' op has no plan; run dlc-plan-kernels
  // OTHER: 'exec.cluster' op carries a plan that its body cannot have; compile from text of a stage before schedule
  exec.cluster @c {
  ^bb0(%a: tensor<100000xf32>):
    %e = nn.exp %a : (tensor<100000xf32>) -> tensor<100000xf32>
    nn.yield %e : tensor<100000xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 10, chunk = 1, buffers = [0, 1], reads = 1, bytes = 800000, flops = 100000>], scratch = [], shares = [0, 0]>, nn.tiles = [array<i64: 10000>]}
}
