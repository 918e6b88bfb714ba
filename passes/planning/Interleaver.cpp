// At each point the first of these comes next: an update whose buckets have arrived; a large
// gradient, if there is room for it and the wire may run dry before the next op ends; the next op
// of the order.

#include "passes/planning/Interleaver.h"

using namespace mlir;
using namespace dlc;

bool Interleaver::isWait(const Facts *op) { return isa<comm::WaitOp>(op->op); }

Interleaver::Interleaver(const ProgramScheduler &program, ArrayRef<Operation *> order,
                         std::span<const OverlapSimulator> paces, Choice choice)
    : program(program), paces(paces), choice(choice), updates(program.bucketCount() + 1),
      clocks(paces.size()), placed(static_cast<unsigned>(order.size())) {
  for (Operation *op : order) {
    const Facts &own = program.of(op);
    if (own.update)
      updates[own.update].ops.push_back(&own);
    else if (own.isLargeGradient)
      gradients.push_back(&own);
    else if (!isa<comm::StartOp>(op) || !isStartOfLargeGradient(own))
      main.push_back(&own);
  }
  for (Update &update : updates) {
    update.missing = llvm::count_if(update.ops, isWait);
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
    else if (canCompute && (main.empty() || wireIdlesWithin(main.front()->cost)))
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

std::vector<uint64_t> Interleaver::totals() const {
  std::vector<uint64_t> compute;
  for (const Clocks &it : clocks)
    compute.push_back(it.compute);
  return compute;
}

bool Interleaver::isStartOfLargeGradient(const Facts &start) {
  return llvm::any_of(start.producers, [](const Facts *it) { return it->isLargeGradient; });
}

/// The first update whose buckets are all on their way and that depends on nothing else.
Interleaver::Update *Interleaver::nextUpdate() {
  for (Update *update : started)
    if (isReady(*update))
      return update;
  return nullptr;
}

/// An op that is ready stays ready, and is not looked at again.
bool Interleaver::isReady(Update &update) const {
  while (update.ready < update.ops.size() && isReady(*update.ops[update.ready]))
    ++update.ready;
  return update.ready == update.ops.size();
}

/// True if the op's operands are placed, or belong to its update, and if nothing that is not yet
/// placed reads the variable that it assigns.
bool Interleaver::isReady(const Facts &op) const {
  auto isPlaced = [&](const Facts *other) {
    return placed.test(other->position) || (op.update && other->update == op.update);
  };
  return llvm::all_of(op.readers,
                      [&](const Facts *reader) { return reader->update || isPlaced(reader); }) &&
         llvm::all_of(op.producers, isPlaced);
}

/// True if at one of the paces the wire has nothing left to carry by then, even if the next
/// gradient is computed first.
bool Interleaver::wireIdlesWithin(uint64_t time) const {
  time += gradients.front()->cost;
  return llvm::any_of(clocks, [&](const Clocks &it) { return it.wire <= it.compute + time; });
}

void Interleaver::enqueue(Update &update) {
  started.push_back(&update);
  update.rank = ++startedCount;
}

void Interleaver::put(const Facts &op) {
  result.push_back(op.op);
  placed.set(op.position);
  auto start = dyn_cast<comm::StartOp>(op.op);
  Operation *awaited = start ? op.wait : isWait(&op) ? op.op : nullptr;
  for (auto [now, simulator] : llvm::zip(clocks, paces)) {
    if (start)
      now.arrival[awaited] = now.wire =
          std::max(now.compute, now.wire) + simulator.transferTime(op.message);
    else if (awaited)
      now.compute = std::max(now.compute, now.arrival.lookup(awaited));
    else
      now.compute += op.cost;
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
  put(*main.front());
  main.pop_front();
}

void Interleaver::putGradient() {
  const Facts &kernel = *gradients.front();
  gradients.pop_front();
  put(kernel);
  put(program.of(*kernel.op->user_begin()));
  ++inFlight;
}

void Interleaver::put(Update &update) {
  llvm::erase(started, &update);
  for (const Facts *op : update.ops) {
    put(*op);
    if (isWait(op))
      inFlight -= isStartOfLargeGradient(*op->producers.front());
  }
}
