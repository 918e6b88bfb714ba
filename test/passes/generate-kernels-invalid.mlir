// REQUIRES: avx2
// RUN: not dlc compile %s --emit=llvm 2>&1 | FileCheck %s

// Dispatches follow the plan that a cluster carries, so code is made of no other.
nn.model @m attributes {stage = "exec", batch = 1 : i64, target = "cpu:avx2", threads = 1 : i64, math = "fast", precision = "f32"} {
  // CHECK: 'exec.cluster' op carries another plan than its body has on this target; compile from text of a stage before schedule
  exec.cluster @c {
  ^bb0(%a: tensor<100000xf32>):
    %e = nn.exp %a : (tensor<100000xf32>) -> tensor<100000xf32>
    nn.yield %e : tensor<100000xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 1, bytes = 800000, flops = 100000>], scratch = [], shares = [0, 0]>}
}
