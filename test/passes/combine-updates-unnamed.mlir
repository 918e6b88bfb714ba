// RUN: dlc-opt %s --split-input-file --dlc-combine-updates | FileCheck %s

// Text in which a message does not name each slice of its bucket, or in which there is no message: the updates stay as they are.
// CHECK-LABEL: nn.model @fewer_names
// CHECK: exec.start {{.*}}members = ["x"]
// CHECK-COUNT-2: exec.dispatch @optimizer_0
nn.model @fewer_names attributes {math = "fast", stage = "exec", target = "test:rules", threads = 1 : i64} {
  exec.arena @variables_arena {kind = #exec<arena_kind variables>}
  exec.arena @slots_arena {kind = #exec<arena_kind slots>}
  exec.arena @inputs_arena {kind = #exec<arena_kind inputs>}
  exec.arena @transient_arena {kind = #exec<arena_kind transient>}
  exec.arena @gradients_arena {kind = #exec<arena_kind gradients>}
  nn.variable @a : tensor<4xf32> {init = #nn.init<constant, 0.000000e+00, 0.000000e+00>, kind = #nn<kind parameter>}
  nn.variable @b : tensor<4xf32> {init = #nn.init<constant, 0.000000e+00, 0.000000e+00>, kind = #nn<kind parameter>}
  exec.program @train {
    %0 = exec.buffer {arena = #exec<arena_kind inputs>, input = "x"} : <tensor<4xf32>>
    %1 = exec.buffer {arena = #exec<arena_kind inputs>, input = "y"} : <tensor<4xf32>>
    %2 = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<32xf32>>
    %3 = exec.view %2[0] : <tensor<32xf32>> -> <tensor<4xf32>>
    %4 = exec.view %2[64] : <tensor<32xf32>> -> <tensor<4xf32>>
    %5 = exec.buffer {arena = #exec<arena_kind variables>, variable = @a} : <tensor<4xf32>>
    %6 = exec.buffer {arena = #exec<arena_kind variables>, variable = @b} : <tensor<4xf32>>
    exec.dispatch @pointwise_0(%0, %1, %3, %4) {phase = #exec<phase backward>} : !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>
    exec.start %2 {collective = 0 : i64, members = ["x"], wire = f32} : <tensor<32xf32>>
    exec.wait 0
    exec.dispatch @optimizer_0(%5, %3, %5) {phase = #exec<phase optimizer>} : !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>
    exec.dispatch @optimizer_0(%6, %4, %6) {phase = #exec<phase optimizer>} : !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>
  }
  exec.cluster @cluster_0 {
  ^bb0(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>):
    %0 = nn.exp %arg0 : (tensor<4xf32>) -> tensor<4xf32>
    %1 = nn.exp %arg1 : (tensor<4xf32>) -> tensor<4xf32>
    nn.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  exec.kernel @pointwise_0 [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2, 2] {bytes = 64 : i64, category = "pointwise", cluster = @cluster_0, flops = 8 : i64, function = "cluster_0_0", implementation = "generated", nanoseconds = 0 : i64}
  exec.cluster @cluster_1 {
  ^bb0(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>):
    %0 = nn.mul %arg0, %arg1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = nn.sub %arg0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  exec.kernel @optimizer_0 [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2] {bytes = 48 : i64, category = "optimizer", cluster = @cluster_1, flops = 8 : i64, function = "cluster_1_0", implementation = "generated", nanoseconds = 0 : i64}
}

// -----

// CHECK-LABEL: nn.model @no_message
// CHECK-COUNT-2: exec.dispatch @optimizer_0
nn.model @no_message attributes {math = "fast", stage = "exec", target = "test:rules", threads = 1 : i64} {
  exec.arena @variables_arena {kind = #exec<arena_kind variables>}
  exec.arena @slots_arena {kind = #exec<arena_kind slots>}
  exec.arena @inputs_arena {kind = #exec<arena_kind inputs>}
  exec.arena @transient_arena {kind = #exec<arena_kind transient>}
  exec.arena @gradients_arena {kind = #exec<arena_kind gradients>}
  nn.variable @a : tensor<4xf32> {init = #nn.init<constant, 0.000000e+00, 0.000000e+00>, kind = #nn<kind parameter>}
  nn.variable @b : tensor<4xf32> {init = #nn.init<constant, 0.000000e+00, 0.000000e+00>, kind = #nn<kind parameter>}
  exec.program @train {
    %0 = exec.buffer {arena = #exec<arena_kind inputs>, input = "x"} : <tensor<4xf32>>
    %1 = exec.buffer {arena = #exec<arena_kind inputs>, input = "y"} : <tensor<4xf32>>
    %2 = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<32xf32>>
    %3 = exec.view %2[0] : <tensor<32xf32>> -> <tensor<4xf32>>
    %4 = exec.view %2[64] : <tensor<32xf32>> -> <tensor<4xf32>>
    %5 = exec.buffer {arena = #exec<arena_kind variables>, variable = @a} : <tensor<4xf32>>
    %6 = exec.buffer {arena = #exec<arena_kind variables>, variable = @b} : <tensor<4xf32>>
    exec.dispatch @pointwise_0(%0, %1, %3, %4) {phase = #exec<phase backward>} : !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>
    exec.dispatch @optimizer_0(%5, %3, %5) {phase = #exec<phase optimizer>} : !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>
    exec.dispatch @optimizer_0(%6, %4, %6) {phase = #exec<phase optimizer>} : !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>
  }
  exec.cluster @cluster_0 {
  ^bb0(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>):
    %0 = nn.exp %arg0 : (tensor<4xf32>) -> tensor<4xf32>
    %1 = nn.exp %arg1 : (tensor<4xf32>) -> tensor<4xf32>
    nn.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  exec.kernel @pointwise_0 [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2, 2] {bytes = 64 : i64, category = "pointwise", cluster = @cluster_0, flops = 8 : i64, function = "cluster_0_0", implementation = "generated", nanoseconds = 0 : i64}
  exec.cluster @cluster_1 {
  ^bb0(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>):
    %0 = nn.mul %arg0, %arg1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = nn.sub %arg0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    nn.yield %1 : tensor<4xf32>
  }
  exec.kernel @optimizer_0 [tensor<4xf32>, tensor<4xf32>, tensor<4xf32>] access [1, 1, 2] {bytes = 48 : i64, category = "optimizer", cluster = @cluster_1, flops = 8 : i64, function = "cluster_1_0", implementation = "generated", nanoseconds = 0 : i64}
}
