// RUN: dlc-opt %s --split-input-file --verify-diagnostics

%a = nn.constant dense<1.0> : tensor<5x3xf32>
%b = nn.constant dense<1.0> : tensor<4x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{inner dimensions are 3 and 4}}
%y = nn.matmul %a, %b : (tensor<5x3xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>

// -----

%a = nn.constant dense<1.0> : tensor<1x5x3xf32>
%b = nn.constant dense<1.0> : tensor<3x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{both need rank 2}}
%y = nn.matmul %a, %b : (tensor<1x5x3xf32>, tensor<3x3xf32>) -> tensor<5x3xf32>

// -----

%a = nn.constant dense<1.0> : tensor<5x3xf32>
%b = nn.constant dense<1.0> : tensor<3x4xf32>
%c = nn.constant dense<1.0> : tensor<5xf32>
// expected-error @below {{bias has type 'tensor<5xf32>', expected 4 elements}}
%y = nn.matmul %a, %b, %c : (tensor<5x3xf32>, tensor<3x4xf32>, tensor<5xf32>) -> tensor<5x4xf32>

// -----

%x = nn.constant dense<1.0> : tensor<1x1x16x16xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{the window [12, 12] has more than 127 elements}}
%y, %i = nn.max_pool %x {kernel = array<i64: 12, 12>, strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<1x1x16x16xf32>) -> (tensor<1x1x5x5xf32>, tensor<1x1x5x5xi8>)

// -----

%x = nn.constant dense<1.0> : tensor<1x1x4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{the window [5] does not fit on 'tensor<1x1x4xf32>'}}
%y, %i = nn.max_pool %x {kernel = array<i64: 5>, strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>} : (tensor<1x1x4xf32>) -> (tensor<1x1x1xf32>, tensor<1x1x1xi8>)

// -----

%dy = nn.constant dense<1.0> : tensor<1x1x2xf32>
%i = nn.constant dense<1> : tensor<1x1x2xi8>
// expected-error @below {{pooling 'tensor<1x1x6xf32>' does not give 'tensor<1x1x2xf32>' and 'tensor<1x1x2xi8>'}}
%dx = nn.max_pool_grad %dy, %i {kernel = array<i64: 2>, strides = array<i64: 2>, padding_low = array<i64: 0>, padding_high = array<i64: 0>} : (tensor<1x1x2xf32>, tensor<1x1x2xi8>) -> tensor<1x1x6xf32>

// -----

%x = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{normalises 'tensor<4xf32>', which has no channels}}
%y:3 = nn.batch_norm %x, %x, %x, %x, %x {epsilon = 1.0e-5, training = true} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)

// -----

%x = nn.constant dense<1.0> : tensor<2x4xf32>
%c = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{scale, bias and statistics need 4 elements, got 'tensor<3xf32>'}}
%y:3 = nn.batch_norm %x, %c, %c, %c, %c {epsilon = 1.0e-5, training = true} : (tensor<2x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x4xf32>, tensor<3xf32>, tensor<3xf32>)

// -----

%x = nn.constant dense<1.0> : tensor<2x4xf32>
%c = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{epsilon must be positive}}
%y:3 = nn.batch_norm %x, %c, %c, %c, %c {epsilon = 0.0, training = true} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)

// -----

%x = nn.constant dense<1.0> : tensor<2x4xf32>
%dy = nn.constant dense<1.0> : tensor<3x4xf32>
%c = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{dy and x differ: 'tensor<3x4xf32>' and 'tensor<2x4xf32>'}}
%y:3 = nn.batch_norm_grad %dy, %x, %c, %c, %c {epsilon = 1.0e-5} : (tensor<3x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)

// -----

%x = nn.constant dense<1.0> : tensor<2x4xf32>
%c = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{cannot divide the channels of 'tensor<2x4xf32>' into 3 groups}}
%y:3 = nn.group_norm %x, %c, %c {epsilon = 1.0e-5, groups = 3 : i64} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)

// -----

%x = nn.constant dense<1.0> : tensor<2x4x3xf32>
%c = nn.constant dense<1.0> : tensor<4x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{scale and bias need 4 elements, or with one group the shape of a sample of 'tensor<2x4x3xf32>', got 'tensor<4x3xf32>'}}
%y:3 = nn.group_norm %x, %c, %c {epsilon = 1.0e-5, groups = 2 : i64} : (tensor<2x4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x2xf32>, tensor<2x2xf32>)

// -----

%x = nn.constant dense<1.0> : tensor<2x4xf32>
%c = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{epsilon must be positive}}
%y:3 = nn.group_norm %x, %c, %c {epsilon = 0.0, groups = 2 : i64} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>)

// -----

%x = nn.constant dense<1.0> : tensor<2x4xf32>
%c = nn.constant dense<1.0> : tensor<4xf32>
%m = nn.constant dense<1.0> : tensor<4x2xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{mean and var need one element per sample and group of 'tensor<2x4xf32>', got 'tensor<4x2xf32>' and 'tensor<4x2xf32>'}}
%y:3 = nn.group_norm_grad %x, %x, %c, %m, %m {epsilon = 1.0e-5} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4xf32>, tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>)

// -----

%logits = nn.constant dense<1.0> : tensor<5x3xf32>
%label = nn.constant dense<1> : tensor<4xi32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{takes logits [N, C, ...] and label [N, ...], got 'tensor<5x3xf32>' and 'tensor<4xi32>'}}
%loss = nn.softmax_cross_entropy %logits, %label : (tensor<5x3xf32>, tensor<4xi32>) -> tensor<5xf32>

// -----

%logits = nn.constant dense<1.0> : tensor<5x3xf32>
%label = nn.constant dense<1> : tensor<5xi32>
// expected-error @below {{smoothing is 1.000000e+00, expected 0 <= smoothing < 1}}
%loss = nn.softmax_cross_entropy %logits, %label {smoothing = 1.0} : (tensor<5x3xf32>, tensor<5xi32>) -> tensor<5xf32>

// -----

%a = nn.constant dense<1.0> : tensor<2x3xf32>
%b = nn.constant dense<1.0> : tensor<3x4xf16>
// expected-error @below {{multiplies 'tensor<2x3xf32>' by 'tensor<3x4xf16>': both need one element type}}
%y = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf16>) -> tensor<2x4xf32>

// -----

%dy = nn.constant dense<1.0> : tensor<2x3x2xf64>
%i = nn.constant dense<1> : tensor<2x3x2xi8>
// expected-error @below {{computes in one element type, but dy has type 'tensor<2x3x2xf64>' and dx 'tensor<2x3x4xf32>'}}
%dx = nn.max_pool_grad %dy, %i {kernel = array<i64: 2>, strides = array<i64: 2>, padding_low = array<i64: 0>, padding_high = array<i64: 0>} : (tensor<2x3x2xf64>, tensor<2x3x2xi8>) -> tensor<2x3x4xf32>

// -----

// The gradient of the loss takes what the loss takes.
%x = nn.constant dense<1.0> : tensor<2xf32>
%label = nn.constant dense<1> : tensor<2xi32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{takes logits [N, C, ...] and label [N, ...], got 'tensor<2xf32>' and 'tensor<2xi32>'}}
%y = nn.softmax_cross_entropy_grad %x, %label, %x : (tensor<2xf32>, tensor<2xi32>, tensor<2xf32>) -> tensor<2xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2x10xf32>
%label = nn.constant dense<1> : tensor<2xi32>
%dloss = nn.constant dense<1.0> : tensor<99xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{takes dloss of the shape of label 'tensor<2xi32>' and the element type of logits 'tensor<2x10xf32>', got 'tensor<99xf32>'}}
%y = nn.softmax_cross_entropy_grad %x, %label, %dloss : (tensor<2x10xf32>, tensor<2xi32>, tensor<99xf32>) -> tensor<2x10xf32>

// -----

// A bias is compared with the result before the result is compared with the operands.
%a = nn.constant dense<1.0> : tensor<2x3xf32>
%b = nn.constant dense<1.0> : tensor<4xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{inferred type(s) 'tensor<2x2xf32>' are incompatible with return type(s) of operation 'tensor<2xf32>'}}
%y = nn.matmul %a, %a, %b {transpose_b} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<4xf32>) -> tensor<2xf32>
