// RUN: dlc-opt %s --canonicalize | FileCheck %s

// Identities disappear, also through a broadcast splat; nothing else is folded.
// CHECK: nn.program @predict(%[[X:.*]]: tensor<2x3xf32>
// CHECK: nn.output "add", %[[X]]
// CHECK: nn.output "sub", %[[X]]
// CHECK: nn.output "mul", %[[X]]
// CHECK: nn.output "div", %[[X]]
// CHECK: nn.output "broadcast", %[[X]]
// CHECK: nn.output "reshape", %[[X]]
// CHECK: nn.output "reorder", %[[X]]
// CHECK: %[[MINUS:.*]] = nn.sub %{{.*}}, %[[X]]
// CHECK: nn.output "kept", %[[MINUS]]
nn.model @m attributes {stage = "nn"} {
  nn.program @predict(%x: tensor<2x3xf32> {nn.input = "x"}) {
    %zero = nn.constant dense<0.0> : tensor<2x3xf32>
    %one = nn.constant dense<1.0> : tensor<f32>
    %ones = nn.broadcast %one {dims = array<i64>} : (tensor<f32>) -> tensor<2x3xf32>
    %add = nn.add %zero, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "add", %add : tensor<2x3xf32>
    %sub = nn.sub %x, %zero : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "sub", %sub : tensor<2x3xf32>
    %mul = nn.mul %ones, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "mul", %mul : tensor<2x3xf32>
    %div = nn.div %x, %ones : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "div", %div : tensor<2x3xf32>
    %broadcast = nn.broadcast %x {dims = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "broadcast", %broadcast : tensor<2x3xf32>
    %reshape = nn.reshape %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "reshape", %reshape : tensor<2x3xf32>
    %there = nn.reorder %x : (tensor<2x3xf32>) -> tensor<2x3xf32, #nn.layout<cn>>
    %back = nn.reorder %there : (tensor<2x3xf32, #nn.layout<cn>>) -> tensor<2x3xf32>
    nn.output "reorder", %back : tensor<2x3xf32>
    %kept = nn.sub %zero, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    nn.output "kept", %kept : tensor<2x3xf32>
  }
}
