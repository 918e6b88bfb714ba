// RUN: dlc-opt %s --split-input-file --verify-diagnostics

nn.model @kernel attributes {stage = "exec"} {
  // expected-error @below {{needs either a plan or a cluster}}
  exec.kernel @k [tensor<8xf32>] access [1] {category = "pointwise", implementation = "x", flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
}

// -----

nn.model @access attributes {stage = "exec"} {
  // expected-error @below {{has 1 operands and 2 accesses}}
  exec.kernel @k [tensor<8xf32>] access [1, 2] {category = "pointwise", implementation = "x", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
}

// -----

nn.model @view attributes {stage = "exec"} {
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    // expected-error @below {{of 32 bytes from byte 64 is outside of}}
    %b = exec.view %a[64] : <tensor<16xf32>> -> <tensor<8xf32>>
  }
}

// -----

nn.model @dispatch attributes {stage = "exec"} {
  exec.kernel @k [tensor<8xf32>] access [1] {category = "pointwise", implementation = "x", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    // expected-error @below {{takes 'tensor<8xf32>'}}
    exec.dispatch @k(%a) {phase = #exec<phase forward>} : !exec.buffer<tensor<16xf32>>
  }
}

// -----

nn.model @read attributes {stage = "exec"} {
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<f32>>
    // expected-error @below {{takes 1 buffers, a loss has 2}}
    exec.download "loss"(%a) {kind = #exec<result loss>} : !exec.buffer<tensor<f32>>
  }
}

// -----

nn.model @adds_by_nothing attributes {stage = "exec"} {
  exec.kernel @k [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 2] {category = "any", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>} : <tensor<16xf32>>
    // expected-error @below {{adds by @other, which is no kernel of two}}
    exec.accumulate @other(%a, %s) : <tensor<16xf32>>
  }
}

// -----

nn.model @adds_by_another_access attributes {stage = "exec"} {
  exec.kernel @k [tensor<16xf32>, tensor<16xf32>, tensor<16xf32>] access [1, 1, 1] {category = "any", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>} : <tensor<16xf32>>
    // expected-error @below {{adds by @k, which is no kernel of two}}
    exec.accumulate @k(%a, %s) : <tensor<16xf32>>
  }
}

// -----

nn.model @adds_by_another_type attributes {stage = "exec"} {
  exec.kernel @k [tensor<8xf32>, tensor<8xf32>, tensor<8xf32>] access [1, 1, 2] {category = "any", implementation = "any", plan = array<i8: 1>, flops = 0 : i64, bytes = 0 : i64, nanoseconds = 0 : i64}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    %s = exec.buffer {arena = #exec<arena_kind sums>} : <tensor<16xf32>>
    // expected-error @below {{adds by @k, which is no kernel of two}}
    exec.accumulate @k(%a, %s) : <tensor<16xf32>>
  }
}

// -----

nn.model @stages attributes {stage = "exec"} {
  exec.cluster @c {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  // expected-error @below {{a stage moves, computes and writes less than 2^60 of anything}}
  // expected-error @below {{failed to parse NN_ClusterPlanAttr parameter 'stages'}}
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 1, bytes = -1, flops = 4>], scratch = [], shares = []>}
}

// -----

nn.model @stages attributes {stage = "exec"} {
  exec.cluster @c {
  ^bb0(%a: tensor<4xf32>):
    nn.yield %a : tensor<4xf32>
  // expected-error @below {{a stage needs the positions of its buffers}}
  // expected-error @below {{failed to parse NN_ClusterPlanAttr parameter 'stages'}}
  } {nn.plan = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 3, bytes = 1, flops = 4>], scratch = [], shares = []>}
}

// -----

nn.model @narrow attributes {stage = "exec"} {
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf16>>
    %s = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<f32>>
    // expected-error @below {{counts in slices of buckets, all of f32}}
    exec.check %a by %s into %s : !exec.buffer<tensor<64xf16>> by !exec.buffer<tensor<f32>> into !exec.buffer<tensor<f32>>
  }
}

// -----

nn.model @vector attributes {stage = "exec"} {
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf32>>
    %s = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<2xf32>>
    // expected-error @below {{has the scale and the count in scalars}}
    exec.check %a by %s into %s : !exec.buffer<tensor<64xf32>> by !exec.buffer<tensor<2xf32>> into !exec.buffer<tensor<2xf32>>
  }
}
