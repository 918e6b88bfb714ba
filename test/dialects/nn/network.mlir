// RUN: dlc-opt %s --verify-roundtrip | FileCheck %s

%x1 = nn.constant dense<1.0> : tensor<2x3x8xf32>
%w1 = nn.constant dense<1.0> : tensor<4x3x3xf32>
%x2 = nn.constant dense<1.0> : tensor<2x4x8x6xf32>
%w2 = nn.constant dense<1.0> : tensor<6x2x3x3xf32>
%b2 = nn.constant dense<1.0> : tensor<6xf32>
%x3 = nn.constant dense<1.0> : tensor<1x2x4x4x4xf32>
%w3 = nn.constant dense<1.0> : tensor<2x5x2x2x2xf32>

// Convolution over one to three spatial dimensions; `groups = 1` and an absent bias are not printed.
// CHECK: nn.conv %{{.*}}, %{{.*}} {dilations = array<i64: 1>, padding_high = array<i64: 1>, padding_low = array<i64: 1>, strides = array<i64: 2>} : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x4xf32>
%conv1 = nn.conv %x1, %w1 {strides = array<i64: 2>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x4xf32>
// CHECK: nn.conv %{{.*}}, %{{.*}}, %{{.*}} {dilations = array<i64: 2, 1>, groups = 2 : i64, padding_high = array<i64: 0, 1>, padding_low = array<i64: 0, 1>, relu, strides = array<i64: 1, 1>} : (tensor<2x4x8x6xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<2x6x4x6xf32>
%conv2 = nn.conv %x2, %w2, %b2 {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 1>, padding_high = array<i64: 0, 1>, dilations = array<i64: 2, 1>, groups = 2 : i64, relu} : (tensor<2x4x8x6xf32>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<2x6x4x6xf32>
// CHECK: nn.conv_transpose %{{.*}}, %{{.*}} {{.*}} : (tensor<1x2x4x4x4xf32>, tensor<2x5x2x2x2xf32>) -> tensor<1x5x8x8x8xf32>
%up3 = nn.conv_transpose %x3, %w3 {strides = array<i64: 2, 2, 2>, padding_low = array<i64: 0, 0, 0>, padding_high = array<i64: 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x2x4x4x4xf32>, tensor<2x5x2x2x2xf32>) -> tensor<1x5x8x8x8xf32>
// The result's shape carries the output padding.
// CHECK: nn.conv_transpose %{{.*}} -> tensor<1x5x9x8x8xf32>
%padded = nn.conv_transpose %x3, %w3 {strides = array<i64: 2, 2, 2>, padding_low = array<i64: 0, 0, 0>, padding_high = array<i64: 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<1x2x4x4x4xf32>, tensor<2x5x2x2x2xf32>) -> tensor<1x5x9x8x8xf32>
// CHECK: nn.conv_grad_data %{{.*}}, %{{.*}} {{.*}} : (tensor<2x4x4xf32>, tensor<4x3x3xf32>) -> tensor<2x3x8xf32>
%dx1 = nn.conv_grad_data %conv1, %w1 {strides = array<i64: 2>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, dilations = array<i64: 1>} : (tensor<2x4x4xf32>, tensor<4x3x3xf32>) -> tensor<2x3x8xf32>
// CHECK: nn.conv_grad_filter %{{.*}}, %{{.*}} {{.*}} : (tensor<2x3x8xf32>, tensor<2x4x4xf32>) -> tensor<4x3x3xf32>
%dw1 = nn.conv_grad_filter %x1, %conv1 {strides = array<i64: 2>, padding_low = array<i64: 1>, padding_high = array<i64: 1>, dilations = array<i64: 1>} : (tensor<2x3x8xf32>, tensor<2x4x4xf32>) -> tensor<4x3x3xf32>

%a = nn.constant dense<1.0> : tensor<5x3xf32>
%b = nn.constant dense<1.0> : tensor<4x3xf32>
%bias = nn.constant dense<1.0> : tensor<4xf32>
// CHECK: nn.matmul %{{.*}}, %{{.*}}, %{{.*}} {transpose_b} : (tensor<5x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<5x4xf32>
%matmul = nn.matmul %a, %b, %bias {transpose_b} : (tensor<5x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<5x4xf32>
// CHECK: nn.matmul %{{.*}}, %{{.*}} {transpose_a} : (tensor<5x3xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
%product = nn.matmul %a, %matmul {transpose_a} : (tensor<5x3xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>

// CHECK: nn.max_pool %{{.*}} {{.*}} : (tensor<2x4x8x6xf32>) -> (tensor<2x4x4x3xf32>, tensor<2x4x4x3xi8>)
%pool, %index = nn.max_pool %x2 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<2x4x8x6xf32>) -> (tensor<2x4x4x3xf32>, tensor<2x4x4x3xi8>)
// CHECK: nn.max_pool_grad %{{.*}}, %{{.*}} {{.*}} : (tensor<2x4x4x3xf32>, tensor<2x4x4x3xi8>) -> tensor<2x4x8x6xf32>
%dpool = nn.max_pool_grad %pool, %index {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<2x4x4x3xf32>, tensor<2x4x4x3xi8>) -> tensor<2x4x8x6xf32>

// Scale and statistics may have another type than x.
%h = nn.constant dense<1.0> : tensor<2x4x8xbf16>
%c = nn.constant dense<1.0> : tensor<4xf32>
// CHECK: nn.batch_norm %{{.*}} {epsilon = 1.000000e-05 : f64, training = true} : (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
%norm, %mean, %var = nn.batch_norm %h, %c, %c, %c, %c {epsilon = 1.0e-5, training = true} : (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
// CHECK: nn.batch_norm_grad %{{.*}} {epsilon = 1.000000e-05 : f64} : (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
%dh, %dscale, %dbias = nn.batch_norm_grad %norm, %h, %c, %mean, %var {epsilon = 1.0e-5} : (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>)

// Statistics belong to a sample's groups of channels; scale to channels, or to the elements of a sample.
// CHECK: nn.group_norm %{{.*}} {epsilon = 1.000000e-05 : f64, groups = 2 : i64} : (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8xbf16>, tensor<2x2xf32>, tensor<2x2xf32>)
%group, %gmean, %gvar = nn.group_norm %h, %c, %c {epsilon = 1.0e-5, groups = 2 : i64} : (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x8xbf16>, tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK: nn.group_norm_grad %{{.*}} {epsilon = 1.000000e-05 : f64} : (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
%gdh, %gdscale, %gdbias = nn.group_norm_grad %group, %h, %c, %gmean, %gvar {epsilon = 1.0e-5} : (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>, tensor<4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> (tensor<2x4x8xbf16>, tensor<4xf32>, tensor<4xf32>)
// CHECK: nn.group_norm %{{.*}} {epsilon = 1.000000e-05 : f64, groups = 1 : i64} : (tensor<2x4x8xbf16>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<2x4x8xbf16>, tensor<2x1xf32>, tensor<2x1xf32>)
%e = nn.constant dense<1.0> : tensor<4x8xf32>
%layer, %lmean, %lvar = nn.group_norm %h, %e, %e {epsilon = 1.0e-5, groups = 1 : i64} : (tensor<2x4x8xbf16>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<2x4x8xbf16>, tensor<2x1xf32>, tensor<2x1xf32>)

%label = nn.constant dense<1> : tensor<5xi32>
// CHECK: nn.softmax_cross_entropy %{{.*}}, %{{.*}} : (tensor<5x3xf32>, tensor<5xi32>) -> tensor<5xf32>
%loss = nn.softmax_cross_entropy %a, %label : (tensor<5x3xf32>, tensor<5xi32>) -> tensor<5xf32>
// CHECK: nn.softmax_cross_entropy_grad %{{.*}} {smoothing = 1.000000e-01 : f64} : (tensor<5x3xf32>, tensor<5xi32>, tensor<5xf32>) -> tensor<5x3xf32>
%dlogits = nn.softmax_cross_entropy_grad %a, %label, %loss {smoothing = 0.1} : (tensor<5x3xf32>, tensor<5xi32>, tensor<5xf32>) -> tensor<5x3xf32>
