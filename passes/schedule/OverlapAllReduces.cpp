// Collectives become start and wait. Then the simulator compares orders of the whole program, which
// differ in where a layer's weight gradient stands. In the best order, updates move up to where
// their bucket has arrived, and gradients that take much memory move to where the wire is free for
// them: the memory of a bucket can be used again once it is applied. They move only as far as the
// memory saved is worth the time.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/planning/BlockOrder.h"
#include "passes/planning/Interleaver.h"
#include "passes/planning/LiveBytes.h"
#include "passes/planning/MemoryPrice.h"
#include "passes/planning/ProgramScheduler.h"

#include "mlir/IR/Remarks.h"

#include <array>
#include <limits>

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_OVERLAPALLREDUCES
#include "passes/Passes.h.inc"
} // namespace dlc

/// An order must do as well where the wire is faster beside compute than forecast: two ranks move
/// half of what many do, and kernels may take twice as long as the target's table says.
static constexpr std::array<double, 3> wirePaces = {1, 2, 4};

namespace {

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
    auto start =
        comm::StartOp::create(builder, op.getLoc(), future, op.getInputs(),
                              builder.getI64IntegerAttr(0), op.getWireAttr(), op.getMembersAttr());
    auto wait = comm::WaitOp::create(builder, op.getLoc(), types, start);
    nn::setRole(start, nn::roleOf(op));
    nn::setRole(wait, nn::roleOf(op));
    op.replaceAllUsesWith(wait.getOutputs());
    op.erase();
  }
}

struct OverlapAllReducesPass : dlc::impl::OverlapAllReducesBase<OverlapAllReducesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Schedule)))
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
    getOperation()->setAttr("no_overlap", builder.getBoolAttr(noOverlap));
    auto programs = getOperation().getBody().getOps<nn::ProgramOp>();
    // Programs share their memory, in which gradients have a part of their own.
    uint64_t peak = 0;
    for (nn::ProgramOp program : programs)
      peak = std::max(peak, LiveBytes(program.getBody().front()).peak());
    for (nn::ProgramOp program : programs)
      schedule(program, OverlapSimulator(*parsed), variableBytes(getOperation()) + peak);
  }

  /// `held` is what the plan takes besides the gradients, in bytes.
  void schedule(nn::ProgramOp program, const OverlapSimulator &simulator, uint64_t held) {
    Block &block = program.getBody().front();
    splitCollectives(block);
    ProgramScheduler scheduler(block, !noOverlap);
    std::vector<Operation *> best;
    uint64_t fastest = 0;
    std::string comparison;
    GradientOrder chosen = GradientOrder::AsWritten;
    for (GradientOrder kind :
         {GradientOrder::AsWritten, GradientOrder::FilterFirst, GradientOrder::DataFirst}) {
      std::vector<Operation *> order = scheduler.order(kind);
      OverlapForecast trial = simulator.run(scheduler.itemsOf(order));
      comparison += llvm::formatv("; {0}: {1} us exposed", nameOf(kind), trial.exposed / 1000);
      if (!best.empty() && trial.total() >= fastest)
        continue;
      best = std::move(order);
      fastest = trial.total();
      chosen = kind;
    }
    best = interleave(scheduler, simulator, best, held);
    OverlapForecast forecast = simulator.run(scheduler.itemsOf(best));
    applyOrder(block, best);
    number(block);
    writeForecast(program, forecast);
    if (forecast.buckets.empty())
      return;
    remark::analysis(program.getLoc(), remark::RemarkOpts::name("order").category("dlc-overlap"))
        << "chose " + nameOf(chosen).str() + comparison;
    explain(block, forecast);
  }

  /// A way of interleaving. It takes `slowdown` times the base's time at the worst pace; `loss` is
  /// the share of a step by which that exceeds what the memory saved is worth.
  struct Trial {
    std::vector<Operation *> order;
    double slowdown = std::numeric_limits<double>::infinity();
    double loss = std::numeric_limits<double>::infinity();
  };

  /// The base order of the trials, and its costs. Memory counts where there are large gradients:
  /// moving up updates alone must cost no time.
  struct Base {
    Base(const ProgramScheduler &scheduler, const OverlapSimulator &simulator,
         ArrayRef<Operation *> order, uint64_t held)
        : scheduler(scheduler), order(order), gradientBytes(scheduler.gradientBytes(order)),
          plan(held + gradientBytes) {
      std::vector<ScheduleItem> items = scheduler.itemsOf(order);
      for (double pace : wirePaces) {
        paces.push_back(simulator.faster(pace));
        totals.push_back(paces.back().run(items).total());
      }
    }

    Trial make(Interleaver::Choice choice) const {
      Interleaver interleaver(scheduler, order, paces, choice);
      std::vector<Operation *> trial = interleaver.run();
      double slowdown = 0;
      for (auto [now, total] : llvm::zip(interleaver.totals(), totals))
        slowdown = std::max(slowdown, static_cast<double>(now) / static_cast<double>(total));
      double worth = 0;
      if (scheduler.largeGradientCount()) {
        uint64_t bytes = std::min(gradientBytes, scheduler.gradientBytes(trial));
        worth = worthOf(gradientBytes - bytes, plan);
      }
      return {std::move(trial), slowdown, slowdown - 1 - worth};
    }

    const ProgramScheduler &scheduler;
    ArrayRef<Operation *> order;
    uint64_t gradientBytes, plan;
    std::vector<OverlapSimulator> paces;
    std::vector<uint64_t> totals; // nanoseconds of the order by pace
  };

  /// The order with as few large gradients in memory, and then as many updates moved up, as cost no
  /// more than that is worth, at any pace of the wire.
  static std::vector<Operation *> interleave(const ProgramScheduler &scheduler,
                                             const OverlapSimulator &simulator,
                                             const std::vector<Operation *> &order, uint64_t held) {
    Base base(scheduler, simulator, order, held);
    size_t gradients = scheduler.largeGradientCount();
    for (size_t inFlight = 2;; inFlight += inFlight / 2) {
      Trial best;
      for (size_t pace = 0; pace < base.paces.size(); ++pace) {
        Trial trial = moveUp(base, {inFlight, pace, 0});
        if (trial.loss < best.loss)
          best = std::move(trial);
      }
      if (best.loss <= 0)
        return best.order;
      if (inFlight >= gradients)
        return order;
    }
  }

  /// With the updates moved up that are worth most. Those that cost nothing end the search: with
  /// fewer, more memory is held.
  static Trial moveUp(const Base &base, Interleaver::Choice choice) {
    Trial best;
    for (; choice.atEnd < base.scheduler.bucketCount(); ++choice.atEnd) {
      Trial trial = base.make(choice);
      bool isFree = trial.slowdown <= 1;
      if (trial.loss < best.loss)
        best = std::move(trial);
      if (isFree)
        break;
    }
    return best;
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
