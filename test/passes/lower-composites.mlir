// RUN: dlc-opt %s --dlc-lower-composites --canonicalize --cse --split-input-file | FileCheck %s

// Training batch norm: one pass over x gives both sums, in f64; y is one multiply-add per element.
// CHECK-LABEL: nn.model @training
nn.model @training attributes {stage = "train"} {
  nn.program @train(%x: tensor<2x3x4x4xf32> {nn.input = "x"}, %s: tensor<3xf32> {nn.input = "s"}) {
    // CHECK: %[[WIDE:.*]] = nn.cast %{{.*}} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf64>
    // CHECK: nn.reduce_sum %[[WIDE]] {dims = array<i64: 0, 2, 3>}
    // CHECK: %[[SQUARE:.*]] = nn.mul %[[WIDE]], %[[WIDE]]
    // CHECK: nn.reduce_sum %[[SQUARE]] {dims = array<i64: 0, 2, 3>}
    // CHECK: nn.rsqrt
    // CHECK: %[[SCALED:.*]] = nn.mul %arg0
    // CHECK: nn.add %[[SCALED]]
    // CHECK-NOT: nn.batch_norm
    %y, %m, %v = nn.batch_norm %x, %s, %s, %s, %s {epsilon = 1.0e-5 : f64, training = true} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
    nn.output "y", %y : tensor<2x3x4x4xf32>
    nn.output "m", %m : tensor<3xf32>
    nn.output "v", %v : tensor<3xf32>
  }
}

// -----

// Inference reads no statistics of the batch.
// CHECK-LABEL: nn.model @inference
// CHECK-NOT: nn.reduce_sum
// CHECK: nn.output
nn.model @inference attributes {stage = "train"} {
  nn.program @predict(%x: tensor<2x3x4x4xf32> {nn.input = "x"}, %s: tensor<3xf32> {nn.input = "s"}) {
    %y, %m, %v = nn.batch_norm %x, %s, %s, %s, %s {epsilon = 1.0e-5 : f64, training = false} : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
    nn.output "y", %y : tensor<2x3x4x4xf32>
  }
}

// -----

// Softmax cross entropy subtracts the row's maximum before exp.
// CHECK-LABEL: nn.model @loss
nn.model @loss attributes {stage = "train"} {
  nn.program @train(%x: tensor<2x3xf32> {nn.input = "x"}, %t: tensor<2xi32> {nn.input = "t"}) {
    // CHECK: %[[MAX:.*]] = nn.reduce_max %arg0 {dims = array<i64: 1>}
    // CHECK: %[[ROW:.*]] = nn.broadcast %[[MAX]] {dims = array<i64: 0>}
    // CHECK: %[[SHIFT:.*]] = nn.sub %arg0, %[[ROW]]
    // CHECK: %[[EXP:.*]] = nn.exp %[[SHIFT]]
    // CHECK: nn.reduce_sum %[[EXP]]
    // CHECK: nn.compare  eq
    %l = nn.softmax_cross_entropy %x, %t : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2xf32>
    nn.output "l", %l : tensor<2xf32>
  }
}
