// Collectives become start and wait; then whole orders of the program are compared in the
// simulator. In each order a start follows its last producer, a wait precedes its first user, and
// what depends on reduced gradients alone (the optimizer) comes last, bucket by bucket, so that
// updating one bucket hides the next. The orders differ in where a layer's weight gradient stands:
// as written, directly before the data gradient of its layer, or directly behind it. In each, as
// many updates as cost nothing move up to where their bucket has arrived: its memory is free then.

#include "passes/BlockOrder.h"
#include "passes/BucketPlanner.h"
#include "passes/KernelRequests.h"
#include "passes/OverlapSimulator.h"
#include "passes/Passes.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_OVERLAPALLREDUCES
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {

enum class GradientOrder { AsWritten, FilterFirst, DataFirst };

StringRef nameOf(GradientOrder order) {
  switch (order) {
  case GradientOrder::AsWritten:
    return "gradients as written";
  case GradientOrder::FilterFirst:
    return "weight gradients before data gradients";
  case GradientOrder::DataFirst:
    return "weight gradients behind data gradients";
  }
  return {};
}

/// Start and wait of every collective, in program order.
void splitCollectives(Block &block) {
  for (auto op : llvm::make_early_inc_range(block.getOps<comm::AllReduceOp>())) {
    OpBuilder builder(op);
    SmallVector<Type> types(op.getInputs().getTypes());
    auto future = comm::FutureType::get(op.getContext(), types);
    auto start = comm::StartOp::create(builder, op.getLoc(), future, op.getInputs(),
                                       builder.getI64IntegerAttr(0), op.getWireAttr());
    auto wait = comm::WaitOp::create(builder, op.getLoc(), types, start);
    op.replaceAllUsesWith(wait.getOutputs());
    op.erase();
  }
}

uint64_t messageBytes(comm::StartOp start) {
  uint64_t bytes = 0;
  for (Value input : start.getInputs())
    bytes += alignToSlice(static_cast<uint64_t>(nn::physicalBytes(nn::tensorType(input))));
  std::optional<Type> wire = start.getWire();
  return wire && wire->isBF16() ? bytes / 2 : bytes;
}

uint64_t costOf(Operation *op) {
  nn::KernelAttr kernel = plannedKernel(op);
  return kernel ? kernel.getNanoseconds() : 0;
}

/// The value before reorders.
Value source(Value value) {
  while (auto reorder = value.getDefiningOp<nn::ReorderOp>())
    value = reorder.getX();
  return value;
}

/// Computes orders of one program.
class ProgramScheduler {
public:
  ProgramScheduler(Block &block, bool overlap) : block(block), overlap(overlap) {
    for (auto [index, op] : llvm::enumerate(block))
      positions[&op] = static_cast<double>(index);
    for (auto read : block.getOps<nn::ReadOp>())
      llvm::append_range(readers[read.getVariable()], read->getUsers());
    findTail();
    findPairs();
  }

  std::vector<Operation *> order(GradientOrder kind) {
    return orderBlock(block, [&](Operation *op) { return keyOf(op, kind); });
  }

  unsigned bucketCount() const { return static_cast<unsigned>(waits.size()); }

  /// The order with the updates of all buckets but the last `atEnd` where their bucket has arrived.
  std::vector<Operation *> advanceUpdates(ArrayRef<Operation *> order,
                                          const OverlapForecast &forecast, unsigned atEnd);

private:
  /// The tail is what depends on a wait and on which no start depends, and what is computed for it
  /// alone. It comes by bucket.
  void findTail() {
    llvm::DenseMap<Operation *, unsigned>
        lastBucket; // number of the last wait it depends on, plus 1
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
    llvm::DenseSet<Operation *> feedsStart;
    for (Operation &op : llvm::reverse(block))
      if (isa<comm::StartOp>(op) ||
          llvm::any_of(op.getUsers(), [&](Operation *user) { return feedsStart.contains(user); }))
        feedsStart.insert(&op);
    for (Operation &op : block)
      if (unsigned last = lastBucket.lookup(&op); last > 0 && !feedsStart.contains(&op))
        tail[&op] = last;
    auto isTail = [&](Operation *op) { return tail.contains(op); };
    for (Operation &op : llvm::reverse(block))
      if (!op.use_empty() && !isTail(&op) && !feedsStart.contains(&op) &&
          llvm::all_of(op.getUsers(), isTail))
        for (Operation *user : op.getUsers())
          tail[&op] = std::min(tail.lookup_or(&op, ~0u), tail.lookup(user));
  }

  /// Weight gradients (kernels whose result is reduced) and the data gradient of the same dy:
  /// another kernel on one of the operands that comes when both are there (the forward kernel does
  /// not).
  void findPairs() {
    llvm::DenseMap<Value, SmallVector<Operation *>> kernels;
    for (Operation &op : block)
      if (isLibraryOp(&op) && !isa<nn::ReorderOp>(op) && !isWeightGradient(&op))
        for (Value operand : op.getOperands())
          kernels[source(operand)].push_back(&op);
    for (Operation &op : block) {
      if (!isLibraryOp(&op) || !isWeightGradient(&op))
        continue;
      double ready = 0;
      for (Value operand : op.getOperands())
        if (Operation *producer = source(operand).getDefiningOp())
          ready = std::max(ready, positions[producer]);
      for (Value operand : op.getOperands())
        for (Operation *other : kernels.lookup(source(operand)))
          if (positions[other] > ready)
            pairs.try_emplace(&op, other);
    }
  }

  static bool isWeightGradient(Operation *op) {
    return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<comm::StartOp>(user); });
  }

  /// The bucket whose update an op belongs to, plus 1; 0 if it is no part of the tail.
  unsigned updateOf(Operation *op) const {
    if (!isa<comm::WaitOp>(op))
      return tail.lookup(op);
    if (!overlap || op->use_empty())
      return 0;
    unsigned first = ~0u;
    for (Operation *user : op->getUsers())
      first = std::min(first, tail.lookup(user));
    return first;
  }

  /// Number of ops of `main` behind which the ops may stand: their operands are there, and nothing
  /// else reads the variables that they assign.
  size_t earliest(ArrayRef<Operation *> update,
                  const llvm::DenseMap<Operation *, size_t> &main) const;

  OrderKey keyOf(Operation *op, GradientOrder kind) {
    if (isa<comm::StartOp>(op) || (isa<comm::WaitOp>(op) && !overlap))
      return {0, -1}; // as soon as its operands are there
    if (isa<comm::WaitOp>(op)) {
      OrderKey first{2, 0};
      for (Operation *user : op->getUsers())
        first = std::min(first, keyOf(user, kind));
      first.position -= 0.25;
      return first;
    }
    if (auto bucket = tail.find(op); bucket != tail.end())
      return {1, bucket->second * static_cast<double>(block.getOperations().size()) +
                     positions.lookup(op)};
    if (Operation *data = pairs.lookup(op); data && kind != GradientOrder::AsWritten)
      return {0, positions.lookup(data) + (kind == GradientOrder::FilterFirst ? -0.5 : 0.5)};
    return {0, positions.lookup(op)};
  }

  Block &block;
  bool overlap;
  llvm::DenseMap<Operation *, double> positions;
  SmallVector<comm::WaitOp> waits;
  llvm::StringMap<SmallVector<Operation *>> readers; // by variable
  llvm::DenseMap<Operation *, unsigned> tail;        // bucket of an update, plus 1
  llvm::DenseMap<Operation *, Operation *> pairs;    // weight gradient -> data gradient
};

size_t ProgramScheduler::earliest(ArrayRef<Operation *> update,
                                  const llvm::DenseMap<Operation *, size_t> &main) const {
  size_t position = 0;
  auto putBehind = [&](Operation *op) {
    if (auto found = main.find(op); found != main.end())
      position = std::max(position, found->second + 1);
  };
  for (Operation *op : update) {
    for (Value operand : op->getOperands())
      putBehind(operand.getDefiningOp());
    if (auto assign = dyn_cast<nn::AssignOp>(op))
      for (Operation *reader : readers.lookup(assign.getVariable()))
        putBehind(reader);
  }
  return position;
}

std::vector<Operation *> ProgramScheduler::advanceUpdates(ArrayRef<Operation *> order,
                                                          const OverlapForecast &forecast,
                                                          unsigned atEnd) {
  std::vector<Operation *> main;
  std::vector<SmallVector<Operation *>> updates(bucketCount() + 1);
  llvm::DenseMap<Operation *, size_t> positionInMain;
  llvm::DenseMap<Operation *, uint64_t> arrival; // by start
  for (Operation *op : order) {
    if (unsigned bucket = updateOf(op)) {
      updates[bucket].push_back(op);
      continue;
    }
    positionInMain[op] = main.size();
    main.push_back(op);
    if (isa<comm::StartOp>(op))
      arrival.insert({op, forecast.buckets[arrival.size()].arrived});
  }
  std::vector<Operation *> result;
  uint64_t clock = 0, arrived = 0;
  auto next = main.begin();
  for (unsigned bucket = 1; bucket <= bucketCount(); ++bucket) {
    arrived = std::max(arrived, arrival.lookup(waits[bucket - 1].getFuture().getDefiningOp()));
    auto first = main.begin() + earliest(updates[bucket], positionInMain);
    bool stays = bucket + atEnd > bucketCount();
    for (; next != main.end() && (stays || clock < arrived || next < first); ++next) {
      result.push_back(*next);
      if (auto wait = dyn_cast<comm::WaitOp>(*next))
        clock = std::max(clock, arrival.lookup(wait.getFuture().getDefiningOp()));
      else
        clock += costOf(*next);
    }
    llvm::append_range(result, updates[bucket]);
  }
  result.insert(result.end(), next, main.end());
  return result;
}

/// The order as the simulator sees it.
std::vector<ScheduleItem> itemsOf(ArrayRef<Operation *> order) {
  std::vector<ScheduleItem> items;
  llvm::DenseMap<Value, unsigned> buckets;
  for (Operation *op : order) {
    if (auto start = dyn_cast<comm::StartOp>(op)) {
      auto bucket = static_cast<unsigned>(buckets.size());
      buckets[start.getFuture()] = bucket;
      items.push_back(ScheduleItem::start(bucket, messageBytes(start)));
    } else if (auto wait = dyn_cast<comm::WaitOp>(op)) {
      items.push_back(ScheduleItem::wait(buckets.lookup(wait.getFuture())));
    } else if (uint64_t cost = costOf(op)) {
      items.push_back(ScheduleItem::compute(cost));
    }
  }
  return items;
}

struct OverlapAllReducesPass : dlc::impl::OverlapAllReducesBase<OverlapAllReducesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), "schedule")))
      return signalPassFailure();
    FailureOr<Link> parsed = parseLink(getOperation(), link);
    if (failed(parsed))
      return signalPassFailure();
    Builder builder(&getContext());
    getOperation()->setAttr(
        "link",
        builder.getDictionaryAttr(
            {builder.getNamedAttr("gbit_per_s", builder.getF64FloatAttr(parsed->gbitPerSecond)),
             builder.getNamedAttr("latency_us",
                                  builder.getF64FloatAttr(parsed->latencyMicroseconds))}));
    for (auto program : getOperation().getBody().getOps<nn::ProgramOp>())
      schedule(program, OverlapSimulator(*parsed));
  }

  void schedule(nn::ProgramOp program, const OverlapSimulator &simulator) {
    Block &block = program.getBody().front();
    splitCollectives(block);
    ProgramScheduler scheduler(block, !noOverlap);
    std::vector<Operation *> best;
    OverlapForecast forecast;
    std::string comparison;
    GradientOrder chosen = GradientOrder::AsWritten;
    for (GradientOrder kind :
         {GradientOrder::AsWritten, GradientOrder::FilterFirst, GradientOrder::DataFirst}) {
      std::vector<Operation *> order = scheduler.order(kind);
      OverlapForecast trial = simulator.run(itemsOf(order));
      comparison += llvm::formatv("; {0}: {1} us exposed", nameOf(kind), trial.exposed / 1000);
      if (!best.empty() && trial.total() >= forecast.total())
        continue;
      std::tie(best, forecast) = advanceUpdates(scheduler, simulator, order, trial);
      chosen = kind;
    }
    applyOrder(block, best);
    number(block);
    writeForecast(program, forecast);
    if (forecast.buckets.empty())
      return;
    remark::analysis(program.getLoc(), remark::RemarkOpts::name("order").category("dlc-overlap"))
        << "chose " + nameOf(chosen).str() + comparison;
    explain(block, forecast);
  }

  /// The order with as many updates moved up as delay nothing.
  static std::pair<std::vector<Operation *>, OverlapForecast>
  advanceUpdates(ProgramScheduler &scheduler, const OverlapSimulator &simulator,
                 const std::vector<Operation *> &order, const OverlapForecast &forecast) {
    for (unsigned atEnd = 0; atEnd < scheduler.bucketCount(); ++atEnd) {
      std::vector<Operation *> advanced = scheduler.advanceUpdates(order, forecast, atEnd);
      OverlapForecast trial = simulator.run(itemsOf(advanced));
      if (trial.total() <= forecast.total())
        return {std::move(advanced), std::move(trial)};
    }
    return {order, forecast};
  }

  static void number(Block &block) {
    for (auto [bucket, start] : llvm::enumerate(block.getOps<comm::StartOp>()))
      start.setBucket(bucket);
  }

  void writeForecast(nn::ProgramOp program, const OverlapForecast &forecast) {
    Builder builder(program.getContext());
    auto entry = [&](StringRef name, uint64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(static_cast<int64_t>(value)));
    };
    program->setAttr("forecast",
                     builder.getDictionaryAttr({entry("compute_ns", forecast.compute),
                                                entry("communication_ns", forecast.communication),
                                                entry("exposed_ns", forecast.exposed)}));
  }

  /// Why each bucket is hidden or not.
  void explain(Block &block, const OverlapForecast &forecast) {
    for (auto [start, bucket] : llvm::zip(block.getOps<comm::StartOp>(), forecast.buckets)) {
      auto options = remark::RemarkOpts::name("bucket").category("dlc-overlap");
      std::string what =
          llvm::formatv("bucket {0} ({1} bytes, {2} us on the wire)", start.getBucket(),
                        messageBytes(start), (bucket.arrived - bucket.onWire) / 1000);
      if (bucket.exposed() == 0)
        remark::passed(start.getLoc(), options) << what + " is hidden behind compute";
      else
        remark::missed(start.getLoc(), options)
            << what + llvm::formatv(" is exposed for {0} us: {1}", bucket.exposed() / 1000,
                                    reasonOf(bucket))
                          .str();
    }
  }

  std::string reasonOf(const BucketForecast &bucket) const {
    if (noOverlap)
      return "overlap is off";
    if (bucket.waited <= bucket.started)
      return "no compute is left that does not need its result";
    if (bucket.onWire > bucket.started)
      return llvm::formatv("the wire carries earlier buckets for {0} us",
                           (bucket.onWire - bucket.started) / 1000);
    return llvm::formatv("only {0} us of compute do not need its result",
                         (bucket.waited - bucket.started) / 1000);
  }
};

} // namespace
