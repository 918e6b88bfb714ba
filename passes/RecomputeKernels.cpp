// dlc-recompute-kernels: a library kernel whose result is only held where the program is at its
// peak runs again behind it, if that is worth its time.
//
// What a recomputation saves is seen by making it: operands live longer, and another op may then be
// the peak. The one that gains most is kept, until none does. Clusters compute again what they can
// inside of themselves (dlc-rematerialize); they do not run twice.

#include "passes/KernelRequests.h"
#include "passes/LiveBytes.h"
#include "passes/MemoryPrice.h"
#include "passes/Passes.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_RECOMPUTEKERNELS
#include "passes/Passes.h.inc"
} // namespace dlc

/// The readers of a kernel's result behind `peak`, in the order of the program; none if the kernel
/// cannot run again or if its result has to lie there all the time.
static SmallVector<Operation *> readersBehind(Operation *kernel, Operation *peak) {
  if (!isLibraryOp(kernel) || kernel->getNumResults() != 1 || hasOwnPlace(kernel->getResult(0)) ||
      !kernel->isBeforeInBlock(peak))
    return {};
  // Sums are formed in the memory of gradients.
  for (Value operand : kernel->getOperands())
    if (hasOwnPlace(operand))
      return {};
  SmallVector<Operation *> readers;
  for (Operation *user : kernel->getUsers()) {
    // A view would need one of the new result; the others are read when the program has run.
    if (user == peak || isa<nn::ReshapeOp, nn::LossOp, nn::MetricOp, nn::OutputOp>(user))
      return {};
    if (peak->isBeforeInBlock(user) && !llvm::is_contained(readers, user))
      readers.push_back(user);
  }
  llvm::sort(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return readers;
}

namespace {
/// A kernel that runs again for some readers, as long as it is not taken back.
class Recomputation {
public:
  Recomputation(Operation *kernel, ArrayRef<Operation *> readers)
      : kernel(kernel), readers(readers) {
    OpBuilder builder(readers.front());
    again = builder.clone(*kernel);
    redirect(kernel->getResult(0), again->getResult(0));
  }

  void takeBack() {
    redirect(again->getResult(0), kernel->getResult(0));
    again->erase();
  }

  void keep(uint64_t saved) {
    again->setAttr(recomputedName, Builder(again).getI64IntegerAttr(static_cast<int64_t>(saved)));
  }

private:
  void redirect(Value from, Value to) {
    for (Operation *reader : readers)
      reader->replaceUsesOfWith(from, to);
  }

  Operation *kernel, *again;
  ArrayRef<Operation *> readers;
};

struct RecomputeKernelsPass : dlc::impl::RecomputeKernelsBase<RecomputeKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), "schedule")))
      return signalPassFailure();
    variables = variableBytes(getOperation());
    while (lowerPeak())
      ;
  }

private:
  struct Choice {
    Operation *kernel;
    SmallVector<Operation *> readers;
    uint64_t saved;
    double gain; // share of a step
  };

  /// Nanoseconds of all kernels.
  static double stepOf(Block &block) {
    double step = 0;
    for (Operation &op : block)
      if (nn::KernelAttr kernel = plannedKernel(&op))
        step += static_cast<double>(kernel.getNanoseconds());
    return step;
  }

  /// True if a recomputation was worth it. Programs share their memory, so only the one that takes
  /// most counts, and only down to the next one.
  bool lowerPeak() {
    Block *block = nullptr;
    Operation *peakOp = nullptr;
    uint64_t peak = 0, others = 0;
    for (auto program : getOperation().getBody().getOps<nn::ProgramOp>()) {
      LiveBytes live(program.getBody().front());
      others = std::max(others, std::min(peak, live.peak()));
      if (live.peak() <= peak)
        continue;
      block = &program.getBody().front();
      peakOp = live.peakOp();
      peak = live.peak();
    }
    if (!block)
      return false;
    std::optional<Choice> best;
    double step = stepOf(*block);
    for (Operation &op : llvm::make_early_inc_range(*block))
      if (std::optional<Choice> choice = judge(&op, peakOp, peak, others, step);
          choice && (!best || choice->gain > best->gain))
        best = std::move(choice);
    if (!best)
      return false;
    Recomputation(best->kernel, best->readers).keep(best->saved);
    explain(*best, step);
    return true;
  }

  /// What running a kernel again gains, if anything.
  std::optional<Choice> judge(Operation *op, Operation *peakOp, uint64_t peak, uint64_t others,
                              double step) {
    nn::KernelAttr kernel = plannedKernel(op);
    SmallVector<Operation *> readers = readersBehind(op, peakOp);
    if (!kernel || readers.empty())
      return std::nullopt;
    double share = static_cast<double>(kernel.getNanoseconds()) / step;
    auto most = static_cast<uint64_t>(nn::physicalBytes(nn::tensorType(op->getResult(0))));
    if (worthOf(most, variables + peak) <= share)
      return std::nullopt;
    Recomputation trial(op, readers);
    uint64_t now = std::max(others, LiveBytes(*op->getBlock()).peak());
    trial.takeBack();
    if (now >= peak || worthOf(peak - now, variables + peak) <= share)
      return std::nullopt;
    return Choice{op, std::move(readers), peak - now,
                  worthOf(peak - now, variables + peak) - share};
  }

  void explain(const Choice &choice, double step) {
    auto nanoseconds = static_cast<double>(plannedKernel(choice.kernel).getNanoseconds());
    remark::passed(choice.kernel->getLoc(),
                   remark::RemarkOpts::name("recomputed").category("dlc-recompute-kernels"))
        << llvm::formatv("runs again in backward: {0} bytes less at the peak for {1:f1} us, {2:f2} "
                         "% of the step",
                         choice.saved, nanoseconds / 1e3, 100 * nanoseconds / step)
               .str();
  }

  uint64_t variables = 0;
};
} // namespace
