// RUN: dlc-opt %s --dlc-fuse --split-input-file | FileCheck %s
// RUN: dlc-opt %s --dlc-fuse --split-input-file --remarks-filter=dlc-fuse 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A relu that alone reads a matrix product becomes its epilogue.
// CHECK-LABEL: nn.model @epilogue
nn.model @epilogue attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%a: tensor<2x3xf32> {nn.input = "a"}, %b: tensor<3x4xf32> {nn.input = "b"}) {
    // CHECK: %[[Y:.*]] = nn.matmul %{{.*}} {relu}
    // CHECK-NEXT: nn.output "y", %[[Y]]
    %0 = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = nn.relu %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    nn.output "y", %1 : tensor<2x4xf32>
  }
}

// -----

// A ReLU stays outside where no kernel of the library takes it.
// CHECK-LABEL: nn.model @refused_epilogue
nn.model @refused_epilogue attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<1x2x16x16xf32> {nn.input = "x"}, %v: tensor<4x2x7x7xf32> {nn.input = "v"}, %w: tensor<4x2x9x9xf32> {nn.input = "w"}) {
    // CHECK: nn.conv %arg0, %arg1 {{.*}}relu
    // CHECK: %[[Y:.*]] = nn.conv %arg0, %arg2
    // CHECK-NOT: relu,
    // CHECK: nn.fused (%{{.*}} = %[[Y]])
    // CHECK-NEXT: nn.relu
    %0 = nn.conv %x, %v {strides = array<i64: 1, 1>, padding_low = array<i64: 3, 3>, padding_high = array<i64: 3, 3>, dilations = array<i64: 1, 1>} : (tensor<1x2x16x16xf32>, tensor<4x2x7x7xf32>) -> tensor<1x4x16x16xf32>
    %1 = nn.relu %0 : (tensor<1x4x16x16xf32>) -> tensor<1x4x16x16xf32>
    %2 = nn.conv %x, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 4, 4>, padding_high = array<i64: 4, 4>, dilations = array<i64: 1, 1>} : (tensor<1x2x16x16xf32>, tensor<4x2x9x9xf32>) -> tensor<1x4x16x16xf32>
    %3 = nn.relu %2 : (tensor<1x4x16x16xf32>) -> tensor<1x4x16x16xf32>
    nn.output "y", %1 : tensor<1x4x16x16xf32>
    nn.output "z", %3 : tensor<1x4x16x16xf32>
  }
}

// -----

// Nor does a kernel take it that is slower for it than a pass of its own.
// CHECK-LABEL: nn.model @epilogue_too_dear
nn.model @epilogue_too_dear attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<1x4x8x8xf32> {nn.input = "x"}, %w: tensor<4x4x2x2xf32> {nn.input = "w"}) {
    // CHECK: %[[Y:.*]] = nn.conv_transpose
    // CHECK-NOT: relu,
    // CHECK: nn.fused (%{{.*}} = %[[Y]])
    // CHECK-NEXT: nn.relu
    %0 = nn.conv_transpose %x, %w {strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x2x2xf32>) -> tensor<1x4x16x16xf32>
    %1 = nn.relu %0 : (tensor<1x4x16x16xf32>) -> tensor<1x4x16x16xf32>
    nn.output "y", %1 : tensor<1x4x16x16xf32>
  }
}

// -----

// It stays outside if the product itself is wanted too.
// CHECK-LABEL: nn.model @no_epilogue
nn.model @no_epilogue attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%a: tensor<2x3xf32> {nn.input = "a"}, %b: tensor<3x4xf32> {nn.input = "b"}) {
    // CHECK-NOT: relu}
    // CHECK: nn.fused
    // CHECK: nn.relu
    %0 = nn.matmul %a, %b : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    %1 = nn.relu %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    nn.output "x", %0 : tensor<2x4xf32>
    nn.output "y", %1 : tensor<2x4xf32>
  }
}

// -----

// A chain is one cluster; the constant and the broadcast are copied in; the reduction ends it, and what reads the reduction is another.
// CHECK-LABEL: nn.model @chain
nn.model @chain attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%a: tensor<2x3xf32> {nn.input = "a"}, %b: tensor<3xf32> {nn.input = "b"}) {
    // CHECK: %[[SUM:.*]] = nn.fused (%[[A:.*]] = %arg0, %[[B:.*]] = %arg1) : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
    // CHECK-DAG: nn.broadcast %[[B]]
    // CHECK-DAG: nn.constant
    // CHECK: nn.reduce_sum
    // CHECK: nn.yield
    // CHECK: nn.fused ({{.*}} = %[[SUM]]) : (tensor<2xf32>) -> tensor<2xf32>
    // CHECK: nn.exp
    // REMARK: remark: [Missed] stored {{.*}}nn.reduce_sum is stored for nn.exp: their iteration spaces differ
    %two = nn.constant dense<2.0> : tensor<2x3xf32>
    %0 = nn.broadcast %b {dims = array<i64: 1>} : (tensor<3xf32>) -> tensor<2x3xf32>
    %1 = nn.mul %a, %0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = nn.add %1, %two : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = nn.reduce_sum %2 {dims = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
    %4 = nn.exp %3 : (tensor<2xf32>) -> tensor<2xf32>
    nn.output "y", %4 : tensor<2xf32>
  }
}

// -----

// A mask computed from a forward value goes to its backward user: in between lies a library kernel, so one cluster cannot hold both,
// and the mask itself is never stored.
// CHECK-LABEL: nn.model @separated
nn.model @separated attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%a: tensor<4x4xf32> {nn.input = "a"}) {
    // CHECK: %[[F:.*]] = nn.fused (%{{.*}} = %arg0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: nn.exp
    // CHECK: %[[M:.*]] = nn.matmul %[[F]], %arg0
    // CHECK: nn.fused (%{{.*}} = %[[F]], %{{.*}} = %[[M]]) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // CHECK: nn.compare
    // CHECK: nn.select
    // REMARK: [Missed] stored {{.*}}nn.exp is stored for nn.compare: something between them runs outside of clusters
    %zero = nn.constant dense<0.0> : tensor<4x4xf32>
    %0 = nn.exp %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = nn.compare gt %0, %zero : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
    %2 = nn.matmul %0, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = nn.select %1, %2, %zero : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    nn.output "y", %3 : tensor<4x4xf32>
  }
}

// -----

// Siblings that read one tensor and reduce alike read it once.
// CHECK-LABEL: nn.model @siblings
nn.model @siblings attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%a: tensor<2x3xf32> {nn.input = "a"}) {
    // CHECK: nn.fused (%{{.*}} = %arg0) : (tensor<2x3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
    // CHECK-NOT: nn.fused
    %0 = nn.mul %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = nn.reduce_sum %a {dims = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
    %2 = nn.reduce_sum %0 {dims = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<3xf32>
    nn.output "s", %1 : tensor<3xf32>
    nn.output "q", %2 : tensor<3xf32>
  }
}

// -----

// Different layouts are different iteration spaces; a slice is read in place by the cluster that uses it, and a concat stays alone.
// CHECK-LABEL: nn.model @spaces
nn.model @spaces attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%a: tensor<1x32x2x2xf32> {nn.input = "a"}, %b: tensor<1x16x2x2xf32> {nn.input = "b"}) {
    // CHECK: %[[E:.*]] = nn.fused (%{{.*}} = %arg0, %{{.*}} = %arg1) : (tensor<1x32x2x2xf32>, tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32>
    // CHECK-NEXT: nn.slice
    // CHECK-NEXT: nn.add
    // CHECK: nn.fused (%{{.*}} = %[[E]], %{{.*}} = %arg1) : {{.*}} -> tensor<1x32x2x2xf32>
    // CHECK-NEXT: nn.concat
    // REMARK: [Missed] stored {{.*}}nn.add is stored for nn.concat: data movement stays alone
    %0 = nn.slice %a {start = array<i64: 0, 16, 0, 0>, size = array<i64: 1, 16, 2, 2>} : (tensor<1x32x2x2xf32>) -> tensor<1x16x2x2xf32>
    %1 = nn.add %0, %b : (tensor<1x16x2x2xf32>, tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32>
    %2 = nn.concat %1, %b {dim = 1 : i64} : (tensor<1x16x2x2xf32>, tensor<1x16x2x2xf32>) -> tensor<1x32x2x2xf32>
    nn.output "y", %2 : tensor<1x32x2x2xf32>
  }
}

// -----

// A cast to a larger type is made where it is used, never stored: one pass over the sums' operand, and what was computed before it.
// CHECK-LABEL: nn.model @casts
nn.model @casts attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%a: tensor<2x3xf32> {nn.input = "a"}) {
    // CHECK: nn.fused (%{{.*}} = %arg0) : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf64>, tensor<3xf64>)
    // CHECK: nn.exp
    // CHECK: nn.cast
    // CHECK: nn.reduce_sum
    // CHECK: nn.fused {{.*}} : (tensor<2x3xf32>, tensor<3xf64>) -> tensor<2x3xf64>
    // CHECK-NEXT: nn.cast
    %0 = nn.exp %a : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = nn.cast %0 : (tensor<2x3xf32>) -> tensor<2x3xf64>
    %2 = nn.mul %1, %1 : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
    %3 = nn.reduce_sum %1 {dims = array<i64: 0>} : (tensor<2x3xf64>) -> tensor<3xf64>
    %4 = nn.reduce_sum %2 {dims = array<i64: 0>} : (tensor<2x3xf64>) -> tensor<3xf64>
    %5 = nn.broadcast %3 {dims = array<i64: 1>} : (tensor<3xf64>) -> tensor<2x3xf64>
    %6 = nn.sub %1, %5 : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
    nn.output "s", %4 : tensor<3xf64>
    nn.output "y", %6 : tensor<2x3xf64>
  }
}

// -----

// Libraries reorder f32; other types are generated code's.
// CHECK-LABEL: nn.model @reorder
nn.model @reorder attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%a: tensor<1x16x2x2xf32> {nn.input = "a"}, %b: tensor<1x16x2x2xi1> {nn.input = "b"}) {
    // CHECK: nn.reorder %arg0
    // CHECK: nn.fused (%[[B:.*]] = %arg1)
    // CHECK-NEXT: nn.reorder %[[B]]
    %0 = nn.reorder %a : (tensor<1x16x2x2xf32>) -> tensor<1x16x2x2xf32, #nn.layout<nChw16c>>
    %1 = nn.reorder %b : (tensor<1x16x2x2xi1>) -> tensor<1x16x2x2xi1, #nn.layout<nChw16c>>
    nn.output "x", %0 : tensor<1x16x2x2xf32, #nn.layout<nChw16c>>
    nn.output "y", %1 : tensor<1x16x2x2xi1, #nn.layout<nChw16c>>
  }
}

// -----

// A maximum over windows that tile channels-innermost memory is generated; its gradient goes into the cluster that reads it. In
// row-major layout the library does both.
// CHECK-LABEL: nn.model @pooling
!blocked = tensor<2x16x8x8xf32, #nn.layout<nChw16c>>
!pooled = tensor<2x16x4x4xf32, #nn.layout<nChw16c>>
!index = tensor<2x16x4x4xi8, #nn.layout<nChw16c>>
nn.model @pooling attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: !blocked {nn.input = "x"}, %dy: !pooled {nn.input = "dy"}, %z: tensor<2x16x8x8xf32> {nn.input = "z"}) {
    // CHECK: %[[Y:.*]]:2 = nn.fused
    // CHECK-NEXT: nn.max_pool
    // CHECK: %[[DX:.*]] = nn.fused ({{.*}} = %[[Y]]#1
    // CHECK: nn.max_pool_grad
    // CHECK: nn.mul
    // CHECK: %{{.*}}, %{{.*}} = nn.max_pool %arg2
    %y, %i = nn.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (!blocked) -> (!pooled, !index)
    %g = nn.max_pool_grad %dy, %i {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (!pooled, !index) -> !blocked
    %dx = nn.mul %g, %x : (!blocked, !blocked) -> !blocked
    %w, %j = nn.max_pool %z {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<2x16x8x8xf32>) -> (tensor<2x16x4x4xf32>, tensor<2x16x4x4xi8>)
    nn.output "y", %y : !pooled
    nn.output "dx", %dx : !blocked
    nn.output "w", %w : tensor<2x16x4x4xf32>
  }
}

// -----

// The gradient of a pooling whose parts are read elsewhere is stored: loops over a part do not follow its windows.
// CHECK-LABEL: nn.model @pooled_concat
!whole = tensor<2x32x8x8xf32, #nn.layout<nChw16c>>
!half = tensor<2x16x8x8xf32, #nn.layout<nChw16c>>
!small = tensor<2x32x4x4xf32, #nn.layout<nChw16c>>
!place = tensor<2x32x4x4xi8, #nn.layout<nChw16c>>
nn.model @pooled_concat attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%dy: !small {nn.input = "dy"}, %i: !place {nn.input = "i"}, %x: !half {nn.input = "x"}) {
    // CHECK: %[[DX:.*]] = nn.fused
    // CHECK-NEXT: nn.max_pool_grad
    // CHECK-NEXT: nn.yield
    // CHECK: nn.fused ({{.*}}%[[DX]]
    // CHECK: nn.slice
    // CHECK: nn.mul
    %g = nn.max_pool_grad %dy, %i {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (!small, !place) -> !whole
    %b = nn.slice %g {start = array<i64: 0, 16, 0, 0>, size = array<i64: 2, 16, 8, 8>} : (!whole) -> !half
    %y = nn.mul %b, %x : (!half, !half) -> !half
    nn.output "y", %y : !half
  }
}

// -----

// A part of a tensor that a matrix product needs in memory is copied by the cluster that sums it.
// CHECK-LABEL: nn.model @part
nn.model @part attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<8x8xf32> {nn.input = "x"}, %w: tensor<4x4xf32> {nn.input = "w"}) {
    // CHECK: %[[PART:.*]]:2 = nn.fused (%[[X:.*]] = %arg0) : (tensor<8x8xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
    // CHECK-NEXT: nn.slice %[[X]]
    // CHECK: nn.matmul %[[PART]]#0
    %p = nn.slice %x {start = array<i64: 0, 4>, size = array<i64: 8, 4>} : (tensor<8x8xf32>) -> tensor<8x4xf32>
    %y = nn.matmul %p, %w : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %s = nn.reduce_sum %p {dims = array<i64: 0>} : (tensor<8x4xf32>) -> tensor<4xf32>
    nn.output "y", %y : tensor<8x4xf32>
    nn.output "s", %s : tensor<4xf32>
  }
}

// -----

// What the backward pass needs of the whole batch is counted apart from the loss that reads the same mask.
// CHECK-LABEL: nn.model @counted
nn.model @counted attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @w : tensor<8xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<8xf32> {nn.input = "x"}, %mask: tensor<8xf32> {nn.input = "mask"}) {
    // CHECK: %[[COUNT:.*]]:2 = nn.fused (%{{.*}} = %arg1)
    // CHECK-NOT: nn.mul
    // CHECK: nn.reduce_sum
    // CHECK: nn.fused
    // CHECK: nn.mul
    // CHECK: nn.reduce_sum
    // CHECK: comm.all_reduce %[[COUNT]]#1
    // REMARK: the backward pass needs what one of them counts over the whole batch
    %w = nn.read @w : tensor<8xf32>
    %marked = nn.relu %mask : (tensor<8xf32>) -> tensor<8xf32>
    %y = nn.mul %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %masked = nn.mul %y, %marked : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %count = nn.reduce_sum %marked {dims = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    %sum = nn.reduce_sum %masked {dims = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    %all = comm.all_reduce %count : tensor<f32>
    nn.output "all", %all : tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
  }
}

// -----

// Where a target knows epilogues, what is computed with sums follows them in their kernel, with what it alone needs; what reads it as
// broadcast does not.
// CHECK-LABEL: nn.model @epilogue_of_sums
nn.model @epilogue_of_sums attributes {stage = "schedule", target = "test:small", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x8xf32> {nn.input = "x"}, %w: tensor<8xf32> {nn.input = "w"}) {
    // CHECK: %[[S:.*]] = nn.fused (%{{.*}} = %arg0, %{{.*}} = %arg1) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<8xf32>
    // CHECK: nn.reduce_sum
    // CHECK: nn.exp
    // CHECK: nn.mul
    // CHECK: nn.yield
    // CHECK: nn.fused (%{{.*}} = %arg0, %{{.*}} = %[[S]])
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<8xf32>
    %e = nn.exp %w : (tensor<8xf32>) -> tensor<8xf32>
    %m = nn.mul %s, %e : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %b = nn.broadcast %m {dims = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
    %y = nn.mul %x, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    nn.output "y", %y : tensor<4x8xf32>
  }
}

// -----

// What the terms of a sum are computed with is no epilogue of it.
// CHECK-LABEL: nn.model @no_epilogue_before_sum
nn.model @no_epilogue_before_sum attributes {stage = "schedule", target = "test:small", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x8xf32> {nn.input = "x"}, %w: tensor<8xf32> {nn.input = "w"}) {
    // CHECK: %[[E:.*]] = nn.fused (%{{.*}} = %arg1) : (tensor<8xf32>) -> tensor<8xf32>
    // CHECK-NEXT: nn.exp
    // CHECK: %[[S:.*]] = nn.fused (%{{.*}} = %arg0, %{{.*}} = %[[E]]) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<8xf32>
    // CHECK: nn.reduce_sum
    // CHECK-NEXT: nn.add
    %e = nn.exp %w : (tensor<8xf32>) -> tensor<8xf32>
    %b = nn.broadcast %e {dims = array<i64: 1>} : (tensor<8xf32>) -> tensor<4x8xf32>
    %m = nn.mul %x, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %s = nn.reduce_sum %m {dims = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<8xf32>
    %y = nn.add %s, %e : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    nn.output "y", %y : tensor<8xf32>
  }
}
