// RUN: dlc-opt %s --dlc-store-inputs=sources=image=u8,mask=u16 2>/dev/null | FileCheck %s
// RUN: dlc-opt %s --dlc-store-inputs=sources=image=u8,mask=u16 2>&1 | FileCheck %s --check-prefix=SAID
// RUN: dlc-opt %s --dlc-store-inputs=sources=image=u8,mask=u16 --dlc-store-inputs=sources=image=u8,mask=u16 2>/dev/null | FileCheck %s --check-prefix=TWICE
// RUN: dlc-opt %s --dlc-store-inputs 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not dlc-opt %s --dlc-store-inputs=sources=image=f32 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not dlc-opt %s --dlc-store-inputs=sources=picture=u8 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not dlc-opt %s --dlc-store-inputs=sources=image=u8,image=u16 2>&1 | FileCheck %s --check-prefix=AGAIN
// RUN: dlc-opt %s --dlc-store-inputs=sources=noisy=u8 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: dlc-opt %s --dlc-store-inputs=sources=noisy=u8,clean=u8,weight=u8 2>&1 | FileCheck %s --check-prefix=BOTH

// TYPE: error: source 'image=f32' is not NAME=u8 or NAME=u16, what its files hold
// NAME: error: no input is from source 'picture'; the model reads clean, image, mask, noisy, other, weight
// AGAIN: error: source 'image' is given twice

// A normalize is left to the program for all inputs that it is for, or for none. What may be a class for each sample
// is no file's element.
// SHARED: warning: input 'noisy' stays f32
// SHARED: nn.model @m
// SHARED-NOT: ui8
// BOTH-NOT: warning
// BOTH-DAG: tensor<2x4x4xui8> {nn.input = "noisy"}
// BOTH-DAG: tensor<2x4x4xui8> {nn.input = "clean"}
// BOTH-DAG: tensor<2x4xf32> {nn.input = "clean.scale"}
// BOTH-DAG: tensor<2xf32> {nn.input = "weight"
// NONE-NOT: ui8
// What the host computes of a mask's elements stays its work.
// SAID: warning: input 'soft' stays f32
// CHECK: nn.model @m
// CHECK-SAME: sources = "image=u8,mask=u16"
// TWICE-COUNT-1: "image.shift"
// TWICE: nn.program @predict
// TWICE-NOT: ui8
nn.model @m attributes {stage = "nn", batch = 2 : i64,
    data = {chains = [{inputs = ["image"], outputs = ["image"], steps = [{mean = "per_image", name = "normalize"}]},
                      {inputs = ["image", "mask"], outputs = ["image", "mask"], steps = [{name = "flip"}]},
                      {inputs = ["mask"], outputs = ["soft"], steps = [{name = "brightness", delta = 1.0}]},
                      {inputs = ["noisy", "clean"], outputs = ["noisy", "clean"], steps = [{mean = "per_image", name = "normalize"}]},
                      {inputs = ["other"], outputs = ["other"], steps = [{mean = "per_image", name = "normalize"}]}],
            sources = [{axes = "NYXC", name = "image"}, {axes = "NYX", name = "mask"}, {axes = "NYX", name = "other"}]}} {

  // CHECK: nn.program @train(%[[X:[a-z0-9]+]]: tensor<2x3x4x4xui8> {nn.input = "image"}{{.*}}, %[[M:[a-z0-9]+]]: tensor<2x4x4xui16> {nn.input = "mask"
  // CHECK-SAME: %{{.*}}: tensor<2x4x4xf32> {nn.input = "soft"
  // CHECK-SAME: %{{.*}}: tensor<2x4x4xf32> {nn.input = "other"
  // CHECK-SAME: %[[SHIFT:[a-z0-9]+]]: tensor<2x3xf32> {nn.input = "image.shift"}{{.*}}, %[[SCALE:[a-z0-9]+]]: tensor<2x3xf32> {nn.input = "image.scale"}
  nn.program @train(%x: tensor<2x3x4x4xf32> {nn.input = "image"}, %m: tensor<2x4x4xf32> {nn.input = "mask"},
                    %s: tensor<2x4x4xf32> {nn.input = "soft"}, %o: tensor<2x4x4xf32> {nn.input = "other"},
                    %w: tensor<2xf32> {nn.input = "weight", nn.range = array<f64: 0.0, 1.0>},
                    %noisy: tensor<2x4x4xf32> {nn.input = "noisy"}, %clean: tensor<2x4x4xf32> {nn.input = "clean"}) {
    // CHECK-DAG: %[[WIDE:.*]] = nn.cast %[[X]] : (tensor<2x3x4x4xui8>) -> tensor<2x3x4x4xf32>
    // CHECK-DAG: %[[SHIFTS:.*]] = nn.broadcast %[[SHIFT]] {dims = array<i64: 0, 1>}
    // CHECK-DAG: %[[CENTRED:.*]] = nn.sub %[[WIDE]], %[[SHIFTS]]
    // CHECK-DAG: %[[SCALES:.*]] = nn.broadcast %[[SCALE]] {dims = array<i64: 0, 1>}
    // CHECK-DAG: %[[NORMAL:.*]] = nn.mul %[[CENTRED]], %[[SCALES]]
    // CHECK-DAG: %[[MASK:.*]] = nn.cast %[[M]] : (tensor<2x4x4xui16>) -> tensor<2x4x4xf32>
    // CHECK: nn.reduce_sum %[[NORMAL]]
    // CHECK: nn.reduce_sum %[[MASK]]
    %a = nn.reduce_sum %x {dims = array<i64: 0, 1, 2, 3>} : (tensor<2x3x4x4xf32>) -> tensor<f32>
    %b = nn.reduce_sum %m {dims = array<i64: 0, 1, 2>} : (tensor<2x4x4xf32>) -> tensor<f32>
    %c = nn.reduce_sum %s {dims = array<i64: 0, 1, 2>} : (tensor<2x4x4xf32>) -> tensor<f32>
    %d = nn.reduce_sum %o {dims = array<i64: 0, 1, 2>} : (tensor<2x4x4xf32>) -> tensor<f32>
    %e = nn.reduce_sum %w {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    %ab = nn.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %cd = nn.add %c, %d : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %f = nn.add %ab, %cd : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %h = nn.reduce_sum %noisy {dims = array<i64: 0, 1, 2>} : (tensor<2x4x4xf32>) -> tensor<f32>
    %i = nn.reduce_sum %clean {dims = array<i64: 0, 1, 2>} : (tensor<2x4x4xf32>) -> tensor<f32>
    %hi = nn.add %h, %i : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %ei = nn.add %e, %hi : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %g = nn.add %f, %ei : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %n = nn.constant dense<2.0> : tensor<f32>
    nn.loss %g, %n : tensor<f32>, tensor<f32>
  }
  // Predictions take any file.
  // CHECK: nn.program @predict(%{{.*}}: tensor<2x3x4x4xf32> {nn.input = "image"})
  nn.program @predict(%x: tensor<2x3x4x4xf32> {nn.input = "image"}) {
    nn.output "y", %x : tensor<2x3x4x4xf32>
  }
}
