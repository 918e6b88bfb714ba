// Each order sorts the ops by keys, as far as operands before users allow (BlockOrder).

#include "passes/planning/ProgramScheduler.h"

#include "dialects/NN/Role.h"
#include "passes/planning/BucketLayout.h"
#include "passes/planning/PlannedKernel.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace dlc;

/// A gradient that takes so many times the memory of what it is computed from is better computed
/// late.
static constexpr int64_t largeGradient = 8;

uint64_t dlc::messageBytes(comm::StartOp start) {
  Type element = nn::tensorType(start.getInputs().front()).getElementType();
  return BucketLayout::of(start.getInputs()).messageBytes(start.getWire().value_or(element));
}

//===- Analysis -------------------------------------------------------------------------------===//

/// The value before reorders.
static Value source(Value value) {
  while (auto reorder = value.getDefiningOp<nn::ReorderOp>())
    value = reorder.getX();
  return value;
}

static bool isRecomputed(Operation *op) { return op->hasAttr(recomputedName); }

static bool isWeightGradient(Operation *op) {
  nn::Role role = nn::roleOf(op);
  return role.phase == nn::Phase::Backward && role.variable;
}

/// A kernel of a library that does more than move elements.
static bool isProduct(Operation *op) {
  return isLibraryKernel(op) && !op->hasTrait<nn::MovesElements>();
}

ProgramScheduler::ProgramScheduler(Block &block, bool overlap) : block(block), overlap(overlap) {
  for (auto [index, op] : llvm::enumerate(block)) {
    Facts &own = facts[&op];
    own.op = &op;
    own.position = index;
    if (nn::KernelAttr kernel = plannedKernel(&op))
      own.cost = kernel.getNanoseconds();
    if (auto start = dyn_cast<comm::StartOp>(op)) {
      own.message = messageBytes(start);
      own.wait = *start.getFuture().user_begin();
    }
  }
  findNeighbours();
  findTail();
  findBuckets();
  findPairs();
  for (Operation &op : block)
    facts[&op].update = findUpdate(&op);
  for (Operation &op : block)
    largeGradients += facts[&op].isLargeGradient = findLargeGradient(&op);
}

void ProgramScheduler::findNeighbours() {
  llvm::StringMap<SmallVector<const Facts *>> readers; // by variable
  for (auto read : block.getOps<nn::ReadOp>())
    for (Operation *user : read->getUsers())
      readers[read.getVariable()].push_back(&of(user));
  for (auto &[op, own] : facts) {
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        own.producers.push_back(&of(producer));
    if (auto assign = dyn_cast<nn::AssignOp>(op))
      own.readers = readers.lookup(assign.getVariable());
  }
}

void ProgramScheduler::findBuckets() {
  for (comm::WaitOp wait : waits) {
    auto start = wait.getFuture().getDefiningOp<comm::StartOp>();
    Bucket &bucket = buckets.emplace_back();
    bucket.positions = {of(start).position, of(wait).position};
    for (Value input : start.getInputs())
      bucket.bytes += static_cast<uint64_t>(nn::physicalBytes(nn::tensorType(input)));
    for (const Facts *kernel : of(start).producers)
      bucket.positions.push_back(kernel->position);
    for (Operation *user : wait->getUsers())
      bucket.positions.push_back(of(user).position);
  }
}

void ProgramScheduler::findTail() {
  llvm::DenseMap<Operation *, unsigned> lastBucket; // number of the last wait it depends on, plus 1
  for (Operation &op : block) {
    unsigned &last = lastBucket[&op];
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        last = std::max(last, lastBucket.lookup(producer));
    if (auto wait = dyn_cast<comm::WaitOp>(op)) {
      waits.push_back(wait);
      last = bucketCount();
    }
  }
  // Sinks, which the host reads, are part of the tail, too: no compute waits for them.
  for (Operation &op : block)
    if (unsigned last = lastBucket.lookup(&op);
        last > 0 && (nn::phaseOf(&op) == nn::Phase::Update || op.getNumResults() == 0))
      tail[&op] = last;
  // Operands of updates that do not come from a bucket.
  auto isTail = [&](Operation *op) { return tail.contains(op); };
  for (Operation &op : llvm::reverse(block))
    if ((isa<nn::ReadOp>(op) || nn::phaseOf(&op) == nn::Phase::Update) && !op.use_empty() &&
        !isTail(&op) && llvm::all_of(op.getUsers(), isTail))
      for (Operation *user : op.getUsers())
        tail[&op] = std::min(tail.lookup_or(&op, ~0u), tail.lookup(user));
}

/// Pairs each weight gradient with the data gradient of its layer. Both read dy, so that is the
/// other kernel on an operand of the weight gradient that runs after all operands are computed.
/// (The forward kernel, which reads x, runs before.)
void ProgramScheduler::findPairs() {
  llvm::DenseMap<Value, SmallVector<Operation *>> kernels;
  for (Operation &op : block)
    if (isProduct(&op) && !isWeightGradient(&op) && !isRecomputed(&op))
      for (Value operand : op.getOperands())
        kernels[source(operand)].push_back(&op);
  for (Operation &op : block) {
    if (!isProduct(&op) || !isWeightGradient(&op))
      continue;
    size_t ready = 0;
    for (Value operand : op.getOperands())
      if (Operation *producer = source(operand).getDefiningOp();
          producer && !isRecomputed(producer))
        ready = std::max(ready, of(producer).position);
    for (Value operand : op.getOperands())
      for (Operation *other : kernels.lookup(source(operand)))
        if (of(other).position > ready)
          pairs.try_emplace(&op, other);
  }
}

/// The bucket whose update an op belongs to, plus 1; 0 if it is no part of the tail.
unsigned ProgramScheduler::findUpdate(Operation *op) const {
  if (!isa<comm::WaitOp>(op))
    return tail.lookup(op);
  if (!overlap || op->use_empty())
    return 0;
  unsigned first = ~0u;
  for (Operation *user : op->getUsers())
    first = std::min(first, tail.lookup(user));
  return first;
}

/// True for the kernel of a bucket of its own that only an update needs, and that takes far more
/// memory than it reads.
bool ProgramScheduler::findLargeGradient(Operation *op) const {
  if (!isLibraryKernel(op) || op->getNumResults() != 1 || !op->hasOneUse())
    return false;
  auto start = dyn_cast<comm::StartOp>(*op->user_begin());
  if (!start || start.getInputs().size() != 1 || of(of(start).wait).update == 0)
    return false;
  int64_t read = 0;
  for (Value operand : op->getOperands()) {
    if (operand.getDefiningOp<nn::ReadOp>())
      return false;
    read += nn::physicalBytes(nn::tensorType(operand));
  }
  return nn::physicalBytes(nn::tensorType(op->getResult(0))) >= largeGradient * read;
}

uint64_t ProgramScheduler::gradientBytes(ArrayRef<Operation *> order) const {
  std::vector<size_t> places(order.size()); // by position
  for (auto [place, op] : llvm::enumerate(order))
    places[of(op).position] = place;
  std::vector<uint64_t> born(order.size()), dying(order.size());
  for (const Bucket &bucket : buckets) {
    size_t first = order.size(), last = 0;
    for (size_t position : bucket.positions) {
      first = std::min(first, places[position]);
      last = std::max(last, places[position]);
    }
    born[first] += bucket.bytes;
    dying[last] += bucket.bytes;
  }
  uint64_t live = 0, most = 0;
  for (auto [more, less] : llvm::zip(born, dying)) {
    live += more;
    most = std::max(most, live);
    live -= less;
  }
  return most;
}

//===- Orders ---------------------------------------------------------------------------------===//

OrderKey ProgramScheduler::keyOf(Operation *op, GradientOrder kind) const {
  if (isa<comm::StartOp>(op) || (isa<comm::WaitOp>(op) && !overlap))
    return {0, -1};                                // as soon as its operands are there
  if (isa<comm::WaitOp>(op) || isRecomputed(op)) { // not before it is needed
    OrderKey first{2, 0};
    for (Operation *user : op->getUsers())
      first = std::min(first, keyOf(user, kind));
    first.position -= isa<comm::WaitOp>(op) ? 0.25 : 0.125;
    return first;
  }
  auto position = [&](Operation *it) { return static_cast<double>(of(it).position); };
  if (auto bucket = tail.find(op); bucket != tail.end())
    return {1, bucket->second * static_cast<double>(facts.size()) + position(op)};
  if (Operation *data = pairs.lookup(op); data && kind != GradientOrder::AsWritten)
    return {0, position(data) + (kind == GradientOrder::FilterFirst ? -0.5 : 0.5)};
  return {0, position(op)};
}

std::vector<Operation *> ProgramScheduler::order(GradientOrder kind) const {
  return orderBlock(block, [&](Operation *op) { return keyOf(op, kind); });
}

std::vector<ScheduleItem> ProgramScheduler::itemsOf(ArrayRef<Operation *> order) const {
  std::vector<ScheduleItem> items;
  llvm::DenseMap<Operation *, unsigned> buckets; // by wait
  for (Operation *op : order) {
    if (isa<comm::StartOp>(op)) {
      auto bucket = static_cast<unsigned>(buckets.size());
      buckets[of(op).wait] = bucket;
      items.push_back(ScheduleItem::start(bucket, of(op).message));
    } else if (isa<comm::WaitOp>(op)) {
      items.push_back(ScheduleItem::wait(buckets.lookup(op)));
    } else if (uint64_t cost = of(op).cost) {
      items.push_back(ScheduleItem::compute(cost));
    }
  }
  return items;
}
