// RUN: dlc-opt %s --verify-roundtrip | FileCheck %s

%a = nn.constant dense<1.0> : tensor<3xf32>
%b = nn.constant dense<2.0> : tensor<4xf32>

// One tensor, a bucket of two, another wire type.
// CHECK: comm.all_reduce %{{.*}} : tensor<3xf32>
// CHECK: %{{.*}}:2 = comm.all_reduce %{{.*}}, %{{.*}} {wire = bf16} : tensor<3xf32>, tensor<4xf32>
%s = comm.all_reduce %a : tensor<3xf32>
%t:2 = comm.all_reduce %a, %b {wire = bf16} : tensor<3xf32>, tensor<4xf32>

// Work on something else hides the message.
// CHECK: %[[F:.*]] = comm.start %{{.*}}, %{{.*}} {bucket = 0 : i64} : tensor<3xf32>, tensor<4xf32> -> <tensor<3xf32>, tensor<4xf32>>
// CHECK: nn.neg
// CHECK: %{{.*}}:2 = comm.wait %[[F]] : <tensor<3xf32>, tensor<4xf32>> -> tensor<3xf32>, tensor<4xf32>
%f = comm.start %a, %b {bucket = 0 : i64} : tensor<3xf32>, tensor<4xf32> -> !comm.future<tensor<3xf32>, tensor<4xf32>>
%n = nn.neg %s : (tensor<3xf32>) -> tensor<3xf32>
%r:2 = comm.wait %f : !comm.future<tensor<3xf32>, tensor<4xf32>> -> tensor<3xf32>, tensor<4xf32>
