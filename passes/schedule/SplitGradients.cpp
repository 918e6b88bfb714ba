// A dense layer's weight gradient has rows of its own for each output, so a large one is computed,
// reduced and applied some rows at a time. First the whole path of a gradient into its variables is
// found; if a part of it cannot be split, nothing changes.

#include "dialects/Comm/Comm.h"
#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/planning/FlatUpdate.h"
#include "passes/planning/PlanningTarget.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_SPLITGRADIENTS
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
/// A gradient on its way into the variables.
struct GradientPath {
  nn::MatmulOp product;
  comm::AllReduceOp reduction;
  nn::FusedOp update;
  SmallVector<nn::AssignOp> assigns; // by result of the update

  RankedTensorType type() { return nn::tensorType(product.getY()); }
  Value reduced() { return reduction.getOutputs().front(); }
};
} // namespace

static bool isTensor(Value value) { return nn::tensorType(value).getRank() > 0; }

/// Fills in the update; false if it is not flat over the gradient and variables, or if its results
/// are used otherwise.
static bool findUpdate(GradientPath &path) {
  path.update = dyn_cast<nn::FusedOp>(*path.reduced().user_begin());
  if (!path.update || nn::phaseOf(path.update) != nn::Phase::Update ||
      !isFlatUpdate(path.update.getBody().front()))
    return false;
  for (Value operand : path.update.getInputs()) {
    auto read = operand.getDefiningOp<nn::ReadOp>();
    if (isTensor(operand) && operand != path.reduced() && (!read || read.getRow()))
      return false;
  }
  for (Value value : path.update.getResults()) {
    auto assign = value.hasOneUse() ? dyn_cast<nn::AssignOp>(*value.user_begin()) : nn::AssignOp();
    if (!assign || assign.getRow())
      return false;
    path.assigns.push_back(assign);
  }
  return true;
}

static std::optional<GradientPath> findPath(comm::AllReduceOp reduction) {
  if (reduction.getInputs().size() != 1 || !nn::roleOf(reduction).variable)
    return std::nullopt;
  Value gradient = reduction.getInputs().front();
  GradientPath path{gradient.getDefiningOp<nn::MatmulOp>(), reduction, {}, {}};
  if (!path.product || !gradient.hasOneUse() || !path.reduced().hasOneUse() ||
      path.product.getBias() || path.product.getRelu() ||
      !nn::layoutOf(nn::tensorType(path.product.getA())).isRowMajor() || !findUpdate(path))
    return std::nullopt;
  return path;
}

/// The most rows a piece may have: they divide the gradient evenly, so that all pieces share their
/// kernels, are a multiple of the target's lanes, so that vectors and a library's blocks stay
/// whole, and are at most `bytes`. All rows if there is no such division.
static int64_t rowsOfPiece(RankedTensorType type, int64_t bytes, int64_t rowMultiple) {
  int64_t rows = type.getDimSize(0);
  for (int64_t pieces = llvm::divideCeil(nn::physicalBytes(type), bytes);
       pieces * rowMultiple <= rows; ++pieces)
    if (rows % (pieces * rowMultiple) == 0)
      return rows / pieces;
  return rows;
}

/// A piece of a value that has the gradient's shape; element types differ.
static RankedTensorType pieceOf(Value whole, RankedTensorType piece) {
  return cast<RankedTensorType>(piece.clone(nn::tensorType(whole).getElementType()));
}

static RankedTensorType withRows(RankedTensorType type, int64_t rows) {
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = rows;
  return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
}

/// The rows [row, row + rows) of the product's first factor as the result counts them, copied.
static Value factorRows(OpBuilder &builder, nn::MatmulOp product, int64_t row, int64_t rows) {
  RankedTensorType whole = nn::tensorType(product.getA());
  unsigned dim = product.getTransposeA() ? 1 : 0;
  SmallVector<int64_t> start(2, 0), size(whole.getShape());
  start[dim] = row;
  size[dim] = rows;
  auto type = RankedTensorType::get(size, whole.getElementType());
  auto copy = nn::FusedOp::create(builder, product.getLoc(), TypeRange(type), product.getA());
  nn::setRole(copy, nn::roleOf(product));
  Block &body = copy.getBody().emplaceBlock();
  Value argument = body.addArgument(whole, product.getLoc());
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  auto slice = nn::SliceOp::create(inner, product.getLoc(), type, argument, start, size);
  nn::YieldOp::create(inner, product.getLoc(), slice.getY());
  return copy.getResult(0);
}

/// Computes, reduces and applies the rows of the gradient from `row` on.
static void buildPiece(GradientPath &path, RankedTensorType type, int64_t row) {
  OpBuilder builder(path.product);
  auto product = cast<nn::MatmulOp>(builder.clone(*path.product));
  builder.setInsertionPoint(product);
  product.getAMutable().assign(factorRows(builder, path.product, row, type.getDimSize(0)));
  product.getY().setType(type);

  builder.setInsertionPoint(path.reduction);
  auto reduction = comm::AllReduceOp::create(builder, path.reduction.getLoc(), TypeRange(type),
                                             product->getResults(), path.reduction.getWireAttr(),
                                             path.reduction.getMembersAttr());
  nn::setRole(reduction, nn::roleOf(path.reduction));

  builder.setInsertionPoint(path.update);
  IntegerAttr rowAttr = builder.getI64IntegerAttr(row);
  SmallVector<Value> operands;
  for (Value operand : path.update.getInputs()) {
    auto read = operand.getDefiningOp<nn::ReadOp>();
    if (operand == path.reduced())
      operands.push_back(reduction.getOutputs().front());
    else if (isTensor(operand))
      operands.push_back(nn::ReadOp::create(builder, read.getLoc(), pieceOf(operand, type),
                                            read.getVariableAttr(), rowAttr));
    else
      operands.push_back(operand);
  }
  SmallVector<Type> types;
  for (Value result : path.update.getResults())
    types.push_back(pieceOf(result, type));
  auto update = nn::FusedOp::create(builder, path.update.getLoc(), types, operands);
  nn::setRole(update, nn::roleOf(path.update));
  buildFlatUpdate(path.update.getBody().front(), type, update.getBody());
  for (auto [assign, value] : llvm::zip(path.assigns, update.getResults())) {
    builder.setInsertionPoint(assign);
    auto part =
        nn::AssignOp::create(builder, assign.getLoc(), assign.getVariableAttr(), value, rowAttr);
    nn::setRole(part, nn::roleOf(assign));
  }
}

namespace {
struct SplitGradientsPass : dlc::impl::SplitGradientsBase<SplitGradientsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Schedule)))
      return signalPassFailure();
    std::shared_ptr<rt::KernelPlanner> planner = openPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    rowMultiple = planner->target().loops.vectorLanes;
    for (auto program : getOperation().getBody().getOps<nn::ProgramOp>())
      for (auto reduction :
           llvm::make_early_inc_range(program.getBody().getOps<comm::AllReduceOp>()))
        if (std::optional<GradientPath> path = findPath(reduction))
          split(*path);
  }

private:
  void split(GradientPath &path) {
    RankedTensorType whole = path.type();
    RankedTensorType part = withRows(whole, rowsOfPiece(whole, pieceBytes, rowMultiple));
    if (part == whole || !nn::rowOffset(whole, part.getDimSize(0), part))
      return;
    for (int64_t row = 0; row < whole.getDimSize(0); row += part.getDimSize(0))
      buildPiece(path, part, row);
    for (nn::AssignOp assign : path.assigns)
      assign.erase();
    SmallVector<nn::ReadOp> reads;
    for (Value operand : path.update.getInputs())
      if (auto read = operand.getDefiningOp<nn::ReadOp>())
        reads.push_back(read);
    path.update.erase();
    path.reduction.erase();
    path.product.erase();
    for (nn::ReadOp read : reads)
      if (read->use_empty())
        read.erase();
  }

  int64_t rowMultiple = 1;
};
} // namespace
