// RUN: dlc-opt %s --dlc-nn-pipeline | FileCheck %s --check-prefix=NN
// RUN: dlc-opt %s --dlc-train-pipeline -o %t.mlir
// RUN: FileCheck %s --check-prefix=TRAIN < %t.mlir

// Each pipeline starts where the text is: nn runs again to the same, train is not repeated.
// RUN: dlc-opt %s --dlc-nn-pipeline | dlc-opt --dlc-nn-pipeline | FileCheck %s --check-prefix=NN
// RUN: dlc-opt %s --dlc-nn-pipeline | dlc-opt --dlc-train-pipeline | diff %t.mlir -
// RUN: dlc-opt %t.mlir --dlc-train-pipeline | diff %t.mlir -
// RUN: dlc-opt %t.mlir --dlc-nn-pipeline | diff %t.mlir -

// The scheduled and the executable text can be made for a target without any library.
// RUN: dlc-opt %s --dlc-schedule-pipeline=target=test:rules | FileCheck %s --check-prefix=SCHEDULE
// RUN: dlc-opt %s --dlc-exec-pipeline=target=test:rules | FileCheck %s --check-prefix=EXEC

// NN: stage = "nn"
// NN: nn.program @train
// NN: nn.program @eval
// NN: nn.program @predict
// TRAIN: stage = "train"
// TRAIN: nn.variable @inverse_world
// TRAIN: nn.variable @optimizer.momentum_buffer.w
// TRAIN: nn.program @train
// TRAIN: comm.all_reduce
// TRAIN: nn.assign @optimizer.momentum_buffer.w
// TRAIN: nn.assign @w
// TRAIN: nn.program @eval
// TRAIN-NOT: comm.all_reduce
// SCHEDULE: stage = "schedule"
// SCHEDULE: comm.start
// EXEC: stage = "exec"
// EXEC: exec.program @train

nn.model @linear attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "sgd", momentum = 0.9 : f64}}} {
  nn.variable @w : tensor<3x4xf32> {kind = #nn<kind parameter>, init = #nn.init<normal, 0.0, 1.0>}
  nn.program @train(%x: tensor<2x3xf32> {nn.input = "x"}, %label: tensor<2xi32> {nn.input = "label"}) {
    %w = nn.read @w : tensor<3x4xf32>
    %y = nn.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    nn.output "y", %y : tensor<2x4xf32>
    %l = nn.softmax_cross_entropy %y, %label : (tensor<2x4xf32>, tensor<2xi32>) -> tensor<2xf32>
    %s = nn.reduce_sum %l {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    %c = nn.constant dense<2.0> : tensor<f32>
    nn.loss %s, %c : tensor<f32>, tensor<f32>
  }
}
