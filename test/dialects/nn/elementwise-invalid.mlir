// RUN: dlc-opt %s --split-input-file --verify-diagnostics

%a = nn.constant dense<1.0> : tensor<2x3xf32>
%b = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{is elementwise, but an operand has type 'tensor<3xf32>' and the result 'tensor<2x3xf32>'}}
%y = nn.add %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>

// -----

%x = nn.constant dense<1.0> : tensor<1x4x2x2xf32>
// expected-error @below {{is elementwise, but layouts differ}}
%y = nn.relu %x : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32, #nn.layout<nhwc>>

// -----

%x = nn.constant dense<1> : tensor<3xi32>
// expected-error @below {{operand #0 must be ranked tensor (static shape, at most 5 dimensions of at least 1, at most 2^40 elements) of 64-bit float}}
%y = nn.exp %x : (tensor<3xi32>) -> tensor<3xi32>

// -----

%x = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{computes in one element type, but an operand has type 'tensor<3xf32>' and the result 'tensor<3xf16>'; convert by nn.cast}}
%y = nn.neg %x : (tensor<3xf32>) -> tensor<3xf16>

// -----

%a = nn.constant dense<1.0> : tensor<3xf32>
%b = nn.constant dense<1> : tensor<3xi32>
// expected-error @below {{compares 'tensor<3xf32>' with 'tensor<3xi32>'}}
%y = nn.compare lt %a, %b : (tensor<3xf32>, tensor<3xi32>) -> tensor<3xi1>

// -----

%c = nn.constant dense<true> : tensor<3xi1>
%a = nn.constant dense<1.0> : tensor<3xf32>
%b = nn.constant dense<1.0> : tensor<3xf16>
// expected-error @below {{computes in one element type, but an operand has type 'tensor<3xf16>'}}
%y = nn.select %c, %a, %b : (tensor<3xi1>, tensor<3xf32>, tensor<3xf16>) -> tensor<3xf32>

// -----

%x = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{to i1 is spelled nn.compare}}
%y = nn.cast %x : (tensor<3xf32>) -> tensor<3xi1>

// -----

%x = nn.constant dense<1.0> : tensor<3xf32>
%s = nn.constant dense<1> : tensor<i64>
// expected-error @below {{rate is 1.000000e+00, expected 0 <= rate < 1}}
%y = nn.dropout %x, %s, %s, %s {rate = 1.0, stream = 7 : i64} : (tensor<3xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<3xf32>

// -----

%x = nn.constant dense<1.0> : tensor<3xf32>
%s = nn.constant dense<1> : tensor<i32>
// expected-error @below {{takes seed, step and first_row as tensor<i64>, got 'tensor<i32>'}}
%y = nn.dropout %x, %s, %s, %s {rate = 0.5, stream = 7 : i64} : (tensor<3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xf32>

// -----

%x = nn.constant dense<1.0> : tensor<3xf32>
%s = nn.constant dense<1> : tensor<i64>
// expected-error @below {{stream must fit in 32 bits}}
%y = nn.dropout %x, %s, %s, %s {rate = 0.5, stream = 4294967296 : i64} : (tensor<3xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<3xf32>

// -----

%a = nn.constant dense<1.0> : tensor<3xf32>
%b = nn.constant dense<1.0> : tensor<3xf64>
// expected-error @below {{computes in one element type, but an operand has type 'tensor<3xf64>' and the result 'tensor<3xf32>'; convert by nn.cast}}
%y = nn.add %a, %b : (tensor<3xf32>, tensor<3xf64>) -> tensor<3xf32>

// -----

%s = nn.constant dense<1> : tensor<i32>
// expected-error @below {{takes seed, step and first_row as tensor<i64>, got 'tensor<i32>'}}
%y = nn.normal %s, %s, %s {stream = 7 : i64} : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xf32>
