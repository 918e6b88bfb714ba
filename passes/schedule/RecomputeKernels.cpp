// dlc-recompute-kernels: a kernel or cluster whose result is only held where the program is at its
// peak runs once more behind the peak, if the memory saved is worth its time.
//
// A device with memory of its own holds what fits for nothing: there only plans that are too large
// are lowered, and only until they fit.
//
// What a recomputation saves follows from what is live at each op: its result no longer is between
// its readers, and operands may live longer. The one that gains most is kept, until none gains. How
// much one can save at most is known before, so few are tried, and those that could lower one peak
// are found once and taken as long as they lower what is left of it.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"
#include "passes/planning/LiveBytes.h"
#include "passes/planning/MemoryPrice.h"
#include "passes/planning/PlannedKernel.h"
#include "passes/planning/PlanningTarget.h"

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
  if (!plannedKernel(kernel) || kernel->getNumResults() != 1 || hasOwnPlace(kernel->getResult(0)) ||
      !kernel->isBeforeInBlock(peak))
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

/// Runs the kernel again for some readers; `saved` bytes less are live at the peak.
static void recompute(Operation *kernel, ArrayRef<Operation *> readers, uint64_t saved) {
  OpBuilder builder(readers.front());
  Operation *again = builder.clone(*kernel);
  for (Operation *reader : readers)
    reader->replaceUsesOfWith(kernel->getResult(0), again->getResult(0));
  nn::Role role = nn::roleOf(again);
  role.phase = nn::Phase::Backward;
  nn::setRole(again, role);
  again->setAttr(recomputedName, builder.getI64IntegerAttr(static_cast<int64_t>(saved)));
}

namespace {
struct RecomputeKernelsPass : dlc::impl::RecomputeKernelsBase<RecomputeKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Schedule)))
      return signalPassFailure();
    std::shared_ptr<rt::KernelPlanner> planner = openPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    uint64_t ofDevice = planner->target().memoryBytes;
    fitting = memoryLimit > 0 ? std::min<uint64_t>(ofDevice, memoryLimit) : ofDevice;
    variables = variableBytes(getOperation());
    programs.clear();
    for (auto program : getOperation().getBody().getOps<nn::ProgramOp>()) {
      Block &block = program.getBody().front();
      programs.push_back({&block, LiveBytes(block)});
    }
    while (lowerPeak(highest()))
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

  /// Bytes that are live in addition while the ops from `begin` to before `end` run.
  struct Change {
    unsigned begin, end;
    int64_t bytes;
  };

  struct Choice {
    Operation *kernel;
    unsigned number; // of the op in the program
    SmallVector<Operation *> readers;
    double most;        // that is gained
    uint64_t saved = 0; // once it has been tried, like the gain
    double gain = 0;    // share of a step
    SmallVector<Change, 2> changes;

    bool reads(const Choice &other) const {
      return llvm::is_contained(kernel->getOperands(), other.kernel->getResult(0));
    }
  };

  /// What may lower a peak, and the bytes live while each op runs, in the program's order.
  struct Round {
    Peak peak;
    std::vector<Choice> open;
    std::vector<int64_t> live;

    uint64_t peakWith(ArrayRef<Change> changes) const {
      std::vector<int64_t> changed = live;
      apply(changes, changed);
      return static_cast<uint64_t>(*llvm::max_element(changed));
    }
    static void apply(ArrayRef<Change> changes, std::vector<int64_t> &live) {
      for (const Change &change : changes)
        for (unsigned number = change.begin; number < change.end; ++number)
          live[number] += change.bytes;
    }
  };

  /// Nanoseconds of all kernels.
  static double stepOf(Block &block) {
    double step = 0;
    for (Operation &op : block)
      if (nn::KernelAttr kernel = plannedKernel(&op))
        step += static_cast<double>(kernel.getNanoseconds());
    return step;
  }

  /// Programs share their memory, so only the one that takes most counts, and only down to the next
  /// one.
  Peak highest() {
    Peak peak;
    for (Program &program : programs) {
      uint64_t bytes = program.live.peak();
      peak.others = std::max(peak.others, std::min(peak.bytes, bytes));
      if (bytes <= peak.bytes)
        continue;
      peak.program = &program;
      peak.bytes = bytes;
    }
    if (peak.program)
      peak.step = stepOf(*peak.program->block);
    return peak;
  }

  /// True if less memory is worth anything. Buffers do not lie without gaps.
  bool isDear(uint64_t peak) const {
    constexpr double gaps = 1.1;
    return fitting == 0 ||
           gaps * static_cast<double>(variables + peak) > static_cast<double>(fitting);
  }

  /// True if a recomputation was worth it.
  bool lowerPeak(const Peak &peak) {
    if (!peak.program || !isDear(peak.bytes))
      return false;
    Round round = findChoices(peak);
    bool isLower = false;
    while (isDear(round.peak.bytes)) {
      std::optional<size_t> number = bestOf(round);
      if (!number)
        break;
      Choice best = round.open[*number];
      recompute(best.kernel, best.readers, best.saved);
      explain(best, peak.step);
      round.peak.bytes -= best.saved;
      Round::apply(best.changes, round.live);
      // The others of one chain need another look.
      llvm::erase_if(round.open, [&](const Choice &choice) {
        return choice.kernel == best.kernel || choice.reads(best) || best.reads(choice);
      });
      isLower = true;
    }
    if (isLower)
      peak.program->live = LiveBytes(*peak.program->block);
    return isLower && peak.program->live.peak() < peak.bytes;
  }

  /// Those that gain nothing now are taken out.
  std::optional<size_t> bestOf(Round &round) const {
    std::vector<Choice> &open = round.open;
    std::optional<size_t> best;
    for (size_t i = 0; i < open.size() && !(best && open[i].most < open[*best].gain);) {
      if (!tryOut(open[i], round)) {
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      auto key = [&](size_t number) { return std::pair(-open[number].gain, open[number].number); };
      if (!best || key(i) < key(*best))
        best = i;
      ++i;
    }
    return best;
  }

  /// What running a kernel again gains if it saves some bytes.
  double gainOf(Operation *kernel, uint64_t saved, const Peak &peak) const {
    double share = static_cast<double>(plannedKernel(kernel).getNanoseconds()) / peak.step;
    return worthOf(saved, variables + peak.bytes) - share;
  }

  using Numbers = DenseMap<Operation *, unsigned>;

  static unsigned lastBefore(Value value, unsigned end, const Numbers &numbers) {
    unsigned last = numbers.lookup(value.getDefiningOp());
    for (Operation *user : value.getUsers())
      if (unsigned number = numbers.lookup(user); number < end)
        last = std::max(last, number);
    return last;
  }

  static int64_t sizeOf(Value value) { return nn::physicalBytes(nn::tensorType(value)); }

  /// The result is not live any more between its readers there. Operands that nobody reads from
  /// `again` on are kept until then; what took over their memory needs its own.
  static SmallVector<Change, 2> changesOf(Operation *kernel, unsigned again, const LiveBytes &live,
                                          const Numbers &numbers) {
    Value result = kernel->getResult(0);
    SmallVector<Change, 2> changes{
        {lastBefore(result, again, numbers) + 1, again, -sizeOf(result)}};
    llvm::SmallDenseSet<Value> seen;
    for (Value operand : kernel->getOperands()) {
      bool isRead = llvm::any_of(operand.getUsers(), [&](Operation *user) {
        return numbers.lookup(user) >= again || user->hasTrait<nn::ReadByHost>();
      });
      if (live.memoryOf(operand).owner && !isRead && seen.insert(operand).second)
        changes.push_back({lastBefore(operand, again, numbers) + 1, again + 1, sizeOf(operand)});
    }
    return changes;
  }

  /// Kernels that may gain something, those that may gain most first.
  Round findChoices(const Peak &peak) const {
    const LiveBytes &live = peak.program->live;
    Round round{peak, {}, {}};
    Numbers numbers;
    SmallVector<uint64_t> ahead{0}; // the most bytes live ahead of each op
    for (Operation &op : *peak.program->block) {
      numbers[&op] = ahead.size() - 1;
      ahead.push_back(std::max(ahead.back(), live.at(&op)));
      round.live.push_back(static_cast<int64_t>(live.at(&op)));
    }
    SmallVector<uint64_t> behind(ahead.size(), 0); // from each op on
    for (Operation &op : llvm::reverse(*peak.program->block))
      behind[numbers[&op]] = std::max(behind[numbers[&op] + 1], live.at(&op));
    for (Operation &op : *peak.program->block) {
      SmallVector<Operation *> readers;
      if (plannedKernel(&op))
        readers = readersBehind(&op, live.peakOp());
      // What lies in the memory of an operand would need that operand instead.
      if (readers.empty() || live.memoryOf(op.getResult(0)).owner != op.getResult(0))
        continue;
      // Where the result is needed, no less is live. Elsewhere its own bytes less at most, but more
      // by the operands that are kept for the kernel to run again.
      unsigned again = numbers[readers.front()];
      unsigned last = lastBefore(op.getResult(0), again, numbers);
      uint64_t least = std::max({peak.others, ahead[last], behind[again]});
      auto size = static_cast<uint64_t>(sizeOf(op.getResult(0)));
      uint64_t kept = live.releasedAtPeak(&op);
      if (least >= peak.bytes || kept >= size)
        continue;
      double most = gainOf(&op, std::min(size - kept, peak.bytes - least), peak);
      if (most > 0)
        round.open.push_back({&op, numbers[&op], std::move(readers), most, 0, 0,
                              changesOf(&op, again, live, numbers)});
    }
    llvm::sort(round.open, [](const Choice &a, const Choice &b) {
      return std::pair(-a.most, a.number) < std::pair(-b.most, b.number);
    });
    return round;
  }

  /// True if the choice gains something; says how much.
  bool tryOut(Choice &choice, const Round &round) const {
    const Peak &peak = round.peak;
    uint64_t now = std::max(peak.others, round.peakWith(choice.changes));
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
  uint64_t fitting = 0; // bytes of a device's own memory that a plan may take; 0: it has none
  SmallVector<Program> programs;
};
} // namespace
