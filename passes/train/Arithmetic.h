// What the formulas of an update are written with.
#pragma once

#include "dialects/NN/NN.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dlc {

/// Arithmetic of one shape, as the formulas are written.
class Arithmetic {
public:
  using Value = mlir::Value;

  Arithmetic(mlir::ImplicitLocOpBuilder &builder, mlir::RankedTensorType type)
      : builder(builder), type(type) {}

  Value constant(double value) { return nn::splat(builder, builder.getLoc(), type, value); }
  Value broadcast(Value scalar) {
    if (scalar.getType() == type)
      return scalar;
    return nn::BroadcastOp::create(builder, type, scalar, llvm::ArrayRef<int64_t>{});
  }
  Value add(Value a, Value b) { return nn::AddOp::create(builder, a, b); }
  Value sub(Value a, Value b) { return nn::SubOp::create(builder, a, b); }
  Value mul(Value a, Value b) { return nn::MulOp::create(builder, a, b); }
  Value div(Value a, Value b) { return nn::DivOp::create(builder, a, b); }
  Value min(Value a, Value b) { return nn::MinOp::create(builder, a, b); }
  Value max(Value a, Value b) { return nn::MaxOp::create(builder, a, b); }
  Value sqrt(Value x) { return nn::SqrtOp::create(builder, x); }
  Value tanh(Value x) { return nn::TanhOp::create(builder, x); }
  Value scale(Value x, double factor) { return mul(x, constant(factor)); }
  Value compare(nn::Comparison predicate, Value x, double bound) {
    return nn::CompareOp::create(builder, predicate, x, constant(bound));
  }

private:
  mlir::ImplicitLocOpBuilder &builder;
  mlir::RankedTensorType type;
};

} // namespace dlc
