// What the rules of composite ops build with.
#pragma once

#include "dialects/NN/NN.h"

namespace dlc::nn {

/// Builds chains of ops in one place: values in, values out.
struct OpChain {
  OpChain(mlir::OpBuilder &builder, mlir::Operation *op) : builder(builder), loc(op->getLoc()) {}

  template <typename Op, typename... Operands> mlir::Value make(Operands... operands) {
    return Op::create(builder, loc, operands...)->getResult(0);
  }
  mlir::Value constant(mlir::Value like, double value) {
    return splat(builder, loc, logicalType(tensorType(like)), value);
  }
  mlir::Value scaled(mlir::Value x, double factor) { return make<MulOp>(x, constant(x, factor)); }
  mlir::Value cast(mlir::Value x, mlir::Type element) {
    if (tensorType(x).getElementType() == element)
      return x;
    return CastOp::create(builder, loc,
                          mlir::RankedTensorType::get(tensorType(x).getShape(), element), x);
  }
  /// Sums and products are not rounded to 16 bits.
  mlir::Value atLeastF32(mlir::Value x) {
    bool isNarrow = elementBytes(tensorType(x).getElementType()) < 4;
    return isNarrow ? cast(x, builder.getF32Type()) : x;
  }
  mlir::Value wide(mlir::Value x) { return cast(x, builder.getF64Type()); }
  /// Repeats along all dimensions of `like` but `dim`.
  mlir::Value along(mlir::Value x, int64_t dim, mlir::Value like) {
    auto type =
        mlir::RankedTensorType::get(tensorType(like).getShape(), tensorType(x).getElementType());
    return BroadcastOp::create(builder, loc, type, x, builder.getDenseI64ArrayAttr(dim));
  }
  mlir::Value reshaped(mlir::Value x, llvm::ArrayRef<int64_t> shape) {
    return make<ReshapeOp>(mlir::RankedTensorType::get(shape, tensorType(x).getElementType()), x);
  }
  mlir::Value sum(mlir::Value x, llvm::ArrayRef<int64_t> dims) {
    return ReduceSumOp::create(builder, loc, x, builder.getDenseI64ArrayAttr(dims));
  }
  mlir::Value rowMaximum(mlir::Value x) {
    return ReduceMaxOp::create(builder, loc, x, builder.getDenseI64ArrayAttr({1}));
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

} // namespace dlc::nn
