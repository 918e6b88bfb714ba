// RUN: not dlc compile %s --emit=llvm 2>&1 | FileCheck %s

// The target says who emits its kernels; its name does not matter.
// CHECK: kernels of target test:small are emitted by 'none', which this build does not have
nn.model @m attributes {stage = "exec", batch = 1 : i64, target = "test:small", threads = 1 : i64, math = "fast", precision = "f32"} {
}
