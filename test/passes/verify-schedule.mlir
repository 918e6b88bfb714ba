// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-verify-schedule

#k = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 1>

// A good schedule passes.
nn.model @good attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %a = nn.matmul %x, %x {nn.kernel = #k} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %f = comm.start %a {bucket = 0 : i64} : tensor<4x4xf32> -> <tensor<4x4xf32>>
    %b = nn.matmul %x, %x {nn.kernel = #k} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %r = comm.wait %f : <tensor<4x4xf32>> -> tensor<4x4xf32>
    %h = comm.start %b {bucket = 1 : i64} : tensor<4x4xf32> -> <tensor<4x4xf32>>
    %s = comm.wait %h : <tensor<4x4xf32>> -> tensor<4x4xf32>
    nn.output "r", %r : tensor<4x4xf32>
    nn.output "s", %s : tensor<4x4xf32>
  }
}

// -----

// expected-error @below {{is of stage schedule; stage schedule with target, threads and math expected}}
nn.model @untargeted attributes {stage = "schedule"} {
}

// -----

nn.model @unplanned attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    // expected-error @below {{has no kernel; run dlc-plan-kernels}}
    %a = nn.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    nn.output "a", %a : tensor<4x4xf32>
  }
}

// -----

#k = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 1>
// A mean over all samples may be read anywhere, a gradient in updates alone.
nn.model @summed attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @w : tensor<4x4xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %a:2 = nn.fused (%i = %x) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {nn.kernel = #k} {
      %n = nn.neg %i : (tensor<4x4xf32>) -> tensor<4x4xf32>
      %e = nn.exp %i : (tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.yield %n, %e : tensor<4x4xf32>, tensor<4x4xf32>
    }
    %f = comm.start %a#0, %a#1 {bucket = 0 : i64, members = ["a count", @w]} : tensor<4x4xf32>, tensor<4x4xf32> -> <tensor<4x4xf32>, tensor<4x4xf32>>
    %r:2 = comm.wait %f : <tensor<4x4xf32>, tensor<4x4xf32>> -> tensor<4x4xf32>, tensor<4x4xf32>
    %b = nn.matmul %x, %r#0 {nn.kernel = #k} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{'nn.matmul' op reads what ranks have summed up for @w, but its nn.role is of the forward pass and no update}}
    %c = nn.matmul %x, %r#1 {nn.kernel = #k} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    nn.assign @w, %c {nn.role = #nn.role<update, @w>} : tensor<4x4xf32>
  }
}

// -----

#k = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 1>
nn.model @unsplit attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %a = nn.matmul %x, %x {nn.kernel = #k} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{is left; run dlc-overlap-all-reduces}}
    %r = comm.all_reduce %a : tensor<4x4xf32>
    nn.output "r", %r : tensor<4x4xf32>
  }
}

// -----

#k = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 1>
// All ranks start their buckets in the order of their numbers.
nn.model @numbers attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %a = nn.matmul %x, %x {nn.kernel = #k} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @below {{is bucket 1, but the order of the program makes it 0}}
    %f = comm.start %a {bucket = 1 : i64} : tensor<4x4xf32> -> <tensor<4x4xf32>>
    %r = comm.wait %f : <tensor<4x4xf32>> -> tensor<4x4xf32>
    nn.output "r", %r : tensor<4x4xf32>
  }
}

// -----

#k = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 1>
// Behind the wait the operand's memory holds the sum.
nn.model @unreduced attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %a = nn.matmul %x, %x {nn.kernel = #k} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-note @below {{from here on its memory belongs to bucket 0}}
    %f = comm.start %a {bucket = 0 : i64} : tensor<4x4xf32> -> <tensor<4x4xf32>>
    %r = comm.wait %f : <tensor<4x4xf32>> -> tensor<4x4xf32>
    nn.output "r", %r : tensor<4x4xf32>
    // expected-error @below {{uses a value behind the start of its all-reduce}}
    nn.output "a", %a : tensor<4x4xf32>
  }
}

// -----

nn.model @foreign attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: tensor<4xf32> {nn.input = "x"}) {
    // expected-error @below {{needs results of kernels that nothing else uses}}
    %f = comm.start %x {bucket = 0 : i64} : tensor<4xf32> -> <tensor<4xf32>>
    %r = comm.wait %f : <tensor<4xf32>> -> tensor<4xf32>
    nn.output "r", %r : tensor<4xf32>
  }
}

// -----

nn.model @sink attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @v : tensor<4x4xf32, #nn.layout<cn>> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @predict() {
    %v = nn.read @v : tensor<4x4xf32, #nn.layout<cn>>
    // expected-error @below {{takes row-major tensors}}
    nn.output "v", %v : tensor<4x4xf32, #nn.layout<cn>>
  }
}

// -----

nn.model @slots attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @v : tensor<4x4xf32, #nn.layout<cn>> {kind = #nn<kind parameter>, init = #nn.init<constant, 0.0, 0.0>}
  // expected-error @below {{has type 'tensor<4x4xf32>', its parameter 'tensor<4x4xf32, #nn.layout<cn>>'}}
  nn.variable @m : tensor<4x4xf32> {kind = #nn<kind slot>, owner = @v, slot = "m", init = #nn.init<constant, 0.0, 0.0>}
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    nn.output "x", %x : tensor<4x4xf32>
  }
}

// -----

#blocked = #nn.layout<nChw16c>
nn.model @cut attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @v : tensor<1x32x4x4xf32, #blocked> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  nn.program @predict() {
    %v = nn.read @v : tensor<1x32x4x4xf32, #blocked>
    // expected-error @below {{cuts a block of}}
    %s = nn.slice %v {start = array<i64: 0, 8, 0, 0>, size = array<i64: 1, 16, 4, 4>} : (tensor<1x32x4x4xf32, #blocked>) -> tensor<1x16x4x4xf32, #blocked>
  }
}

// -----

nn.model @unfused attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4xf32> {nn.input = "x"}) {
    // expected-error @below {{is outside of a cluster; run dlc-fuse}}
    %y = nn.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    nn.output "y", %y : tensor<4xf32>
  }
}

// -----

#g = #nn.kernel<"generated", workspace = 0, flops = 0, bytes = 0, ns = 1>
// Clusters are planned.
nn.model @unplanned attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    // expected-error @below {{has no plan; run dlc-plan-kernels}}
    %y = nn.fused (%a = %x) : (tensor<4x4xf32>) -> tensor<4x4xf32> attributes {nn.kernel = #g} {
      %r = nn.relu %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.yield %r : tensor<4x4xf32>
    }
    nn.output "y", %y : tensor<4x4xf32>
  }
}

// -----

#g = #nn.kernel<"generated", workspace = 0, flops = 0, bytes = 0, ns = 1>
#p = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 2], reads = 1, bytes = 128, flops = 16>], scratch = [], shares = []>
nn.model @other_buffers attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    // expected-error @below {{is planned with buffer 2 of 2}}
    %y = nn.fused (%a = %x) : (tensor<4x4xf32>) -> tensor<4x4xf32> attributes {nn.kernel = #g, nn.plan = #p} {
      %r = nn.relu %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.yield %r : tensor<4x4xf32>
    }
    nn.output "y", %y : tensor<4x4xf32>
  }
}

// -----

#g = #nn.kernel<"generated", workspace = 0, flops = 0, bytes = 0, ns = 1>
#p = #nn.plan<stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 1, bytes = 128, flops = 16>], scratch = [], shares = [0, 0]>
nn.model @other_types attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    // expected-error @below {{is planned to write result 0 in the memory of operand 0, which is another tensor}}
    %y = nn.fused (%a = %x) : (tensor<4x4xf32>) -> tensor<4xf32> attributes {nn.kernel = #g, nn.plan = #p} {
      %r = nn.reduce_sum %a {dims = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
      nn.yield %r : tensor<4xf32>
    }
    nn.output "y", %y : tensor<4xf32>
  }
}
