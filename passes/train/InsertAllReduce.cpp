// dlc-insert-all-reduce: inserts the collectives of a training step, of four kinds.
//
// The loss is a sum over ranks divided by a count over ranks. With S_r, C_r a rank's own, the
// wanted gradient is sum_r dS_r / sum_r C_r = (1/N) sum_r (dS_r / C), C = mean over ranks of C_r:
// the backward pass divides by C (C_r itself where it is a constant), gradients are summed, and the
// optimizer multiplies by 1/N.

#include "dialects/NN/RankMean.h"
#include "dialects/NN/Role.h"
#include "dialects/NN/Scalars.h"
#include "passes/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_INSERTALLREDUCE
#include "passes/Passes.h.inc"
} // namespace dlc

/// `role` says what is reduced.
static Value reduceOverRanks(OpBuilder &builder, Location loc, Value value, Role role,
                             TypeAttr wire = {}) {
  auto sum = comm::AllReduceOp::create(builder, loc, value, wire, ArrayAttr());
  if (role.phase == Phase::Update) // the sum itself need not wait for the update
    role.phase = Phase::Backward;
  setRole(sum, role);
  return sum.getResult(0);
}

/// all_reduce(value) * inverse_world, right behind the value. `role` is that of the product.
static Value meanOverRanks(ModelOp model, Value value, const Role &role) {
  OpBuilder builder(model.getContext());
  builder.setInsertionPointAfterValue(value);
  Location loc = value.getLoc();
  Value sum = reduceOverRanks(builder, loc, value, role);
  RoleStamp stamp(role);
  builder.setListener(&stamp);
  Value scale = readScalar(builder, loc, model, "inverse_world");
  if (scale.getType() != value.getType())
    scale = BroadcastOp::create(builder, loc, value.getType(), scale, ArrayRef<int64_t>{});
  return MulOp::create(builder, loc, sum, scale);
}

//===- Counts ---------------------------------------------------------------------------------===//

/// dlc-differentiate starts from weight / count.
static bool isSeed(OpOperand &use) {
  auto division = dyn_cast<DivOp>(use.getOwner());
  return division && use.getOperandNumber() == 1 && splatValue(division.getA()) &&
         phaseOf(division) == Phase::Backward;
}

static LogicalResult averageCounts(ModelOp model, ProgramOp train) {
  llvm::SmallDenseSet<Value> done;
  for (auto loss : train.getBody().getOps<LossOp>()) {
    Value count = loss.getCount();
    if (splatValue(count) || !done.insert(count).second)
      continue;
    SmallVector<OpOperand *> seeds;
    for (OpOperand &use : count.getUses())
      if (isSeed(use))
        seeds.push_back(&use);
    if (seeds.empty())
      return loss.emitOpError("has a count that depends on data, but no gradient is divided by it");
    Value mean = meanOverRanks(model, count, {Phase::Backward, LayerKind::Loss});
    for (OpOperand *seed : seeds)
      seed->set(mean);
  }
  return success();
}

//===- Gradients ------------------------------------------------------------------------------===//

static void reduceGradients(ProgramOp train, TypeAttr wire) {
  for (auto gradient : train.getBody().getOps<GradientOp>()) {
    OpBuilder builder(gradient);
    gradient.getValueMutable().assign(
        reduceOverRanks(builder, gradient.getLoc(), gradient.getValue(),
                        {Phase::Backward, LayerKind::Other, gradient.getVariableAttr()}, wire));
  }
}

//===- Synchronised norms ---------------------------------------------------------------------===//

template <typename Norm> static void synchronize(ModelOp model, ProgramOp train) {
  for (Norm norm : llvm::make_early_inc_range(train.getBody().getOps<Norm>())) {
    if (!norm.getSync())
      continue;
    Role role{phaseOf(norm), roleOf(norm).kind}; // what ranks sum up here is of no one variable
    OpBuilder builder(norm);
    RoleStamp stamp(role);
    builder.setListener(&stamp);
    norm->replaceAllUsesWith(decomposeOverRanks(
        builder, norm, [&](Value value) { return meanOverRanks(model, value, role); }));
    norm.erase();
  }
}

//===- Batch statistics -----------------------------------------------------------------------===//

/// Mean or variance of a training batch_norm, or one scaled by a constant: what differs by layer is
/// then done before the bucket, and all running statistics are updated alike.
static bool isBatchStatistic(Value value) {
  for (auto product = value.getDefiningOp<MulOp>(); product && splatValue(product.getB());
       product = value.getDefiningOp<MulOp>())
    value = product.getA();
  auto norm = value.getDefiningOp<BatchNormOp>();
  return norm && norm.getTraining() && value != norm.getY();
}

namespace {
/// Gives values computed from the mean over ranks in place of a rank's batch statistics. The ops
/// that compute them are copied: their other users, above all losses and the gradient, keep the
/// rank's.
class StatisticsAverager {
public:
  explicit StatisticsAverager(ModelOp model) : model(model) {}

  void average(AssignOp assign) {
    role = {Phase::Update, LayerKind::Other, assign.getVariableAttr()};
    assign.getValueMutable().assign(averaged(assign.getValue()));
  }

  /// Erases what was copied and has no other user.
  void eraseUnused(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (twins.contains(&op) && isOpTriviallyDead(&op))
        op.erase();
  }

private:
  Value averaged(Value value) {
    if (isBatchStatistic(value)) {
      Value &mean = means[value];
      if (!mean)
        mean = meanOverRanks(model, value, role);
      return mean;
    }
    Operation *op = value.getDefiningOp();
    if (!op || isa<comm::AllReduceOp, BatchNormOp>(op))
      return value;
    if (!twins.contains(op)) {
      Operation *twin = makeTwin(op);
      twins[op] = twin;
    }
    return twins.lookup(op)->getResult(cast<OpResult>(value).getResultNumber());
  }

  /// The op itself if it depends on no statistic.
  Operation *makeTwin(Operation *op) {
    SmallVector<Value> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value operand) { return averaged(operand); });
    if (llvm::equal(operands, op->getOperands()))
      return op;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Operation *twin = builder.clone(*op);
    twin->setOperands(operands);
    return twin;
  }

  ModelOp model;
  Role role; // of what is computed for the present assignment
  llvm::DenseMap<Value, Value> means;
  llvm::DenseMap<Operation *, Operation *> twins;
};
} // namespace

static void averageStatistics(ModelOp model, ProgramOp train) {
  StatisticsAverager averager(model);
  for (auto assign : train.getBody().getOps<AssignOp>())
    averager.average(assign);
  averager.eraseUnused(train.getBody().front());
}

/// Ops that only assignments need run once a step, when the ranks have met.
static void markUpdates(ProgramOp train) {
  for (Operation &op : llvm::reverse(train.getBody().front())) {
    if (auto assign = dyn_cast<AssignOp>(op))
      setRole(&op, {Phase::Update, LayerKind::Other, assign.getVariableAttr()});
    if (op.use_empty() || isa<ReadOp, ConstantOp, comm::AllReduceOp>(op))
      continue;
    if (Role role = mergedRole(llvm::to_vector(op.getUsers())); role.phase == Phase::Update)
      setRole(&op, role);
  }
}

//===- Pass -----------------------------------------------------------------------------------===//

namespace {
class InsertAllReducePass : public dlc::impl::InsertAllReduceBase<InsertAllReducePass> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Train)))
      return signalPassFailure();
    ModelOp model = getOperation();
    ProgramOp train = trainProgram(model);
    if (!train)
      return;
    if (wire != "f32" && wire != "bf16") {
      model.emitError("wire type is '") << wire << "', expected f32 or bf16";
      return signalPassFailure();
    }
    if (failed(averageCounts(model, train)))
      return signalPassFailure();
    bool rounded = wire == "bf16";
    synchronize<BatchNormOp>(model, train);
    synchronize<BatchNormGradOp>(model, train);
    reduceGradients(train,
                    rounded ? TypeAttr::get(BFloat16Type::get(model.getContext())) : TypeAttr());
    averageStatistics(model, train);
    markUpdates(train);
    model->setAttr("wire", StringAttr::get(model.getContext(), wire));
  }
};
} // namespace
