// Layouts other than row-major arise at kernels and spread through elementwise ops, pooling and
// data movement; everything that wants logical order gets row-major. A value that is made from
// scalars or small tensors (constants, broadcasts, iota, and elementwise ops on those) is flexible:
// it is made anew in the layout that a user wants.
//
// A visit depends on the layouts of operands and on which reorders of them earlier ops have paid.
// An operand that is made from reordered ones (isMadeFromReordered) counts by those.

#include "passes/planning/FamilyWalk.h"

#include "dialects/Comm/Comm.h"
#include "dialects/NN/Elementwise.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SetVector.h"

#include <numeric>

using namespace mlir;
using namespace dlc;
using rt::Layout;

static size_t rankOf(Value value) { return static_cast<size_t>(nn::tensorType(value).getRank()); }

static int64_t bytesIn(Value value, const Layout &layout) {
  return nn::physicalBytes(nn::tensorType(value), layout);
}

static Value positional(Operation *op, size_t position) {
  size_t operands = op->getNumOperands();
  return position < operands ? op->getOperand(position) : op->getResult(position - operands);
}

Layout FamilyWalk::preferred(size_t rank) const {
  return rt::layoutIn(family, rank, context.kernels.description().channelBlock);
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

FamilyWalk::FamilyWalk(const FamilyWalkContext &context, nn::ProgramOp program, LayoutPlan &plan)
    : context(context), plan(plan), family(context.family) {
  for (Operation &op : program.getBody().front()) {
    positions[&op] = ops.size();
    ops.push_back(&op);
  }
  costs.resize(ops.size());
  changed.resize(ops.size());
}

bool FamilyWalk::run() {
  return llvm::all_of(llvm::seq(ops.size()), [&](size_t position) { return visit(position); });
}

double FamilyWalk::nanoseconds() const { return std::accumulate(costs.begin(), costs.end(), 0.0); }

llvm::StringMap<Layout> FamilyWalk::wishes() const {
  llvm::StringMap<Layout> result;
  for (Operation *op : ops) {
    auto weight = weights.find(op);
    if (weight == weights.end())
      continue;
    auto &[position, layout] = weight->second;
    Value value = positional(op, position);
    if (nn::ReadOp read = variableBehind(value))
      result.try_emplace(parameterOf(read), layout);
    else if (StringRef name = context.filterGradients.lookup(value); !name.empty())
      result[name] = layout;
  }
  return result;
}

//===- Changes --------------------------------------------------------------------------------===//

void FamilyWalk::update(Operation *flipped, const llvm::StringMap<Layout> &former) {
  changed.set(positions.lookup(flipped));
  if (context.variables && *context.variables != former)
    for (auto [position, op] : llvm::enumerate(ops))
      if (StringRef name = variableOf(op);
          !name.empty() && context.variables->lookup(name) != former.lookup(name))
        changed.set(position);
  for (int position = changed.find_first(); position >= 0; position = changed.find_next(position)) {
    Operation *op = ops[position];
    SmallVector<Layout> before = layoutsAt(op);
    current = position;
    forget(op);
    [[maybe_unused]] bool visited = visit(position);
    assert(visited && "an op has a kernel in some layouts or in none");
    for (auto [index, old, now] : llvm::enumerate(before, layoutsAt(op)))
      if (old != now)
        markReaders(positional(op, index));
  }
  changed.reset();
}

/// The layouts that an op wants for its operands and gives its results, where the plan has an
/// entry.
SmallVector<Layout> FamilyWalk::layoutsAt(Operation *op) const {
  SmallVector<Layout> layouts;
  for (OpOperand &operand : op->getOpOperands())
    layouts.push_back(plan.operands.lookup(&operand));
  for (Value result : op->getResults())
    layouts.push_back(plan.values.lookup(result));
  return layouts;
}

/// Removes from the plan what visiting an op has put there.
void FamilyWalk::forget(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (plan.operands.erase(&operand))
      takeBack(operand.get());
  for (Value result : op->getResults())
    plan.values.erase(result);
}

/// Removes the reorders of a value that the op being visited has paid.
void FamilyWalk::takeBack(Value value) {
  if (isMadeFromReordered(value))
    for (Value operand : nn::fullOperands(value.getDefiningOp()))
      takeBack(operand);
  else
    llvm::erase_if(paid[value], [&](const Reorder &reorder) { return reorder.payer == current; });
}

/// Marks the ops behind the one being visited that read a value, what it is made from, or what is
/// made from that.
void FamilyWalk::markReaders(Value value) {
  llvm::SmallSetVector<Value, 8> related;
  related.insert(value);
  for (size_t i = 0; i < related.size(); ++i) {
    if (isMadeFromReordered(related[i]))
      related.insert_range(nn::fullOperands(related[i].getDefiningOp()));
    for (Operation *user : related[i].getUsers()) {
      if (size_t position = positions.lookup(user); position > current)
        changed.set(position);
      related.insert_range(llvm::make_filter_range(user->getResults(), isMadeFromReordered));
    }
  }
}

/// The variable that an op reads, assigns or has the filter gradient of; else empty.
StringRef FamilyWalk::variableOf(Operation *op) const {
  if (auto read = dyn_cast<nn::ReadOp>(op))
    return read.getVariable();
  if (auto assign = dyn_cast<nn::AssignOp>(op))
    return assign.getVariable();
  return isa<nn::ConvGradFilterOp>(op) ? context.filterGradients.lookup(op->getResult(0))
                                       : StringRef();
}

//===- Visits ---------------------------------------------------------------------------------===//

bool FamilyWalk::visit(size_t position) {
  Operation *op = ops[position];
  current = position;
  costs[current] = 0;
  auto flipped = context.flips.find(op);
  family = flipped == context.flips.end() ? context.family : flipped->second;
  if (auto read = dyn_cast<nn::ReadOp>(op))
    visitRead(read);
  else if (hasRequest(op))
    return visitKernel(op);
  else if (op->hasTrait<nn::Elementwise>())
    visitElementwise(op);
  else if (auto movement = dyn_cast<nn::BlocksOpInterface>(op))
    visitMovement(movement);
  else if (isa<comm::AllReduceOp>(op))
    visitCollective(op);
  else if (isa<nn::CountNonfiniteOp>(op))
    costs[current] = 0; // reads everything as it lies, whatever the choice
  else if (isa<nn::ReductionOpInterface>(op))
    costs[current] += passCost(op->getOperand(0), plan.layoutOf(op->getOperand(0)), 1);
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
  if (isMadeFromReordered(value)) {
    double cost = 0;
    for (Value operand : nn::fullOperands(value.getDefiningOp()))
      cost += reorderCost(operand, to);
    return cost;
  }
  if (auto made = paid.find(value); made != paid.end())
    if (llvm::any_of(made->second, [&](const Reorder &reorder) {
          return reorder.payer <= current && reorder.to == to;
        }))
      return 0;
  return context.kernels.reorderCost(nn::tensorType(value), from, to);
}

/// Notes the reorders that bring a value into a layout.
void FamilyWalk::pay(Value value, const Layout &to) {
  if (plan.layoutOf(value) == to || plan.flexible.contains(value))
    return;
  if (isMadeFromReordered(value))
    for (Value operand : nn::fullOperands(value.getDefiningOp()))
      pay(operand, to);
  else
    paid[value].push_back({to, current});
}

/// Time to move `tensors` tensors of this type, without a kernel's overhead: passes are fused.
double FamilyWalk::passCost(Value value, const Layout &layout, size_t tensors) {
  auto bytes = static_cast<uint64_t>(bytesIn(value, layout)) * tensors;
  return context.kernels.generatedCost(bytes, 0) - context.kernels.generatedCost(0, 0);
}

/// The cost for later ops of leaving the family. It urges no op into a layout that is mostly
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
  return context.kernels.reorderCost(nn::tensorType(result), layout, wanted);
}

//===- Decisions ------------------------------------------------------------------------------===//

void FamilyWalk::use(OpOperand &operand, const Layout &layout) {
  Value value = operand.get();
  if (isFree(value))
    return;
  costs[current] += reorderCost(value, layout);
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

/// Requests to the providers of kernels, each with some layouts fixed: the family's; those that the
/// operands have; the same with the weight as it is; none.
std::vector<rt::KernelRequest> FamilyWalk::queries(Operation *op,
                                                   const rt::KernelRequest &request) {
  std::optional<size_t> weight = rt::weightOperand(request.op);
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
      else if (i == weight && fix == Fix::FamilyAndWeight && settled)
        layout = plan.layoutOf(value);
      else if (i == weight)
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

bool FamilyWalk::visitKernel(Operation *op) {
  std::optional<rt::KernelCandidate> best;
  double bestCost = std::numeric_limits<double>::infinity();
  rt::KernelRequest request = *context.kernels.request(op);
  for (const rt::KernelRequest &query : queries(op, request)) {
    rt::CandidateList list = context.kernels.candidates(op, query);
    if (list.candidates.empty())
      reason = list.reason;
    for (rt::KernelCandidate &candidate : list.candidates) {
      double cost = candidate.nanoseconds + adaptationCost(op, candidate.layouts);
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
  costs[current] += best->nanoseconds;
  size_t operands = op->getNumOperands();
  for (size_t i = 0; i < operands; ++i)
    use(op->getOpOperand(static_cast<unsigned>(i)), best->layouts[i]);
  for (size_t i = operands; i < best->layouts.size(); ++i)
    define(op->getResult(static_cast<unsigned>(i - operands)), best->layouts[i]);
  if (std::optional<size_t> weight = rt::weightOperand(request.op))
    weights[op] = {*weight, best->layouts[*weight]};
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
  costs[current] += passCost(op->getResult(0), best, operands.size() + 1);
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

void FamilyWalk::visitMovement(nn::BlocksOpInterface op) {
  Layout layout =
      commonLayout(op, op->getOperands(), [&](const Layout &it) { return op.canMoveIn(it); });
  for (OpOperand &operand : op->getOpOperands())
    use(operand, layout);
  define(op->getResult(0), layout);
}

void FamilyWalk::visitCollective(Operation *op) {
  for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults()))
    define(result, plan.layoutOf(operand));
}
