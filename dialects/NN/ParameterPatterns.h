// Patterns over the names of parameters, as the settings of training have them: no_decay, freeze,
// lr_scale.
#pragma once

#include "dialects/NN/NN.h"

#include "llvm/Support/GlobPattern.h"

namespace dlc::nn {

class ParameterPatterns {
public:
  ParameterPatterns() = default;
  /// Reports a text that is no pattern as the model's `what`.
  static mlir::FailureOr<ParameterPatterns> create(ModelOp model, llvm::StringRef what,
                                                   llvm::ArrayRef<mlir::Attribute> texts);

  /// The index of a pattern.
  std::optional<size_t> firstMatch(llvm::StringRef parameter) const;
  bool match(llvm::StringRef parameter) const { return firstMatch(parameter).has_value(); }

private:
  std::vector<llvm::GlobPattern> patterns;
};

/// What is wrong with a pattern, for messages: it is none, or no parameter of the model has such a
/// name. Empty if nothing is.
std::string patternFault(ModelOp model, llvm::StringRef pattern);

} // namespace dlc::nn
