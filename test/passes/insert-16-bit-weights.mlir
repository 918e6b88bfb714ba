// RUN: dlc-opt %s --split-input-file --dlc-insert-16-bit-weights | FileCheck %s

// Every program reads the copy, and @train writes it with the parameter, from the same value; what is read in f32 stays.
// CHECK-LABEL: nn.model @m
nn.model @m attributes {stage = "train", batch = 2 : i64} {
  // CHECK: nn.variable @w : tensor<2xf32>
  // CHECK-NEXT: nn.variable @w.bf16 : tensor<2xbf16> {{.*}}kind = #nn<kind copy>, owner = @w
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<normal, 0.0, 1.0>}
  // CHECK-NEXT: nn.variable @b
  // CHECK-NOT: nn.variable
  nn.variable @b : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.program @train(%[[X:.*]]: tensor<2xf32>
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // CHECK-NOT: nn.read @w :
    // CHECK: %[[C:.*]] = nn.read @w.bf16 : tensor<2xbf16>
    // CHECK: nn.cast %[[C]]
    %w = nn.read @w : tensor<2xf32>
    %c = nn.cast %w : (tensor<2xf32>) -> tensor<2xbf16>
    %v = nn.cast %c : (tensor<2xbf16>) -> tensor<2xf32>
    %b = nn.read @b : tensor<2xf32>
    %y = nn.add %v, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // CHECK: %[[S:.*]] = comm.all_reduce
    %sum = comm.all_reduce %y : tensor<2xf32>
    // CHECK: nn.read @w : tensor<2xf32>
    %old = nn.read @w : tensor<2xf32>
    // CHECK: %[[N:.*]] = nn.sub
    %new = nn.sub %old, %sum : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    // CHECK: nn.assign @w, %[[N]]{{.*}} : tensor<2xf32>
    // CHECK: %[[R:.*]] = nn.cast %[[N]]{{.*}} : (tensor<2xf32>) -> tensor<2xbf16>
    // CHECK: nn.assign @w.bf16, %[[R]]{{.*}} : tensor<2xbf16>
    // CHECK-NEXT: nn.assign @b
    nn.assign @w, %new : tensor<2xf32>
    nn.assign @b, %sum : tensor<2xf32>
  }
  // CHECK: nn.program @eval
  // CHECK: nn.read @w.bf16 : tensor<2xbf16>
  // CHECK-NOT: nn.read @w :
  nn.program @eval(%x: tensor<2xf32> {nn.input = "x"}) {
    %w = nn.read @w : tensor<2xf32>
    %c = nn.cast %w : (tensor<2xf32>) -> tensor<2xbf16>
    nn.output "y", %c : tensor<2xbf16>
  }
}

// -----

// Nobody trains it: it is rounded when it is loaded. A statistic is no parameter.
// CHECK-LABEL: nn.model @frozen
nn.model @frozen attributes {stage = "train", batch = 2 : i64} {
  // CHECK: nn.variable @w.bf16
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<normal, 0.0, 1.0>, trainable = false}
  // CHECK-NOT: nn.variable @s.bf16
  nn.variable @s : tensor<2xf32> {kind = #nn<kind state>, init = #nn.init<constant, 1.0, 0.0>}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // CHECK: nn.read @w.bf16
    %w = nn.read @w : tensor<2xf32>
    %c = nn.cast %w : (tensor<2xf32>) -> tensor<2xbf16>
    nn.output "y", %c : tensor<2xbf16>
    // CHECK: %[[S:.*]] = nn.read @s
    // CHECK: nn.cast %[[S]]
    %s = nn.read @s : tensor<2xf32>
    %d = nn.cast %s : (tensor<2xf32>) -> tensor<2xbf16>
    nn.output "z", %d : tensor<2xbf16>
    // CHECK-NOT: nn.assign
  }
}

// -----

// In stage schedule, what is read in 16 bits there gets a copy, too; one that is there is read and not assigned twice.
// CHECK-LABEL: nn.model @later
nn.model @later attributes {stage = "schedule", batch = 2 : i64} {
  // CHECK: nn.variable @b.bf16
  nn.variable @b : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  // CHECK: nn.variable @w.bf16
  // CHECK-NOT: nn.variable
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<normal, 0.0, 1.0>}
  nn.variable @w.bf16 : tensor<2xbf16> {kind = #nn<kind copy>, init = #nn.init<constant, 0.0, 0.0>, owner = @w}
  // CHECK: nn.program @train
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // CHECK: nn.read @b.bf16
    // CHECK-NEXT: nn.read @w.bf16
    %b = nn.read @b : tensor<2xf32>
    %c = nn.cast %b : (tensor<2xf32>) -> tensor<2xbf16>
    %w = nn.read @w : tensor<2xf32>
    %d = nn.cast %w : (tensor<2xf32>) -> tensor<2xbf16>
    %e = nn.add %c, %d : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2xbf16>
    nn.output "y", %e : tensor<2xbf16>
    // CHECK: nn.assign @b,
    // CHECK: nn.assign @b.bf16,
    nn.assign @b, %x : tensor<2xf32>
    // CHECK: nn.assign @w,
    // CHECK: nn.assign @w.bf16,
    // CHECK-NOT: nn.assign
    nn.assign @w, %x : tensor<2xf32>
    %r = nn.cast %x : (tensor<2xf32>) -> tensor<2xbf16>
    nn.assign @w.bf16, %r : tensor<2xbf16>
  }
}

// -----

// Another parameter's copy is none of this one, whatever its name; one that nobody assigns is assigned.
// CHECK-LABEL: nn.model @others
nn.model @others attributes {stage = "schedule", batch = 2 : i64} {
  nn.variable @v : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @u : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @u.bf16 : tensor<2xbf16> {kind = #nn<kind copy>, init = #nn.init<constant, 0.0, 0.0>, owner = @u}
  // CHECK: nn.variable @w : tensor<2xf32>
  // CHECK-NEXT: nn.variable @[[COPY:.*]] : tensor<2xbf16> {{.*}}owner = @w
  // CHECK-NEXT: nn.variable @w.bf16 : tensor<2xbf16> {{.*}}owner = @v
  nn.variable @w : tensor<2xf32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  nn.variable @w.bf16 : tensor<2xbf16> {kind = #nn<kind copy>, init = #nn.init<constant, 0.0, 0.0>, owner = @v}
  nn.program @train(%x: tensor<2xf32> {nn.input = "x"}) {
    // CHECK: nn.read @[[COPY]] :
    // CHECK-NEXT: nn.read @u.bf16
    %w = nn.read @w : tensor<2xf32>
    %d = nn.cast %w : (tensor<2xf32>) -> tensor<2xbf16>
    %u = nn.read @u : tensor<2xf32>
    %e = nn.cast %u : (tensor<2xf32>) -> tensor<2xbf16>
    %f = nn.add %d, %e : (tensor<2xbf16>, tensor<2xbf16>) -> tensor<2xbf16>
    nn.output "y", %f : tensor<2xbf16>
    // CHECK: nn.assign @u,
    // CHECK: nn.assign @u.bf16,
    nn.assign @u, %x : tensor<2xf32>
  }
}
