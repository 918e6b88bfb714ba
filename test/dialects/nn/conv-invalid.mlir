// RUN: dlc-opt %s --split-input-file --verify-diagnostics

// Constraints of nn.conv by number.

%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w = nn.constant dense<1.0> : tensor<4x3x3x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{both need the same rank of 3 to 5}}
%y = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6xf32>

// -----

// 1.
%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w = nn.constant dense<1.0> : tensor<4x2x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{has 3 channels, weight 'tensor<4x2x3xf32>' is for 2}}
%y = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<4x2x3xf32>) -> tensor<2x4x6xf32>

// -----

// 2.
%x = nn.constant dense<1.0> : tensor<2x4x8xf32>
%w = nn.constant dense<1.0> : tensor<3x2x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{3 output channels do not divide into 2 groups}}
%y = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>, groups = 2 : i64} : (tensor<2x4x8xf32>, tensor<3x2x3xf32>) -> tensor<2x3x6xf32>

// -----

// 3., lists
%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w = nn.constant dense<1.0> : tensor<4x3x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{does not fit on 'tensor<2x3x8xf32>'}}
%y = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x6xf32>

// -----

// 3., values
%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w = nn.constant dense<1.0> : tensor<4x3x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{does not fit on 'tensor<2x3x8xf32>'}}
%y = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: -1>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x5xf32>

// -----

// 4.
%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w = nn.constant dense<1.0> : tensor<4x3x5xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{does not fit on 'tensor<2x3x8xf32>'}}
%y = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 2>} : (tensor<2x3x8xf32>, tensor<4x3x5xf32>) -> tensor<2x4x1xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w = nn.constant dense<1.0> : tensor<4x3x3xf32>
// expected-error @below {{failed to infer returned types}}
// expected-error @below {{op inferred type(s) 'tensor<2x4x6xf32>' are incompatible with return type(s) of operation 'tensor<2x4x7xf32>'}}
%y = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x7xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w = nn.constant dense<1.0> : tensor<4x3x3xf32>
%b = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{bias has type 'tensor<3xf32>', expected 4 elements}}
%y = nn.conv %x, %w, %b {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<4x3x3xf32>, tensor<3xf32>) -> tensor<2x4x6xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2x3x4xf32>
%w = nn.constant dense<1.0> : tensor<3x2x2xf32>
// expected-error @below {{convolving 'tensor<2x2x10xf32>' with 'tensor<3x2x2xf32>' does not give 'tensor<2x3x4xf32>'}}
%y = nn.conv_transpose %x, %w {strides = array<i64: 2>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x4xf32>, tensor<3x2x2xf32>) -> tensor<2x2x10xf32>

// -----

%dy = nn.constant dense<1.0> : tensor<2x4x6xf32>
%w = nn.constant dense<1.0> : tensor<4x3x3xf32>
// expected-error @below {{convolving 'tensor<2x3x9xf32>' with 'tensor<4x3x3xf32>' does not give 'tensor<2x4x6xf32>'}}
%dx = nn.conv_grad_data %dy, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x4x6xf32>, tensor<4x3x3xf32>) -> tensor<2x3x9xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%dy = nn.constant dense<1.0> : tensor<2x4x6xf32>
// expected-error @below {{convolving 'tensor<2x3x8xf32>' with 'tensor<4x3x4xf32>' does not give 'tensor<2x4x6xf32>'}}
%dw = nn.conv_grad_filter %x, %dy {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<2x4x6xf32>) -> tensor<4x3x4xf32>

// -----

// Factors and results have one element type.
%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w = nn.constant dense<1.0> : tensor<4x3x3xf64>
// expected-error @below {{multiplies 'tensor<2x3x8xf32>' by 'tensor<4x3x3xf64>': both need one element type}}
%y = nn.conv %x, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<4x3x3xf64>) -> tensor<2x4x6xf32>

// -----

%x = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w = nn.constant dense<1.0> : tensor<4x3x3xf32>
%b = nn.constant dense<1.0> : tensor<4xf16>
// expected-error @below {{has factors of 'f32', but a bias of type 'tensor<4xf16>'}}
%y = nn.conv %x, %w, %b {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<4x3x3xf32>, tensor<4xf16>) -> tensor<2x4x6xf32>

// -----

%dy = nn.constant dense<1.0> : tensor<2x4x6xf32>
%w = nn.constant dense<1.0> : tensor<4x3x3xf32>
// expected-error @below {{has factors of 'f32', but a result of type 'tensor<2x3x8xbf16>'}}
%dx = nn.conv_grad_data %dy, %w {strides = array<i64: 1>, padding_low = array<i64: 0>, padding_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<2x4x6xf32>, tensor<4x3x3xf32>) -> tensor<2x3x8xbf16>
