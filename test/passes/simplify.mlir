// RUN: dlc-opt %s --dlc-simplify --split-input-file | FileCheck %s

// Each output is the result of one rewrite.
// CHECK-LABEL: nn.program @predict
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32> {nn.input = "x"}, %[[H:.*]]: tensor<2x3xbf16> {nn.input = "h"}, %[[I:.*]]: tensor<2x3xi64> {nn.input = "i"})
nn.model @m attributes {stage = "nn", batch = 2 : i64} {
  nn.program @predict(%x: tensor<2x3xf32> {nn.input = "x"}, %h: tensor<2x3xbf16> {nn.input = "h"},
                      %i: tensor<2x3xi64> {nn.input = "i"}) {
    // CHECK-DAG: %[[C:.*]] = nn.constant dense<-2.500000e-01> : tensor<f32>
    // CHECK-DAG: %[[TRUE:.*]] = nn.constant dense<true> : tensor<2x3xi1>

    // Arithmetic on splats, also through a broadcast.
    // CHECK: nn.output "splats", %[[C]]
    %one = nn.constant dense<1.0> : tensor<f32>
    %four = nn.constant dense<4.0> : tensor<f32>
    %quarter = nn.div %one, %four : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %negative = nn.neg %quarter : (tensor<f32>) -> tensor<f32>
    nn.output "splats", %negative : tensor<f32>
    // CHECK-NEXT: nn.output "times_one", %[[X]]
    %ones = nn.broadcast %one {dims = array<i64>} : (tensor<f32>) -> tensor<2x3xf32>
    %p = nn.mul %x, %ones : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "times_one", %p : tensor<2x3xf32>

    // A cast behind an exact one: bf16 -> f32 -> f64 is bf16 -> f64, and back to bf16 is nothing.
    // CHECK-NEXT: %[[WIDE:.*]] = nn.cast %[[H]] : (tensor<2x3xbf16>) -> tensor<2x3xf64>
    // CHECK-NEXT: nn.output "widened", %[[WIDE]]
    // CHECK-NEXT: nn.output "there_and_back", %[[H]]
    %f = nn.cast %h : (tensor<2x3xbf16>) -> tensor<2x3xf32>
    %d = nn.cast %f : (tensor<2x3xf32>) -> tensor<2x3xf64>
    nn.output "widened", %d : tensor<2x3xf64>
    %b = nn.cast %f : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    nn.output "there_and_back", %b : tensor<2x3xbf16>

    // Rounding stays: f32 -> bf16 -> f32 is not the identity, nor is i64 -> f32 -> i64.
    // CHECK-NEXT: nn.cast %[[X]] : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    // CHECK-NEXT: %[[ROUNDED:.*]] = nn.cast
    // CHECK-NEXT: nn.output "rounded", %[[ROUNDED]]
    %narrow = nn.cast %x : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    %rounded = nn.cast %narrow : (tensor<2x3xbf16>) -> tensor<2x3xf32>
    nn.output "rounded", %rounded : tensor<2x3xf32>
    // CHECK-NEXT: nn.cast %[[I]]
    // CHECK-NEXT: %[[INT:.*]] = nn.cast
    // CHECK-NEXT: nn.output "int", %[[INT]]
    %if = nn.cast %i : (tensor<2x3xi64>) -> tensor<2x3xf32>
    %ii = nn.cast %if : (tensor<2x3xf32>) -> tensor<2x3xi64>
    nn.output "int", %ii : tensor<2x3xi64>

    // Pairs of movements.
    // CHECK-NEXT: nn.broadcast %[[X]] {dims = array<i64: 1, 3>} : (tensor<2x3xf32>) -> tensor<5x2x4x3xf32>
    // CHECK-NEXT: nn.output
    %b1 = nn.broadcast %x {dims = array<i64: 0, 2>} : (tensor<2x3xf32>) -> tensor<2x4x3xf32>
    %b2 = nn.broadcast %b1 {dims = array<i64: 1, 2, 3>} : (tensor<2x4x3xf32>) -> tensor<5x2x4x3xf32>
    nn.output "broadcast", %b2 : tensor<5x2x4x3xf32>
    // CHECK-NEXT: nn.output "reshape", %[[X]]
    %r1 = nn.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
    %r2 = nn.reshape %r1 : (tensor<6xf32>) -> tensor<2x3xf32>
    nn.output "reshape", %r2 : tensor<2x3xf32>
    // CHECK-NEXT: nn.output "transpose", %[[X]]
    %t1 = nn.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %t2 = nn.transpose %t1 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
    nn.output "transpose", %t2 : tensor<2x3xf32>
    // CHECK-NEXT: nn.slice %[[X]] {size = array<i64: 1, 1>, start = array<i64: 1, 2>} : (tensor<2x3xf32>) -> tensor<1x1xf32>
    // CHECK-NEXT: nn.output
    %s1 = nn.slice %x {start = array<i64: 1, 0>, size = array<i64: 1, 3>} : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %s2 = nn.slice %s1 {start = array<i64: 0, 2>, size = array<i64: 1, 1>} : (tensor<1x3xf32>) -> tensor<1x1xf32>
    nn.output "slice", %s2 : tensor<1x1xf32>

    // Ops that are the identity.
    // CHECK-NEXT: nn.output "identities", %[[X]]
    %s = nn.slice %x {start = array<i64: 0, 0>, size = array<i64: 2, 3>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %pad = nn.pad %s {low = array<i64: 0, 0>, high = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %cat = nn.concat %pad {dim = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %sum = nn.reduce_sum %cat {dims = array<i64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %n1 = nn.neg %sum : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %n2 = nn.neg %n1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %true = nn.constant dense<true> : tensor<2x3xi1>
    %chosen = nn.select %true, %n2, %ones : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "identities", %chosen : tensor<2x3xf32>
    // CHECK-NEXT: nn.output "true", %[[TRUE]]
    nn.output "true", %true : tensor<2x3xi1>

    // Equal subexpressions, and what a second sweep finds behind them.
    // CHECK-NEXT: %[[E:.*]] = nn.exp %[[X]]
    // CHECK-NEXT: %[[E2:.*]] = nn.add %[[E]], %[[E]]
    // CHECK-NEXT: nn.output "cse", %[[E2]]
    %e1 = nn.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %e2 = nn.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %dead = nn.log %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %e = nn.add %e1, %e2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "cse", %e : tensor<2x3xf32>
  }
}

// -----

// The mask of a pooled ReLU is applied to the smaller gradient; another tensor's mask stays where it is.
// CHECK-LABEL: nn.model @mask
nn.model @mask attributes {stage = "nn"} {
  nn.program @train(%x: tensor<1x1x4x4xf32> {nn.input = "x"}, %dy: tensor<1x1x2x2xf32> {nn.input = "dy"}) {
    // CHECK: %[[Y:.*]], %[[INDEX:.*]] = nn.max_pool %arg0
    // CHECK: %[[POSITIVE:.*]] = nn.compare gt %[[Y]], %{{.*}} : (tensor<1x1x2x2xf32>
    // CHECK: %[[MASKED:.*]] = nn.select %[[POSITIVE]], %arg1, %{{.*}}
    // CHECK: %[[DX:.*]] = nn.max_pool_grad %[[MASKED]], %[[INDEX]]
    // CHECK: nn.output "dx", %[[DX]]
    // CHECK: %[[OTHER:.*]] = nn.select %{{.*}} : (tensor<1x1x4x4xi1>
    // CHECK: nn.output "other", %[[OTHER]]
    %zero = nn.constant dense<0.0> : tensor<1x1x4x4xf32>
    %y, %i = nn.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<1x1x4x4xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi8>)
    %g = nn.max_pool_grad %dy, %i {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi8>) -> tensor<1x1x4x4xf32>
    %m = nn.compare gt %x, %zero : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xi1>
    %dx = nn.select %m, %g, %zero : (tensor<1x1x4x4xi1>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
    nn.output "dx", %dx : tensor<1x1x4x4xf32>
    %e = nn.exp %x : (tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
    %h = nn.max_pool_grad %y, %i {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi8>) -> tensor<1x1x4x4xf32>
    %n = nn.compare gt %e, %zero : (tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xi1>
    %other = nn.select %n, %h, %zero : (tensor<1x1x4x4xi1>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
    nn.output "other", %other : tensor<1x1x4x4xf32>
  }
}
