// RUN: dlc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{value has type 'tensor<2xf32>', result 'tensor<3xf32>'}}
%c = nn.constant dense<1.0> : tensor<2xf32> : tensor<3xf32>

// -----

// expected-error @below {{with a layout must be a splat}}
%c = nn.constant dense<[[[1.0, 2.0]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32, #nn.layout<nwc>>

// -----

// expected-error @below {{dim 1 is outside of 'tensor<5xi32>'}}
%i = nn.iota {dim = 1 : i64} : tensor<5xi32>

// -----

%x = nn.constant dense<1.0> : tensor<2x3xf32>
// expected-error @below {{must be increasing dimensions of 'tensor<3x2x4xf32>', one per dimension of 'tensor<2x3xf32>'}}
%y = nn.broadcast %x {dims = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2x4xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2xf32>
// expected-error @below {{must be increasing dimensions of 'tensor<3x2xf32>', one per dimension of 'tensor<2xf32>'}}
%y = nn.broadcast %x {dims = array<i64>} : (tensor<2xf32>) -> tensor<3x2xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2xf32>
// expected-error @below {{dimension 0 of 'tensor<2xf32>' differs from dimension 0 of 'tensor<3x2xf32>'}}
%y = nn.broadcast %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<3x2xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2xf32>
// expected-error @below {{changes the element type from 'tensor<2xf32>' to 'tensor<3x2xf16>'}}
%y = nn.broadcast %x {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<3x2xf16>

// -----

%x = nn.constant dense<1.0> : tensor<2x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{dims [2] must be increasing dimensions of 'tensor<2x3xf32>'}}
%y = nn.reduce_sum %x {dims = array<i64: 2>} : (tensor<2x3xf32>) -> tensor<2xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2x3xf32>
// expected-error @below {{changes the elements: 'tensor<2x3xf32>' to 'tensor<7xf32>'}}
%y = nn.reshape %x : (tensor<2x3xf32>) -> tensor<7xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{is no permutation of the dimensions of 'tensor<2x3xf32>'}}
%y = nn.transpose %x {permutation = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x2xf32>

// -----

%x = nn.constant dense<1.0> : tensor<1x4x2x2xf32>
// expected-error @below {{changes more than the layout}}
%y = nn.reorder %x : (tensor<1x4x2x2xf32>) -> tensor<1x4x4xf32>

// -----

%x = nn.constant dense<1.0> : tensor<1x4x2x2xbf16>
// expected-error @below {{changes more than the layout}}
%y = nn.reorder %x : (tensor<1x4x2x2xbf16>) -> tensor<1x4x2x2xf32>

// -----

// expected-error @below {{failed to infer returned types}}
// expected-error @below {{concat needs an operand}}
%y = nn.concat {dim = 0 : i64} : () -> tensor<2xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{dim 2 is outside of 'tensor<2x3xf32>'}}
%y = nn.concat %x {dim = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>

// -----

%a = nn.constant dense<1.0> : tensor<2x3xf32>
%b = nn.constant dense<1.0> : tensor<3x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{joins 'tensor<3x3xf32>' to 'tensor<2x3xf32>' along dimension 1}}
%y = nn.concat %a, %b {dim = 1 : i64} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>

// -----

%a = nn.constant dense<1.0> : tensor<2x3xf32>
%b = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{joins 'tensor<3xf32>' to 'tensor<2x3xf32>'}}
%y = nn.concat %a, %b {dim = 0 : i64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<3x3xf32>

// -----

%x = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{the box [2] + [3] is outside of 'tensor<4xf32>'}}
%y = nn.slice %x {start = array<i64: 2>, size = array<i64: 3>} : (tensor<4xf32>) -> tensor<3xf32>

// -----

%x = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{start and size need one entry per dimension of 'tensor<4xf32>'}}
%y = nn.slice %x {start = array<i64>, size = array<i64: 3>} : (tensor<4xf32>) -> tensor<3xf32>

// -----

%x = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{strides needs one entry >= 1 per dimension of 'tensor<4xf32>'}}
%y = nn.subsample %x {strides = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>

// -----

%x = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{strides needs one entry >= 1 per dimension of 'tensor<4xf32>'}}
%y = nn.subsample %x {strides = array<i64: 1, 1>} : (tensor<4xf32>) -> tensor<4xf32>

// -----

%x = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{times has 4611686018427387904, which is too large}}
%y = nn.repeat %x {times = array<i64: 4611686018427387904>} : (tensor<4xf32>) -> tensor<4xf32>

// -----

%x = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{low and high need one entry >= 0 per dimension of 'tensor<4xf32>'}}
%y = nn.pad %x {low = array<i64: -1>, high = array<i64: 0>} : (tensor<4xf32>) -> tensor<3xf32>

// -----

%x = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{results differ from what nn.yield names}}
%y = nn.fused (%a = %x) : (tensor<4xf32>) -> tensor<4xf32> {
  %b = nn.reduce_sum %a {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  nn.yield %b : tensor<f32>
}

// -----

%x = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{arguments of the region differ from the operands}}
%y = "nn.fused"(%x) ({
^bb0(%a: tensor<5xf32>):
  nn.yield %a : tensor<5xf32>
}) : (tensor<4xf32>) -> tensor<5xf32>

// -----

// expected-error @below {{'nwx' is not a layout such as nhwc, nChw16c or OIhw16i16o}}
%c = nn.constant dense<1.0> : tensor<1x1x2xf32> : tensor<1x1x2xf32, #nn.layout<nwx>>

// -----

// expected-error @below {{layout nhwc is for rank 4, the tensor has rank 3}}
%c = nn.constant dense<1.0> : tensor<1x1x2xf32> : tensor<1x1x2xf32, #nn.layout<nhwc>>

// -----

// What every tensor is.
// expected-error @below {{result #0 must be ranked tensor (static shape, at most 5 dimensions of at least 1, at most 2^40 elements) of}}
%x = nn.iota {dim = 0 : i64} : tensor<1x1x1x1x1x1xi32>

// -----

// expected-error @below {{must be ranked tensor (static shape}}
%x = nn.iota {dim = 0 : i64} : tensor<?xi32>

// -----

// expected-error @below {{must be ranked tensor (static shape}}
%x = nn.iota {dim = 0 : i64} : tensor<0xi32>

// -----

// expected-error @below {{must be ranked tensor (static shape}}
%x = nn.iota {dim = 0 : i64} : tensor<2x4611686018427387904xi32>

// -----

// Padding lanes are elements in memory.
// expected-error @below {{must be ranked tensor (static shape}}
%x = nn.iota {dim = 0 : i64} : tensor<1073741824x1x512x2xi32, #nn.layout<nChw16c>>

// -----

// expected-error @below {{must be ranked tensor (static shape}}
%x = nn.iota {dim = 0 : i64} : tensor<2xi32, "layout">

// -----

// expected-error @below {{needs its elements: write dense<...>}}
%x = nn.constant dense_resource<absent> : tensor<2x4xf32>

// -----

// expected-error @below {{dim -1 is outside of 'tensor<2xi32>'}}
%x = nn.iota {dim = -1 : i64} : tensor<2xi32>

// -----

%x = nn.constant dense<2.0> : tensor<3xf32>
// expected-error @below {{counts elements of tensors of f32, by scalars of f32}}
%n = nn.count_nonfinite %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
