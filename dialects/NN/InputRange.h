// What losses and metrics rely on in the data: `nn.range = array<f64: low, high>`, both inclusive,
// on an input of a program; values behind these two are taken, too. It goes into the artifact, and
// the runtime checks the data against it.
#pragma once

#include "dialects/NN/NN.h"

namespace dlc::nn {

/// Name of the attribute of a program's argument.
inline constexpr llvm::StringLiteral inputRange = "nn.range";

/// On an input whose numbers along axis 1 are shares of a whole: they sum to 1.
inline constexpr llvm::StringLiteral inputSumsToOne = "nn.sums_to_one";

/// True for an array<f64: low, high, others...> with low <= high.
bool isRange(mlir::Attribute attribute);

/// Narrows `nn.range` of the inputs that the value's elements are from, traced through ops that
/// move or convert elements. Of a value that is computed nothing is known, and nothing is noted.
void expectRange(mlir::Value value, double low, double high, llvm::ArrayRef<double> others = {});

/// Notes `nn.sums_to_one` of an input. Of any other value nothing is noted.
void expectSumOfOne(mlir::Value value);

/// What both ranges take, of which one may be missing.
mlir::DenseF64ArrayAttr intersect(mlir::DenseF64ArrayAttr a, mlir::DenseF64ArrayAttr b);

} // namespace dlc::nn
