// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-exec

// A bucket is added up before its collective starts.
nn.model @accumulated attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @accumulated_late attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    // expected-error @below {{is added up, but no collective of it starts afterwards}}
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
    exec.accumulate @add(%a, %s) {stream = #exec<stream compute>} : <tensor<16xf32>>
  }
}

// -----

nn.model @accumulates_nothing attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    // expected-error @below {{reads a buffer that nothing has written}}
    exec.accumulate @add(%a, %s) {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @sum_elsewhere attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{adds up in the arena transient, expected sums}}
    exec.accumulate @add(%a, %s) {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @added_twice attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {stream = #exec<stream compute>} : <tensor<16xf32>>
    // expected-error @below {{uses a bucket after it was added to its sum}}
    exec.accumulate @add(%a, %s) {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @sum_used_otherwise attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{uses a sum that is not its own}}
    exec.dispatch @write(%s) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @written_after_its_sum attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {stream = #exec<stream compute>} : <tensor<16xf32>>
    // expected-error @below {{uses a bucket after it was added to its sum}}
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @sum_not_in_place attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = []>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    exec.dispatch @write(%a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{adds by @add, which is not in place}}
    exec.accumulate @add(%a, %s) {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}

// -----

nn.model @slice_between attributes {stage = "exec"} {
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 128 : i64}
  exec.kernel @write [tensor<8xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<32xf32>>
    // expected-error @below {{begins at byte 32 of a bucket, where no slice can}}
    %s = exec.view %a[32] : !exec.buffer<tensor<32xf32>> -> !exec.buffer<tensor<8xf32>>
    exec.dispatch @write(%s) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<8xf32>>
    exec.record 0 {stream = #exec<stream compute>}
    exec.wait_event 0 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<32xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
  }
}
