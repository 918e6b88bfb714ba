// RUN: dlc-opt %s --dlc-schedule-pipeline=target=test:rules | FileCheck %s
// RUN: sed -e 's/, trainable = false//' -e 's/, freeze = \["d"\]//' %s | dlc-opt --dlc-schedule-pipeline=target=test:rules | FileCheck %s --check-prefix=FREE

// Of four parameters one is frozen by itself and one by the setting: no bucket holds their gradients, and nothing writes them.
// CHECK-LABEL: nn.program @train
// CHECK-NOT: comm.
// CHECK: comm.start %{{[0-9]+}}, %{{[0-9]+}} {{.*}}members = [@a, @c]{{.*}} : tensor<2xf32>, tensor<4xf32> ->
// CHECK-NOT: comm.start
// CHECK-NOT: nn.assign @{{[bd]}},
// CHECK: nn.program @eval

// Without either, one bucket holds all four.
// FREE-LABEL: nn.program @train
// FREE: comm.start {{.*}}members = [@a, @b, @c, @d]

nn.model @m attributes {stage = "nn", batch = 2 : i64, train = {optimizer = {name = "sgd"}, freeze = ["d"]}} {
  nn.variable @a : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @b : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>, trainable = false}
  nn.variable @c : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @d : tensor<5xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2x2xf32> {nn.input = "x"}) {
    %a = nn.read @a : tensor<2xf32>
    %b = nn.read @b : tensor<3xf32>
    %c = nn.read @c : tensor<4xf32>
    %d = nn.read @d : tensor<5xf32>
    %all = nn.concat %a, %b, %c, %d {dim = 0 : i64} : (tensor<2xf32>, tensor<3xf32>, tensor<4xf32>, tensor<5xf32>) -> tensor<14xf32>
    %square = nn.mul %all, %all : (tensor<14xf32>, tensor<14xf32>) -> tensor<14xf32>
    %s = nn.reduce_sum %square {dims = array<i64: 0>} : (tensor<14xf32>) -> tensor<f32>
    %xs = nn.reduce_sum %x {dims = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<f32>
    %y = nn.mul %s, %xs : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %two = nn.constant dense<2.0> : tensor<f32>
    nn.loss %y, %two : tensor<f32>, tensor<f32>
  }
}
