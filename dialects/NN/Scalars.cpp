// The table of host-written scalars and access to them.

#include "dialects/NN/Scalars.h"

using namespace mlir;
using namespace dlc::nn;

llvm::ArrayRef<ScalarInfo> dlc::nn::wellKnownScalars() {
  static constexpr ScalarInfo table[] = {
      {"lr", false, 0, true},            // learning rate of this step
      {"step", true, 0, true},           // steps done so far
      {"seed", true, 0, true},           // of the run
      {"inverse_world", false, 1, true}, // 1 / number of ranks
      {"first_row", true, 0, false},     // rows of the global batch before this rank's
      {"valid_rows", true, 0, false},    // rows that do not pad this rank's batch
      // Pixels at either end of a spatial dimension that evaluation does not count.
      {"skip_low_0", false, 0, false},
      {"skip_high_0", false, 0, false},
      {"skip_low_1", false, 0, false},
      {"skip_high_1", false, 0, false},
      {"skip_low_2", false, 0, false},
      {"skip_high_2", false, 0, false},
  };
  return table;
}

const ScalarInfo *dlc::nn::lookupScalar(StringRef name) {
  for (const ScalarInfo &info : wellKnownScalars())
    if (info.name == name)
      return &info;
  return nullptr;
}

RankedTensorType dlc::nn::scalarType(MLIRContext *context, const ScalarInfo &info) {
  Builder builder(context);
  Type element = info.isInteger ? Type(builder.getI64Type()) : Type(builder.getF32Type());
  return RankedTensorType::get({}, element);
}

Value dlc::nn::readScalar(OpBuilder &builder, Location loc, ModelOp model, StringRef name) {
  const ScalarInfo *info = lookupScalar(name);
  assert(info && "only well-known scalars can be read");
  RankedTensorType type = scalarType(builder.getContext(), *info);
  if (!SymbolTable::lookupSymbolIn(model, name)) {
    OpBuilder atTop = OpBuilder::atBlockBegin(&model.getBody().front());
    auto initial =
        InitializerAttr::get(builder.getContext(), InitializerKind::Constant, info->initial, 0);
    VariableOp::create(atTop, model.getLoc(), name, type, VariableKind::Scalar, initial,
                       FlatSymbolRefAttr(), StringAttr());
  }
  return ReadOp::create(builder, loc, type, name);
}
