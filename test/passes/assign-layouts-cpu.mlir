// Layouts of a real library on a target that is named, so that only the library's version matters.
// REQUIRES: avx512
// RUN: dlc-opt %s --dlc-assign-layouts="target=cpu:avx512 threads=2" --dlc-plan-kernels | FileCheck %s
// RUN: not dlc-opt %s --dlc-assign-layouts=target=cpu:z80 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: unknown target 'cpu:z80'

// Blocked channels win where there are enough of them, and every op has a kernel in what was chosen.
// CHECK: nn.variable @w : tensor<64x32x3x3xf32, #nn.layout<NChw16c16n>>
nn.model @blocked attributes {stage = "train"} {
  nn.variable @w : tensor<64x32x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @predict(%image: tensor<8x1x58x58xf32> {nn.input = "image"}, %v: tensor<32x1x3x3xf32> {nn.input = "v"}) {
    %w = nn.read @w : tensor<64x32x3x3xf32>
    // CHECK: nn.conv {{.*}}nn.kernel = #nn.kernel<{{.*}} -> tensor<8x32x56x56xf32, #nn.layout<nChw16c>>
    %y = nn.conv %image, %v {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<8x1x58x58xf32>, tensor<32x1x3x3xf32>) -> tensor<8x32x56x56xf32>
    // CHECK: nn.conv {{.*}}nn.kernel = #nn.kernel<{{.*}} -> tensor<8x64x56x56xf32, #nn.layout<nChw16c>>
    %z = nn.conv %y, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<8x32x56x56xf32>, tensor<64x32x3x3xf32>) -> tensor<8x64x56x56xf32>
    // CHECK: nn.max_pool {{.*}} -> (tensor<8x64x28x28xf32, #nn.layout<nChw16c>>, tensor<8x64x28x28xi8, #nn.layout<nChw16c>>)
    %p, %i = nn.max_pool %z {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<8x64x56x56xf32>) -> (tensor<8x64x28x28xf32>, tensor<8x64x28x28xi8>)
    // CHECK: %[[OUT:.*]] = nn.reorder {{.*}} -> tensor<8x64x28x28xf32>
    // CHECK: nn.output "p", %[[OUT]]
    nn.output "p", %p : tensor<8x64x28x28xf32>
  }
}
