// RUN: dlc-opt %s --dlc-plan-memory --split-input-file | FileCheck %s

// Buffers that are never live together share memory; the bucket in flight does not; variables lie one behind the other.
// CHECK-LABEL: nn.model @share
nn.model @share attributes {stage = "exec"} {
  // CHECK-DAG: exec.arena @v {bytes = 128 : i64, {{.*}}lower_bound = 128 : i64}
  // CHECK-DAG: exec.arena @t {bytes = 128 : i64, {{.*}}lower_bound = 128 : i64}
  exec.arena @v {kind = #exec<arena_kind variables>}
  exec.arena @t {kind = #exec<arena_kind transient>}
  // CHECK-DAG: nn.variable @a {{.*}}offset = 0 : i64
  // CHECK-DAG: nn.variable @b {{.*}}offset = 64 : i64
  nn.variable @a : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.variable @b : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  exec.program @predict {
    // CHECK-DAG: exec.buffer {{.*}}offset = 64 : i64, variable = @b
    %b = exec.buffer {arena = #exec<arena_kind variables>, variable = @b} : <tensor<3xf32>>
    // CHECK-DAG: exec.buffer {{.*}}label = "x", offset = [[X:.*]] : i64
    // CHECK-DAG: exec.buffer {{.*}}label = "y", offset = [[Y:.*]] : i64
    // CHECK-DAG: exec.buffer {{.*}}label = "z", offset = [[X]] : i64
    %x = exec.buffer {arena = #exec<arena_kind transient>, label = "x"} : <tensor<3xf32>>
    %y = exec.buffer {arena = #exec<arena_kind transient>, label = "y"} : <tensor<3xf32>>
    %z = exec.buffer {arena = #exec<arena_kind transient>, label = "z"} : <tensor<3xf32>>
    exec.copy %b, %x {phase = #exec<phase forward>} : <tensor<3xf32>>
    exec.copy %x, %y {phase = #exec<phase forward>} : <tensor<3xf32>>
    exec.copy %y, %z {phase = #exec<phase forward>} : <tensor<3xf32>>
    exec.download "z"(%z) {kind = #exec<result output>} : !exec.buffer<tensor<3xf32>>
  }
}

// -----

// A bucket lives until its wait: the second one may not take its place.
// CHECK-LABEL: nn.model @in_flight
nn.model @in_flight attributes {stage = "exec"} {
  // CHECK: exec.arena @g {bytes = 128 : i64
  exec.arena @g {kind = #exec<arena_kind gradients>}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    %b = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>} : !exec.buffer<tensor<16xf32>>
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"]} : <tensor<16xf32>>
    exec.dispatch @write_16xf32(%b) {phase = #exec<phase backward>} : !exec.buffer<tensor<16xf32>>
    exec.wait 0
    exec.start %b {collective = 1 : i64, wire = f32, members = ["b"]} : <tensor<16xf32>>
    exec.wait 1
  }
}
