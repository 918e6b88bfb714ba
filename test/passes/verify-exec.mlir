// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-exec

// A whole program passes.
nn.model @good attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

// expected-error @below {{is at stage 'schedule', expected exec}}
nn.model @early attributes {stage = "schedule"} {
}

// -----

nn.model @unplaced attributes {stage = "exec"} {
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    // expected-error @below {{has no offset; run dlc-plan-memory first}}
    %a = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<16xf32>>
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @outside attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    // expected-error @below {{lies at [64, 128), expected a multiple of 64 inside of an arena of 64 bytes}}
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 64 : i64} : <tensor<16xf32>>
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @overlap attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 128 : i64}
  exec.kernel @write_32xf32 [tensor<32xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    // expected-note @below {{the other buffer}}
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<32xf32>>
    // expected-error @below {{overlaps another buffer that is live at the same time}}
    %b = exec.buffer {arena = #exec<arena_kind transient>, offset = 64 : i64} : <tensor<16xf32>>
    exec.dispatch @write_32xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<32xf32>>
    exec.dispatch @write_16xf32(%b) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.download "a"(%a) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<32xf32>>
  }
}

// -----

// A view is written, and what it is a view of is read.
nn.model @half_written attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 128 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<32xf32>>
    %upper = exec.view %a[64] : <tensor<32xf32>> -> <tensor<16xf32>>
    exec.dispatch @write(%upper) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{reads a buffer that nothing has written}}
    exec.download "a"(%a) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<32xf32>>
  }
}

// -----

// Of a bucket's three slices one is not written; the end of the bucket has no slice.
nn.model @slice_unwritten attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 256 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<64xf32>>
    %0 = exec.view %a[0] : <tensor<64xf32>> -> <tensor<16xf32>>
    %1 = exec.view %a[64] : <tensor<64xf32>> -> <tensor<16xf32>>
    %2 = exec.view %a[128] : <tensor<64xf32>> -> <tensor<8xf32>>
    %all = exec.view %a[0] : <tensor<64xf32>> -> <tensor<48xf32>>
    exec.dispatch @write(%0) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.dispatch @write(%1) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    // expected-error @below {{reads a buffer that nothing has written}}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<64xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

// A slice that nothing writes and nothing names looks like padding.
nn.model @slice_missing attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 128 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 128 : i64}
  nn.variable @a : tensor<16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  nn.variable @b : tensor<16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>, offset = 64 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  // expected-error @below {{sums 64 bytes over ranks for members of 128}}
  exec.program @train {
    %all = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<32xf32>>
    %0 = exec.view %all[0] : <tensor<32xf32>> -> <tensor<16xf32>>
    exec.dispatch @write(%0) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %all {collective = 0 : i64, wire = f32, members = [@a, @b], stream = #exec<stream comm>} : <tensor<32xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @updated_twice attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 64 : i64}
  nn.variable @a : tensor<16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  exec.kernel @update [tensor<16xf32>] access [3] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind variables>, offset = 0 : i64, variable = @a} : <tensor<16xf32>>
    exec.dispatch @update(%a) {phase = #exec<phase optimizer>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{writes a variable a second time in a step}}
    exec.dispatch @update(%a) {phase = #exec<phase optimizer>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

// A view of a buffer of variables is one of them, or several as a vector.
nn.model @view_of_variables attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 256 : i64}
  nn.variable @a : tensor<10xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  nn.variable @b : tensor<4x8xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>, offset = 128 : i64}
  exec.kernel @read [tensor<64xf32>, tensor<4x8xf32>, tensor<2x8xf32>, tensor<4x8xf32>] access [1, 1, 1, 1] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %all = exec.buffer {arena = #exec<arena_kind variables>, offset = 0 : i64, variables = [@a, @b]} : <tensor<64xf32>>
    %range = exec.view %all[0] : <tensor<64xf32>> -> <tensor<64xf32>>
    %b = exec.view %all[128] : <tensor<64xf32>> -> <tensor<4x8xf32>>
    %rows = exec.view %b[64] : <tensor<4x8xf32>> -> <tensor<2x8xf32>>
    // expected-error @below {{at byte 0 of its buffer is none of the variables there, nor a part or range of them}}
    %wrong = exec.view %all[0] : <tensor<64xf32>> -> <tensor<4x8xf32>>
    exec.dispatch @read(%range, %b, %rows, %wrong) {phase = #exec<phase optimizer>, stream = #exec<stream compute>} : !exec.buffer<tensor<64xf32>>, !exec.buffer<tensor<4x8xf32>>, !exec.buffer<tensor<2x8xf32>>, !exec.buffer<tensor<4x8xf32>>
  }
}

// -----

nn.model @other_wire attributes {stage = "exec", wire = "f32"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    // expected-error @below {{sends 'bf16', which the model does not}}
    exec.start %a {collective = 0 : i64, wire = bf16, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @written_after_download attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.download "a"(%a) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{writes a buffer that the host has taken}}
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

// Where collectives do not run, nothing orders what is behind their waits.
nn.model @ordered_by_collective_alone attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 128 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %b = exec.buffer {arena = #exec<arena_kind gradients>, offset = 64 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%b) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    // expected-note @below {{the earlier instruction}}
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream comm>} : !exec.buffer<tensor<16xf32>>
    exec.start %b {collective = 0 : i64, wire = f32, members = ["b"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
    // expected-error @below {{meets memory of an earlier instruction, and nothing orders the two}}
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @unwritten attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    // expected-error @below {{reads a buffer that nothing has written}}
    exec.download "a"(%a) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @in_flight attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    // expected-error @below {{touches the bucket of collective 0 while it is in flight}}
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @unwaited attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{ends the program with a collective in flight}}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
  }
}

// -----

nn.model @misplaced attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 256 : i64}
  nn.variable @a : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  nn.variable @b : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>, offset = 64 : i64}
  exec.kernel @write_64xf32 [tensor<64xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    // expected-error @below {{holds @b at 128, not at 64}}
    %r = exec.buffer {arena = #exec<arena_kind variables>, offset = 0 : i64, variables = [@a, @b]} : <tensor<64xf32>>
    exec.dispatch @write_64xf32(%r) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<64xf32>>
  }
}

// -----

nn.model @crowded attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 256 : i64}
  nn.variable @a : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  nn.variable @b : tensor<3xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>, offset = 128 : i64}
  exec.kernel @write_32xf32 [tensor<32xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    // expected-error @below {{has 128 bytes for variables of 256}}
    %r = exec.buffer {arena = #exec<arena_kind variables>, offset = 0 : i64, variables = [@a, @b]} : <tensor<32xf32>>
    exec.dispatch @write_32xf32(%r) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<32xf32>>
  }
}

// -----

// What is read may not be overwritten by the same instruction.
nn.model @overwritten attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 128 : i64}
  exec.kernel @write_24xf32 [tensor<24xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<24xf32>>
    %low = exec.view %a[0] : <tensor<24xf32>> -> <tensor<16xf32>>
    %high = exec.view %a[32] : <tensor<24xf32>> -> <tensor<16xf32>>
    exec.dispatch @write_24xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<24xf32>>
    // expected-error @below {{writes buffer 1 over buffer 0, which it uses otherwise}}
    exec.copy %low, %high {phase = #exec<phase backward>, stream = #exec<stream compute>} : <tensor<16xf32>>
  }
}

// -----

// A generated kernel may write a result over an operand if it reads each element before, at its place; not otherwise.
nn.model @in_place attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @cluster_0 {
  ^bb0(%x: tensor<4xf32>):
    %y = nn.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    nn.yield %y : tensor<4xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 1, bytes = 32, flops = 4>], scratch = [], shares = [0, 0]>}
  exec.cluster @cluster_1 {
  ^bb0(%x: tensor<4x4xf32>):
    %t = nn.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %y = nn.exp %t : (tensor<4x4xf32>) -> tensor<4x4xf32>
    nn.yield %y : tensor<4x4xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 1, bytes = 128, flops = 16>], scratch = [], shares = []>}
  exec.kernel @exp [tensor<4xf32>, tensor<4xf32>] access [1, 2] {bytes = 128 : i64, category = "pointwise", cluster = @cluster_0, flops = 16 : i64, function = "cluster_0_0", implementation = "generated", nanoseconds = 1 : i64}
  exec.kernel @turned [tensor<4x4xf32>, tensor<4x4xf32>] access [1, 2] {bytes = 128 : i64, category = "pointwise", cluster = @cluster_1, flops = 16 : i64, function = "cluster_1_0", implementation = "generated", nanoseconds = 1 : i64}
  exec.kernel @write_4xf32 [tensor<4xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write_4x4xf32 [tensor<4x4xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<4xf32>>
    %b = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<4x4xf32>>
    exec.dispatch @write_4xf32(%a) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<4xf32>>
    exec.dispatch @exp(%a, %a) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<4xf32>>, !exec.buffer<tensor<4xf32>>
    exec.dispatch @write_4x4xf32(%b) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<4x4xf32>>
    // expected-error @below {{writes buffer 1 over buffer 0, which it uses otherwise}}
    exec.dispatch @turned(%b, %b) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<4x4xf32>>, !exec.buffer<tensor<4x4xf32>>
  }
}

// -----

// Variables have places of their own.
nn.model @unplaced_variable attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 64 : i64}
  // expected-error @below {{has no offset; run dlc-plan-memory first}}
  nn.variable @w : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
}

// -----

nn.model @shared_variables attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 128 : i64}
  nn.variable @w : tensor<32xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>, offset = 0 : i64}
  // expected-error @below {{overlaps @w}}
  nn.variable @b : tensor<4xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>, offset = 64 : i64}
}

// -----

nn.model @elsewhere attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 128 : i64}
  nn.variable @w : tensor<4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>, offset = 0 : i64}
  exec.kernel @write_4xf32 [tensor<4xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    // expected-error @below {{has another type or place than @w}}
    %a = exec.buffer {arena = #exec<arena_kind variables>, offset = 64 : i64, variable = @w} : <tensor<4xf32>>
    exec.dispatch @write_4xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<4xf32>>
  }
}

// -----

// Attributes are read when the artifact is written.
// expected-error @below {{has layouts[0] = {exceptions = 0 : i64, family = "plain"} without 'nanoseconds'}}
nn.model @layouts attributes {stage = "exec", layouts = [{exceptions = 0 : i64, family = "plain"}]} {
}

// -----

// A generated kernel is what its cluster gives.
nn.model @lost attributes {stage = "exec"} {
  // expected-error @below {{is generated from @nope, which is no cluster of the model}}
  exec.kernel @k [tensor<4xf32>, tensor<4xf32>] access [1, 2] {bytes = 32 : i64, category = "pointwise", cluster = @nope, flops = 4 : i64, function = "nope_0", implementation = "generated", nanoseconds = 1 : i64}
}

// -----

nn.model @endless attributes {stage = "exec"} {
  // expected-error @below {{needs nn.yield as its last op}}
  exec.cluster @c {
  ^bb0(%a: tensor<4xf32>):
    %e = nn.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  }
}

// -----

nn.model @kernel attributes {stage = "exec"} {
  exec.cluster @c {
  ^bb0(%a: tensor<4xf32>):
    %e = nn.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    nn.yield %e : tensor<4xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 1, bytes = 32, flops = 4>], scratch = [], shares = [0, 0]>}
  exec.kernel @good [tensor<4xf32>, tensor<4xf32>] access [1, 2] {bytes = 32 : i64, category = "pointwise", cluster = @c, flops = 4 : i64, function = "c_0", implementation = "generated", nanoseconds = 1 : i64}
  // expected-error @below {{takes other buffers than stage 0 of @c: expected 'tensor<4xf32>', 'tensor<4xf32>' access [1, 2]}}
  exec.kernel @k [tensor<4xf32>, tensor<4xf32>] access [2, 2] {bytes = 32 : i64, category = "pointwise", cluster = @c, flops = 4 : i64, function = "c_0", implementation = "generated", nanoseconds = 1 : i64}
}

// -----

nn.model @extent attributes {stage = "exec"} {
  exec.cluster @c {
  ^bb0(%a: tensor<4xf32>):
    %e = nn.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    nn.yield %e : tensor<4xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 1, bytes = 32, flops = 4>], scratch = [], shares = [0, 0]>}
  // expected-error @below {{runs 2 iterations in chunks of 1, but @c has 1 in chunks of 1}}
  exec.kernel @k [tensor<4xf32>, tensor<4xf32>] access [1, 2] {bytes = 32 : i64, category = "pointwise", cluster = @c, flops = 4 : i64, function = "c_0", extent = 2 : i64, implementation = "generated", nanoseconds = 1 : i64}
}

// -----

nn.model @stages attributes {stage = "exec"} {
  exec.cluster @c {
  ^bb0(%a: tensor<4xf32>):
    nn.yield
  } {nn.plan = #nn.plan<stages = [], scratch = [], shares = []>}
  // expected-error @below {{is stage 0 of @c, which has 0}}
  exec.kernel @k [tensor<4xf32>, tensor<4xf32>] access [1, 2] {bytes = 32 : i64, category = "pointwise", cluster = @c, flops = 4 : i64, function = "c_0", implementation = "generated", nanoseconds = 1 : i64}
}

// -----

nn.model @contents attributes {stage = "exec"} {
  exec.program @train {
    // expected-error @below {{is neither a buffer nor an instruction}}
    %c = nn.constant dense<1.0> : tensor<f32>
  }
}

// -----

// expected-error @below {{but @eval has no such metric; there are 'iou', 'loss'}}
nn.model @monitor attributes {stage = "exec", train = {monitor = {name = "dice", goal = "max"}}} {
  exec.program @eval {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<f32>>
    exec.download "iou"(%a, %a) {kind = #exec<result metric>} : !exec.buffer<tensor<f32>>, !exec.buffer<tensor<f32>>
  }
}

// -----

// Inputs and outputs have the rows of one batch.
nn.model @rows attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 128 : i64}
  exec.program @predict {
    %a = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "a"} : <tensor<2x4xf32>>
    // expected-error @below {{holds input 'b' of type 'tensor<3x4xf32>' in the arena inputs; inputs lie in the arena inputs and dimension 0 must be the batch of 2}}
    %b = exec.buffer {arena = #exec<arena_kind inputs>, offset = 64 : i64, input = "b"} : <tensor<3x4xf32>>
  }
}

// -----

nn.model @scalar_output attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.program @predict {
    %a = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "a"} : <tensor<2x4xf32>>
    %y = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<f32>>
    // expected-error @below {{gives output 'y' of type 'tensor<f32>'; dimension 0 must be the batch of 2}}
    exec.download "y"(%y) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<f32>>
  }
}

// -----

nn.model @elsewhere attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.program @predict {
    // expected-error @below {{inputs lie in the arena inputs}}
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64, input = "a"} : <tensor<2x4xf32>>
  }
}

// -----

// Memory is taken for what lies in it.
nn.model @spacious attributes {stage = "exec"} {
  // expected-error @below {{has 4096 bytes, but what lies in it ends at 64}}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 4096 : i64}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @predict {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}
// -----

// What the host gives goes up before it is read.
nn.model @host_values attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 64 : i64}
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  nn.variable @lr : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  exec.program @predict {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind variables>, offset = 0 : i64, variable = @lr} : <tensor<f32>>
    exec.upload (%x) {stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.upload (%s) {stream = #exec<stream compute>} : !exec.buffer<tensor<f32>>
    exec.download "y"(%x) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.download "loss"(%s, %s) {kind = #exec<result loss>, stream = #exec<stream compute>} : !exec.buffer<tensor<f32>>, !exec.buffer<tensor<f32>>
  }
}

// -----

nn.model @input_missing attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.program @predict {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    // expected-error @below {{reads a buffer that nothing has written}}
    exec.download "y"(%x) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @scalar_missing attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 64 : i64}
  nn.variable @lr : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  exec.program @predict {
    %s = exec.buffer {arena = #exec<arena_kind variables>, offset = 0 : i64, variable = @lr} : <tensor<f32>>
    // expected-error @below {{reads a buffer that nothing has written}}
    exec.download "loss"(%s, %s) {kind = #exec<result loss>, stream = #exec<stream compute>} : !exec.buffer<tensor<f32>>, !exec.buffer<tensor<f32>>
  }
}

// -----

nn.model @upload_of_state attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 64 : i64}
  nn.variable @w : tensor<f32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  exec.program @predict {
    %s = exec.buffer {arena = #exec<arena_kind variables>, offset = 0 : i64, variable = @w} : <tensor<f32>>
    // expected-error @below {{writes what is neither an input nor a scalar}}
    exec.upload (%s) {stream = #exec<stream compute>} : !exec.buffer<tensor<f32>>
  }
}

// -----

nn.model @upload_twice attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.program @predict {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    exec.upload (%x) {stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{brings a value a second time}}
    exec.upload (%x) {stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @upload_of_both attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 64 : i64}
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  nn.variable @lr : tensor<f32> {kind = #nn<kind scalar>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  exec.program @predict {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind variables>, offset = 0 : i64, variable = @lr} : <tensor<f32>>
    // expected-error @below {{brings inputs and scalars in one}}
    exec.upload (%x, %s) {stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<f32>>
  }
}

// -----

// Two kernels write a buffer together.
nn.model @parts attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 192 : i64}
  exec.cluster @c {
  ^bb0(%a: tensor<1x2xf32>, %b: tensor<1x14xf32>):
    %0 = nn.concat %a, %b {dim = 1 : i64} : (tensor<1x2xf32>, tensor<1x14xf32>) -> tensor<1x16xf32>
    nn.yield %0 : tensor<1x16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 2], reads = 1, bytes = 16, flops = 0, part = 2>, #nn.stage<extent = 1, chunk = 1, buffers = [1, 2], reads = 1, bytes = 112, flops = 0, part = 14>], scratch = [], shares = []>, nn.tiles = [array<i64: 2>, array<i64: 14>]}
  exec.kernel @first [tensor<1x2xf32>, tensor<1x16xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, function = "c_0", part = 2 : i64, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @second [tensor<1x14xf32>, tensor<1x16xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, stage = 1 : i64, function = "c_1", part = 14 : i64, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<1x2xf32>, tensor<1x14xf32>] access [2, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @read [tensor<1x16xf32>] access [1] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<1x2xf32>>
    %b = exec.buffer {arena = #exec<arena_kind transient>, offset = 64 : i64} : <tensor<1x14xf32>>
    %ab = exec.buffer {arena = #exec<arena_kind transient>, offset = 128 : i64} : <tensor<1x16xf32>>
    exec.dispatch @write(%a, %b) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x2xf32>>, !exec.buffer<tensor<1x14xf32>>
    exec.dispatch @first(%a, %ab) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x2xf32>>, !exec.buffer<tensor<1x16xf32>>
    exec.dispatch @second(%b, %ab) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x14xf32>>, !exec.buffer<tensor<1x16xf32>>
    exec.dispatch @read(%ab) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x16xf32>>
  }
}

// -----

nn.model @part_missing attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 192 : i64}
  exec.cluster @c {
  ^bb0(%a: tensor<1x2xf32>, %b: tensor<1x14xf32>):
    %0 = nn.concat %a, %b {dim = 1 : i64} : (tensor<1x2xf32>, tensor<1x14xf32>) -> tensor<1x16xf32>
    nn.yield %0 : tensor<1x16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 2], reads = 1, bytes = 16, flops = 0, part = 2>, #nn.stage<extent = 1, chunk = 1, buffers = [1, 2], reads = 1, bytes = 112, flops = 0, part = 14>], scratch = [], shares = []>, nn.tiles = [array<i64: 2>, array<i64: 14>]}
  exec.kernel @first [tensor<1x2xf32>, tensor<1x16xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, function = "c_0", part = 2 : i64, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @second [tensor<1x14xf32>, tensor<1x16xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, stage = 1 : i64, function = "c_1", part = 14 : i64, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<1x2xf32>, tensor<1x14xf32>] access [2, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @read [tensor<1x16xf32>] access [1] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<1x2xf32>>
    %b = exec.buffer {arena = #exec<arena_kind transient>, offset = 64 : i64} : <tensor<1x14xf32>>
    %ab = exec.buffer {arena = #exec<arena_kind transient>, offset = 128 : i64} : <tensor<1x16xf32>>
    exec.dispatch @write(%a, %b) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x2xf32>>, !exec.buffer<tensor<1x14xf32>>
    exec.dispatch @first(%a, %ab) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x2xf32>>, !exec.buffer<tensor<1x16xf32>>
    // expected-error @below {{reads a buffer that nothing has written}}
    exec.dispatch @read(%ab) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x16xf32>>
    exec.dispatch @second(%b, %ab) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x14xf32>>, !exec.buffer<tensor<1x16xf32>>
  }
}

// -----

nn.model @part_unsaid attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 192 : i64}
  exec.cluster @c {
  ^bb0(%a: tensor<1x2xf32>, %b: tensor<1x14xf32>):
    %0 = nn.concat %a, %b {dim = 1 : i64} : (tensor<1x2xf32>, tensor<1x14xf32>) -> tensor<1x16xf32>
    nn.yield %0 : tensor<1x16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 2], reads = 1, bytes = 16, flops = 0, part = 2>, #nn.stage<extent = 1, chunk = 1, buffers = [1, 2], reads = 1, bytes = 112, flops = 0, part = 14>], scratch = [], shares = []>, nn.tiles = [array<i64: 2>, array<i64: 14>]}
  // expected-error @below {{takes other buffers than stage 0 of @c}}
  exec.kernel @first [tensor<1x2xf32>, tensor<1x16xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, function = "c_0", flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @second [tensor<1x14xf32>, tensor<1x16xf32>] access [1, 2] {category = "pointwise", implementation = "generated", cluster = @c, stage = 1 : i64, function = "c_1", part = 14 : i64, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<1x2xf32>, tensor<1x14xf32>] access [2, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @read [tensor<1x16xf32>] access [1] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<1x2xf32>>
    %b = exec.buffer {arena = #exec<arena_kind transient>, offset = 64 : i64} : <tensor<1x14xf32>>
    %ab = exec.buffer {arena = #exec<arena_kind transient>, offset = 128 : i64} : <tensor<1x16xf32>>
    exec.dispatch @write(%a, %b) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x2xf32>>, !exec.buffer<tensor<1x14xf32>>
    exec.dispatch @first(%a, %ab) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x2xf32>>, !exec.buffer<tensor<1x16xf32>>
    exec.dispatch @second(%b, %ab) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x14xf32>>, !exec.buffer<tensor<1x16xf32>>
    exec.dispatch @read(%ab) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<1x16xf32>>
  }
}

// -----

nn.model @updated_in_backward attributes {stage = "exec"} {
  exec.arena @v {kind = #exec<arena_kind variables>, bytes = 64 : i64}
  nn.variable @a : tensor<16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>, offset = 0 : i64}
  exec.kernel @update [tensor<16xf32>] access [3] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind variables>, offset = 0 : i64, variable = @a} : <tensor<16xf32>>
    // expected-error @below {{writes a variable that the optimizer alone may change}}
    exec.dispatch @update(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @loss_by_another_name attributes {stage = "exec"} {
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<f32>>
    %b = exec.buffer {arena = #exec<arena_kind transient>, offset = 64 : i64} : <tensor<f32>>
    // expected-error @below {{gives metric 'loss'; 'loss' is the name of losses and of nothing else}}
    exec.download "loss"(%a, %b) {kind = #exec<result metric>} : !exec.buffer<tensor<f32>>, !exec.buffer<tensor<f32>>
  }
}

// -----

nn.model @metric_twice attributes {stage = "exec"} {
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<f32>>
    %b = exec.buffer {arena = #exec<arena_kind transient>, offset = 64 : i64} : <tensor<f32>>
    exec.download "iou"(%a, %b) {kind = #exec<result metric>} : !exec.buffer<tensor<f32>>, !exec.buffer<tensor<f32>>
    // expected-error @below {{gives metric 'iou' a second time}}
    exec.download "iou"(%a, %b) {kind = #exec<result metric>} : !exec.buffer<tensor<f32>>, !exec.buffer<tensor<f32>>
  }
}

// -----

nn.model @unchecked attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<f32>>
    // expected-error @below {{is left; run dlc-check-gradients}}
    exec.check %a by %s into %s : !exec.buffer<tensor<16xf32>> by !exec.buffer<tensor<f32>> into !exec.buffer<tensor<f32>>
  }
}
