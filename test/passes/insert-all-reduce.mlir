// RUN: dlc-opt %s --split-input-file --dlc-insert-all-reduce | FileCheck %s
// RUN: dlc-opt %s --split-input-file --dlc-insert-all-reduce=wire=bf16 | FileCheck %s --check-prefix=BF16
// RUN: not dlc-opt %s --split-input-file --dlc-insert-all-reduce=wire=f16 2>&1 | FileCheck %s --check-prefix=WIRE
// WIRE: wire type is 'f16', expected f32 or bf16

// A gradient becomes the sum over ranks; a constant count needs no message.
// CHECK-LABEL: nn.model @gradient
nn.model @gradient attributes {stage = "train", batch = 2 : i64} {
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.program @train(%[[X:.*]]: tensor<2xf32>
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<2xf32>
    %y = nn.mul %x, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %s = nn.reduce_sum %y {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    %c = nn.constant dense<2.0> : tensor<f32>
    nn.loss %s, %c : tensor<f32>, tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    // CHECK: %[[SEED:.*]] = nn.div
    %seed = nn.div %one, %c : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: %[[ROWS:.*]] = nn.broadcast %[[SEED]]
    %rows = nn.broadcast %seed {dims = array<i64>} : (tensor<f32>) -> tensor<2xf32>
    // CHECK: %[[G:.*]] = nn.mul %[[ROWS]], %[[X]]
    %g = nn.mul %rows, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // CHECK: %[[SUM:.*]] = comm.all_reduce %[[G]] {nn.role = #nn.role<backward, @w>} : tensor<2xf32>
    // CHECK-NEXT: nn.gradient @w, %[[SUM]]
    // BF16: comm.all_reduce %{{.*}}wire = bf16} : tensor<2xf32>
    nn.gradient @w, %g : tensor<2xf32>
  }
}

// -----

// A count that depends on data is averaged where the backward pass divides by it, and nowhere else: the
// loss is reported as it is, and the forward division by the same count stays.
// CHECK-LABEL: nn.model @counted
nn.model @counted attributes {stage = "train", batch = 2 : i64} {
  // CHECK: nn.variable @inverse_world : tensor<f32> {init = #nn.init<constant, 1.000000e+00, 0.000000e+00>, kind = #nn<kind scalar>}
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}, %mask: tensor<2xf32> {nn.input = "mask"}) {
    %w = nn.read @w : tensor<2xf32>
    %y = nn.mul %mask, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %s = nn.reduce_sum %y {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    // CHECK: %[[ONE:.*]] = nn.constant
    %one = nn.constant dense<1.0> : tensor<f32>
    // CHECK: %[[COUNT:.*]] = nn.reduce_sum
    // CHECK-NEXT: %[[TOTAL:.*]] = comm.all_reduce %[[COUNT]] {nn.role = #nn.role<backward, loss>} : tensor<f32>
    // CHECK-NEXT: %[[SHARE:.*]] = nn.read @inverse_world
    // CHECK-NEXT: %[[MEAN:.*]] = nn.mul %[[TOTAL]], %[[SHARE]]
    %c = nn.reduce_sum %mask {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    // CHECK: nn.div %[[ONE]], %[[COUNT]]
    %forward = nn.div %one, %c : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %t = nn.mul %s, %forward : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: nn.loss %{{.*}}, %[[COUNT]]
    nn.loss %t, %c : tensor<f32>, tensor<f32>
    // CHECK: nn.div %[[ONE]], %[[MEAN]]
    %seed = nn.div %one, %c {nn.role = #nn.role<backward>} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %rows = nn.broadcast %seed {dims = array<i64>} : (tensor<f32>) -> tensor<2xf32>
    nn.gradient @w, %rows : tensor<2xf32>
  }
}

// -----

// Batch statistics are averaged on their way to the running statistics, behind their scaling by constants; the gradient keeps
// the rank's own.
// CHECK-LABEL: nn.model @statistics
nn.model @statistics attributes {stage = "train", batch = 4 : i64} {
  nn.variable @w : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @mean : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @var : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<4x3xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<3xf32>
    %m = nn.read @mean : tensor<3xf32>
    %v = nn.read @var : tensor<3xf32>
    // CHECK: %{{.*}}, %[[MEAN:.*]], %[[VAR:.*]] = nn.batch_norm
    // CHECK-DAG: %[[SUM:.*]] = comm.all_reduce %[[MEAN]] {nn.role = #nn.role<backward, @mean>}
    // CHECK-DAG: %[[AVERAGE:.*]] = nn.mul %[[SUM]]
    // CHECK-DAG: %[[SCALED:.*]] = nn.mul %[[VAR]]
    // CHECK-DAG: %[[SUMVAR:.*]] = comm.all_reduce %[[SCALED]]
    // CHECK-DAG: %[[AVERAGEVAR:.*]] = nn.mul %[[SUMVAR]]
    %y, %bm, %bv = nn.batch_norm %x, %w, %m, %m, %v {epsilon = 1.0e-5 : f64, training = true}
        : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %unbiased = nn.constant dense<1.5> : tensor<3xf32>
    %scaled = nn.mul %bv, %unbiased : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    // CHECK: nn.sub %[[AVERAGE]], %{{.*}} {nn.role = #nn.role<update, @mean>}
    %d = nn.sub %bm, %m : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    nn.assign @mean, %d : tensor<3xf32>
    // CHECK: nn.assign @var, %[[AVERAGEVAR]]
    nn.assign @var, %scaled : tensor<3xf32>
    // CHECK: nn.batch_norm_grad {{.*}}, %[[MEAN]], %[[VAR]] {
    %dx, %ds, %db = nn.batch_norm_grad %y, %x, %w, %bm, %bv {epsilon = 1.0e-5 : f64}
        : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    nn.gradient @w, %ds : tensor<3xf32>
  }
}

// -----

// What a loss reads of a batch statistic stays the rank's own, even where the running statistic is computed from the same.
// CHECK-LABEL: nn.model @shared_statistics
nn.model @shared_statistics attributes {stage = "train", batch = 4 : i64} {
  nn.variable @w : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @mean : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train(%x: tensor<4x3xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<3xf32>
    %m = nn.read @mean : tensor<3xf32>
    // CHECK: %{{.*}}, %[[MEAN:.*]], %{{.*}} = nn.batch_norm
    // CHECK: %[[SUM:.*]] = comm.all_reduce %[[MEAN]]
    // CHECK: %[[AVERAGE:.*]] = nn.mul %[[SUM]]
    %y, %bm, %bv = nn.batch_norm %x, %w, %m, %m, %w {epsilon = 1.0e-5 : f64, training = true}
        : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    // CHECK-DAG: %[[OWN:.*]] = nn.sub %[[MEAN]]
    // CHECK-DAG: %[[MOVED:.*]] = nn.sub %[[AVERAGE]]
    %d = nn.sub %bm, %m : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    // CHECK: %[[LOSS:.*]] = nn.reduce_sum %[[OWN]]
    // CHECK: nn.loss %[[LOSS]]
    %l = nn.reduce_sum %d {dims = array<i64: 0>} : (tensor<3xf32>) -> tensor<f32>
    %c = nn.constant dense<2.0> : tensor<f32>
    nn.loss %l, %c : tensor<f32>, tensor<f32>
    // CHECK: nn.assign @mean, %[[MOVED]]
    nn.assign @mean, %d : tensor<3xf32>
  }
}

// -----

// Statistics at inference are variables already; programs other than @train are left alone.
// CHECK-LABEL: nn.model @inference
// CHECK-NOT: comm.all_reduce
nn.model @inference attributes {stage = "train", batch = 4 : i64} {
  nn.variable @mean : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @train(%x: tensor<4x3xf32> {nn.input = "x"}) {
    %m = nn.read @mean : tensor<3xf32>
    %y, %bm, %bv = nn.batch_norm %x, %m, %m, %m, %m {epsilon = 1.0e-5 : f64, training = false}
        : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    nn.assign @mean, %bm : tensor<3xf32>
  }
  nn.program @eval(%x: tensor<4x3xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0, 1>} : (tensor<4x3xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
  }
}
