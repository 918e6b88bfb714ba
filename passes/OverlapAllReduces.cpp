// Collectives become start and wait; then whole orders of the program, which differ in where a
// layer's weight gradient stands, are compared in the simulator. In the best one, as many updates
// as cost nothing move up to where their bucket has arrived, and gradients that take much memory
// stand where the wire is free for them: the memory of a bucket can be used again once it is
// applied.

#include "passes/BlockOrder.h"
#include "passes/Interleaver.h"
#include "passes/Passes.h"
#include "passes/ProgramScheduler.h"

#include "mlir/IR/Remarks.h"

#include <array>

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_OVERLAPALLREDUCES
#include "passes/Passes.h.inc"
} // namespace dlc

/// The share of a step that computing large gradients late may cost.
static constexpr uint64_t priceOfMemory = 200;

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
    auto start = comm::StartOp::create(builder, op.getLoc(), future, op.getInputs(),
                                       builder.getI64IntegerAttr(0), op.getWireAttr());
    auto wait = comm::WaitOp::create(builder, op.getLoc(), types, start);
    op.replaceAllUsesWith(wait.getOutputs());
    op.erase();
  }
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
    uint64_t fastest = 0;
    std::string comparison;
    GradientOrder chosen = GradientOrder::AsWritten;
    for (GradientOrder kind :
         {GradientOrder::AsWritten, GradientOrder::FilterFirst, GradientOrder::DataFirst}) {
      std::vector<Operation *> order = scheduler.order(kind);
      OverlapForecast trial = simulator.run(itemsOf(order));
      comparison += llvm::formatv("; {0}: {1} us exposed", nameOf(kind), trial.exposed / 1000);
      if (!best.empty() && trial.total() >= fastest)
        continue;
      best = std::move(order);
      fastest = trial.total();
      chosen = kind;
    }
    best = interleave(scheduler, simulator, best);
    OverlapForecast forecast = simulator.run(itemsOf(best));
    applyOrder(block, best);
    number(block);
    writeForecast(program, forecast);
    if (forecast.buckets.empty())
      return;
    remark::analysis(program.getLoc(), remark::RemarkOpts::name("order").category("dlc-overlap"))
        << "chose " + nameOf(chosen).str() + comparison;
    explain(block, forecast);
  }

  /// The order with as few large gradients in memory, and then as many updates moved up, as cost
  /// next to nothing at any pace of the wire.
  static std::vector<Operation *> interleave(const ProgramScheduler &scheduler,
                                             const OverlapSimulator &simulator,
                                             const std::vector<Operation *> &order) {
    size_t gradients = scheduler.largeGradientCount();
    std::vector<OverlapSimulator> paces;
    std::vector<uint64_t> limits;
    for (double pace : wirePaces) {
      paces.push_back(simulator.faster(pace));
      uint64_t total = paces.back().run(itemsOf(order)).total();
      limits.push_back(total + (gradients ? total / priceOfMemory : 0));
    }
    Interleaver::Choice choice;
    for (choice.inFlight = 2;; choice.inFlight *= 2) {
      for (choice.pace = 0; choice.pace < paces.size(); ++choice.pace)
        for (choice.atEnd = 0; choice.atEnd < scheduler.bucketCount(); ++choice.atEnd) {
          std::vector<Operation *> trial = Interleaver(scheduler, order, paces, choice).run();
          std::vector<ScheduleItem> items = itemsOf(trial);
          if (llvm::all_of(llvm::zip(paces, limits), [&](auto it) {
                return std::get<0>(it).run(items).total() <= std::get<1>(it);
              }))
            return trial;
        }
      if (choice.inFlight >= gradients)
        return order;
    }
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
