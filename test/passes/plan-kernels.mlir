// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-plan-kernels | FileCheck %s

#blocked = #nn.layout<nChw16c>
// Library ops take the planner's cheapest implementation for the layouts that they have.
// CHECK-LABEL: nn.model @library
nn.model @library attributes {stage = "schedule", target = "test:rules", threads = 2 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<1x16x8x8xf32> {nn.input = "x"}, %w: tensor<16x16x3x3xf32, #nn.layout<OIhw16i16o>> {nn.input = "w"}) {
    // CHECK: nn.reorder {{.*}}nn.kernel = #nn.kernel<"test_reorder", workspace = 0, flops = 0, bytes = 8192, ns = 1256>
    %xb = nn.reorder %x : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32, #blocked>
    // CHECK: nn.conv {{.*}}nn.kernel = #nn.kernel<"test_blocked", workspace = 0, flops = 294912,
    %y = nn.conv %xb, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 1, 1>, padding_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xf32, #blocked>, tensor<16x16x3x3xf32, #nn.layout<OIhw16i16o>>) -> tensor<1x16x8x8xf32, #blocked>
    // CHECK: nn.fused {{.*}}nn.kernel = #nn.kernel<"generated", workspace = 0, flops = 1024, bytes = 8192, ns = 1256>
    %z = nn.fused (%a = %y) : (tensor<1x16x8x8xf32, #blocked>) -> tensor<1x16x8x8xf32, #blocked> {
      %r = nn.relu %a : (tensor<1x16x8x8xf32, #blocked>) -> tensor<1x16x8x8xf32, #blocked>
      nn.yield %r : tensor<1x16x8x8xf32, #blocked>
    }
    %p = nn.reorder %z : (tensor<1x16x8x8xf32, #blocked>) -> tensor<1x16x8x8xf32>
    nn.output "z", %p : tensor<1x16x8x8xf32>
  }
}

// -----

#blocked = #nn.layout<nChw16c>
// A workspace may raise the peak of the plan by a tenth: 1 MiB where operand and result take 8 each, not where they take 4 KiB.
// CHECK-LABEL: nn.model @workspace
nn.model @workspace attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<1x16x512x256xf32> {nn.input = "x"}, %w: tensor<16x16x5x5xf32, #nn.layout<OIhw16i16o>> {nn.input = "w"}) {
    // CHECK: nn.conv {{.*}}#nn.kernel<"test_workspace", workspace = 1048576
    %xb = nn.reorder %x : (tensor<1x16x512x256xf32>) -> tensor<1x16x512x256xf32, #blocked>
    %y = nn.conv %xb, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 2, 2>, padding_high = array<i64: 2, 2>, dilations = array<i64: 1, 1>} : (tensor<1x16x512x256xf32, #blocked>, tensor<16x16x5x5xf32, #nn.layout<OIhw16i16o>>) -> tensor<1x16x512x256xf32, #blocked>
    %p = nn.reorder %y : (tensor<1x16x512x256xf32, #blocked>) -> tensor<1x16x512x256xf32>
    nn.output "p", %p : tensor<1x16x512x256xf32>
  }
}

// -----

#blocked = #nn.layout<nChw16c>
// CHECK-LABEL: nn.model @no_workspace
nn.model @no_workspace attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<1x16x8x8xf32> {nn.input = "x"}, %w: tensor<16x16x5x5xf32, #nn.layout<OIhw16i16o>> {nn.input = "w"}) {
    // CHECK: nn.conv {{.*}}#nn.kernel<"test_blocked", workspace = 0
    %xb = nn.reorder %x : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32, #blocked>
    %y = nn.conv %xb, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 2, 2>, padding_high = array<i64: 2, 2>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xf32, #blocked>, tensor<16x16x5x5xf32, #nn.layout<OIhw16i16o>>) -> tensor<1x16x8x8xf32, #blocked>
    %p = nn.reorder %y : (tensor<1x16x8x8xf32, #blocked>) -> tensor<1x16x8x8xf32>
    nn.output "p", %p : tensor<1x16x8x8xf32>
  }
}

// -----

#blocked = #nn.layout<nChw16c>
// A weight laid out for a kernel whose workspace is not allowed is brought into the layout of another, from where it came.
// CHECK-LABEL: nn.model @weight
nn.model @weight attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<1x16x8x8xf32> {nn.input = "x"}, %w: tensor<16x16x7x7xf32> {nn.input = "w"}) {
    // CHECK: %[[W:.*]] = nn.reorder %arg1 {nn.kernel = #nn.kernel<"test_reorder"{{.*}} -> tensor<16x16x7x7xf32, #nn.layout<NChw16c16n>>
    // CHECK-NOT: tensor<16x16x7x7xf32, #nn.layout<NChw16n16c>>
    // CHECK: nn.conv %{{.*}}, %[[W]] {{.*}}#nn.kernel<"test_blocked", workspace = 0
    %xb = nn.reorder %x : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32, #blocked>
    %wb = nn.reorder %w : (tensor<16x16x7x7xf32>) -> tensor<16x16x7x7xf32, #nn.layout<OIhw16o16i>>
    %y = nn.conv %xb, %wb {strides = array<i64: 1, 1>, padding_low = array<i64: 3, 3>, padding_high = array<i64: 3, 3>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xf32, #blocked>, tensor<16x16x7x7xf32, #nn.layout<OIhw16o16i>>) -> tensor<1x16x8x8xf32, #blocked>
    %p = nn.reorder %y : (tensor<1x16x8x8xf32, #blocked>) -> tensor<1x16x8x8xf32>
    nn.output "p", %p : tensor<1x16x8x8xf32>
  }
}

// -----

// Layouts for which the library has no kernel are an error with the reason.
nn.model @refused attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<1x16x8x8xf32> {nn.input = "x"}) {
    // expected-error @below {{has no kernel on test:rules: no rule of the test planner fits these layouts}}
    %y, %i = nn.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>} : (tensor<1x16x8x8xf32>) -> (tensor<1x16x4x4xf32>, tensor<1x16x4x4xi8>)
    nn.output "y", %y : tensor<1x16x4x4xf32>
  }
}

// -----

// Nothing is planned for a model without a target.
// expected-error @below {{has no target, threads and math; run dlc-assign-layouts first}}
nn.model @untargeted attributes {stage = "schedule"} {
}

// -----

// A product of few rows is generated where that costs less, as a cluster of its own; here, where the second operand leaves the cache. The
// gradient of a weight and products of many rows are the library's.
// CHECK-LABEL: nn.model @products
nn.model @products attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<8x1000xf32> {nn.input = "x"}, %w: tensor<500x1000xf32> {nn.input = "w"}, %s: tensor<10x1000xf32> {nn.input = "s"}, %m: tensor<64x1000xf32> {nn.input = "m"}) {
    // CHECK: %[[Y:.*]] = nn.fused (%[[A:.*]] = %arg0, %[[B:.*]] = %arg1) {{.*}} attributes {nn.kernel = #nn.kernel<"generated", workspace = 0, flops = 8000000, bytes = 2048000, ns = 31750>, nn.plan = {{.*}} {
    // CHECK-NEXT: %[[P:.*]] = nn.matmul %[[A]], %[[B]] {relu, transpose_b} : (tensor<8x1000xf32>, tensor<500x1000xf32>) -> tensor<8x500xf32>
    // CHECK-NEXT: nn.yield %[[P]]
    %y = nn.matmul %x, %w {relu, transpose_b} : (tensor<8x1000xf32>, tensor<500x1000xf32>) -> tensor<8x500xf32>
    // CHECK: nn.fused (%{{.*}} = %[[Y]], %{{.*}} = %arg1) {{.*}}"generated"
    %g = nn.matmul %y, %w : (tensor<8x500xf32>, tensor<500x1000xf32>) -> tensor<8x1000xf32>
    // CHECK: nn.matmul %{{.*}}, %arg0 {nn.kernel = #nn.kernel<"test_plain"
    %d = nn.matmul %y, %x {transpose_a} : (tensor<8x500xf32>, tensor<8x1000xf32>) -> tensor<500x1000xf32>
    // CHECK: nn.matmul %arg0, %arg2 {nn.kernel = #nn.kernel<"test_plain"
    %z = nn.matmul %x, %s {transpose_b} : (tensor<8x1000xf32>, tensor<10x1000xf32>) -> tensor<8x10xf32>
    // CHECK: nn.matmul %arg3, %arg1 {nn.kernel = #nn.kernel<"test_plain"
    %u = nn.matmul %m, %w {transpose_b} : (tensor<64x1000xf32>, tensor<500x1000xf32>) -> tensor<64x500xf32>
    nn.output "g", %g : tensor<8x1000xf32>
    nn.output "d", %d : tensor<500x1000xf32>
    nn.output "z", %z : tensor<8x10xf32>
    nn.output "u", %u : tensor<64x500xf32>
  }
}

// -----

// A kernel can be generated for each cluster.
nn.model @nested attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %y = nn.fused (%a = %x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
      // expected-error @below {{cannot be inside of a generated kernel}}
      %p = nn.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.yield %p : tensor<4x4xf32>
    }
    nn.output "y", %y : tensor<4x4xf32>
  }
}

// -----

nn.model @amid attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %y = nn.fused (%a = %x) : (tensor<4x4xf32>) -> tensor<4xf32> {
      // expected-error @below {{is read in its own cluster, but reductions end one}}
      %s = nn.reduce_sum %a {dims = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
      %e = nn.exp %s : (tensor<4xf32>) -> tensor<4xf32>
      nn.yield %e : tensor<4xf32>
    }
    nn.output "y", %y : tensor<4xf32>
  }
}

// -----

// Where a target knows epilogues, the stage that has whole sums goes on with them.
// CHECK-LABEL: nn.model @behind
nn.model @behind attributes {stage = "schedule", target = "test:small", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<64x64xf32> {nn.input = "x"}) {
    // CHECK: #nn.stage<extent = 4, chunk = 1, buffers = [0, 2], reads = 1, bytes = 17408, flops = 4096>, #nn.stage<extent = 4, chunk = 4, buffers = [2, 1], reads = 1, bytes = 1280, flops = 320>
    %y = nn.fused (%a = %x) : (tensor<64x64xf32>) -> tensor<64xf32> {
      %s = nn.reduce_sum %a {dims = array<i64: 0>} : (tensor<64x64xf32>) -> tensor<64xf32>
      %e = nn.exp %s : (tensor<64xf32>) -> tensor<64xf32>
      nn.yield %e : tensor<64xf32>
    }
    nn.output "y", %y : tensor<64xf32>
  }
}

// -----

nn.model @larger attributes {stage = "schedule", target = "test:small", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %y = nn.fused (%a = %x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
      %s = nn.reduce_sum %a {dims = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<f32>
      // expected-error @below {{reads a reduction of its cluster, which only what is elementwise and as large as its result may do}}
      %b = nn.broadcast %s {dims = array<i64>} : (tensor<f32>) -> tensor<4x4xf32>
      %e = nn.mul %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.yield %e : tensor<4x4xf32>
    }
    nn.output "y", %y : tensor<4x4xf32>
  }
}

// -----

nn.model @moved attributes {stage = "schedule", target = "test:small", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4x4xf32> {nn.input = "x"}) {
    %y = nn.fused (%a = %x) : (tensor<4x4x4xf32>) -> tensor<4x4xf32> {
      %s = nn.reduce_sum %a {dims = array<i64: 0>} : (tensor<4x4x4xf32>) -> tensor<4x4xf32>
      // expected-error @below {{reads a reduction of its cluster, which only what is elementwise and as large as its result may do}}
      %t = nn.transpose %s {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
      nn.yield %t : tensor<4x4xf32>
    }
    nn.output "y", %y : tensor<4x4xf32>
  }
}

// -----

// One that nobody reads is none; one over no dimension has no epilogue.
// CHECK-LABEL: nn.model @unread
nn.model @unread attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x8xf32> {nn.input = "x"}) {
    // CHECK: stages = [#nn.stage<extent = 1, chunk = 1, buffers = [0, 1], reads = 1, bytes = 256, flops = 32>]
    %y = nn.fused (%a = %x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
      %s = nn.reduce_sum %a {dims = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
      %e = nn.exp %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
      nn.yield %e : tensor<4x8xf32>
    }
    nn.output "y", %y : tensor<4x8xf32>
  }
}

// -----

nn.model @nothing attributes {stage = "schedule", target = "test:small", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x8xf32> {nn.input = "x"}) {
    %y = nn.fused (%a = %x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
      // expected-error @below {{is read in its own cluster, but reductions end one}}
      %s = nn.reduce_sum %a {dims = array<i64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %e = nn.exp %s : (tensor<4x8xf32>) -> tensor<4x8xf32>
      nn.yield %e : tensor<4x8xf32>
    }
    nn.output "y", %y : tensor<4x8xf32>
  }
}

// -----

nn.model @twice attributes {stage = "schedule", target = "test:small", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    // expected-error @below {{yields a reduction twice}}
    %y:2 = nn.fused (%a = %x) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %s = nn.reduce_sum %a {dims = array<i64: 0>} : (tensor<4x4xf32>) -> tensor<4xf32>
      nn.yield %s, %s : tensor<4xf32>, tensor<4xf32>
    }
    nn.output "y", %y#0 : tensor<4xf32>
    nn.output "z", %y#1 : tensor<4xf32>
  }
}

// -----

nn.model @repeated attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4xf32> {nn.input = "x"}) {
    %y = nn.fused (%a = %x) : (tensor<4xf32>) -> tensor<8xf32> {
      // expected-error @below {{is not the only result of its cluster}}
      %r = nn.repeat %a {times = array<i64: 2>} : (tensor<4xf32>) -> tensor<8xf32>
      %e = nn.exp %r : (tensor<8xf32>) -> tensor<8xf32>
      nn.yield %e : tensor<8xf32>
    }
    nn.output "y", %y : tensor<8xf32>
  }
}

// -----

nn.model @often attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x4xf32> {nn.input = "x"}) {
    %y = nn.fused (%a = %x) : (tensor<4x4xf32>) -> tensor<24x24xf32> {
      // expected-error @below {{writes each element to more than 32 places}}
      %r = nn.repeat %a {times = array<i64: 6, 6>} : (tensor<4x4xf32>) -> tensor<24x24xf32>
      nn.yield %r : tensor<24x24xf32>
    }
    nn.output "y", %y : tensor<24x24xf32>
  }
}

// -----

// What a gradient gathers from windows that overlap is in memory.
nn.model @overlapping attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%dy: tensor<4x4x4xf32> {nn.input = "dy"}, %i: tensor<4x4x4xi8> {nn.input = "i"}) {
    %y = nn.fused (%a = %dy, %b = %i) : (tensor<4x4x4xf32>, tensor<4x4x4xi8>) -> tensor<4x4x9xf32> {
      %e = nn.exp %a : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
      // expected-error @below {{has windows that do not tile 'tensor<4x4x9xf32>' and operands that are computed in its cluster}}
      %dx = nn.max_pool_grad %e, %b {kernel = array<i64: 3>, strides = array<i64: 2>, padding_low = array<i64: 0>, padding_high = array<i64: 0>}
          : (tensor<4x4x4xf32>, tensor<4x4x4xi8>) -> tensor<4x4x9xf32>
      nn.yield %dx : tensor<4x4x9xf32>
    }
    nn.output "y", %y : tensor<4x4x9xf32>
  }
}

// -----

nn.model @layouts attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<4x8x9xf32> {nn.input = "x"}) {
    %y, %z = nn.fused (%a = %x) : (tensor<4x8x9xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32, #nn.layout<cn>>) {
      // expected-error @below {{has another layout than the cluster's last reduction}}
      %p = nn.reduce_sum %a {dims = array<i64: 2>} : (tensor<4x8x9xf32>) -> tensor<4x8xf32>
      %q = nn.reduce_max %a {dims = array<i64: 2>} : (tensor<4x8x9xf32>) -> tensor<4x8xf32, #nn.layout<cn>>
      nn.yield %p, %q : tensor<4x8xf32>, tensor<4x8xf32, #nn.layout<cn>>
    }
    nn.output "y", %y : tensor<4x8xf32>
  }
}

// -----

// The library's kernel is the cheapest, but takes a workspace that is too large; the next one of the
// list is generated.
// CHECK-LABEL: nn.model @workspace_then_code
nn.model @workspace_then_code attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<8x1000xf32> {nn.input = "x"}, %w: tensor<700x1000xf32> {nn.input = "w"}) {
    // CHECK: nn.fused
    // CHECK-NEXT: nn.matmul
    %y = nn.matmul %x, %w {transpose_b} : (tensor<8x1000xf32>, tensor<700x1000xf32>) -> tensor<8x700xf32>
    nn.output "y", %y : tensor<8x700xf32>
  }
}

// -----

// Where there is as much memory for other tensors, the workspace is allowed.
// CHECK-LABEL: nn.model @workspace
nn.model @workspace attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<8x1000xf32> {nn.input = "x"}, %w: tensor<700x1000xf32> {nn.input = "w"}, %l: tensor<400000x2048xf32> {nn.input = "l"}) {
    %a = nn.fused (%b = %l) : (tensor<400000x2048xf32>) -> tensor<400000x2048xf32> {
      %r = nn.relu %b : (tensor<400000x2048xf32>) -> tensor<400000x2048xf32>
      nn.yield %r : tensor<400000x2048xf32>
    }
    nn.output "a", %a : tensor<400000x2048xf32>
    // CHECK: nn.matmul {{.*}}#nn.kernel<"test_workspace", workspace = 1048576
    %y = nn.matmul %x, %w {transpose_b} : (tensor<8x1000xf32>, tensor<700x1000xf32>) -> tensor<8x700xf32>
    nn.output "y", %y : tensor<8x700xf32>
  }
}

// -----

// Limits of loops are the target's: 65536 elements are 8 items of 8192, of which a thread takes two, or 256 of 256 in chunks of 16.
// CHECK-LABEL: nn.model @rules
nn.model @rules attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<64x1024xf32> {nn.input = "x"}) {
    // CHECK: #nn.stage<extent = 8, chunk = 2,
    %y = nn.fused (%a = %x) : (tensor<64x1024xf32>) -> tensor<64x1024xf32> {
      %r = nn.relu %a : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
      nn.yield %r : tensor<64x1024xf32>
    }
    nn.output "y", %y : tensor<64x1024xf32>
  }
}

// -----

// CHECK-LABEL: nn.model @small
nn.model @small attributes {stage = "schedule", target = "test:small", threads = 1 : i64, math = "fast"} {
  nn.program @predict(%x: tensor<64x1024xf32> {nn.input = "x"}) {
    // CHECK: #nn.stage<extent = 256, chunk = 16,
    %y = nn.fused (%a = %x) : (tensor<64x1024xf32>) -> tensor<64x1024xf32> {
      %r = nn.relu %a : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
      nn.yield %r : tensor<64x1024xf32>
    }
    nn.output "y", %y : tensor<64x1024xf32>
  }
}
