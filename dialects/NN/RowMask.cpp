// One walk over the program finds which values have rows. Then the masked twin of a sum is built
// from the reductions up: they read zeros for rows beyond the valid ones.

#include "dialects/NN/RowMask.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace dlc::nn;

RowMask::RowMask(Block &program, int64_t batch, std::function<Value(OpBuilder &)> readValidRows,
                 const llvm::DenseSet<Value> &masked)
    : program(program), batch(batch), readValidRows(std::move(readValidRows)) {
  for (BlockArgument input : program.getArguments())
    kinds[input] = isBatch(input) ? Kind::Rows : Kind::Mixed;
  for (Operation &op : program) {
    Kind kind = kindAfter(&op);
    for (Value result : op.getResults()) {
      bool losesRows = kind == Kind::Rows && !isBatch(result);
      if (kind != Kind::Constant)
        kinds[result] = masked.contains(result) ? Kind::Masked : losesRows ? Kind::Mixed : kind;
    }
  }
}

RowMask::Kind RowMask::kindAfter(Operation *op) const {
  Kind most = isa<RandomOpInterface>(op) ? Kind::Rows : Kind::Constant; // each row draws its own
  for (Value operand : op->getOperands())
    most = std::max(most, kindOf(operand));
  return most == Kind::Rows && !keepsRows(op) ? Kind::Mixed : most;
}

bool RowMask::isBatch(Value value) const {
  auto type = tensorType(value);
  return type.getRank() > 0 && type.getDimSize(0) == batch;
}

/// True if row i of the results is computed from row i of the operands that have rows.
bool RowMask::keepsRows(Operation *op) const {
  auto hasRows = [&](Value operand) { return kindOf(operand) == Kind::Rows; };
  if (auto rows = dyn_cast<RowsOpInterface>(op))
    return rows.keepsRows(hasRows);
  return op->hasTrait<Elementwise>();
}

std::string RowMask::apply(Value &sum, Value &count) {
  // A term that no input enters (weight decay as a loss) has no rows.
  if (kindOf(sum) == Kind::Constant && kindOf(count) == Kind::Constant)
    return "";
  std::string reason;
  auto replace = [&](Value &value, StringRef what) {
    if (Value twin = maskLinear(value))
      value = twin;
    else
      reason = ("a " + what + " that is no sum over the " + Twine(batch) +
                " rows of a batch, so evaluation cannot leave out rows that pad one")
                   .str();
  };
  replace(sum, "sum");
  if (reason.empty())
    replace(count, "count");
  return reason;
}

//===- Sums -----------------------------------------------------------------------------------===//

/// True if the result is linear in the operands together.
static bool isLinear(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op))
    return isa<FloatType>(tensorType(cast.getResult()).getElementType());
  return isa<AddOp, SubOp, NegOp, ReduceSumOp, ReshapeOp, BroadcastOp, TransposeOp>(op);
}

/// The twin of a value that is linear in sums over rows; null if it is not.
Value RowMask::maskLinear(Value value) {
  if (kindOf(value) < Kind::Rows)
    return shareOfValid(value);
  Operation *op = value.getDefiningOp();
  if (!op || kindOf(value) == Kind::Rows)
    return {};
  if (Value known = twins.lookup(value))
    return known;
  if (auto reduction = dyn_cast<ReduceSumOp>(op))
    if (Value twin = maskReduction(reduction))
      return twins[value] = twin;
  SmallVector<OpOperand *> factors;
  for (OpOperand &operand : op->getOpOperands())
    if (kindOf(operand.get()) != Kind::Constant)
      factors.push_back(&operand);
  bool isScaling = isa<MulOp>(op) || (isa<DivOp>(op) && factors.front()->getOperandNumber() == 0);
  isScaling &= factors.size() == 1;
  if (!isLinear(op) && !isScaling)
    return {};
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands()) {
    if (isScaling && &operand != factors.front())
      continue;
    Value twin = maskLinear(operand.get());
    if (!twin)
      return {};
    mapping.map(operand.get(), twin);
  }
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  return twins[value] = builder.clone(*op, mapping)->getResult(0);
}

/// The sum of the valid rows; null if it is no sum over rows.
Value RowMask::maskReduction(ReduceSumOp op) {
  Value x = op.getX();
  SmallVector<int64_t> dims(op.getDims());
  // All elements of a reshaped tensor are all elements of the tensor.
  auto isWhole = [&] { return static_cast<int64_t>(dims.size()) == tensorType(x).getRank(); };
  while (isWhole() && kindOf(x) == Kind::Mixed && x.getDefiningOp<ReshapeOp>()) {
    x = x.getDefiningOp<ReshapeOp>().getX();
    dims = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(x).getRank()));
  }
  if (kindOf(x) != Kind::Rows || !llvm::is_contained(dims, 0))
    return {};
  OpBuilder builder(op);
  Value kept = SelectOp::create(builder, op.getLoc(),
                                isValid(builder, op.getLoc(), tensorType(x).getShape()), x,
                                splat(builder, op.getLoc(), tensorType(x), 0));
  return ReduceSumOp::create(builder, op.getLoc(), kept, dims);
}

//===- Rows -----------------------------------------------------------------------------------===//

Value RowMask::validRows() {
  if (!valid) {
    OpBuilder builder = OpBuilder::atBlockBegin(&program);
    valid = readValidRows(builder);
  }
  return valid;
}

/// i1 of a shape: row < valid_rows.
Value RowMask::isValid(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape) {
  Value bound = validRows();
  auto type = RankedTensorType::get({batch}, builder.getI64Type());
  Value row = IotaOp::create(builder, loc, type, 0);
  Value bounds = BroadcastOp::create(builder, loc, type, bound, ArrayRef<int64_t>{});
  Value isBelow = CompareOp::create(builder, loc, Comparison::LT, row, bounds);
  auto maskType = RankedTensorType::get(shape, builder.getI1Type());
  return BroadcastOp::create(builder, loc, maskType, isBelow, ArrayRef<int64_t>{0});
}

/// value / batch * valid_rows: the valid rows' part of a value that belongs to all rows.
Value RowMask::shareOfValid(Value value) {
  Value rows = validRows();
  Location loc = value.getLoc();
  auto type = tensorType(value);
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Value perRow =
      DivOp::create(builder, loc, value, splat(builder, loc, type, static_cast<double>(batch)));
  auto spread = [&](Value scalar) -> Value {
    auto spreadType = type.clone(tensorType(scalar).getElementType());
    return type.getRank() == 0
               ? scalar
               : BroadcastOp::create(builder, loc, spreadType, scalar, ArrayRef<int64_t>{});
  };
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value count = spread(CastOp::create(builder, loc, scalar, rows));
  Value share = MulOp::create(builder, loc, count, perRow);
  if (kindOf(value) == Kind::Constant)
    return share;
  // Without a valid row the value may be anything.
  Value zero = splat(builder, loc, tensorType(rows), 0);
  Value any = spread(CompareOp::create(builder, loc, Comparison::GT, rows, zero));
  return SelectOp::create(builder, loc, any, share, splat(builder, loc, type, 0));
}
