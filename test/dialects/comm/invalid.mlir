// RUN: dlc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{needs an operand}}
"comm.all_reduce"() : () -> ()

// -----

%a = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{wire type is 'f16', expected f32 or bf16}}
%s = comm.all_reduce %a {wire = f16} : tensor<3xf32>

// -----

%a = nn.constant dense<1> : tensor<3xi32>
// expected-error @below {{operand #0 must be variadic of ranked tensor of}}
%s = comm.all_reduce %a : tensor<3xi32>

// -----

// The operands belong to the message until the wait.
%a = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{has an operand that is used while it is in flight}}
%f = comm.start %a {bucket = 0 : i64} : tensor<3xf32> -> !comm.future<tensor<3xf32>>
// expected-note @below {{used here}}
%n = nn.neg %a : (tensor<3xf32>) -> tensor<3xf32>
%r = comm.wait %f : !comm.future<tensor<3xf32>> -> tensor<3xf32>

// -----

%a = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{needs exactly one comm.wait}}
%f = comm.start %a {bucket = 0 : i64} : tensor<3xf32> -> !comm.future<tensor<3xf32>>

// -----

%a = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{needs exactly one comm.wait}}
%f = comm.start %a {bucket = 0 : i64} : tensor<3xf32> -> !comm.future<tensor<3xf32>>
%r = comm.wait %f : !comm.future<tensor<3xf32>> -> tensor<3xf32>
%s = comm.wait %f : !comm.future<tensor<3xf32>> -> tensor<3xf32>

// -----

%a = nn.constant dense<1.0> : tensor<3xf32>
// expected-error @below {{future's types differ from the operands'}}
%f = comm.start %a {bucket = 0 : i64} : tensor<3xf32> -> !comm.future<tensor<4xf32>>
%r = comm.wait %f : !comm.future<tensor<4xf32>> -> tensor<4xf32>

// -----

%a = nn.constant dense<1.0> : tensor<3xf32>
%f = comm.start %a {bucket = 0 : i64} : tensor<3xf32> -> !comm.future<tensor<3xf32>>
// expected-error @below {{results differ from the future's types}}
%r = comm.wait %f : !comm.future<tensor<3xf32>> -> tensor<4xf32>

// -----

%f = builtin.unrealized_conversion_cast to !comm.future<tensor<3xf32>>
// expected-error @below {{waits for something that comm.start did not make}}
%r = comm.wait %f : !comm.future<tensor<3xf32>> -> tensor<3xf32>
