// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-exec

// What the artifact's verifier demands is told of the text, where it is wrong.
nn.model @odd_view attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.kernel @write_2xf32 [tensor<2xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    %b = exec.view %a[2] : <tensor<16xf32>> -> <tensor<4xbf16>>
    // expected-error @below {{begins at byte 2 of its buffer, expected a multiple of 4}}
    %c = exec.view %b[0] : <tensor<4xbf16>> -> <tensor<2xf32>>
    exec.dispatch @write_2xf32(%c) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<2xf32>>
  }
}

// -----

nn.model @odd_arena attributes {stage = "exec"} {
  // expected-error @below {{has 72 bytes, expected a multiple of 64}}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 72 : i64}
}

// -----

nn.model @empty attributes {stage = "exec"} {
  // expected-error @below {{has no instructions}}
  exec.program @train {
  }
}

// -----

nn.model @bucket attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream comm>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{adds up what lies in the arena transient, expected gradients}}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

// Nothing orders the comm stream after the compute stream.
nn.model @unordered attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    // expected-note @below {{the earlier instruction}}
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{meets memory of an earlier instruction, and nothing orders the two}}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

// Nor does an event that is recorded too early.
nn.model @early_record attributes {stage = "exec"} {
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.kernel @write_16xf32 [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    // expected-note @below {{the earlier instruction}}
    exec.dispatch @write_16xf32(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.wait_event 0 {stream = #exec<stream copy>}
    // expected-error @below {{meets memory of an earlier instruction, and nothing orders the two}}
    exec.download "a"(%a) {kind = #exec<result output>, stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @events attributes {stage = "exec"} {
  exec.program @train {
    // expected-error @below {{waits for event 1, which nothing has recorded}}
    exec.wait_event 1 {stream = #exec<stream copy>}
  }
}

// -----

nn.model @event_twice attributes {stage = "exec"} {
  exec.program @train {
    exec.record 0 {stream = #exec<stream compute>}
    // expected-error @below {{records event 0 a second time}}
    exec.record 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @input_twice attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 128 : i64}
  exec.program @predict {
    %a = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "a"} : <tensor<2x4xf32>>
    // expected-error @below {{holds input 'a', which another buffer holds}}
    %b = exec.buffer {arena = #exec<arena_kind inputs>, offset = 64 : i64, input = "a"} : <tensor<2x4xf32>>
    exec.download "a"(%a) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<2x4xf32>>
  }
}

// -----

nn.model @output_twice attributes {stage = "exec"} {
  exec.program @predict {
    %a = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "a"} : <tensor<2x4xf32>>
    exec.download "a"(%a) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<2x4xf32>>
    // expected-error @below {{gives output 'a' a second time}}
    exec.download "a"(%a) {kind = #exec<result output>, stream = #exec<stream compute>} : !exec.buffer<tensor<2x4xf32>>
  }
}

// -----

nn.model @vector_loss attributes {stage = "exec"} {
  exec.program @eval {
    %a = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "a"} : <tensor<2x4xf32>>
    // expected-error @below {{gives loss 'loss' of type 'tensor<2x4xf32>', expected one f32 each for sum and count}}
    exec.download "loss"(%a, %a) {kind = #exec<result loss>, stream = #exec<stream compute>} : !exec.buffer<tensor<2x4xf32>>, !exec.buffer<tensor<2x4xf32>>
  }
}
