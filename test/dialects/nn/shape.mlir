// RUN: dlc-opt %s --verify-roundtrip | FileCheck %s

// A constant's layout follows its value; without one the type is printed once.
// CHECK: nn.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>{{$}}
// CHECK: nn.constant dense<0.000000e+00> : tensor<1x4x2x2xf32> : tensor<1x4x2x2xf32, #nn.layout<nhwc>>
%v = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
%l = nn.constant dense<0.0> : tensor<1x4x2x2xf32> : tensor<1x4x2x2xf32, #nn.layout<nhwc>>
%x = nn.constant dense<1.0> : tensor<2x3x4xf32>
%s = nn.constant dense<1.0> : tensor<f32>

// CHECK: nn.iota {dim = 0 : i64} : tensor<5xi32>
%iota = nn.iota {dim = 0 : i64} : tensor<5xi32>
// CHECK: nn.broadcast %{{.*}} {dims = array<i64>} : (tensor<f32>) -> tensor<2x3xf32>
%scalar = nn.broadcast %s {dims = array<i64>} : (tensor<f32>) -> tensor<2x3xf32>
// CHECK: nn.broadcast %{{.*}} {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<4x2x3xf32>
%channel = nn.broadcast %v {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<4x2x3xf32>
// CHECK: nn.reduce_sum %{{.*}} {dims = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> tensor<3xf32>
%sum = nn.reduce_sum %x {dims = array<i64: 0, 2>} : (tensor<2x3x4xf32>) -> tensor<3xf32>
// CHECK: nn.reduce_max %{{.*}} {dims = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
%max = nn.reduce_max %x {dims = array<i64: 1>} : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
// CHECK: nn.reshape %{{.*}} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
%reshape = nn.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// CHECK: nn.transpose %{{.*}} {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
%transpose = nn.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK: nn.concat %{{.*}}, %{{.*}} {dim = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
%concat = nn.concat %x, %x {dim = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
// CHECK: nn.slice %{{.*}} {size = array<i64: 1, 2, 3>, start = array<i64: 1, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<1x2x3xf32>
%slice = nn.slice %x {start = array<i64: 1, 0, 1>, size = array<i64: 1, 2, 3>} : (tensor<2x3x4xf32>) -> tensor<1x2x3xf32>
// CHECK: nn.pad %{{.*}} {high = array<i64: 0, 1, 0>, low = array<i64: 1, 0, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x4xf32>
%pad = nn.pad %x {low = array<i64: 1, 0, 0>, high = array<i64: 0, 1, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x4xf32>
// CHECK: nn.reorder %{{.*}} : (tensor<1x4x2x2xf32, #nn.layout<nhwc>>) -> tensor<1x4x2x2xf32>
%reorder = nn.reorder %l : (tensor<1x4x2x2xf32, #nn.layout<nhwc>>) -> tensor<1x4x2x2xf32>
// CHECK: nn.reorder %{{.*}} : (tensor<1x4x2x2xf32, #nn.layout<nhwc>>) -> tensor<1x4x2x2xbf16>
%narrowed = nn.reorder %l : (tensor<1x4x2x2xf32, #nn.layout<nhwc>>) -> tensor<1x4x2x2xbf16>

// CHECK: nn.fused (%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> attributes {axis = 1 : i64} {
// CHECK-NEXT: %[[Y:.*]] = nn.add %[[A]], %[[B]]
// CHECK-NEXT: nn.yield %[[Y]] : tensor<2xf32>
%fused = nn.fused (%a = %v, %b = %v) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> attributes {axis = 1 : i64} {
  %y = nn.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  nn.yield %y : tensor<2xf32>
}

%scale = nn.constant dense<2.0> : tensor<f32>
// CHECK: nn.count_nonfinite %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3x4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<f32>
%wild = nn.count_nonfinite %x, %v, %scale : (tensor<2x3x4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<f32>
