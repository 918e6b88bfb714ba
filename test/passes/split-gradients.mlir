// RUN: dlc-opt %s --split-input-file --dlc-split-gradients=piece-bytes=4096 | FileCheck %s
// RUN: sed s/test:rules/test:small/ %s | dlc-opt --split-input-file --dlc-split-gradients=piece-bytes=512 | FileCheck %s --check-prefix=SMALL
// RUN: dlc-opt %s --split-input-file --dlc-split-gradients=piece-bytes=512 | FileCheck %s --check-prefix=LANES

// 64 rows of 128 bytes in pieces of 4 KB: two of 32 rows, each with its own reduction and update of its rows.
// A piece has a multiple of the target's lanes: the least is 16 rows, or 4.
// CHECK-LABEL: nn.model @dense
// SMALL-LABEL: nn.model @dense
// SMALL: nn.matmul {{.*}} {transpose_a} : {{.*}} -> tensor<4x32xf32>
// LANES-LABEL: nn.model @dense
// LANES: nn.matmul {{.*}} {transpose_a} : {{.*}} -> tensor<64x32xf32>
nn.model @dense attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @w : tensor<64x32xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @m : tensor<64x32xf32> {kind = #nn<kind slot>, init = #nn.init<constant, 0.0, 0.0>, owner = @w, slot = "momentum_buffer"}
  nn.variable @lr : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}
  // CHECK: nn.program @train(%[[X:.*]]: tensor<4x32xf32> {{.*}}, %[[DY:.*]]: tensor<4x64xf32>
  nn.program @train(%x: tensor<4x32xf32> {nn.input = "x"}, %dy: tensor<4x64xf32> {nn.input = "dy"}) {
    %w = nn.read @w : tensor<64x32xf32>
    %m = nn.read @m : tensor<64x32xf32>
    %lr = nn.read @lr : tensor<f32>
    // CHECK: nn.matmul %[[DY]], %{{.*}} : (tensor<4x64xf32>, tensor<64x32xf32>)
    %dx = nn.matmul %dy, %w : (tensor<4x64xf32>, tensor<64x32xf32>) -> tensor<4x32xf32>
    // CHECK: %[[A0:.*]] = nn.fused (%{{.*}} = %[[DY]])
    // CHECK-NEXT: nn.slice %{{.*}} {size = array<i64: 4, 32>, start = array<i64: 0, 0>}
    // CHECK: %[[G0:.*]] = nn.matmul %[[A0]], %[[X]] {transpose_a} : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<32x32xf32>
    // CHECK: nn.slice %{{.*}} {size = array<i64: 4, 32>, start = array<i64: 0, 32>}
    // CHECK: %[[G1:.*]] = nn.matmul {{.*}} -> tensor<32x32xf32>
    // CHECK-NOT: nn.matmul
    // CHECK-DAG: %[[R0:.*]] = comm.all_reduce %[[G0]] {nn.role = #nn.role<backward, @w>} : tensor<32x32xf32>
    // CHECK-DAG: %[[R1:.*]] = comm.all_reduce %[[G1]] {nn.role = #nn.role<backward, @w>} : tensor<32x32xf32>
    // CHECK: %[[W0:.*]] = nn.read @w {row = 0 : i64} : tensor<32x32xf32>
    // CHECK: %[[M0:.*]] = nn.read @m {row = 0 : i64} : tensor<32x32xf32>
    // CHECK: %[[U0:.*]]:2 = nn.fused (%{{.*}} = %[[R0]], %{{.*}} = %[[W0]], %{{.*}} = %[[M0]], %{{.*}} = %{{.*}})
    // CHECK: %[[W1:.*]] = nn.read @w {row = 32 : i64} : tensor<32x32xf32>
    // CHECK: %[[U1:.*]]:2 = nn.fused
    // CHECK-NOT: nn.fused
    // CHECK: nn.assign @m, %[[U0]]#0 {row = 0 : i64} : tensor<32x32xf32>
    // CHECK: nn.assign @m, %[[U1]]#0 {row = 32 : i64} : tensor<32x32xf32>
    // CHECK: nn.assign @w, %[[U0]]#1 {row = 0 : i64} : tensor<32x32xf32>
    // CHECK: nn.assign @w, %[[U1]]#1 {row = 32 : i64} : tensor<32x32xf32>
    %g = nn.matmul %dy, %x {transpose_a} : (tensor<4x64xf32>, tensor<4x32xf32>) -> tensor<64x32xf32>
    %r = comm.all_reduce %g {nn.role = #nn.role<backward, @w>} : tensor<64x32xf32>
    %n:2 = nn.fused (%a = %r, %b = %w, %c = %m, %l = %lr) : (tensor<64x32xf32>, tensor<64x32xf32>, tensor<64x32xf32>, tensor<f32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) attributes {nn.role = #nn.role<update>} {
      %s = nn.add %a, %c : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
      %rate = nn.broadcast %l {dims = array<i64>} : (tensor<f32>) -> tensor<64x32xf32>
      %d = nn.mul %rate, %s : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
      %u = nn.sub %b, %d : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
      nn.yield %s, %u : tensor<64x32xf32>, tensor<64x32xf32>
    }
    nn.assign @m, %n#0 : tensor<64x32xf32>
    nn.assign @w, %n#1 : tensor<64x32xf32>
  }
}

// -----

// The copy in 16 bits is written with the rows.
// CHECK-LABEL: nn.model @copy
nn.model @copy attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @w : tensor<64x32xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @w.bf16 : tensor<64x32xbf16> {kind = #nn<kind copy>, init = #nn.init<constant, 0.0, 0.0>, owner = @w}
  nn.program @train(%x: tensor<4x32xf32> {nn.input = "x"}, %dy: tensor<4x64xf32> {nn.input = "dy"}) {
    %w = nn.read @w : tensor<64x32xf32>
    // CHECK: %[[U:.*]]:2 = nn.fused ({{.*}}) : (tensor<32x32xf32>, tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xbf16>)
    // CHECK: nn.assign @w, %[[U]]#0 {row = 0 : i64} : tensor<32x32xf32>
    // CHECK: nn.assign @w, %{{.*}} {row = 32 : i64} : tensor<32x32xf32>
    // CHECK: nn.assign @w.bf16, %[[U]]#1 {row = 0 : i64} : tensor<32x32xbf16>
    // CHECK: nn.assign @w.bf16, %{{.*}} {row = 32 : i64} : tensor<32x32xbf16>
    %g = nn.matmul %dy, %x {transpose_a} : (tensor<4x64xf32>, tensor<4x32xf32>) -> tensor<64x32xf32>
    %r = comm.all_reduce %g {nn.role = #nn.role<backward, @w>} : tensor<64x32xf32>
    %n:2 = nn.fused (%a = %r, %b = %w) : (tensor<64x32xf32>, tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xbf16>) attributes {nn.role = #nn.role<update>} {
      %s = nn.sub %b, %a : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
      %q = nn.cast %s : (tensor<64x32xf32>) -> tensor<64x32xbf16>
      nn.yield %s, %q : tensor<64x32xf32>, tensor<64x32xbf16>
    }
    nn.assign @w, %n#0 : tensor<64x32xf32>
    nn.assign @w.bf16, %n#1 : tensor<64x32xbf16>
  }
}

// -----

// What is used otherwise stays whole: here the gradient's norm is reported.
// CHECK-LABEL: nn.model @norm
nn.model @norm attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @w : tensor<64x32xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<4x32xf32> {nn.input = "x"}, %dy: tensor<4x64xf32> {nn.input = "dy"}) {
    %w = nn.read @w : tensor<64x32xf32>
    // CHECK: nn.matmul {{.*}} -> tensor<64x32xf32>
    %g = nn.matmul %dy, %x {transpose_a} : (tensor<4x64xf32>, tensor<4x32xf32>) -> tensor<64x32xf32>
    %r = comm.all_reduce %g {nn.role = #nn.role<backward, @w>} : tensor<64x32xf32>
    %n:2 = nn.fused (%a = %r, %b = %w) : (tensor<64x32xf32>, tensor<64x32xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>) attributes {nn.role = #nn.role<update>} {
      %s = nn.sub %b, %a : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
      %q = nn.mul %a, %a : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x32xf32>
      nn.yield %s, %q : tensor<64x32xf32>, tensor<64x32xf32>
    }
    nn.assign @w, %n#0 : tensor<64x32xf32>
    nn.output "square", %n#1 : tensor<64x32xf32>
  }
}

// -----

// 60 rows have no equal groups of a multiple of 16.
// CHECK-LABEL: nn.model @rows
nn.model @rows attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @w : tensor<60x32xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<4x32xf32> {nn.input = "x"}, %dy: tensor<4x60xf32> {nn.input = "dy"}) {
    %w = nn.read @w : tensor<60x32xf32>
    // CHECK: nn.matmul {{.*}} -> tensor<60x32xf32>
    %g = nn.matmul %dy, %x {transpose_a} : (tensor<4x60xf32>, tensor<4x32xf32>) -> tensor<60x32xf32>
    %r = comm.all_reduce %g {nn.role = #nn.role<backward, @w>} : tensor<60x32xf32>
    %n = nn.fused (%a = %r, %b = %w) : (tensor<60x32xf32>, tensor<60x32xf32>) -> tensor<60x32xf32> attributes {nn.role = #nn.role<update>} {
      %s = nn.sub %b, %a : (tensor<60x32xf32>, tensor<60x32xf32>) -> tensor<60x32xf32>
      nn.yield %s : tensor<60x32xf32>
    }
    nn.assign @w, %n : tensor<60x32xf32>
  }
}
