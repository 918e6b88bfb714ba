// RUN: dlc-opt %s --split-input-file --dlc-combine-equal | FileCheck %s

// The first of equal ops stays whatever their roles are, is due when the first of them was, and keeps its kind.
// CHECK-LABEL: nn.model @roles
nn.model @roles attributes {stage = "train"} {
  nn.variable @s : tensor<4xf32> {kind = #nn<kind state>, init = #nn.init<constant, 0.0, 0.0>}
  // CHECK: nn.program @train(%[[X:.*]]: tensor<4xf32>
  nn.program @train(%x: tensor<4xf32> {nn.input = "x"}) {
    // CHECK: %[[A:.*]] = nn.exp %[[X]] {nn.role = #nn.role<forward, norm>}
    // CHECK-NEXT: %[[B:.*]] = nn.neg %[[A]] {nn.role = #nn.role<backward, @s>}
    // CHECK-NEXT: %[[C:.*]] = nn.exp %[[B]] {nn.role = #nn.role<update, @s>}
    // CHECK-NEXT: nn.output "y", %[[A]]
    // CHECK-NEXT: nn.assign @s, %[[C]]
    // CHECK-NEXT: }
    %a = nn.exp %x {nn.role = #nn.role<forward, norm>} : (tensor<4xf32>) -> tensor<4xf32>
    %b = nn.neg %a {nn.role = #nn.role<update, @s>} : (tensor<4xf32>) -> tensor<4xf32>
    %again = nn.exp %x {nn.role = #nn.role<backward, loss>} : (tensor<4xf32>) -> tensor<4xf32>
    %early = nn.neg %again {nn.role = #nn.role<backward>} : (tensor<4xf32>) -> tensor<4xf32>
    %dead = nn.tanh %early : (tensor<4xf32>) -> tensor<4xf32>
    %c = nn.exp %b {nn.role = #nn.role<update, @s>} : (tensor<4xf32>) -> tensor<4xf32>
    nn.output "y", %again : tensor<4xf32>
    nn.assign @s, %c : tensor<4xf32>
  }
}
