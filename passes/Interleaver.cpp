// What comes next, at each point: an update whose buckets have arrived; a large gradient, if there
// is room for it and the wire may run dry before the next op ends; the next op of the order.

#include "passes/Interleaver.h"

#include "passes/KernelRequests.h"

using namespace mlir;
using namespace dlc;

Interleaver::Interleaver(const ProgramScheduler &program, ArrayRef<Operation *> order,
                         std::span<const OverlapSimulator> paces, Choice choice)
    : program(program), paces(paces), choice(choice), updates(program.bucketCount() + 1),
      clocks(paces.size()) {
  for (Operation *op : order)
    if (unsigned bucket = program.of(op).update)
      updates[bucket].ops.push_back(op);
    else if (program.of(op).isLargeGradient)
      gradients.push_back(op);
    else if (!isa<comm::StartOp>(op) || !isStartOfLargeGradient(op))
      main.push_back(op);
  for (Update &update : updates) {
    update.missing = llvm::count_if(update.ops, llvm::IsaPred<comm::WaitOp>);
    updateCount += !update.ops.empty();
    if (!update.ops.empty() && update.missing == 0)
      enqueue(update);
  }
}

std::vector<Operation *> Interleaver::run() {
  while (true) {
    Update *update = nextUpdate();
    bool canCompute =
        !gradients.empty() && inFlight < choice.inFlight && isReady(*gradients.front());
    if (update && update->rank + choice.atEnd <= updateCount &&
        update->arrived <= clocks[choice.pace].compute)
      put(*update);
    else if (canCompute && (main.empty() || wireIdlesWithin(program.of(main.front()).cost)))
      putGradient();
    else if (!main.empty())
      putMain();
    else if (!gradients.empty() && !update)
      putGradient();
    else if (update)
      put(*update);
    else
      return std::move(result);
  }
}

bool Interleaver::isStartOfLargeGradient(Operation *start) const {
  return llvm::any_of(start->getOperands(), [&](Value input) {
    return input.getDefiningOp() && program.of(input.getDefiningOp()).isLargeGradient;
  });
}

/// The first update whose buckets are all on their way and that depends on nothing else.
Interleaver::Update *Interleaver::nextUpdate() {
  for (Update *update : started)
    if (isReady(*update))
      return update;
  return nullptr;
}

/// What is ready stays so, and is not looked at again.
bool Interleaver::isReady(Update &update) const {
  while (update.ready < update.ops.size() && isReady(*update.ops[update.ready]))
    ++update.ready;
  return update.ready == update.ops.size();
}

/// True if the op's operands are placed, or belong to its update, and if nothing that is not yet
/// placed reads the variable that it assigns.
bool Interleaver::isReady(Operation &op) const {
  unsigned bucket = program.of(&op).update;
  auto isPlaced = [&](Operation *other) {
    return placed.contains(other) || (bucket && program.of(other).update == bucket);
  };
  if (auto assign = dyn_cast<nn::AssignOp>(op))
    if (auto readers = program.readers.find(assign.getVariable());
        readers != program.readers.end() && !llvm::all_of(readers->second, [&](Operation *reader) {
          return program.of(reader).update || isPlaced(reader);
        }))
      return false;
  return llvm::all_of(op.getOperands(), [&](Value operand) {
    return !operand.getDefiningOp() || isPlaced(operand.getDefiningOp());
  });
}

/// True if at one of the paces the wire has nothing left to carry by then, even if the next
/// gradient is computed first.
bool Interleaver::wireIdlesWithin(uint64_t time) const {
  time += program.of(gradients.front()).cost;
  return llvm::any_of(clocks, [&](const Clocks &it) { return it.wire <= it.compute + time; });
}

void Interleaver::enqueue(Update &update) {
  started.push_back(&update);
  update.rank = ++startedCount;
}

void Interleaver::put(Operation *op) {
  result.push_back(op);
  placed.insert(op);
  auto start = dyn_cast<comm::StartOp>(op);
  const ProgramScheduler::Facts &facts = program.of(op);
  Operation *awaited = start ? facts.wait : isa<comm::WaitOp>(op) ? op : nullptr;
  for (auto [now, simulator] : llvm::zip(clocks, paces)) {
    if (start)
      now.arrival[awaited] = now.wire =
          std::max(now.compute, now.wire) + simulator.transferTime(facts.message);
    else if (awaited)
      now.compute = std::max(now.compute, now.arrival.lookup(awaited));
    else
      now.compute += facts.cost;
  }
  if (!start)
    return;
  unsigned bucket = program.of(awaited).update;
  Update &update = updates[bucket];
  update.arrived = std::max(update.arrived, clocks[choice.pace].wire);
  if (bucket && --update.missing == 0)
    enqueue(update);
}

void Interleaver::putMain() {
  put(main.front());
  main.pop_front();
}

void Interleaver::putGradient() {
  Operation *kernel = gradients.front();
  gradients.pop_front();
  put(kernel);
  put(*kernel->user_begin());
  ++inFlight;
}

void Interleaver::put(Update &update) {
  llvm::erase(started, &update);
  for (Operation *op : update.ops) {
    put(op);
    if (auto wait = dyn_cast<comm::WaitOp>(op))
      inFlight -= isStartOfLargeGradient(wait.getFuture().getDefiningOp());
  }
}
