// Writes the layout solver's plan into the IR: types of variables, then each program in order, so
// that operands have their final types when their users are reached.

#include "dialects/NN/Elementwise.h"
#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/planning/LayoutSolver.h"
#include "passes/schedule/LegalizeKernels.h"
#include "passes/schedule/MergeGroups.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {

/// Rewrites one program.
class LayoutWriter {
public:
  explicit LayoutWriter(const LayoutPlan &plan) : plan(plan) {}

  void write(nn::ProgramOp program) {
    // Reorders and copies that are inserted on the way have their types already.
    for (Operation &op : llvm::make_early_inc_range(program.getBody().front())) {
      for (OpOperand &operand : op.getOpOperands())
        if (auto needed = plan.operands.find(&operand); needed != plan.operands.end())
          operand.set(inLayout(operand.get(), needed->second, &op));
      for (OpResult result : op.getResults())
        if (auto layout = plan.values.find(result); layout != plan.values.end())
          result.setType(nn::withLayout(nn::tensorType(result), layout->second));
    }
    eraseUnused(program);
  }

private:
  /// The value in another layout, for `user` and those behind it.
  Value inLayout(Value value, const rt::Layout &layout, Operation *user) {
    RankedTensorType type = nn::withLayout(nn::tensorType(value), layout);
    if (value.getType() == type)
      return value;
    Value &copy = copies[{value, type}];
    if (copy)
      return dueFor(user, copy);
    nn::RoleStamp stamp(nn::roleOf(user));
    OpBuilder builder(user->getContext(), &stamp);
    builder.setInsertionPoint(user);
    if (!plan.flexible.contains(value) && !isMadeFromReordered(value))
      return copy = nn::ReorderOp::create(builder, user->getLoc(), type, wideSource(value, layout));
    // Making the operands may grow the map under `copy`.
    Operation *producer = value.getDefiningOp();
    SmallVector<Value> operands(producer->getOperands());
    if (producer->hasTrait<nn::Elementwise>())
      for (Value &operand : MutableArrayRef(operands).take_front(nn::fullOperands(producer).size()))
        operand = inLayout(operand, layout, user);
    Operation *clone = builder.clone(*producer);
    clone->setOperands(operands);
    clone->getResult(0).setType(type);
    nn::Role role = nn::roleOf(producer);
    role.phase = std::max(role.phase, nn::phaseOf(user));
    nn::setRole(clone, role);
    return copies[{value, type}] = clone->getResult(0);
  }

  /// A copy that exists already, made for another op ahead of this one.
  static Value dueFor(Operation *user, Value copy) {
    nn::Role role = nn::roleOf(copy.getDefiningOp());
    role.phase = std::min(role.phase, nn::phaseOf(user));
    nn::setRole(copy.getDefiningOp(), role);
    return copy;
  }

  /// The input that a cast narrows, if all who read the cast want this layout: one pass narrows and
  /// moves then. Else the value itself. What kernels write is narrowed where it is computed.
  Value wideSource(Value value, const rt::Layout &layout) const {
    auto cast = value.getDefiningOp<nn::CastOp>();
    bool narrowsInput = cast && isa<BlockArgument>(cast.getX()) &&
                        nn::tensorType(cast.getX()).getElementType().isF32() &&
                        isa<FloatType>(nn::tensorType(value).getElementType()) &&
                        !isMadeFromReordered(value);
    bool isAlone = llvm::all_of(value.getUses(), [&](OpOperand &use) {
      auto needed = plan.operands.find(&use);
      return needed != plan.operands.end() && needed->second == layout;
    });
    return narrowsInput && isAlone ? cast.getX() : value;
  }

  void eraseUnused(nn::ProgramOp program) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  const LayoutPlan &plan;
  llvm::DenseMap<std::pair<Value, Type>, Value> copies;
};

/// The reads of each variable in all programs.
using Reads = llvm::StringMap<SmallVector<nn::ReadOp>>;

Reads readsOf(nn::ModelOp model) {
  Reads reads;
  for (auto program : model.getBody().getOps<nn::ProgramOp>())
    for (auto read : program.getBody().getOps<nn::ReadOp>())
      reads[read.getVariable()].push_back(read);
  return reads;
}

/// Where every kernel has a parameter's copy in 16 bits reordered first, the reorders narrow the
/// parameter itself and there is no copy: they read as much more as the update writes less.
void dropReorderedCopies(nn::ModelOp model) {
  SymbolTable symbols(model);
  Reads reads = readsOf(model);
  llvm::SmallDenseSet<StringAttr> dropped;
  for (auto copy : llvm::make_early_inc_range(model.getBody().getOps<nn::VariableOp>())) {
    ArrayRef<nn::ReadOp> uses = reads[copy.getSymName()];
    bool isReordered = llvm::all_of(uses, [](nn::ReadOp read) {
      return llvm::all_of(read->getUsers(), llvm::IsaPred<nn::ReorderOp>);
    });
    if (copy.getKind() != nn::VariableKind::Copy || !isReordered)
      continue;
    auto parameter = symbols.lookup<nn::VariableOp>(*copy.getOwner());
    for (nn::ReadOp read : uses) {
      read.setVariable(parameter.getSymName());
      read.getValue().setType(cast<RankedTensorType>(parameter.getType()));
    }
    dropped.insert(copy.getSymNameAttr());
    copy.erase();
  }
  for (auto program : model.getBody().getOps<nn::ProgramOp>())
    for (auto assign : llvm::make_early_inc_range(program.getBody().getOps<nn::AssignOp>()))
      if (dropped.contains(assign.getVariableAttr().getAttr())) {
        Operation *rounded = assign.getValue().getDefiningOp();
        assign.erase();
        if (isOpTriviallyDead(rounded))
          rounded->erase();
      }
}

/// Fails where the target multiplies nothing of the type that activations have.
LogicalResult checkPrecision(nn::ModelOp model, const rt::PlannerTarget &target) {
  auto precision = model->getAttrOfType<StringAttr>("precision");
  bool isF16 = precision && precision.getValue() == "f16";
  bool isNarrow = isF16 || (precision && precision.getValue() == "bf16");
  if (!isNarrow || target.multiplies(isF16 ? rt::DType::F16 : rt::DType::BF16))
    return success();
  if (isF16)
    return model.emitError("precision f16 needs a GPU, which ")
           << target.name << " is not: compile with --precision=bf16 or f32, or for "
           << "--target=cuda:a100|h100|h200|b200|rtx4090|rtx5090";
  return model.emitError("precision bf16 needs a processor with bf16 instructions, which ")
         << target.name << " has not: compile with --precision=f32"
         << (target.bf16Targets.empty() ? "" : ", or for ")
         << llvm::join(target.bf16Targets, " or ");
}

struct AssignLayoutsPass : dlc::impl::AssignLayoutsBase<AssignLayoutsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Train)))
      return signalPassFailure();
    nn::ModelOp model = getOperation();
    std::string reason;
    std::shared_ptr<rt::KernelPlanner> planner =
        openPlanner(&getContext(), target, threads, reason);
    if (!planner || (math != "fast" && math != "strict")) {
      model.emitError(planner ? "math is '" + math + "', expected strict or fast" : reason);
      return signalPassFailure();
    }
    if (failed(checkPrecision(model, planner->target())))
      return signalPassFailure();
    // Later passes need the same table for their prices.
    PlanningTarget planned{PlanningTarget::nameOf(planner->target()), threads,
                           math == "strict" ? rt::Math::Strict : rt::Math::Fast};
    TargetKernels kernels(std::move(planner), planned);
    mergeGroups(model, kernels);
    legalizeKernels(model, kernels);
    FailureOr<LayoutSolution> solution = LayoutSolver(model, kernels).solve();
    if (failed(solution))
      return signalPassFailure();
    write(model, solution->plan);
    dropReorderedCopies(model);
    planned.writeTo(model);
    model.setStage("schedule");
    ArrayRef<LayoutFamily> families = kernels.description().families;
    writeCosts(model, *solution, families);
    explain(model, *solution, families);
  }

  void write(nn::ModelOp model, const LayoutPlan &plan) {
    for (auto variable : model.getBody().getOps<nn::VariableOp>())
      if (auto layout = plan.variables.find(variable.getSymName()); layout != plan.variables.end())
        variable.setType(
            nn::withLayout(cast<RankedTensorType>(variable.getType()), layout->second));
    for (auto program : model.getBody().getOps<nn::ProgramOp>())
      LayoutWriter(plan).write(program);
  }

  /// The attribute `layouts`, for the report: what was chosen, then what else there was, by cost.
  void writeCosts(nn::ModelOp model, const LayoutSolution &solution,
                  ArrayRef<LayoutFamily> families) {
    Builder builder(&getContext());
    SmallVector<std::pair<double, Attribute>> costs;
    for (auto [family, alone] : llvm::zip(families, solution.nanoseconds)) {
      bool isChosen = family == solution.family;
      double cost = isChosen ? solution.plan.nanoseconds : alone;
      auto exceptions = static_cast<int64_t>(isChosen ? solution.flips.size() : 0);
      costs.emplace_back(
          isChosen ? 0 : cost,
          builder.getDictionaryAttr(
              {builder.getNamedAttr("exceptions", builder.getI64IntegerAttr(exceptions)),
               builder.getNamedAttr("family", builder.getStringAttr(nameOf(family))),
               builder.getNamedAttr("nanoseconds",
                                    builder.getI64IntegerAttr(static_cast<int64_t>(cost)))}));
    }
    llvm::sort(costs, llvm::less_first());
    model->setAttr("layouts",
                   builder.getArrayAttr(llvm::to_vector(llvm::make_second_range(costs))));
  }

  void explain(nn::ModelOp model, const LayoutSolution &solution, ArrayRef<LayoutFamily> families) {
    std::string text =
        ("activations are " + nameOf(solution.family) + "; kernels and reorders of a step:").str();
    StringRef comma = "";
    for (auto [family, alone] : llvm::zip(families, solution.nanoseconds)) {
      text += llvm::formatv("{0} {1} {2:f3} ms", comma, nameOf(family), alone * 1e-6);
      comma = ",";
    }
    remark::analysis(model.getLoc(), remark::RemarkOpts::name("layouts").category("dlc-layouts"))
        << text;
  }
};

} // namespace
