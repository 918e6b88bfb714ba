// dlc-recompute-kernels: a library kernel whose result is only held where the program is at its
// peak runs once more behind the peak, if the memory saved is worth its time.
//
// The pass finds out what a recomputation saves by making it: operands live longer, and another op
// may then be the peak. The recomputation that gains most is kept, until none gains. How much one
// can save at most is known before, from what is live where it changes nothing, so few are made.
// Clusters are not recomputed: they have their cheap producers inside
// (dlc-rematerialize-producers).

#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/planning/LiveBytes.h"
#include "passes/planning/MemoryPrice.h"
#include "passes/planning/PlannedKernel.h"

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
  if (!isLibraryKernel(kernel) || kernel->getNumResults() != 1 ||
      hasOwnPlace(kernel->getResult(0)) || !kernel->isBeforeInBlock(peak))
    return {};
  // Sums are formed in the memory of gradients.
  for (Value operand : kernel->getOperands())
    if (hasOwnPlace(operand))
      return {};
  SmallVector<Operation *> readers;
  for (Operation *user : kernel->getUsers()) {
    // A view would need one of the new result; the others are read when the program has run.
    if (user == peak || user->hasTrait<nn::ReadByHost>() || isa<nn::ReshapeOp>(user))
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
    nn::Role role = nn::roleOf(again);
    role.phase = nn::Phase::Backward;
    nn::setRole(again, role);
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
    if (failed(requireStage(getOperation(), nn::Stage::Schedule)))
      return signalPassFailure();
    variables = variableBytes(getOperation());
    programs.clear();
    for (auto program : getOperation().getBody().getOps<nn::ProgramOp>()) {
      Block &block = program.getBody().front();
      programs.push_back({&block, LiveBytes(block)});
    }
    while (lowerPeak())
      ;
  }

private:
  struct Program {
    Block *block;
    LiveBytes live;
  };

  /// The program that takes most, as it is.
  struct Peak {
    Program *program = nullptr;
    uint64_t bytes = 0, others = 0; // bytes of the next one
    double step = 0;                // nanoseconds of all kernels
  };

  struct Choice {
    Operation *kernel;
    unsigned number; // of the op in the program
    SmallVector<Operation *> readers;
    double most;        // that is gained
    uint64_t saved = 0; // once it has been tried, like the gain
    double gain = 0;    // share of a step
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
    Peak peak;
    for (Program &program : programs) {
      uint64_t bytes = program.live.peak();
      peak.others = std::max(peak.others, std::min(peak.bytes, bytes));
      if (bytes <= peak.bytes)
        continue;
      peak.program = &program;
      peak.bytes = bytes;
    }
    if (!peak.program)
      return false;
    peak.step = stepOf(*peak.program->block);
    std::optional<Choice> best;
    for (Choice &choice : choices(peak)) {
      if (best && choice.most < best->gain)
        break;
      bool isBetter = tryOut(choice, peak) && (!best || std::pair(-choice.gain, choice.number) <
                                                            std::pair(-best->gain, best->number));
      if (isBetter)
        best = std::move(choice);
    }
    if (!best)
      return false;
    Recomputation(best->kernel, best->readers).keep(best->saved);
    peak.program->live = LiveBytes(*peak.program->block);
    explain(*best, peak.step);
    return true;
  }

  /// What running a kernel again gains if it saves some bytes.
  double gainOf(Operation *kernel, uint64_t saved, const Peak &peak) const {
    double share = static_cast<double>(plannedKernel(kernel).getNanoseconds()) / peak.step;
    return worthOf(saved, variables + peak.bytes) - share;
  }

  /// Kernels that may gain something, those that may gain most first.
  std::vector<Choice> choices(const Peak &peak) const {
    const LiveBytes &live = peak.program->live;
    DenseMap<Operation *, unsigned> numbers;
    SmallVector<uint64_t> ahead{0}; // the most bytes live ahead of each op
    for (Operation &op : *peak.program->block) {
      numbers[&op] = ahead.size() - 1;
      ahead.push_back(std::max(ahead.back(), live.at(&op)));
    }
    SmallVector<uint64_t> behind(ahead.size(), 0); // from each op on
    for (Operation &op : llvm::reverse(*peak.program->block))
      behind[numbers[&op]] = std::max(behind[numbers[&op] + 1], live.at(&op));
    std::vector<Choice> found;
    for (Operation &op : *peak.program->block) {
      SmallVector<Operation *> readers;
      if (plannedKernel(&op))
        readers = readersBehind(&op, live.peakOp());
      if (readers.empty())
        continue;
      // Where the result is needed, no less is live. Elsewhere its own bytes less at most, but more
      // by the operands that are kept for the kernel to run again.
      unsigned last = numbers[&op], again = numbers[readers.front()];
      for (Operation *user : op.getUsers())
        if (unsigned number = numbers[user]; number < again)
          last = std::max(last, number);
      uint64_t least = std::max({peak.others, ahead[last], behind[again]});
      auto size = static_cast<uint64_t>(nn::physicalBytes(nn::tensorType(op.getResult(0))));
      uint64_t kept = live.releasedAtPeak(&op);
      if (least >= peak.bytes || kept >= size)
        continue;
      double most = gainOf(&op, std::min(size - kept, peak.bytes - least), peak);
      if (most > 0)
        found.push_back({&op, numbers[&op], std::move(readers), most});
    }
    llvm::sort(found, [](const Choice &a, const Choice &b) {
      return std::pair(-a.most, a.number) < std::pair(-b.most, b.number);
    });
    return found;
  }

  /// True if the choice gains something; says how much.
  bool tryOut(Choice &choice, const Peak &peak) const {
    Recomputation trial(choice.kernel, choice.readers);
    uint64_t now = std::max(peak.others, LiveBytes(*peak.program->block).peak());
    trial.takeBack();
    if (now >= peak.bytes)
      return false;
    choice.saved = peak.bytes - now;
    choice.gain = gainOf(choice.kernel, choice.saved, peak);
    return choice.gain > 0;
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
  SmallVector<Program> programs;
};
} // namespace
