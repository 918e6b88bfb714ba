// RUN: dlc-opt %s --dlc-rematerialize-producers --split-input-file | FileCheck %s
// RUN: dlc-opt %s --dlc-rematerialize-producers --split-input-file --remarks-filter=dlc-rematerialize-producers 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The second cluster reads x anyway, so it computes relu(x) instead of reading it; the matrix product still reads it from memory.
// CHECK-LABEL: nn.model @read_anyway
nn.model @read_anyway attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<256x256xf32> {nn.input = "x"}, %w: tensor<256x8xf32> {nn.input = "w"}) {
    // CHECK: %[[Y:.*]] = nn.fused (%{{.*}} = %[[X:.*]]) : (tensor<256x256xf32>) -> tensor<256x256xf32>
    // CHECK: nn.matmul %[[Y]]
    // CHECK: nn.fused (%[[A:.*]] = %[[X]]) : (tensor<256x256xf32>) -> tensor<256x256xf32>
    // CHECK-NEXT: %[[AGAIN:.*]] = nn.relu %[[A]]
    // CHECK-NEXT: nn.mul %[[A]], %[[AGAIN]]
    // REMARK: rematerializes a tensor
    %y = nn.fused (%a = %x) : (tensor<256x256xf32>) -> tensor<256x256xf32> {
      %0 = nn.relu %a : (tensor<256x256xf32>) -> tensor<256x256xf32>
      nn.yield %0 : tensor<256x256xf32>
    }
    %m = nn.matmul %y, %w : (tensor<256x256xf32>, tensor<256x8xf32>) -> tensor<256x8xf32>
    %z = nn.fused (%a = %x, %b = %y) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> {
      %0 = nn.mul %a, %b : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
      nn.yield %0 : tensor<256x256xf32>
    }
    nn.output "m", %m : tensor<256x8xf32>
    nn.output "z", %z : tensor<256x256xf32>
  }
}

// -----

// A masked gradient that only clusters read is not written: the last one reads the gradient and computes the mask. The sum stays.
// CHECK-LABEL: nn.model @unwritten
nn.model @unwritten attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<256x256xf32> {nn.input = "x"}, %dy: tensor<256x256xf32> {nn.input = "dy"}) {
    // CHECK: %[[SUM:.*]] = nn.fused ({{.*}}) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256xf32>
    // CHECK: nn.fused ({{.*}} = %{{.*}}, {{.*}} = %[[SUM]], {{.*}}) : (tensor<256x256xf32>, tensor<256xf32>, tensor<256x256xf32>)
    // CHECK-DAG: nn.compare gt
    // CHECK-DAG: nn.broadcast
    %masked, %sum = nn.fused (%a = %x, %b = %dy) : (tensor<256x256xf32>, tensor<256x256xf32>) -> (tensor<256x256xf32>, tensor<256xf32>) {
      %zero = nn.constant dense<0.0> : tensor<256x256xf32>
      %0 = nn.compare gt %a, %zero : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xi1>
      %1 = nn.select %0, %b, %zero : (tensor<256x256xi1>, tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
      %2 = nn.reduce_sum %1 {dims = array<i64: 0>} : (tensor<256x256xf32>) -> tensor<256xf32>
      nn.yield %1, %2 : tensor<256x256xf32>, tensor<256xf32>
    }
    %dx = nn.fused (%a = %x, %b = %masked, %c = %sum) : (tensor<256x256xf32>, tensor<256x256xf32>, tensor<256xf32>) -> tensor<256x256xf32> {
      %0 = nn.broadcast %c {dims = array<i64: 1>} : (tensor<256xf32>) -> tensor<256x256xf32>
      %1 = nn.mul %a, %0 : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
      %2 = nn.add %1, %b : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
      nn.yield %2 : tensor<256x256xf32>
    }
    nn.output "dx", %dx : tensor<256x256xf32>
  }
}

// -----

// Not worth it: the second cluster would have to read two tensors instead of one, and a product needs the sum in memory.
// CHECK-LABEL: nn.model @dearer
nn.model @dearer attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<256x256xf32> {nn.input = "x"}, %w: tensor<256x256xf32> {nn.input = "w"}) {
    // CHECK: %[[Y:.*]] = nn.fused
    // CHECK: nn.fused (%{{.*}} = %[[Y]]) : (tensor<256x256xf32>) -> tensor<256x256xf32>
    // CHECK-NEXT: nn.exp
    %y = nn.fused (%a = %x, %b = %w) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> {
      %0 = nn.add %a, %b : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
      nn.yield %0 : tensor<256x256xf32>
    }
    %m = nn.matmul %y, %w : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %z = nn.fused (%a = %y) : (tensor<256x256xf32>) -> tensor<256x256xf32> {
      %0 = nn.exp %a : (tensor<256x256xf32>) -> tensor<256x256xf32>
      nn.yield %0 : tensor<256x256xf32>
    }
    nn.output "m", %m : tensor<256x256xf32>
    nn.output "z", %z : tensor<256x256xf32>
  }
}

// -----

// Nor are functions that take longer than the memory they save: the second cluster reads x anyway.
// CHECK-LABEL: nn.model @functions
nn.model @functions attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<256x256xf32> {nn.input = "x"}, %w: tensor<256x256xf32> {nn.input = "w"}) {
    // CHECK: %[[Y:.*]] = nn.fused
    // CHECK: nn.fused (%{{.*}} = %{{.*}}, %{{.*}} = %[[Y]]) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    // CHECK-NEXT: nn.mul
    %y = nn.fused (%a = %x) : (tensor<256x256xf32>) -> tensor<256x256xf32> {
      %0 = nn.tanh %a : (tensor<256x256xf32>) -> tensor<256x256xf32>
      nn.yield %0 : tensor<256x256xf32>
    }
    %m = nn.matmul %y, %w : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    %z = nn.fused (%a = %x, %b = %y) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> {
      %0 = nn.mul %a, %b : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
      nn.yield %0 : tensor<256x256xf32>
    }
    nn.output "m", %m : tensor<256x256xf32>
    nn.output "z", %z : tensor<256x256xf32>
  }
}

// -----

// A reader that takes a part cannot hold the gradient of a pooling, even where something pointwise lies between.
// CHECK-LABEL: nn.model @part_of_pooling
!whole = tensor<2x32x32x32xf32, #nn.layout<nChw16c>>
!half = tensor<2x16x32x32xf32, #nn.layout<nChw16c>>
!small = tensor<2x32x16x16xf32, #nn.layout<nChw16c>>
!place = tensor<2x32x16x16xi8, #nn.layout<nChw16c>>
nn.model @part_of_pooling attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%dy: !small {nn.input = "dy"}, %i: !place {nn.input = "i"}) {
    // CHECK: %[[DX:.*]] = nn.fused
    // CHECK-NEXT: nn.max_pool_grad
    // CHECK: nn.fused (%{{.*}} = %[[DX]]) :
    // CHECK-NOT: nn.max_pool_grad
    %g = nn.fused (%a = %dy, %b = %i) : (!small, !place) -> !whole {
      %0 = nn.max_pool_grad %a, %b {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (!small, !place) -> !whole
      nn.yield %0 : !whole
    }
    %y = nn.fused (%a = %g) : (!whole) -> !half {
      %0 = nn.neg %a : (!whole) -> !whole
      %1 = nn.slice %0 {start = array<i64: 0, 16, 0, 0>, size = array<i64: 2, 16, 32, 32>} : (!whole) -> !half
      nn.yield %1 : !half
    }
    nn.output "y", %y : !half
  }
}

// -----

// What the first result alone needed goes with it, the first op of the cluster.
// CHECK-LABEL: nn.model @first_of_two
nn.model @first_of_two attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<256x256xf32> {nn.input = "x"}, %w: tensor<256x8xf32> {nn.input = "w"}) {
    // CHECK: nn.fused (%[[B:.*]] = %{{.*}}) : (tensor<256x256xf32>) -> tensor<256x256xf32>
    // CHECK-NEXT: nn.neg %[[B]]
    // CHECK-NEXT: nn.yield
    // CHECK: nn.fused
    // CHECK-NEXT: nn.relu
    // CHECK-NEXT: nn.sqrt
    // CHECK-NEXT: nn.mul
    %y, %n = nn.fused (%a = %x) : (tensor<256x256xf32>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
      %0 = nn.relu %a : (tensor<256x256xf32>) -> tensor<256x256xf32>
      %1 = nn.sqrt %0 : (tensor<256x256xf32>) -> tensor<256x256xf32>
      %2 = nn.neg %a : (tensor<256x256xf32>) -> tensor<256x256xf32>
      nn.yield %1, %2 : tensor<256x256xf32>, tensor<256x256xf32>
    }
    %m = nn.matmul %n, %w : (tensor<256x256xf32>, tensor<256x8xf32>) -> tensor<256x8xf32>
    %z = nn.fused (%a = %x, %b = %y) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> {
      %0 = nn.mul %a, %b : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
      nn.yield %0 : tensor<256x256xf32>
    }
    nn.output "m", %m : tensor<256x8xf32>
    nn.output "z", %z : tensor<256x256xf32>
  }
}
