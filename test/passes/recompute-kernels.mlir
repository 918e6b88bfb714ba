// RUN: dlc-opt %s --split-input-file --dlc-recompute-kernels | FileCheck %s
// RUN: dlc-opt %s --split-input-file --dlc-recompute-kernels --remarks-filter=dlc-recompute-kernels 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// Plans that a device's own memory holds stay as they are.
// RUN: sed s/test:rules/test:small/ %s | dlc-opt --split-input-file --dlc-recompute-kernels | FileCheck %s --check-prefix=FITS --implicit-check-not=nn.recomputed
// RUN: sed s/test:rules/test:small/ %s | dlc-opt --split-input-file --dlc-recompute-kernels=memory-limit=1024 | FileCheck %s
// FITS: nn.model @cheap

// %a is a seventh of what is live at the third convolution, which does not read it: worth 1.4 % of the step, and 1 % it takes to run it
// again in front of its next reader.
// CHECK-LABEL: nn.model @cheap
!image = tensor<1x1x128x128xf32>
!act = tensor<1x16x128x128xf32>
!first = tensor<16x1x1x1xf32>
!weight = tensor<16x16x1x1xf32>
nn.model @cheap attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: !image {nn.input = "x"}, %v: !first {nn.input = "v"}, %w: !weight {nn.input = "w"}) {
    // CHECK: %[[A:.*]] = nn.conv %arg0, %arg1
    // CHECK-NOT: nn.recomputed
    // CHECK: nn.conv %[[A]], %arg2
    // CHECK: %[[C:.*]] = nn.conv {{.*}}workspace = 4194304
    // CHECK-NEXT: %[[AGAIN:.*]] = nn.conv %arg0, %arg1 {{.*}}nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 10000>, nn.recomputed = 1048576 : i64
    // CHECK-NEXT: nn.conv_grad_filter %[[AGAIN]], %[[C]]
    // REMARK: runs again in backward: 1048576 bytes less at the peak for 10.0 us, 1.00 % of the step
    %a = nn.conv %x, %v {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 10000>} : (!image, !first) -> !act
    %b = nn.conv %a, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %c = nn.conv %b, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 4194304, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %g = nn.conv_grad_filter %a, %c {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 10000>} : (!act, !act) -> !weight
    nn.output "g", %g : !weight
  }
}

// -----

// Not for 2 %.
// CHECK-LABEL: nn.model @dear
!image = tensor<1x1x128x128xf32>
!act = tensor<1x16x128x128xf32>
!first = tensor<16x1x1x1xf32>
!weight = tensor<16x16x1x1xf32>
nn.model @dear attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: !image {nn.input = "x"}, %v: !first {nn.input = "v"}, %w: !weight {nn.input = "w"}) {
    // CHECK-NOT: nn.recomputed
    // CHECK: nn.output
    %a = nn.conv %x, %v {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 20000>} : (!image, !first) -> !act
    %b = nn.conv %a, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %c = nn.conv %b, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 4194304, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %g = nn.conv_grad_filter %a, %c {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 10000>} : (!act, !act) -> !weight
    nn.output "g", %g : !weight
  }
}

// -----

// Nor what is read at the peak, or is read when the program has run.
// CHECK-LABEL: nn.model @read_at_peak
!image = tensor<1x1x128x128xf32>
!act = tensor<1x16x128x128xf32>
!first = tensor<16x1x1x1xf32>
!weight = tensor<16x16x1x1xf32>
nn.model @read_at_peak attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: !image {nn.input = "x"}, %v: !first {nn.input = "v"}, %w: !weight {nn.input = "w"}) {
    // CHECK-NOT: nn.recomputed
    // CHECK: nn.output
    %a = nn.conv %x, %v {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 10000>} : (!image, !first) -> !act
    %b = nn.conv %a, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %c = nn.conv %b, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 4194304, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %g = nn.conv_grad_filter %a, %c {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 10000>} : (!act, !act) -> !weight
    nn.output "g", %g : !weight
    nn.output "a", %a : !act
  }
}

// -----

// Operands that live longer for it count: here as many bytes as it saves.
// CHECK-LABEL: nn.model @operands
!image = tensor<1x1x128x128xf32>
!act = tensor<1x16x128x128xf32>
!first = tensor<16x1x1x1xf32>
!weight = tensor<16x16x1x1xf32>
nn.model @operands attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: !image {nn.input = "x"}, %v: !first {nn.input = "v"}, %w: !weight {nn.input = "w"}) {
    // CHECK-NOT: nn.recomputed
    // CHECK: nn.output
    %r = nn.conv %x, %v {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 490000>} : (!image, !first) -> !act
    %a = nn.conv %r, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 10000>} : (!act, !weight) -> !act
    %b = nn.conv %a, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %c = nn.conv %b, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 4194304, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %g = nn.conv_grad_filter %a, %c {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 10000>} : (!act, !act) -> !weight
    nn.output "g", %g : !weight
  }
}

// -----

// So is a cluster: what the convolution behind it reads of %a needs no more than %a, which is kept for another reader.
// CHECK-LABEL: nn.model @cluster
!image = tensor<1x1x128x128xf32>
!act = tensor<1x16x128x128xf32>
!first = tensor<16x1x1x1xf32>
!weight = tensor<16x16x1x1xf32>
nn.model @cluster attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%a: !act {nn.input = "a"}, %w: !weight {nn.input = "w"}) {
    // CHECK: %[[Y:.*]] = nn.fused (%{{.*}} = %arg0)
    // CHECK-NOT: nn.recomputed
    // CHECK: nn.conv %[[Y]], %arg1
    // CHECK: %[[C:.*]] = nn.conv {{.*}}workspace = 4194304
    // CHECK-NEXT: %[[AGAIN:.*]] = nn.fused (%{{.*}} = %arg0)
    // CHECK: nn.recomputed = 1048576 : i64
    // CHECK: nn.conv_grad_filter %[[AGAIN]], %[[C]]
    %y = nn.fused (%x = %a) : (!act) -> !act attributes {nn.kernel = #nn.kernel<"generated", workspace = 0, flops = 0, bytes = 0, ns = 10000>} {
      %r = nn.relu %x : (!act) -> !act
      nn.yield %r : !act
    }
    %b = nn.conv %y, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %c = nn.conv %b, %w {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 4194304, flops = 0, bytes = 0, ns = 490000>} : (!act, !weight) -> !act
    %g = nn.conv_grad_filter %y, %c {strides = array<i64: 1, 1>, padding_low = array<i64: 0, 0>, padding_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>, nn.kernel = #nn.kernel<"test_plain", workspace = 0, flops = 0, bytes = 0, ns = 10000>} : (!act, !act) -> !weight
    nn.output "g", %g : !weight
  }
}
