// RUN: dlc-opt %s --dlc-mixed-precision=precision=bf16 | FileCheck %s
// RUN: dlc-opt %s --dlc-mixed-precision=precision=bf16 --dlc-mixed-precision=precision=bf16 | FileCheck %s
// RUN: dlc-opt %s --dlc-mixed-precision=precision=f16 | sed 's/xf16/xbf16/g; s/"f16"/"bf16"/' | FileCheck %s
// RUN: dlc-opt %s --dlc-mixed-precision | FileCheck %s --check-prefix=F32
// RUN: not dlc-opt %s --dlc-mixed-precision=precision=f8 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// f32 is no change, and a second time changes nothing.
// F32-NOT: bf16
// CHECK: nn.model @m
// CHECK-SAME: precision = "bf16"
// UNKNOWN: error: precision is 'f8', expected f32, bf16 or f16
nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @w : tensor<4x3x3x3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @b : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @d : tensor<5x36xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}

  // One cast of input and weight; what selects between convolution and product stays in bf16; the
  // bias stays f32, and so does what follows the product.
  // CHECK-LABEL: nn.program @predict
  // CHECK-SAME: %[[X:.*]]: tensor<2x3x6x6xf32>
  nn.program @predict(%x: tensor<2x3x6x6xf32> {nn.input = "x"}) {
    // CHECK-NEXT: %[[X16:.*]] = nn.cast %[[X]] : {{.*}} -> tensor<2x3x6x6xbf16>
    // CHECK-NEXT: %[[W:.*]] = nn.read @w
    // CHECK-NEXT: %[[W16:.*]] = nn.cast %[[W]] : {{.*}} -> tensor<4x3x3x3xbf16>
    %w = nn.read @w : tensor<4x3x3x3xf32>
    // CHECK-NEXT: %[[B:.*]] = nn.read @b
    %b = nn.read @b : tensor<4xf32>
    // CHECK: %[[C:.*]] = nn.conv %[[X16]], %[[W16]], %[[B]] {{.*}}tensor<4xf32>) -> tensor<2x4x6x6xbf16>
    %c = nn.conv %x, %w, %b {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<2x4x6x6xf32>
    // CHECK-NEXT: %[[R:.*]] = nn.relu %[[C]] : (tensor<2x4x6x6xbf16>)
    %r = nn.relu %c : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
    // CHECK-NEXT: %[[P:.*]], %{{.*}} = nn.max_pool %[[R]] {{.*}} -> (tensor<2x4x3x3xbf16>, tensor<2x4x3x3xi8>)
    %p, %i = nn.max_pool %r {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<2x4x6x6xf32>) -> (tensor<2x4x3x3xf32>, tensor<2x4x3x3xi8>)
    // CHECK-NEXT: %[[F:.*]] = nn.reshape %[[P]] : {{.*}} -> tensor<2x36xbf16>
    %f = nn.reshape %p : (tensor<2x4x3x3xf32>) -> tensor<2x36xf32>
    // CHECK-NEXT: nn.read @d
    // CHECK-NEXT: %[[D16:.*]] = nn.cast
    %d = nn.read @d : tensor<5x36xf32>
    // CHECK-NEXT: %[[L16:.*]] = nn.matmul %[[F]], %[[D16]] {{.*}} -> tensor<2x5xbf16>
    // CHECK-NEXT: %[[L:.*]] = nn.cast %[[L16]] : {{.*}} -> tensor<2x5xf32>
    %l = nn.matmul %f, %d {transpose_b} : (tensor<2x36xf32>, tensor<5x36xf32>) -> tensor<2x5xf32>
    // CHECK-NEXT: nn.tanh %[[L]] : (tensor<2x5xf32>)
    %y = nn.tanh %l : (tensor<2x5xf32>) -> tensor<2x5xf32>
    nn.output "y", %y : tensor<2x5xf32>
  }

  // What is rounded for one user is read rounded by the others, but for inputs; the relu that
  // leads to the convolution runs on the rounded value, so that its gradient needs no other.
  // CHECK-LABEL: nn.program @eval
  // CHECK-SAME: %[[X:.*]]: tensor<2x3x6x6xf32>
  nn.program @eval(%x: tensor<2x3x6x6xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<4x3x3x3xf32>
    // CHECK: %[[T:.*]] = nn.tanh %[[X]]
    // CHECK-NEXT: %[[T16:.*]] = nn.cast %[[T]]
    // CHECK-NEXT: %[[TR:.*]] = nn.cast %[[T16]] : {{.*}} -> tensor<2x3x6x6xf32>
    %t = nn.tanh %x : (tensor<2x3x6x6xf32>) -> tensor<2x3x6x6xf32>
    // CHECK-NEXT: %[[R:.*]] = nn.relu %[[T16]]
    // CHECK-NEXT: %[[RR:.*]] = nn.cast %[[R]]
    %r = nn.relu %t : (tensor<2x3x6x6xf32>) -> tensor<2x3x6x6xf32>
    // CHECK-NEXT: nn.conv %[[R]]
    %c = nn.conv %r, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<2x3x6x6xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
    // CHECK: nn.add %[[TR]], %[[RR]]
    %s = nn.add %t, %r : (tensor<2x3x6x6xf32>, tensor<2x3x6x6xf32>) -> tensor<2x3x6x6xf32>
    nn.output "c", %c : tensor<2x4x6x6xf32>
    nn.output "s", %s : tensor<2x3x6x6xf32>
  }

  // Without a convolution or product nothing is rounded; f64 stays f64; a padding that bf16 cannot
  // represent ends the stretch.
  // CHECK-LABEL: nn.program @train
  nn.program @train(%x: tensor<2x3x6x6xf32> {nn.input = "x"}, %z: tensor<2x2xf64> {nn.input = "z"}) {
    // CHECK: nn.relu {{.*}} -> tensor<2x3x6x6xf32>
    %r = nn.relu %x : (tensor<2x3x6x6xf32>) -> tensor<2x3x6x6xf32>
    nn.output "r", %r : tensor<2x3x6x6xf32>
    // CHECK: nn.matmul {{.*}} -> tensor<2x2xf64>
    %q = nn.matmul %z, %z : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
    nn.output "q", %q : tensor<2x2xf64>
    %w = nn.read @w : tensor<4x3x3x3xf32>
    // CHECK: nn.pad {{.*}} -> tensor<2x3x8x8xf32>
    %p = nn.pad %x {low = array<i64: 0, 0, 1, 1>, high = array<i64: 0, 0, 1, 1>, value = 0.1} : (tensor<2x3x6x6xf32>) -> tensor<2x3x8x8xf32>
    // CHECK: nn.conv {{.*}} -> tensor<2x4x6x6xbf16>
    %c = nn.conv %p, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
    nn.output "c", %c : tensor<2x4x6x6xf32>
  }
}
