// Layouts other than row-major arise at library ops and spread through elementwise ops, pooling and
// data movement; everything that wants logical order gets row-major. A value that is made from
// scalars or small tensors (constants, broadcasts, iota, and elementwise ops on those) is flexible:
// it is made anew in the layout that a user wants.

#include "passes/FamilyWalk.h"

#include "dialects/Comm/Comm.h"
#include "dialects/NN/Elementwise.h"
#include "passes/KernelRequests.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;
using rt::Layout;

static size_t rankOf(Value value) { return static_cast<size_t>(nn::tensorType(value).getRank()); }

static int64_t bytesIn(Value value, const Layout &layout) {
  return nn::physicalBytes(nn::tensorType(value), layout);
}

/// Position of a convolution's weight among operands and results, -1 for other ops.
static int weightPosition(Operation *op) {
  if (isa<nn::ConvOp, nn::ConvTransposeOp, nn::ConvGradDataOp>(op))
    return 1;
  return isa<nn::ConvGradFilterOp>(op) ? 2 : -1;
}

static Value positional(Operation *op, size_t position) {
  size_t operands = op->getNumOperands();
  return position < operands ? op->getOperand(position) : op->getResult(position - operands);
}

Layout FamilyWalk::preferred(size_t rank) const {
  return familyLayout(family, rank, context.planner.target().vectorBits / 32);
}

/// The variable that a value holds, as it is or rounded to a type that kernels read.
static nn::ReadOp variableBehind(Value value) {
  while (auto cast = value.getDefiningOp<nn::CastOp>())
    value = cast.getX();
  return value.getDefiningOp<nn::ReadOp>();
}

/// The parameter that a variable is, or is a copy of.
StringRef FamilyWalk::parameterOf(nn::ReadOp read) const {
  auto copied = context.copies.find(read.getVariable());
  return copied == context.copies.end() ? read.getVariable() : copied->second;
}

bool FamilyWalk::isFree(Value value) const { return !context.variables && variableBehind(value); }

bool FamilyWalk::run(nn::ProgramOp program) {
  return llvm::all_of(program.getBody().front(), [&](Operation &op) { return visit(&op); });
}

bool FamilyWalk::visit(Operation *op) {
  auto flipped = context.flips.find(op);
  family = flipped == context.flips.end() ? context.family : flipped->second;
  if (auto read = dyn_cast<nn::ReadOp>(op))
    visitRead(read);
  else if (isLibraryOp(op))
    return visitLibrary(op);
  else if (op->hasTrait<nn::Elementwise>())
    visitElementwise(op);
  else if (isa<nn::ConcatOp, nn::SliceOp, nn::PadOp>(op))
    visitMovement(op);
  else if (isa<comm::AllReduceOp>(op))
    visitCollective(op);
  else if (isa<nn::ReduceSumOp, nn::ReduceMaxOp>(op))
    plan.nanoseconds += passCost(op->getOperand(0), plan.layoutOf(op->getOperand(0)), 1);
  else if (auto assign = dyn_cast<nn::AssignOp>(op)) {
    if (context.variables)
      use(op->getOpOperand(0), context.variables->contains(assign.getVariable())
                                   ? context.variables->lookup(assign.getVariable())
                                   : Layout::rowMajor(rankOf(assign.getValue())));
  } else {
    requireRowMajor(op);
    bool splat = isa<nn::ConstantOp>(op) && nn::splatValue(op->getResult(0));
    if (splat || isa<nn::BroadcastOp, nn::IotaOp>(op))
      plan.flexible.insert(op->getResult(0));
  }
  return true;
}

//===- Costs ----------------------------------------------------------------------------------===//

double FamilyWalk::reorderCost(Value value, const Layout &to) {
  const Layout &from = plan.layoutOf(value);
  if (from == to || isFree(value) || plan.flexible.contains(value))
    return 0;
  if (isRecomputed(value)) {
    double cost = 0;
    for (Value operand : nn::fullOperands(value.getDefiningOp()))
      cost += reorderCost(operand, to);
    return cost;
  }
  if (auto made = paid.find(value); made != paid.end() && llvm::is_contained(made->second, to))
    return 0;
  return context.planner.generatedCost(
      static_cast<uint64_t>(bytesIn(value, from) + bytesIn(value, to)), 0);
}

/// Notes the reorders that bring a value into a layout.
void FamilyWalk::pay(Value value, const Layout &to) {
  if (plan.layoutOf(value) == to || plan.flexible.contains(value))
    return;
  if (isRecomputed(value))
    for (Value operand : nn::fullOperands(value.getDefiningOp()))
      pay(operand, to);
  else
    paid[value].push_back(to);
}

/// Time to move `tensors` tensors of this type, without a kernel's overhead: passes are fused.
double FamilyWalk::passCost(Value value, const Layout &layout, size_t tensors) {
  auto bytes = static_cast<uint64_t>(bytesIn(value, layout)) * tensors;
  return context.planner.generatedCost(bytes, 0) - context.planner.generatedCost(0, 0);
}

/// Of a library op: its kernel, or its part of a generated one.
double FamilyWalk::kernelCost(Operation *op, const rt::KernelCandidate &candidate) {
  if (!isa<nn::MaxPoolOp, nn::MaxPoolGradOp>(op) || isLibraryPooling(op, candidate.layouts))
    return candidate.nanoseconds;
  double cost = 0;
  for (size_t i = 0; i < op->getNumOperands() + op->getNumResults(); ++i)
    cost += passCost(positional(op, i), candidate.layouts[i], 1);
  return cost;
}

/// What leaving the family costs those who come after. Nobody is urged into a layout that is mostly
/// padding.
double FamilyWalk::resultPenalty(Value result, const Layout &layout) {
  if (rankOf(result) < 3)
    return 0;
  Layout wanted = preferred(rankOf(result));
  if (StringRef name = context.filterGradients.lookup(result); !name.empty()) {
    if (!context.variables)
      return 0;
    wanted = context.variables->lookup(name);
  } else if (bytesIn(result, wanted) > 2 * bytesIn(result, Layout::rowMajor(rankOf(result)))) {
    return 0;
  }
  if (layout == wanted)
    return 0;
  return context.planner.generatedCost(
      static_cast<uint64_t>(bytesIn(result, layout) + bytesIn(result, wanted)), 0);
}

//===- Decisions ------------------------------------------------------------------------------===//

void FamilyWalk::use(OpOperand &operand, const Layout &layout) {
  Value value = operand.get();
  if (isFree(value))
    return;
  plan.nanoseconds += reorderCost(value, layout);
  if (plan.layoutOf(value) == layout)
    return;
  plan.operands[&operand] = layout;
  pay(value, layout);
}

void FamilyWalk::define(Value value, Layout layout) {
  if (!layout.isRowMajor())
    plan.values[value] = std::move(layout);
}

void FamilyWalk::requireRowMajor(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (isa<RankedTensorType>(operand.get().getType()))
      use(operand, Layout::rowMajor(rankOf(operand.get())));
}

void FamilyWalk::visitRead(nn::ReadOp op) {
  if (context.variables && context.variables->contains(op.getVariable()))
    define(op.getValue(), context.variables->lookup(op.getVariable()));
}

/// Questions to the planner, each with some layouts fixed: the family's; what the operands have;
/// the same with the weight as it is; nothing.
std::vector<rt::KernelRequest> FamilyWalk::queries(Operation *op) {
  rt::KernelRequest request = *kernelRequest(op, context.math, context.threads);
  int weight = weightPosition(op);
  size_t operands = op->getNumOperands();
  enum class Fix { Family, FamilyAndWeight, Current, Nothing };
  std::vector<rt::KernelRequest> result;
  for (Fix fix : {Fix::Family, Fix::FamilyAndWeight, Fix::Current, Fix::Nothing}) {
    rt::KernelRequest query = request;
    for (size_t i = 0; i < query.operands.size(); ++i) {
      Value value = positional(op, i);
      bool isOperand = i < operands;
      std::optional<Layout> &layout = query.operands[i].layout;
      layout.reset();
      bool settled = isOperand && !isFree(value) && !plan.flexible.contains(value);
      if (rankOf(value) < 3)
        layout = Layout::rowMajor(rankOf(value));
      else if (static_cast<int>(i) == weight && fix == Fix::FamilyAndWeight && settled)
        layout = plan.layoutOf(value);
      else if (static_cast<int>(i) == weight)
        continue;
      else if (fix == Fix::Family || fix == Fix::FamilyAndWeight)
        layout = preferred(rankOf(value));
      else if (fix == Fix::Current && settled)
        layout = plan.layoutOf(value);
    }
    result.push_back(std::move(query));
  }
  return result;
}

double FamilyWalk::adaptationCost(Operation *op, const std::vector<Layout> &layouts) {
  double cost = 0;
  size_t operands = op->getNumOperands();
  for (size_t i = 0; i < layouts.size(); ++i)
    cost += i < operands ? reorderCost(op->getOperand(i), layouts[i])
                         : resultPenalty(op->getResult(i - operands), layouts[i]);
  return cost;
}

bool FamilyWalk::visitLibrary(Operation *op) {
  std::optional<rt::KernelCandidate> best;
  double bestCost = std::numeric_limits<double>::infinity();
  for (const rt::KernelRequest &query : queries(op)) {
    rt::CandidateList list = context.planner.candidates(query);
    if (list.candidates.empty())
      reason = list.reason;
    for (rt::KernelCandidate &candidate : list.candidates) {
      double cost = kernelCost(op, candidate) + adaptationCost(op, candidate.layouts);
      if (cost >= bestCost)
        continue;
      bestCost = cost;
      best = std::move(candidate);
    }
  }
  if (!best) {
    refused = op;
    return false;
  }
  plan.nanoseconds += kernelCost(op, *best);
  size_t operands = op->getNumOperands();
  for (size_t i = 0; i < operands; ++i)
    use(op->getOpOperand(static_cast<unsigned>(i)), best->layouts[i]);
  for (size_t i = operands; i < best->layouts.size(); ++i)
    define(op->getResult(static_cast<unsigned>(i - operands)), best->layouts[i]);
  if (int weight = weightPosition(op); weight >= 0) {
    auto position = static_cast<size_t>(weight);
    if (nn::ReadOp read = variableBehind(positional(op, position)))
      wishes.try_emplace(parameterOf(read), best->layouts[position]);
    else if (StringRef name = context.filterGradients.lookup(positional(op, position));
             !name.empty())
      wishes[name] = best->layouts[position];
  }
  return true;
}

/// The layout of one of the operands into which the others are cheapest to bring; the family's in
/// a tie. Row-major if all are flexible.
Layout FamilyWalk::commonLayout(Operation *op, ValueRange operands,
                                llvm::function_ref<bool(const Layout &)> allowed) {
  size_t rank = rankOf(op->getResult(0));
  Layout best = Layout::rowMajor(rank);
  double bestCost = std::numeric_limits<double>::infinity();
  SmallVector<Layout> choices{preferred(rank)};
  if (!choices.front().isRowMajor())
    choices.push_back(Layout::rowMajor(rank));
  for (Value operand : operands)
    if (!llvm::is_contained(choices, plan.layoutOf(operand)))
      choices.push_back(plan.layoutOf(operand));
  for (const Layout &layout : choices) {
    bool present = llvm::any_of(operands, [&](Value operand) {
      return !plan.flexible.contains(operand) && !isFree(operand) &&
             plan.layoutOf(operand) == layout;
    });
    if (!allowed(layout) || (!present && !layout.isRowMajor()))
      continue;
    double cost = passCost(op->getResult(0), layout, operands.size() + 1) +
                  resultPenalty(op->getResult(0), layout);
    for (Value operand : operands)
      cost += reorderCost(operand, layout);
    if (cost < bestCost) {
      bestCost = cost;
      best = layout;
    }
  }
  plan.nanoseconds += passCost(op->getResult(0), best, operands.size() + 1);
  return best;
}

void FamilyWalk::visitElementwise(Operation *op) {
  ValueRange values = nn::fullOperands(op);
  if (llvm::all_of(values, [&](Value value) { return plan.flexible.contains(value); })) {
    plan.flexible.insert(op->getResult(0));
    return;
  }
  Layout layout = commonLayout(op, values, [](const Layout &) { return true; });
  for (OpOperand &operand : op->getOpOperands().take_front(values.size()))
    use(operand, layout);
  define(op->getResult(0), layout);
}

void FamilyWalk::visitMovement(Operation *op) {
  Layout layout =
      commonLayout(op, op->getOperands(), [&](const Layout &it) { return canMoveIn(op, it); });
  for (OpOperand &operand : op->getOpOperands())
    use(operand, layout);
  define(op->getResult(0), layout);
}

void FamilyWalk::visitCollective(Operation *op) {
  for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults()))
    define(result, plan.layoutOf(operand));
}
