// RUN: dlc-opt %s --verify-roundtrip | FileCheck %s

// Unary ops.
// CHECK: nn.neg %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK: nn.abs
// CHECK: nn.exp
// CHECK: nn.log
// CHECK: nn.sqrt
// CHECK: nn.rsqrt
// CHECK: nn.tanh
// CHECK: nn.relu
// CHECK: nn.sigmoid
// CHECK: nn.softplus
// CHECK: nn.erf
// CHECK: nn.stop_gradient
%x = nn.constant dense<1.0> : tensor<2x3xf32>
%neg = nn.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%abs = nn.abs %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%exp = nn.exp %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%log = nn.log %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%sqrt = nn.sqrt %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%rsqrt = nn.rsqrt %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%tanh = nn.tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%relu = nn.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%sigmoid = nn.sigmoid %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%softplus = nn.softplus %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%erf = nn.erf %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
%stopped = nn.stop_gradient %x : (tensor<2x3xf32>) -> tensor<2x3xf32>

// Binary ops, in any float type.
// CHECK: nn.add %{{.*}}, %{{.*}} : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
// CHECK: nn.sub
// CHECK: nn.mul
// CHECK: nn.div
// CHECK: nn.max
// CHECK: nn.min
// CHECK: nn.pow
%a = nn.constant dense<1.0> : tensor<4xbf16>
%b = nn.constant dense<2.0> : tensor<4xbf16>
%add = nn.add %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
%sub = nn.sub %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
%mul = nn.mul %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
%div = nn.div %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
%max = nn.max %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
%min = nn.min %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
%pow = nn.pow %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>

// Comparison and selection.
// CHECK: nn.compare lt %{{.*}}, %{{.*}} : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xi1>
// CHECK: nn.compare ne
// CHECK: nn.and
// CHECK: nn.or
// CHECK: nn.not
// CHECK: nn.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<4xi1>, tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
%lt = nn.compare lt %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xi1>
%ne = nn.compare ne %a, %b : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xi1>
%and = nn.and %lt, %ne : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
%or = nn.or %lt, %ne : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
%not = nn.not %lt : (tensor<4xi1>) -> tensor<4xi1>
%select = nn.select %lt, %a, %b : (tensor<4xi1>, tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>

// CHECK: nn.cast %{{.*}} : (tensor<4xbf16>) -> tensor<4xi32>
// CHECK: nn.dropout %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {rate = 5.000000e-01 : f64, stream = 7 : i64}
%cast = nn.cast %a : (tensor<4xbf16>) -> tensor<4xi32>
%seed = nn.constant dense<1> : tensor<i64>
// CHECK: nn.uniform %{{.*}}, %{{.*}}, %{{.*}} {stream = 7 : i64} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
// CHECK: nn.normal %{{.*}}, %{{.*}}, %{{.*}} {stream = 7 : i64} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
%dropout = nn.dropout %x, %seed, %seed, %seed {rate = 0.5, stream = 7 : i64} : (tensor<2x3xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
%uniform = nn.uniform %seed, %seed, %seed {stream = 7 : i64} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>
%normal = nn.normal %seed, %seed, %seed {stream = 7 : i64} : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3xf32>

// A layout is kept through an elementwise op.
// CHECK: nn.relu %{{.*}} : (tensor<2x16x4x4xf32, #nn.layout<nChw16c>>) -> tensor<2x16x4x4xf32, #nn.layout<nChw16c>>
%blocked = nn.constant dense<1.0> : tensor<2x16x4x4xf32> : tensor<2x16x4x4xf32, #nn.layout<nChw16c>>
%blockedRelu = nn.relu %blocked : (tensor<2x16x4x4xf32, #nn.layout<nChw16c>>) -> tensor<2x16x4x4xf32, #nn.layout<nChw16c>>
