// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-exec

// What depends on inputs alone may be counted ahead of the forward pass.
nn.model @counted attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @map [tensor<16xf32>, tensor<16xf32>] access [1, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    %t = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.upload(%x) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream copy>}
    exec.wait_event 0 {stream = #exec<stream compute>}
    exec.dispatch @map(%x, %a) {phase = #exec<phase count>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {phase = #exec<phase count>, stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 1 {stream = #exec<stream compute>}
    exec.wait_event 1 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], phase = #exec<phase count>, stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {phase = #exec<phase count>, stream = #exec<stream compute>}
    exec.recall %a, %s {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.dispatch @map(%a, %t) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @never_recalled attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @map [tensor<16xf32>, tensor<16xf32>] access [1, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    // expected-error @below {{is counted ahead and never recalled}}
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    exec.upload(%x) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream copy>}
    exec.wait_event 0 {stream = #exec<stream compute>}
    exec.dispatch @map(%x, %a) {phase = #exec<phase count>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {phase = #exec<phase count>, stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 1 {stream = #exec<stream compute>}
    exec.wait_event 1 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], phase = #exec<phase count>, stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {phase = #exec<phase count>, stream = #exec<stream compute>}
  }
}

// -----

nn.model @used_before_recalled attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @map [tensor<16xf32>, tensor<16xf32>] access [1, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    %t = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.upload(%x) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream copy>}
    exec.wait_event 0 {stream = #exec<stream compute>}
    exec.dispatch @map(%x, %a) {phase = #exec<phase count>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {phase = #exec<phase count>, stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 1 {stream = #exec<stream compute>}
    exec.wait_event 1 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], phase = #exec<phase count>, stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {phase = #exec<phase count>, stream = #exec<stream compute>}
    // expected-error @below {{uses a bucket that has not been recalled}}
    exec.dispatch @map(%a, %t) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    exec.recall %a, %s {stream = #exec<stream compute>} : <tensor<16xf32>>
  }
}

// -----

nn.model @recalls_what_is_not_counted attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @map [tensor<16xf32>, tensor<16xf32>] access [1, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    %t = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.upload(%x) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream copy>}
    exec.wait_event 0 {stream = #exec<stream compute>}
    exec.dispatch @map(%x, %a) {phase = #exec<phase backward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {phase = #exec<phase backward>, stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 1 {stream = #exec<stream compute>}
    exec.wait_event 1 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {stream = #exec<stream compute>}
    // expected-error @below {{recalls no sum of a collective of phase count}}
    exec.recall %a, %s {stream = #exec<stream compute>} : <tensor<16xf32>>
  }
}

// -----

nn.model @counted_without_its_sum attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @map [tensor<16xf32>, tensor<16xf32>] access [1, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    %t = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.upload(%x) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream copy>}
    exec.wait_event 0 {stream = #exec<stream compute>}
    exec.dispatch @map(%x, %a) {phase = #exec<phase count>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {phase = #exec<phase backward>, stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 1 {stream = #exec<stream compute>}
    exec.wait_event 1 {stream = #exec<stream comm>}
    // expected-error @below {{is not of the phase of its sum}}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], phase = #exec<phase count>, stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {phase = #exec<phase count>, stream = #exec<stream compute>}
    exec.recall %a, %s {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.dispatch @map(%a, %t) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @awaited_in_another_phase attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @map [tensor<16xf32>, tensor<16xf32>] access [1, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    %t = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.upload(%x) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream copy>}
    exec.wait_event 0 {stream = #exec<stream compute>}
    exec.dispatch @map(%x, %a) {phase = #exec<phase count>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {phase = #exec<phase count>, stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 1 {stream = #exec<stream compute>}
    exec.wait_event 1 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], phase = #exec<phase count>, stream = #exec<stream comm>} : <tensor<16xf32>>
    // expected-error @below {{is not of the phase of its collective}}
    exec.wait 0 {stream = #exec<stream compute>}
    exec.recall %a, %s {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.dispatch @map(%a, %t) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @counts_what_the_pass_computes attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @map [tensor<16xf32>, tensor<16xf32>] access [1, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    %t = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.upload(%x) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream copy>}
    exec.wait_event 0 {stream = #exec<stream compute>}
    exec.dispatch @write(%t) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>
    // expected-error @below {{of phase count reads what does not depend on inputs alone}}
    exec.dispatch @map(%t, %a) {phase = #exec<phase count>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {phase = #exec<phase count>, stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 1 {stream = #exec<stream compute>}
    exec.wait_event 1 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], phase = #exec<phase count>, stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {phase = #exec<phase count>, stream = #exec<stream compute>}
    exec.recall %a, %s {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.dispatch @map(%a, %t) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @counts_another_count attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.add %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @map [tensor<16xf32>, tensor<16xf32>] access [1, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    %t = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.upload(%x) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream copy>}
    exec.wait_event 0 {stream = #exec<stream compute>}
    exec.dispatch @map(%x, %a) {phase = #exec<phase count>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    exec.accumulate @add(%a, %s) {phase = #exec<phase count>, stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 1 {stream = #exec<stream compute>}
    exec.wait_event 1 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], phase = #exec<phase count>, stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {phase = #exec<phase count>, stream = #exec<stream compute>}
    exec.recall %a, %s {stream = #exec<stream compute>} : <tensor<16xf32>>
    // expected-error @below {{of phase count reads what does not depend on inputs alone}}
    exec.dispatch @map(%a, %t) {phase = #exec<phase count>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @adds_by_a_product attributes {stage = "exec"} {
  exec.arena @i {kind = #exec<arena_kind inputs>, bytes = 64 : i64}
  exec.arena @g {kind = #exec<arena_kind gradients>, bytes = 64 : i64}
  exec.arena @s {kind = #exec<arena_kind sums>, bytes = 64 : i64}
  exec.arena @t {kind = #exec<arena_kind transient>, bytes = 64 : i64}
  exec.cluster @sum {
  ^bb0(%a: tensor<16xf32>, %b: tensor<16xf32>):
    %0 = nn.mul %a, %b : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    nn.yield %0 : tensor<16xf32>
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1, 2], reads = 2, bytes = 192, flops = 16>], scratch = [], shares = [0, 0, 1, 0]>}
  exec.kernel @add [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "accumulate", cluster = @sum, function = "sum_0", implementation = "generated", flops = 16 : i64, bytes = 192 : i64, nanoseconds = 1 : i64}
  exec.kernel @map [tensor<16xf32>, tensor<16xf32>] access [1, 2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.kernel @write [tensor<16xf32>] access [2] {category = "pointwise", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %x = exec.buffer {arena = #exec<arena_kind inputs>, offset = 0 : i64, input = "x"} : <tensor<16xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>, offset = 0 : i64} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>, offset = 0 : i64} : <tensor<16xf32>>
    %t = exec.buffer {arena = #exec<arena_kind transient>, offset = 0 : i64} : <tensor<16xf32>>
    exec.upload(%x) {stream = #exec<stream copy>} : !exec.buffer<tensor<16xf32>>
    exec.record 0 {stream = #exec<stream copy>}
    exec.wait_event 0 {stream = #exec<stream compute>}
    exec.dispatch @map(%x, %a) {phase = #exec<phase count>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
    // expected-error @below {{which is no sum}}
    exec.accumulate @add(%a, %s) {phase = #exec<phase count>, stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.record 1 {stream = #exec<stream compute>}
    exec.wait_event 1 {stream = #exec<stream comm>}
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], phase = #exec<phase count>, stream = #exec<stream comm>} : <tensor<16xf32>>
    exec.wait 0 {phase = #exec<phase count>, stream = #exec<stream compute>}
    exec.recall %a, %s {stream = #exec<stream compute>} : <tensor<16xf32>>
    exec.dispatch @map(%a, %t) {phase = #exec<phase forward>, stream = #exec<stream compute>} : !exec.buffer<tensor<16xf32>>, !exec.buffer<tensor<16xf32>>
  }
}
