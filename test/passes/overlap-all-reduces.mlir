// RUN: dlc-opt %s --split-input-file --dlc-overlap-all-reduces=link=1:10 | FileCheck %s
// RUN: dlc-opt %s --split-input-file --dlc-overlap-all-reduces="link=1:10 no-overlap" | FileCheck %s --check-prefix=BLOCKING
// RUN: dlc-opt %s --split-input-file --dlc-overlap-all-reduces=link=1:10 --remarks-filter=dlc-overlap 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not dlc-opt %s --split-input-file --dlc-overlap-all-reduces=link=slow 2>&1 | FileCheck %s --check-prefix=LINK
// LINK: error: link is 'slow', expected GBIT[:US], shm, nvlink or pcie

#slow = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 100000>
#quick = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 1000>

// The weight gradient moves before the data gradient of its layer, its bucket travels under what is left
// of backward compute, and the optimizer comes last, bucket by bucket. The kernels, the copy of 1,024
// bytes twice at 1 Gbit/s (16.4 us + 10) and what cannot hide are in the forecast.
// CHECK-LABEL: nn.model @layers
// CHECK-SAME: link = {gbit_per_s = 1.000000e+00 : f64, latency_us = 1.000000e+01 : f64}
// BLOCKING-LABEL: nn.model @layers
nn.model @layers attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @v : tensor<16x16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @w : tensor<16x16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.program @train
  // CHECK-SAME: forecast = {communication_ns = 52768 : i64, compute_ns = 403000 : i64, exposed_ns = 25384 : i64}
  // BLOCKING: nn.program @train
  // BLOCKING-SAME: forecast = {communication_ns = 52768 : i64, compute_ns = 403000 : i64, exposed_ns = 52768 : i64}
  nn.program @train(%x: tensor<16x16xf32> {nn.input = "x"}) {
    %v = nn.read @v : tensor<16x16xf32>
    // CHECK: %[[W:.*]] = nn.read @w
    %w = nn.read @w : tensor<16x16xf32>
    %y = nn.matmul %x, %v {nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    // CHECK: %[[Z:.*]] = nn.matmul %{{.*}}, %[[W]] {nn.kernel
    %z = nn.matmul %y, %w {nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    // CHECK-NEXT: %[[DW:.*]] = nn.matmul %{{.*}}, %[[Z]] {{.*}}transpose_a
    // CHECK-NEXT: %[[F0:.*]] = comm.start %[[DW]] {bucket = 0 : i64}
    // CHECK-NEXT: %[[DY:.*]] = nn.matmul %[[Z]], %[[W]] {{.*}}transpose_b
    // CHECK-NEXT: %[[DV:.*]] = nn.matmul %{{.*}}, %[[DY]] {{.*}}transpose_a
    // CHECK-NEXT: %[[F1:.*]] = comm.start %[[DV]] {bucket = 1 : i64}
    // CHECK-NEXT: %[[RW:.*]] = comm.wait %[[F0]]
    // CHECK-NEXT: %[[NW:.*]] = nn.fused {{.*}}%[[RW]]
    // CHECK: nn.assign @w, %[[NW]]
    // CHECK-NEXT: %[[RV:.*]] = comm.wait %[[F1]]
    // CHECK-NEXT: %[[NV:.*]] = nn.fused {{.*}}%[[RV]]
    // CHECK: nn.assign @v, %[[NV]]
    // BLOCKING: %[[F0:.*]] = comm.start
    // BLOCKING-NEXT: comm.wait %[[F0]]
    // BLOCKING: %[[F1:.*]] = comm.start
    // BLOCKING-NEXT: comm.wait %[[F1]]
    %dy = nn.matmul %z, %w {transpose_b, nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %dw = nn.matmul %y, %z {transpose_a, nn.kernel = #slow, nn.role = #nn.role<backward, @w>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %dv = nn.matmul %x, %dy {transpose_a, nn.kernel = #quick, nn.role = #nn.role<backward, @v>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    // REMARK: remark: [Analysis] order {{.*}}chose weight gradients before data gradients; gradients as written: 50 us exposed; weight gradients before data gradients: 25 us exposed; weight gradients behind data gradients: 50 us exposed"
    // REMARK: remark: [Passed] bucket {{.*}}bucket 0 (1024 bytes, 26 us on the wire) is hidden behind compute"
    %rw = comm.all_reduce %dw : tensor<16x16xf32>
    // REMARK: remark: [Missed] bucket {{.*}}bucket 1 (1024 bytes, 26 us on the wire) is exposed for 25 us: only 1 us of compute do not need its result
    %rv = comm.all_reduce %dv : tensor<16x16xf32>
    %nv = nn.fused (%a = %v, %b = %rv) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> attributes {nn.kernel = #quick, nn.role = #nn.role<update>} {
      %s = nn.sub %a, %b : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      nn.yield %s : tensor<16x16xf32>
    }
    nn.assign @v, %nv {nn.role = #nn.role<update>} : tensor<16x16xf32>
    %nw = nn.fused (%a = %w, %b = %rw) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> attributes {nn.kernel = #quick, nn.role = #nn.role<update>} {
      %s = nn.sub %a, %b : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      nn.yield %s : tensor<16x16xf32>
    }
    nn.assign @w, %nw {nn.role = #nn.role<update>} : tensor<16x16xf32>
  }
}

// -----

#slow = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 100000>
#quick = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 1000>

// A reduced value that backward compute needs is waited for there, not at the end.
// CHECK-LABEL: nn.model @count
nn.model @count attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: tensor<16x16xf32> {nn.input = "x"}) {
    // CHECK: %[[F:.*]] = comm.start
    // CHECK-NEXT: nn.matmul %[[X:.*]], %[[X]] {nn.kernel
    // CHECK-NEXT: %[[N:.*]] = comm.wait %[[F]]
    // CHECK-NEXT: %[[G:.*]] = nn.matmul %{{.*}}, %[[N]]
    // CHECK-NEXT: comm.start %[[G]] {bucket = 1 : i64}
    %c = nn.matmul %x, %x {transpose_a, nn.kernel = #quick} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %n = comm.all_reduce %c : tensor<16x16xf32>
    %y = nn.matmul %x, %x {nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %g = nn.matmul %y, %n {nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %r = comm.all_reduce %g : tensor<16x16xf32>
    nn.output "r", %r : tensor<16x16xf32>
  }
}

// -----

#slow = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 100000>
#quick = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 1000>

// The first bucket's update moves up to where it has arrived and nothing else reads @u; the second one's stays, since it hides
// the third bucket.
// CHECK-LABEL: nn.model @update
nn.model @update attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @u : tensor<16x16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @v : tensor<16x16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.program @train
  // CHECK-SAME: forecast = {communication_ns = 79152 : i64, compute_ns = 404000 : i64, exposed_ns = 0 : i64}
  nn.program @train(%x: tensor<16x16xf32> {nn.input = "x"}) {
    %u = nn.read @u : tensor<16x16xf32>
    %v = nn.read @v : tensor<16x16xf32>
    // CHECK: comm.start {{.*}} {bucket = 0 : i64}
    // CHECK-NEXT: %[[A:.*]] = nn.matmul
    // CHECK-NEXT: %[[B:.*]] = nn.matmul %[[A]]
    // CHECK-NEXT: %[[RU:.*]] = comm.wait
    // CHECK-NEXT: nn.fused {{.*}}%[[RU]]
    // CHECK: nn.assign @u
    // CHECK-NEXT: %[[GV:.*]] = nn.matmul %[[B]]
    // CHECK-NEXT: comm.start %[[GV]] {bucket = 1 : i64}
    // CHECK-NEXT: nn.matmul %[[B]]
    // CHECK-NEXT: %[[GW:.*]] = nn.matmul
    // CHECK-NEXT: comm.start %[[GW]] {bucket = 2 : i64}
    // CHECK-NEXT: nn.read @v
    // CHECK-NEXT: comm.wait
    // CHECK: nn.assign @v
    // CHECK-NEXT: comm.wait
    // CHECK-NEXT: nn.output
    %gu = nn.matmul %x, %x {transpose_a, nn.kernel = #quick, nn.role = #nn.role<backward, @u>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %ru = comm.all_reduce %gu : tensor<16x16xf32>
    %a = nn.matmul %x, %x {nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %b = nn.matmul %a, %u {nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %gv = nn.matmul %b, %x {transpose_a, nn.kernel = #quick, nn.role = #nn.role<backward, @v>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %rv = comm.all_reduce %gv : tensor<16x16xf32>
    %c = nn.matmul %b, %x {nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %gw = nn.matmul %c, %b {transpose_a, nn.kernel = #quick, nn.role = #nn.role<backward, @u>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %rw = comm.all_reduce %gw : tensor<16x16xf32>
    %nu = nn.fused (%p = %u, %q = %ru) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> attributes {nn.kernel = #quick, nn.role = #nn.role<update>} {
      %s = nn.sub %p, %q : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      nn.yield %s : tensor<16x16xf32>
    }
    nn.assign @u, %nu {nn.role = #nn.role<update>} : tensor<16x16xf32>
    %nv = nn.fused (%p = %v, %q = %rv) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> attributes {nn.kernel = #slow, nn.role = #nn.role<update>} {
      %s = nn.sub %p, %q : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
      nn.yield %s : tensor<16x16xf32>
    }
    nn.assign @v, %nv {nn.role = #nn.role<update>} : tensor<16x16xf32>
    nn.output "w", %rw : tensor<16x16xf32>
  }
}

// -----

#slow = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 100000>
#quick = #nn.kernel<"k", workspace = 0, flops = 0, bytes = 0, ns = 1000>

// Gradients that take far more memory than what they are computed from (here 64 KB from 2 KB; 1 ms each on the wire) are computed
// two at a time, the next one before the wire can run dry, and applied as they arrive.
// CHECK-LABEL: nn.model @large
nn.model @large attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @w : tensor<384x128xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2x128xf32> {nn.input = "x"}, %y: tensor<16x16xf32> {nn.input = "y"}) {
    // CHECK: %[[A:.*]] = nn.matmul {{.*}} -> tensor<128x128xf32>
    // CHECK-NEXT: comm.start %[[A]] {bucket = 0 : i64}
    // CHECK-NEXT: %[[S:.*]] = nn.matmul {{.*}} -> tensor<16x16xf32>
    // CHECK-NEXT: %[[G:.*]] = nn.matmul %{{.*}}, %[[S]]
    // CHECK-NEXT: comm.start %[[G]] {bucket = 1 : i64}
    // CHECK-NEXT: %[[B:.*]] = nn.matmul {{.*}} -> tensor<128x128xf32>
    // CHECK-NEXT: comm.start %[[B]] {bucket = 2 : i64}
    // CHECK: nn.assign @w, %{{.*}}row = 0 : i64}
    // CHECK-NEXT: %[[C:.*]] = nn.matmul {{.*}} -> tensor<128x128xf32>
    // CHECK-NEXT: comm.start %[[C]] {bucket = 3 : i64}
    // CHECK: nn.assign @w, %{{.*}}row = 128 : i64}
    // CHECK: nn.assign @w, %{{.*}}row = 256 : i64}
    %a = nn.matmul %x, %x {transpose_a, nn.kernel = #quick, nn.role = #nn.role<backward, @w>} : (tensor<2x128xf32>, tensor<2x128xf32>) -> tensor<128x128xf32>
    %b = nn.matmul %x, %x {transpose_a, nn.kernel = #quick, nn.role = #nn.role<backward, @w>} : (tensor<2x128xf32>, tensor<2x128xf32>) -> tensor<128x128xf32>
    %c = nn.matmul %x, %x {transpose_a, nn.kernel = #quick, nn.role = #nn.role<backward, @w>} : (tensor<2x128xf32>, tensor<2x128xf32>) -> tensor<128x128xf32>
    %s = nn.matmul %y, %y {nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %g = nn.matmul %y, %s {nn.kernel = #slow} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %ra = comm.all_reduce %a : tensor<128x128xf32>
    %rb = comm.all_reduce %b : tensor<128x128xf32>
    %rc = comm.all_reduce %c : tensor<128x128xf32>
    %rg = comm.all_reduce %g : tensor<16x16xf32>
    %wa = nn.read @w {row = 0} : tensor<128x128xf32>
    %na = nn.fused (%p = %wa, %q = %ra) : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32> attributes {nn.kernel = #quick, nn.role = #nn.role<update>} {
      %d = nn.sub %p, %q : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
      nn.yield %d : tensor<128x128xf32>
    }
    nn.assign @w, %na {row = 0, nn.role = #nn.role<update>} : tensor<128x128xf32>
    %wb = nn.read @w {row = 128} : tensor<128x128xf32>
    %nb = nn.fused (%p = %wb, %q = %rb) : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32> attributes {nn.kernel = #quick, nn.role = #nn.role<update>} {
      %d = nn.sub %p, %q : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
      nn.yield %d : tensor<128x128xf32>
    }
    nn.assign @w, %nb {row = 128, nn.role = #nn.role<update>} : tensor<128x128xf32>
    %wc = nn.read @w {row = 256} : tensor<128x128xf32>
    %nc = nn.fused (%p = %wc, %q = %rc) : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32> attributes {nn.kernel = #quick, nn.role = #nn.role<update>} {
      %d = nn.sub %p, %q : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
      nn.yield %d : tensor<128x128xf32>
    }
    nn.assign @w, %nc {row = 256, nn.role = #nn.role<update>} : tensor<128x128xf32>
    nn.output "g", %rg : tensor<16x16xf32>
  }
}
