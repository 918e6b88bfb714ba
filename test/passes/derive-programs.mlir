// RUN: dlc-opt %s --split-input-file --dlc-derive-programs --dlc-simplify | FileCheck %s

// A model with @train alone gets @eval and @predict.
// CHECK-LABEL: nn.model @classify
nn.model @classify attributes {stage = "nn", batch = 4 : i64} {
  // Parameters and state that programs read stay, and so do statistics of the data, which only the host reads.
  // CHECK: nn.variable @w
  nn.variable @w : tensor<3x2xf32> {kind = #nn<kind parameter>, init = #nn.init<normal, 0.0, 1.0>}
  nn.variable @mean : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @var : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.variable @data.mean
  nn.variable @data.mean : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK-NOT: @unused
  nn.variable @unused : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @seed : tensor<i64> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @step : tensor<i64> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @first_row : tensor<i64> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>}

  // Training keeps dropout and batch statistics, and loses the output.
  // CHECK: nn.program @train(%{{.*}}: tensor<4x3xf32> {nn.input = "x"}, %{{.*}}: tensor<4xi32> {nn.input = "label", nn.range = array<f64: 0.000000e+00, 1.000000e+00>})
  // CHECK: nn.batch_norm {{.*}}training = true
  // CHECK: nn.dropout
  // CHECK: nn.loss
  // CHECK: nn.assign @mean
  // CHECK-NOT: nn.output

  // Evaluation: the loss is per row; rows from valid_rows on count neither in the sum nor in the count.
  // CHECK: nn.program @eval(%{{.*}}: tensor<4x3xf32> {nn.input = "x"}, %{{.*}}: tensor<4xi32> {nn.input = "label", nn.range = array<f64: 0.000000e+00, 1.000000e+00>})
  // CHECK: %[[ZERO:.*]] = nn.constant dense<0.000000e+00> : tensor<4xf32>
  // CHECK: %[[VALID:.*]] = nn.read @valid_rows
  // CHECK: nn.batch_norm {{.*}}training = false
  // CHECK-NOT: nn.dropout
  // CHECK: %[[LOSS:.*]] = nn.softmax_cross_entropy
  // CHECK: %[[ROW:.*]] = nn.iota {dim = 0 : i64} : tensor<4xi64>
  // CHECK: %[[BOUND:.*]] = nn.broadcast %[[VALID]]
  // CHECK: %[[MASK:.*]] = nn.compare lt %[[ROW]], %[[BOUND]]
  // CHECK: %[[KEPT:.*]] = nn.select %[[MASK]], %[[LOSS]], %[[ZERO]]
  // CHECK: %[[SUM:.*]] = nn.reduce_sum %[[KEPT]]
  // CHECK: %[[COUNT:.*]] = nn.cast %[[VALID]] : (tensor<i64>) -> tensor<f32>
  // CHECK: nn.loss %[[SUM]], %[[COUNT]]
  // CHECK-NOT: nn.assign

  // Prediction needs no label.
  // CHECK: nn.program @predict(%{{.*}}: tensor<4x3xf32> {nn.input = "x"}) {
  // CHECK-NOT: nn.loss
  // CHECK: nn.output "logits"
  nn.program @train(%x: tensor<4x3xf32> {nn.input = "x"}, %label: tensor<4xi32> {nn.input = "label"}) {
    %w = nn.read @w : tensor<3x2xf32>
    %m = nn.read @mean : tensor<3xf32>
    %v = nn.read @var : tensor<3xf32>
    %one = nn.constant dense<1.0> : tensor<3xf32>
    %n, %bm, %bv = nn.batch_norm %x, %one, %m, %m, %v {epsilon = 1.0e-5 : f64, training = true}
        : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    %seed = nn.read @seed : tensor<i64>
    %step = nn.read @step : tensor<i64>
    %row = nn.read @first_row : tensor<i64>
    %d = nn.dropout %n, %seed, %step, %row {rate = 0.5 : f64, stream = 7 : i64}
        : (tensor<4x3xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<4x3xf32>
    %logits = nn.matmul %d, %w : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    nn.output "logits", %logits : tensor<4x2xf32>
    %l = nn.softmax_cross_entropy %logits, %label : (tensor<4x2xf32>, tensor<4xi32>) -> tensor<4xf32>
    %s = nn.reduce_sum %l {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
    %c = nn.constant dense<4.0> : tensor<f32>
    nn.loss %s, %c : tensor<f32>, tensor<f32>
    nn.assign @mean, %bm : tensor<3xf32>
  }
}

// -----

// Counts that depend on data are masked like sums, through scalar arithmetic and reshapes; a term that no
// input enters stays.
// CHECK-LABEL: nn.model @iou
nn.model @iou attributes {stage = "nn", batch = 2 : i64} {
  nn.variable @w : tensor<2x8xf32> {kind = #nn<kind parameter>, init = #nn.init<normal, 0.0, 1.0>}
  // CHECK: nn.program @train
  // CHECK-NOT: nn.select
  // CHECK: nn.program @eval
  // CHECK: %[[W:.*]] = nn.read @w
  // CHECK: nn.select {{.*}} : (tensor<2x2x4xi1>, tensor<2x2x4xf32>, tensor<2x2x4xf32>)
  // CHECK: %[[SUM:.*]] = nn.reduce_sum {{.*}}dims = array<i64: 0, 1, 2>
  // CHECK: %[[COUNT:.*]] = nn.neg
  // CHECK: nn.metric "iou", %[[SUM]], %[[COUNT]]
  // CHECK: %[[DECAY:.*]] = nn.reduce_sum %[[W]]
  // CHECK: nn.loss %[[DECAY]], %{{.*}} {weight = 1.000000e-01 : f64}
  nn.program @train(%x: tensor<2x2x4xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<2x8xf32>
    %f = nn.reshape %x : (tensor<2x2x4xf32>) -> tensor<16xf32>
    %s = nn.reduce_sum %f {dims = array<i64: 0>} : (tensor<16xf32>) -> tensor<f32>
    %c = nn.neg %s : (tensor<f32>) -> tensor<f32>
    nn.metric "iou", %s, %c : tensor<f32>, tensor<f32>
    %decay = nn.reduce_sum %w {dims = array<i64: 0, 1>} : (tensor<2x8xf32>) -> tensor<f32>
    %one = nn.constant dense<1.0> : tensor<f32>
    nn.loss %decay, %one {weight = 0.1 : f64} : tensor<f32>, tensor<f32>
  }
}

// -----

// Programs that are there are kept as they are, but for their mode.
// CHECK-LABEL: nn.model @complete
nn.model @complete attributes {stage = "nn", batch = 2 : i64} {
  // CHECK: nn.program @train
  // CHECK: nn.program @eval
  // CHECK-NEXT: %[[C:.*]] = nn.constant
  // CHECK-NEXT: nn.loss %[[C]], %[[C]]
  // CHECK-NOT: nn.program @predict
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    %s = nn.reduce_sum %x {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    nn.loss %s, %s : tensor<f32>, tensor<f32>
  }
  nn.program @eval(%x: tensor<2xf32> {nn.input = "x"}) {
    %c = nn.constant dense<2.0> : tensor<f32>
    nn.loss %c, %c : tensor<f32>, tensor<f32>
  }
}

// -----

// A norm that is used twice: in training the second use reads what the first one has made of the running statistics, in
// inference both read what there was.
// CHECK-LABEL: nn.model @reused
nn.model @reused attributes {stage = "nn", batch = 4 : i64} {
  nn.variable @mean : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @var : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.program @train
  // CHECK: nn.batch_norm {{.*}}training = true
  // CHECK: %[[NEXT:.*]] = nn.add
  // CHECK: nn.batch_norm %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT]], {{.*}}training = true
  // CHECK: nn.program @eval
  // CHECK-DAG: %[[MEAN:.*]] = nn.read @mean
  // CHECK-DAG: %[[VAR:.*]] = nn.read @var
  // CHECK: %[[FIRST:.*]], %{{.*}}, %{{.*}} = nn.batch_norm %{{.*}}, %{{.*}}, %{{.*}}, %[[MEAN]], %[[VAR]] {{.*}}training = false
  // CHECK: nn.batch_norm %[[FIRST]], %{{.*}}, %{{.*}}, %[[MEAN]], %[[VAR]] {{.*}}training = false
  // CHECK: nn.program @predict
  // CHECK-DAG: %[[MEAN:.*]] = nn.read @mean
  // CHECK-DAG: %[[VAR:.*]] = nn.read @var
  // CHECK: %[[FIRST:.*]], %{{.*}}, %{{.*}} = nn.batch_norm %{{.*}}, %{{.*}}, %{{.*}}, %[[MEAN]], %[[VAR]] {{.*}}training = false
  // CHECK: nn.batch_norm %[[FIRST]], %{{.*}}, %{{.*}}, %[[MEAN]], %[[VAR]] {{.*}}training = false
  nn.program @train(%x: tensor<4x3x2xf32> {nn.input = "x"}) {
    %m = nn.read @mean : tensor<3xf32>
    %v = nn.read @var : tensor<3xf32>
    %one = nn.constant dense<1.0> : tensor<3xf32>
    %kept = nn.constant dense<0.75> : tensor<3xf32>
    %taken = nn.constant dense<0.25> : tensor<3xf32>
    %y, %bm, %bv = nn.batch_norm %x, %one, %m, %m, %v {epsilon = 1.0e-5 : f64, training = true}
        : (tensor<4x3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3x2xf32>, tensor<3xf32>, tensor<3xf32>)
    %m0 = nn.mul %m, %kept : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %m1 = nn.mul %bm, %taken : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %m2 = nn.add %m0, %m1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %v0 = nn.mul %v, %kept : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %v1 = nn.mul %bv, %taken : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %v2 = nn.add %v0, %v1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %z, %bm2, %bv2 = nn.batch_norm %y, %one, %m, %m2, %v2 {epsilon = 1.0e-5 : f64, training = true}
        : (tensor<4x3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3x2xf32>, tensor<3xf32>, tensor<3xf32>)
    nn.assign @mean, %m2 : tensor<3xf32>
    nn.assign @var, %v2 : tensor<3xf32>
    %count = nn.constant dense<24.0> : tensor<f32>
    %sum = nn.reduce_sum %z {dims = array<i64: 0, 1, 2>} : (tensor<4x3x2xf32>) -> tensor<f32>
    nn.loss %sum, %count : tensor<f32>, tensor<f32>
    nn.output "z", %z : tensor<4x3x2xf32>
  }
}
