// Checks of a whole model that several stages share. Passes rely on them. A model may be read from
// a file at any stage, so each stage's verifier runs them.
#pragma once

#include "dialects/NN/NN.h"

namespace dlc {

/// The attributes of the model have the entries and types with which they are read.
llvm::LogicalResult verifyAttributes(nn::ModelOp model);

/// How far the nn.programs of a model have come. In a written model @train may name the outputs of
/// a prediction that is yet to be derived.
enum class ProgramForm { Written, Derived, Train, Schedule };

/// Variables, inputs and the kinds of ops are as all passes on programs of this form expect.
llvm::LogicalResult verifyPrograms(nn::ModelOp model, ProgramForm form);

/// Scalars are those that the host writes, a slot belongs to a variable.
llvm::LogicalResult verifyVariables(nn::ModelOp model);

} // namespace dlc
