// RUN: dlc-opt %s --dlc-check-gradients | FileCheck %s

// Slices without a gap are counted at once, in whatever order they are given; padding is not read. Runs of one length
// share kernels.
// CHECK-LABEL: exec.program @train
// CHECK-DAG: %[[A:.*]] = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<128xf32>>
// CHECK-DAG: %[[B:.*]] = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<96xf32>>
// CHECK: %[[VIEW0:.*]] = exec.view %[[A]][0] : <tensor<128xf32>> -> <tensor<96xf32>>
// CHECK-NEXT: exec.dispatch @count_0(%[[VIEW0]], %{{.*}}, %[[N0:.*]]) {phase = #exec<phase optimizer>}
// CHECK-NEXT: %[[VIEW1:.*]] = exec.view %[[A]][400] : <tensor<128xf32>> -> <tensor<20xf32>>
// CHECK-NEXT: exec.dispatch @count_1(%[[VIEW1]], %{{.*}}, %[[N1:.*]]) {phase = #exec<phase optimizer>}
// CHECK-NEXT: %[[VIEW2:.*]] = exec.view %[[B]][0] : <tensor<96xf32>> -> <tensor<96xf32>>
// CHECK-NEXT: exec.dispatch @count_0(%[[VIEW2]], %{{.*}}, %[[N2:.*]]) {phase = #exec<phase optimizer>}
// CHECK-NEXT: exec.dispatch @sum_counts_2(%[[N0]], %[[N1]], %[[N2]], %{{.*}}) {phase = #exec<phase optimizer>}
// CHECK-NEXT: }
nn.model @m attributes {stage = "exec", target = "test:rules", threads = 1 : i64, math = "fast"} {
  nn.variable @s : tensor<f32> {kind = #nn<kind parameter>, init = #nn.init<constant, 1.0, 0.0>}
  exec.program @train {
    %a = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<128xf32>>
    %a0 = exec.view %a[0] : <tensor<128xf32>> -> <tensor<4x8xf32>>
    %a1 = exec.view %a[128] : <tensor<128xf32>> -> <tensor<50xf32>>
    %a2 = exec.view %a[400] : <tensor<128xf32>> -> <tensor<20xf32>>
    %a3 = exec.view %a[328] : <tensor<128xf32>> -> <tensor<14xf32>>
    %b = exec.buffer {arena = #exec<arena_kind gradients>} : <tensor<96xf32>>
    %b0 = exec.view %b[0] : <tensor<96xf32>> -> <tensor<96xf32>>
    %s = exec.buffer {arena = #exec<arena_kind variables>, variable = @s} : <tensor<f32>>
    %n = exec.buffer {arena = #exec<arena_kind transient>} : <tensor<f32>>
    exec.check %b0, %a3, %a0, %a1, %a2 by %s into %n : !exec.buffer<tensor<96xf32>>, !exec.buffer<tensor<14xf32>>, !exec.buffer<tensor<4x8xf32>>, !exec.buffer<tensor<50xf32>>, !exec.buffer<tensor<20xf32>> by !exec.buffer<tensor<f32>> into !exec.buffer<tensor<f32>>
  }
}
