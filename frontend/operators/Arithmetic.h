// Unary and binary operators of the language on values of all kinds.
#pragma once

#include "frontend/operators/Graph.h"
#include "frontend/syntax/AST.h"
#include "frontend/syntax/Diagnostics.h"

namespace dlc::fe {

mlir::FailureOr<Value> applyUnary(Graph &graph, Diagnostics &diags, llvm::SMLoc loc,
                                  UnaryOperator op, const Value &operand);

/// Also for compile-time || and &&, which the caller may cut short.
mlir::FailureOr<Value> applyBinary(Graph &graph, Diagnostics &diags, llvm::SMLoc loc,
                                   BinaryOperator op, const Value &a, const Value &b);

/// The shape that two operands have in common when axes of size 1 and scalars repeat.
mlir::FailureOr<llvm::SmallVector<int64_t>> broadcastShape(Diagnostics &diags, llvm::SMLoc loc,
                                                           llvm::StringRef what, mlir::Type a,
                                                           mlir::Type b);

} // namespace dlc::fe
