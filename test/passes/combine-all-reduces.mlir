// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-combine-all-reduces=bucket-size=64 | FileCheck %s
// RUN: dlc-opt %s --split-input-file --verify-diagnostics --dlc-combine-all-reduces | FileCheck %s --check-prefix=DEFAULT

// Gradients are joined in the order in which they become ready, not that of the parameters; a bucket
// leaves right behind its last producer and users in between sink behind it. Slices take 64 bytes.
// CHECK-LABEL: nn.model @order
// DEFAULT-LABEL: nn.model @order
nn.model @order attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @a : tensor<3xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @b : tensor<16xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<3xf32> {nn.input = "x"}, %y: tensor<16xf32> {nn.input = "y"}) {
    // CHECK: %[[GB:.*]] = nn.exp
    // CHECK-NEXT: %[[RB:.*]] = comm.all_reduce %[[GB]]{{.*}} : tensor<16xf32>
    // CHECK-NEXT: %[[GA:.*]] = nn.tanh
    // CHECK-NEXT: %[[RA:.*]] = comm.all_reduce %[[GA]]{{.*}} : tensor<3xf32>
    // CHECK-NEXT: nn.neg %[[RB]]
    // CHECK-NEXT: nn.assign @a, %[[RA]]
    // DEFAULT: %[[GB:.*]] = nn.exp
    // DEFAULT-NEXT: %[[GA:.*]] = nn.tanh
    // DEFAULT-NEXT: %[[R:.*]]:2 = comm.all_reduce %[[GB]], %[[GA]]{{.*}} : tensor<16xf32>, tensor<3xf32>
    // DEFAULT-NEXT: %[[NB:.*]] = nn.neg %[[R]]#0
    // DEFAULT-NEXT: nn.assign @a, %[[R]]#1
    // DEFAULT-NEXT: nn.assign @b, %[[NB]]
    %gb = nn.exp %y : (tensor<16xf32>) -> tensor<16xf32>
    %ga = nn.tanh %x : (tensor<3xf32>) -> tensor<3xf32>
    %ra = comm.all_reduce %ga : tensor<3xf32>
    %rb = comm.all_reduce %gb : tensor<16xf32>
    %nb = nn.neg %rb : (tensor<16xf32>) -> tensor<16xf32>
    nn.assign @a, %ra : tensor<3xf32>
    nn.assign @b, %nb : tensor<16xf32>
  }
}

// -----

// A value that others use before it is reduced gets a copy of its own in the bucket.
// DEFAULT-LABEL: nn.model @shared
nn.model @shared attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: tensor<3xf32> {nn.input = "x"}) {
    // DEFAULT: %[[MEAN:.*]] = nn.exp
    // DEFAULT: %[[COPY:.*]] = nn.fused (%[[A:.*]] = %[[MEAN]]) {{.*}}nn.kernel = #nn.kernel<"generated"
    // DEFAULT-NEXT: nn.yield %[[A]]
    // DEFAULT: comm.all_reduce %[[COPY]]
    // DEFAULT: nn.neg %[[MEAN]]
    %mean = nn.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    %r = comm.all_reduce %mean : tensor<3xf32>
    %n = nn.neg %mean : (tensor<3xf32>) -> tensor<3xf32>
    nn.output "r", %r : tensor<3xf32>
    nn.output "n", %n : tensor<3xf32>
  }
}

// -----

// What derives from a reduced value cannot travel with it; neither can another type on the wire.
// DEFAULT-LABEL: nn.model @separate
nn.model @separate attributes {stage = "schedule", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.program @train(%x: tensor<3xf32> {nn.input = "x"}) {
    // DEFAULT: %[[COUNT:.*]] = comm.all_reduce %{{.*}} : tensor<3xf32>
    // DEFAULT: %[[G:.*]] = nn.neg %[[COUNT]]
    // DEFAULT: comm.all_reduce %[[G]]{{.*}} : tensor<3xf32>
    // DEFAULT: comm.all_reduce %{{.*}}wire = bf16} : tensor<3xf32>
    %c = nn.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    %rc = comm.all_reduce %c : tensor<3xf32>
    %g = nn.neg %rc : (tensor<3xf32>) -> tensor<3xf32>
    %rg = comm.all_reduce %g : tensor<3xf32>
    %h = nn.tanh %x : (tensor<3xf32>) -> tensor<3xf32>
    %rh = comm.all_reduce %h {wire = bf16} : tensor<3xf32>
    nn.output "g", %rg : tensor<3xf32>
    nn.output "h", %rh : tensor<3xf32>
  }
}

// -----

// A copy is planned like every kernel, so the model needs its target.
// expected-error @below {{has no target, threads and math}}
nn.model @untargeted attributes {stage = "schedule"} {
  nn.program @train(%x: tensor<3xf32> {nn.input = "x"}) {
    %r = comm.all_reduce %x : tensor<3xf32>
    nn.output "r", %r : tensor<3xf32>
  }
}
