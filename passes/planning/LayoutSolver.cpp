// Each family is walked twice through the training program. In the first walk weights are free: it
// learns which layouts the filter gradients want, which become those of parameter, slots and
// gradient. In the second walk these are fixed. The other programs conform.

#include "passes/planning/LayoutSolver.h"

#include "dialects/NN/Elementwise.h"
#include "dialects/NN/Role.h"
#include "passes/planning/FamilyWalk.h"

using namespace mlir;
using namespace dlc;
using rt::Layout;

// Smaller reorders are not worth a trial, smaller gains not worth an exception; the number of
// trials bounds the time to compile.
static constexpr int64_t leastReorder = 64 * 1024;
static constexpr double leastGain = 1e-3;
static constexpr unsigned mostTrials = 64;

StringRef dlc::nameOf(LayoutFamily family) {
  switch (family) {
  case LayoutFamily::Plain:
    return "plain";
  case LayoutFamily::ChannelsLast:
    return "channels last";
  case LayoutFamily::Blocked:
    return "blocked";
  }
  return {};
}

bool dlc::isMadeFromReordered(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto cast = dyn_cast_or_null<nn::CastOp>(op)) {
    Type from = nn::tensorType(cast.getX()).getElementType();
    // What files store is widened where it lies: nothing else takes its types.
    return !from.isUnsignedInteger() &&
           nn::elementBytes(from) <= nn::elementBytes(nn::tensorType(value).getElementType());
  }
  return op && op->hasTrait<nn::Elementwise>() && nn::tensorType(value).getElementType().isF64();
}

const Layout &LayoutPlan::layoutOf(Value value) const {
  static const auto rowMajor = [] {
    std::array<Layout, nn::maxRank + 1> byRank;
    for (size_t rank = 0; rank < byRank.size(); ++rank)
      byRank[rank] = Layout::rowMajor(rank);
    return byRank;
  }();
  auto entry = values.find(value);
  return entry == values.end() ? rowMajor[static_cast<size_t>(nn::tensorType(value).getRank())]
                               : entry->second;
}

void LayoutSolver::findFilterGradients(nn::ProgramOp program) {
  SymbolTable symbols(model);
  for (auto gradient : program.getBody().getOps<nn::ConvGradFilterOp>()) {
    FlatSymbolRefAttr parameter = nn::roleOf(gradient).variable;
    auto variable =
        parameter ? symbols.lookup<nn::VariableOp>(parameter.getAttr()) : nn::VariableOp();
    // In 16 bits it is widened behind the kernel.
    if (variable && cast<RankedTensorType>(variable.getType()).getShape() ==
                        nn::tensorType(gradient.getDw()).getShape())
      filterGradients[gradient.getDw()] = variable.getSymName();
  }
}

FamilyWalkContext LayoutSolver::contextOf(const LayoutSolution &solution) const {
  return {kernels, solution.family, solution.flips, filterGradients, copies};
}

static FamilyWalkContext withVariables(FamilyWalkContext context,
                                       const llvm::StringMap<Layout> &variables) {
  context.variables = &variables;
  return context;
}

namespace {
/// The two walks over a program: with free weights, then with those that the first one wishes.
class ProgramWalk {
public:
  ProgramWalk(const FamilyWalkContext &context, nn::ProgramOp program, LayoutPlan &plan)
      : program(program), plan(plan), free(context, program, draft),
        fixed(withVariables(context, plan.variables), program, plan) {}

  LogicalResult run();
  /// Follows a change of an op's family, in a program that decides alone about the variables.
  void update(Operation *flipped);
  double nanoseconds() const { return fixed.nanoseconds(); }

private:
  void layOutVariables();

  nn::ProgramOp program;
  LayoutPlan draft, &plan;
  FamilyWalk free, fixed;
};
} // namespace

/// Emits a diagnostic if an op has no kernel: it has none in all families or in none of them.
LogicalResult ProgramWalk::run() {
  for (FamilyWalk *walk : {&free, &fixed}) {
    layOutVariables();
    if (!walk->run())
      return walk->refused->emitOpError("has no kernel on this target in any layout, of ")
             << walk->refused->getOperandTypes() << ": " << walk->reason;
  }
  return success();
}

void ProgramWalk::update(Operation *flipped) {
  free.update(flipped, {});
  llvm::StringMap<Layout> former = std::exchange(plan.variables, {});
  layOutVariables();
  fixed.update(flipped, former);
}

/// Variables without a layout get the one that is wished for them, slots that of their owner.
void ProgramWalk::layOutVariables() {
  llvm::StringMap<Layout> &layouts = plan.variables;
  for (auto &wish : free.wishes())
    layouts.try_emplace(wish.getKey(), wish.getValue());
  auto model = program->getParentOfType<nn::ModelOp>();
  for (auto variable : model.getBody().getOps<nn::VariableOp>())
    if (auto owner = layouts.find(variable.getOwner().value_or(StringRef()));
        owner != layouts.end() && cast<RankedTensorType>(variable.getType()).getRank() ==
                                      static_cast<int64_t>(owner->second.rank()))
      layouts.try_emplace(variable.getSymName(), Layout(owner->second));
}

/// The op with a request that a value comes from through elementwise ops, or null.
static Operation *kernelBehind(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && op->hasTrait<nn::Elementwise>() && !nn::fullOperands(op).empty())
    op = nn::fullOperands(op).front().getDefiningOp();
  return op && hasRequest(op) ? op : nullptr;
}

/// Ops with a request at either end of a reorder of an activation, in program order.
static SmallVector<Operation *> opsBesideReorders(nn::ProgramOp program, const LayoutPlan &plan) {
  llvm::SmallPtrSet<Operation *, 16> beside;
  for (auto &[operand, layout] : plan.operands) {
    Value value = operand->get();
    if (value.getDefiningOp<nn::ReadOp>() ||
        nn::physicalBytes(nn::tensorType(value)) < leastReorder)
      continue;
    beside.insert(operand->getOwner());
    beside.insert(kernelBehind(value));
  }
  SmallVector<Operation *> ops;
  for (Operation &op : program.getBody().front())
    if (beside.contains(&op) && hasRequest(&op))
      ops.push_back(&op);
  return ops;
}

/// Tries ops in other families until none lowers the sum.
static void improve(LayoutSolution &solution, nn::ProgramOp train, ProgramWalk &walk,
                    ArrayRef<LayoutFamily> families) {
  unsigned trials = 0;
  auto tryFlips = [&](Operation *op) {
    bool improved = false;
    for (LayoutFamily family : families) {
      if (solution.flips.lookup_or(op, solution.family) == family || ++trials > mostTrials)
        continue;
      LayoutFlips former = solution.flips;
      double most = walk.nanoseconds() * (1 - leastGain);
      solution.flips[op] = family;
      walk.update(op);
      if (walk.nanoseconds() <= most) {
        improved = true;
        continue;
      }
      solution.flips = std::move(former);
      walk.update(op);
    }
    return improved;
  };
  for (bool improved = true; improved;) {
    improved = false;
    for (Operation *op : opsBesideReorders(train, solution.plan))
      improved |= tryFlips(op);
  }
}

FailureOr<LayoutSolution> LayoutSolver::solve() {
  if (nn::ProgramOp train = nn::trainProgram(model))
    findFilterGradients(train);
  for (auto variable : model.getBody().getOps<nn::VariableOp>())
    if (variable.getKind() == nn::VariableKind::Copy)
      copies[variable.getSymName()] = *variable.getOwner();
  auto programs = llvm::to_vector(model.getBody().getOps<nn::ProgramOp>());
  if (programs.empty())
    return LayoutSolution();
  // The program that decides comes first, the others conform.
  llvm::sort(programs, [](nn::ProgramOp a, nn::ProgramOp b) {
    auto key = [](nn::ProgramOp it) {
      return std::pair(it.getSymName() != "train", it.getSymName());
    };
    return key(a) < key(b);
  });
  ArrayRef<LayoutFamily> families = kernels.description().families;
  std::vector<LayoutSolution> solutions(families.size());
  std::vector<double> nanoseconds(families.size());
  LayoutSolution *best = nullptr;
  std::unique_ptr<ProgramWalk> bestWalk;
  for (auto [index, family] : llvm::enumerate(families)) {
    LayoutSolution &solution = solutions[index];
    solution.family = family;
    auto walk = std::make_unique<ProgramWalk>(contextOf(solution), programs.front(), solution.plan);
    if (failed(walk->run()))
      return failure();
    nanoseconds[index] = walk->nanoseconds();
    if (best && walk->nanoseconds() >= bestWalk->nanoseconds())
      continue;
    best = &solution;
    bestWalk = std::move(walk);
  }
  if (nn::trainProgram(model))
    improve(*best, programs.front(), *bestWalk, families);
  for (nn::ProgramOp program : llvm::drop_begin(programs))
    if (failed(ProgramWalk(contextOf(*best), program, best->plan).run()))
      return failure();
  best->plan.nanoseconds = bestWalk->nanoseconds();
  best->nanoseconds = std::move(nanoseconds);
  return std::move(*best);
}
