// RUN: dlc-opt %s --split-input-file --dlc-plan-kernels --dlc-convert-nn-to-exec --dlc-combine-updates | FileCheck %s
// RUN: dlc-opt %s --split-input-file --dlc-plan-kernels --dlc-convert-nn-to-exec --dlc-combine-updates --dlc-assign-streams --dlc-plan-memory --dlc-verify-exec | FileCheck %s --check-prefix=PLACES

// Two parameters with momentum become one range per kind of variable; a statistic between them moves behind; what is alone
// stays; evaluation finds a variable at its place in the range.
// CHECK-LABEL: nn.model @ranges
// PLACES-LABEL: nn.model @ranges
nn.model @ranges attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  // PLACES-DAG: exec.arena @variables_arena {bytes = 384 : i64
  // PLACES-DAG: exec.arena @slots_arena {bytes = 256 : i64
  // PLACES-DAG: nn.variable @a {{.*}}offset = 128 : i64
  // PLACES-DAG: nn.variable @b {{.*}}offset = 0 : i64
  // PLACES-DAG: nn.variable @mean {{.*}}offset = 256 : i64
  nn.variable @a : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @b : tensor<4x5xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @mean : tensor<4xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @lr : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @ma : tensor<4xf32> {kind = #nn<kind slot>, owner = @a, slot = "m", init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @mb : tensor<4x5xf32> {kind = #nn<kind slot>, owner = @b, slot = "m", init = #nn.init<constant, 0.0, 0.0>}
  // CHECK: exec.program @train
  nn.program @train(%x: tensor<4xf32> {nn.input = "x"}, %y: tensor<4x5xf32> {nn.input = "y"}) {
    // CHECK-DAG: %[[P:.*]] = exec.buffer {{.*}}variables>, variables = [@b, @a]} : <tensor<64xf32>>
    // CHECK-DAG: %[[M:.*]] = exec.buffer {{.*}}slots>, variables = [@mb, @ma]} : <tensor<64xf32>>
    // CHECK-DAG: exec.view %[[P]][0] {{.*}} -> <tensor<4x5xf32>>
    // CHECK-DAG: exec.view %[[P]][128] {{.*}} -> <tensor<4xf32>>
    // CHECK-DAG: %[[BUCKET:.*]] = exec.buffer {{.*}}gradients>} : <tensor<96xf32>>
    // CHECK-DAG: %[[GB:.*]] = exec.view %[[BUCKET]][0] {{.*}} -> <tensor<4x5xf32>>
    // CHECK-DAG: %[[S:.*]] = exec.view %[[BUCKET]][256] {{.*}} -> <tensor<4xf32>>
    // CHECK-DAG: %[[GA:.*]] = exec.view %[[BUCKET]][128] {{.*}} -> <tensor<4xf32>>
    // CHECK-DAG: %[[G:.*]] = exec.view %[[BUCKET]][0] {{.*}} -> <tensor<64xf32>>
    // CHECK-DAG: %[[LR:.*]] = exec.buffer {{.*}}variable = @lr}
    // CHECK-DAG: %[[MEAN:.*]] = exec.buffer {{.*}}variable = @mean}
    // CHECK: exec.dispatch @pointwise_0({{.*}}, %[[GB]])
    // CHECK: exec.dispatch @pointwise_1({{.*}}, %[[S]])
    // CHECK: exec.dispatch @pointwise_1({{.*}}, %[[GA]])
    // CHECK: exec.start {{.*}}members = ["y", "x", "s"]
    %gb = nn.fused (%i = %y) : (tensor<4x5xf32>) -> tensor<4x5xf32> {
      %0 = nn.exp %i : (tensor<4x5xf32>) -> tensor<4x5xf32>
      nn.yield %0 : tensor<4x5xf32>
    } loc("y")
    %s = nn.fused (%i = %x) : (tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.exp %i : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    } loc("s")
    %ga = nn.fused (%i = %x) : (tensor<4xf32>) -> tensor<4xf32> {
      %0 = nn.exp %i : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    } loc("x")
    %f = comm.start %gb, %s, %ga {bucket = 0 : i64} : tensor<4x5xf32>, tensor<4xf32>, tensor<4xf32>
      -> !comm.future<tensor<4x5xf32>, tensor<4xf32>, tensor<4xf32>>
    %rb, %rs, %ra = comm.wait %f : !comm.future<tensor<4x5xf32>, tensor<4xf32>, tensor<4xf32>>
      -> tensor<4x5xf32>, tensor<4xf32>, tensor<4xf32>
    %lr = nn.read @lr : tensor<f32>
    %a = nn.read @a : tensor<4xf32>
    %b = nn.read @b : tensor<4x5xf32>
    %ma = nn.read @ma : tensor<4xf32>
    %mb = nn.read @mb : tensor<4x5xf32>
    %mean = nn.read @mean : tensor<4xf32>
    // CHECK: exec.wait
    // CHECK: exec.dispatch @optimizer_1(%[[MEAN]], %[[S]], %[[MEAN]])
    // CHECK: exec.dispatch @optimizer_range_0(%[[M]], %[[G]], %[[P]], %[[LR]], %[[M]], %[[P]])
    // CHECK-NOT: exec.dispatch @optimizer
    %nmb, %nb = nn.fused (%v = %b, %m = %mb, %g = %rb, %l = %lr)
        : (tensor<4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>, tensor<f32>) -> (tensor<4x5xf32>, tensor<4x5xf32>) attributes {nn.role = #nn.role<update>} {
      %0 = nn.add %m, %g : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
      %1 = nn.broadcast %l {dims = array<i64>} : (tensor<f32>) -> tensor<4x5xf32>
      %2 = nn.mul %0, %1 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
      %3 = nn.sub %v, %2 : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
      nn.yield %0, %3 : tensor<4x5xf32>, tensor<4x5xf32>
    }
    %nmean = nn.fused (%v = %mean, %g = %rs) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {nn.role = #nn.role<update>} {
      %0 = nn.add %v, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    }
    %nma, %na = nn.fused (%v = %a, %m = %ma, %g = %ra, %l = %lr)
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {nn.role = #nn.role<update>} {
      %0 = nn.add %m, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.broadcast %l {dims = array<i64>} : (tensor<f32>) -> tensor<4xf32>
      %2 = nn.mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %3 = nn.sub %v, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0, %3 : tensor<4xf32>, tensor<4xf32>
    }
    nn.assign @a, %na : tensor<4xf32>
    nn.assign @b, %nb : tensor<4x5xf32>
    nn.assign @ma, %nma : tensor<4xf32>
    nn.assign @mb, %nmb : tensor<4x5xf32>
    nn.assign @mean, %nmean : tensor<4xf32>
  }
  // CHECK: exec.program @predict
  // CHECK: exec.buffer {{.*}}variable = @a}
  // PLACES: exec.program @predict
  // PLACES: exec.buffer {{.*}}offset = 128 : i64, variable = @a}
  nn.program @predict() {
    %a = nn.read @a : tensor<4xf32>
    nn.output "y", %a : tensor<4xf32>
  }
  // CHECK: exec.cluster @update_0
  // CHECK: exec.kernel @optimizer_range_0 [tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<f32>, tensor<64xf32>, tensor<64xf32>] access [1, 1, 1, 1, 2, 2]
}

// -----

// Copies in 16 bits have a range of their own, in which they are aligned as their parameters are, and are written with those.
// CHECK-LABEL: nn.model @copies
// PLACES-LABEL: nn.model @copies
nn.model @copies attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  // PLACES-DAG: nn.variable @a : {{.*}}offset = 128 : i64
  // PLACES-DAG: nn.variable @b : {{.*}}offset = 256 : i64
  // PLACES-DAG: nn.variable @a.bf16 : {{.*}}offset = 0 : i64
  // PLACES-DAG: nn.variable @b.bf16 : {{.*}}offset = 64 : i64
  nn.variable @a : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @a.bf16 : tensor<4xbf16> {kind = #nn<kind copy>, owner = @a, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @b : tensor<4x5xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @b.bf16 : tensor<4x5xbf16> {kind = #nn<kind copy>, owner = @b, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train(%x: tensor<4xf32> {nn.input = "x"}, %y: tensor<4x5xf32> {nn.input = "y"}) {
    // CHECK-DAG: %[[P:.*]] = exec.buffer {{.*}}variables = [@a, @b]} : <tensor<64xf32>>
    // CHECK-DAG: %[[C:.*]] = exec.buffer {{.*}}variables = [@a.bf16, @b.bf16]} : <tensor<64xbf16>>
    // CHECK-DAG: %[[CA:.*]] = exec.view %[[C]][0] {{.*}} -> <tensor<4xbf16>>
    // CHECK-DAG: %[[CB:.*]] = exec.view %[[C]][64] {{.*}} -> <tensor<4x5xbf16>>
    // CHECK: exec.dispatch @pointwise_{{.*}}(%{{.*}}, %[[CA]], %{{.*}})
    // CHECK: exec.dispatch @pointwise_{{.*}}(%{{.*}}, %[[CB]], %{{.*}})
    // CHECK: exec.wait
    // CHECK: exec.dispatch @optimizer_range_0(%[[P]], %{{.*}}, %[[P]], %[[C]])
    // CHECK-NOT: exec.dispatch
    %ca = nn.read @a.bf16 : tensor<4xbf16>
    %cb = nn.read @b.bf16 : tensor<4x5xbf16>
    %ga = nn.fused (%i = %x, %c = %ca) : (tensor<4xf32>, tensor<4xbf16>) -> tensor<4xf32> {
      %w = nn.cast %c : (tensor<4xbf16>) -> tensor<4xf32>
      %0 = nn.mul %i, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    }
    %gb = nn.fused (%i = %y, %c = %cb) : (tensor<4x5xf32>, tensor<4x5xbf16>) -> tensor<4x5xf32> {
      %w = nn.cast %c : (tensor<4x5xbf16>) -> tensor<4x5xf32>
      %0 = nn.mul %i, %w : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
      nn.yield %0 : tensor<4x5xf32>
    }
    %f = comm.start %ga, %gb {bucket = 0 : i64} : tensor<4xf32>, tensor<4x5xf32> -> !comm.future<tensor<4xf32>, tensor<4x5xf32>>
    %ra, %rb = comm.wait %f : !comm.future<tensor<4xf32>, tensor<4x5xf32>> -> tensor<4xf32>, tensor<4x5xf32>
    %a = nn.read @a : tensor<4xf32>
    %b = nn.read @b : tensor<4x5xf32>
    %na, %nca = nn.fused (%v = %a, %g = %ra) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xbf16>) attributes {nn.role = #nn.role<update>} {
      %0 = nn.sub %v, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.cast %0 : (tensor<4xf32>) -> tensor<4xbf16>
      nn.yield %0, %1 : tensor<4xf32>, tensor<4xbf16>
    }
    %nb, %ncb = nn.fused (%v = %b, %g = %rb) : (tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<4x5xf32>, tensor<4x5xbf16>) attributes {nn.role = #nn.role<update>} {
      %0 = nn.sub %v, %g : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
      %1 = nn.cast %0 : (tensor<4x5xf32>) -> tensor<4x5xbf16>
      nn.yield %0, %1 : tensor<4x5xf32>, tensor<4x5xbf16>
    }
    nn.assign @a, %na : tensor<4xf32>
    nn.assign @a.bf16, %nca : tensor<4xbf16>
    nn.assign @b, %nb : tensor<4x5xf32>
    nn.assign @b.bf16, %ncb : tensor<4x5xbf16>
  }
}

// -----

// Padding would not stay zero in the first pair; the second pair's decay differs: no ranges.
// CHECK-LABEL: nn.model @unlike
// CHECK-NOT: optimizer_range
nn.model @unlike attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @a : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @b : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @c : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @d : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train(%x: tensor<4xf32> {nn.input = "x"}) {
    %ga, %gb, %gc, %gd = nn.fused (%i = %x) : (tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
      %0 = nn.exp %i : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.neg %i : (tensor<4xf32>) -> tensor<4xf32>
      %2 = nn.mul %i, %i : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %3 = nn.add %i, %i : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }
    %f = comm.start %ga, %gb, %gc, %gd {bucket = 0 : i64} : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
      -> !comm.future<tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>>
    %ra, %rb, %rc, %rd = comm.wait %f : !comm.future<tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>>
      -> tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    %a = nn.read @a : tensor<4xf32>
    %b = nn.read @b : tensor<4xf32>
    %c = nn.read @c : tensor<4xf32>
    %d = nn.read @d : tensor<4xf32>
    // CHECK: exec.dispatch @optimizer_0
    // CHECK: exec.dispatch @optimizer_0
    // CHECK: exec.dispatch @optimizer_1
    // CHECK: exec.dispatch @optimizer_2
    %na = nn.fused (%v = %a, %g = %ra) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {nn.role = #nn.role<update>} {
      %0 = nn.div %g, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.sub %v, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %1 : tensor<4xf32>
    }
    %nb = nn.fused (%v = %b, %g = %rb) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {nn.role = #nn.role<update>} {
      %0 = nn.div %g, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.sub %v, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %1 : tensor<4xf32>
    }
    %nc = nn.fused (%v = %c, %g = %rc) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {nn.role = #nn.role<update>} {
      %0 = nn.sub %v, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0 : tensor<4xf32>
    }
    %nd = nn.fused (%v = %d, %g = %rd) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {nn.role = #nn.role<update>} {
      %k = nn.constant dense<0.5> : tensor<4xf32>
      %0 = nn.mul %v, %k : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.sub %0, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %1 : tensor<4xf32>
    }
    nn.assign @a, %na : tensor<4xf32>
    nn.assign @b, %nb : tensor<4xf32>
    nn.assign @c, %nc : tensor<4xf32>
    nn.assign @d, %nd : tensor<4xf32>
  }
}

// -----

// Formulas that differ in the order of operands alone are no range.
// CHECK-LABEL: nn.model @formulas
nn.model @formulas attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @a : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @b : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train(%x: tensor<4xf32> {nn.input = "x"}, %y: tensor<4xf32> {nn.input = "y"}) {
    // CHECK: exec.wait
    // CHECK: exec.dispatch @optimizer_0
    // CHECK: exec.dispatch @optimizer_1
    %ga, %gb = nn.fused (%i = %x, %j = %y) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = nn.exp %i : (tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.exp %j : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    %f = comm.start %ga, %gb {bucket = 0 : i64} : tensor<4xf32>, tensor<4xf32> -> !comm.future<tensor<4xf32>, tensor<4xf32>>
    %ra, %rb = comm.wait %f : !comm.future<tensor<4xf32>, tensor<4xf32>> -> tensor<4xf32>, tensor<4xf32>
    %a = nn.read @a : tensor<4xf32>
    %b = nn.read @b : tensor<4xf32>
    %na = nn.fused (%v = %a, %g = %ra) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {nn.role = #nn.role<update>} {
      %0 = nn.mul %v, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.sub %0, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %1 : tensor<4xf32>
    }
    %nb = nn.fused (%v = %b, %g = %rb) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> attributes {nn.role = #nn.role<update>} {
      %0 = nn.mul %v, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %1 = nn.sub %v, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      nn.yield %1 : tensor<4xf32>
    }
    nn.assign @a, %na : tensor<4xf32>
    nn.assign @b, %nb : tensor<4xf32>
  }
}
