// RUN: dlc-opt %s --split-input-file --dlc-accumulate-gradients | FileCheck %s

// Every bucket has a sum of its own; buckets of one size share the kernel.
// CHECK-LABEL: nn.model @m
nn.model @m attributes {stage = "exec", target = "test:rules", threads = 1 : i64, math = "fast"} {
  // CHECK: exec.program @train
  exec.program @train {
    // CHECK: %[[A:.*]] = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf32>>
    // CHECK-NEXT: %[[SUM_A:.*]] = exec.buffer {arena = #exec<arena_kind sums>} : <tensor<64xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf32>>
    // CHECK: %[[B:.*]] = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf32>>
    // CHECK-NEXT: %[[SUM_B:.*]] = exec.buffer {arena = #exec<arena_kind sums>} : <tensor<64xf32>>
    %b = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf32>>
    // CHECK: %[[C:.*]] = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    // CHECK-NEXT: %[[SUM_C:.*]] = exec.buffer {arena = #exec<arena_kind sums>} : <tensor<16xf32>>
    %c = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<16xf32>>
    // CHECK: exec.accumulate @[[K:.*]](%[[A]], %[[SUM_A]])
    // CHECK-NEXT: exec.start %[[A]]
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"]} : <tensor<64xf32>>
    // CHECK-NEXT: exec.accumulate @[[K]](%[[B]], %[[SUM_B]])
    // CHECK-NEXT: exec.start %[[B]]
    exec.start %b {collective = 1 : i64, wire = f32, members = ["b"]} : <tensor<64xf32>>
    // CHECK-NEXT: exec.accumulate @[[SMALL:.*]](%[[C]], %[[SUM_C]])
    // CHECK-NEXT: exec.start %[[C]]
    exec.start %c {collective = 2 : i64, wire = f32, members = ["c"]} : <tensor<16xf32>>
    exec.wait 0
    exec.wait 1
    exec.wait 2
  }
  // CHECK: exec.cluster @[[CLUSTER:sum_.*]] {
  // CHECK: nn.add
  // CHECK: exec.kernel @[[K]] [tensor<64xf32>, tensor<64xf32>, tensor<64xf32>] access [1, 1, 2] {{.*}}category = "accumulate"
  // CHECK: exec.kernel @[[SMALL]] [tensor<16xf32>
  // CHECK-NOT: exec.kernel
}

// -----

// What is counted ahead is recalled from its sum behind the wait.
// CHECK-LABEL: nn.model @counted
nn.model @counted attributes {stage = "exec", target = "test:rules", threads = 1 : i64, math = "fast"} {
  exec.program @train {
    // CHECK: %[[A:.*]] = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf32>>
    // CHECK-NEXT: %[[SUM_A:.*]] = exec.buffer {arena = #exec<arena_kind sums>} : <tensor<64xf32>>
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf32>>
    // CHECK: %[[B:.*]] = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf32>>
    // CHECK-NEXT: %[[SUM_B:.*]] = exec.buffer
    %b = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<64xf32>>
    // CHECK: exec.accumulate @{{.*}}(%[[A]], %[[SUM_A]]) {phase = #exec<phase count>}
    // CHECK-NEXT: exec.start %[[A]]
    exec.start %a {collective = 0 : i64, wire = f32, members = ["a"], phase = #exec<phase count>} : <tensor<64xf32>>
    // CHECK-NEXT: exec.accumulate @{{.*}}(%[[B]], %[[SUM_B]]) :
    // CHECK-NEXT: exec.start %[[B]]
    exec.start %b {collective = 1 : i64, wire = f32, members = ["b"]} : <tensor<64xf32>>
    // CHECK-NEXT: exec.wait 1
    exec.wait 1
    // CHECK-NEXT: exec.wait 0
    // CHECK-NEXT: exec.recall %[[A]], %[[SUM_A]]
    // CHECK-NEXT: }
    exec.wait 0 {phase = #exec<phase count>}
  }
}

// -----

// Nothing is reduced, nothing is added up.
// CHECK-LABEL: nn.model @alone
// CHECK-NOT: exec.accumulate
// CHECK-NOT: exec.kernel
nn.model @alone attributes {stage = "exec", target = "test:rules", threads = 1 : i64, math = "fast"} {
  exec.program @predict {
    %a = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<64xf32>>
    exec.copy %a, %a {phase = #exec<phase forward>} : <tensor<64xf32>>
  }
}
