// dlc-plan-memory: offsets of buffers and sizes of arenas. The placement itself is MemoryPlanner.

#include "passes/Passes.h"
#include "passes/exec/Liveness.h"
#include "passes/planning/MemoryPlanner.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

namespace dlc {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
struct ArenaSize {
  int64_t bytes = 0;
  int64_t lowerBound = 0;
};

class PlanMemoryPass : public dlc::impl::PlanMemoryBase<PlanMemoryPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Exec)))
      return signalPassFailure();
    DenseMap<ArenaKind, ArenaSize> sizes;
    placeVariables(sizes);
    for (auto program : getOperation().getBody().getOps<exec::ProgramOp>())
      placeProgram(program, sizes);
    for (auto arena : getOperation().getBody().getOps<ArenaOp>()) {
      Builder builder(arena);
      arena.setBytesAttr(builder.getI64IntegerAttr(sizes[arena.getKind()].bytes));
      arena.setLowerBoundAttr(builder.getI64IntegerAttr(sizes[arena.getKind()].lowerBound));
    }
  }

private:
  static void setOffset(BufferOp buffer, int64_t offset) {
    buffer.setOffsetAttr(Builder(buffer).getI64IntegerAttr(offset));
  }

  static int64_t takeBytes(ArenaSize &size, RankedTensorType type) {
    int64_t offset = size.bytes;
    size.lowerBound = size.bytes += alignUp(nn::physicalBytes(type));
    return offset;
  }

  /// Variables keep their place over programs: first those that share a buffer, then one behind the
  /// other in the order of the model.
  void placeVariables(DenseMap<ArenaKind, ArenaSize> &sizes) {
    SymbolTable symbols(getOperation());
    DenseMap<StringRef, int64_t> offsets;
    getOperation().walk([&](BufferOp buffer) {
      if (!buffer.getVariables())
        return;
      int64_t offset = takeBytes(sizes[buffer.getArena()], buffer.getType().getTensor());
      setOffset(buffer, offset);
      for (auto name : buffer.getVariables()->getAsRange<FlatSymbolRefAttr>()) {
        auto variable = symbols.lookup<nn::VariableOp>(name.getValue());
        offsets[name.getValue()] = offset;
        offset += rangeBytes(cast<RankedTensorType>(variable.getType()));
      }
    });
    for (auto variable : getOperation().getBody().getOps<nn::VariableOp>()) {
      ArenaKind arena =
          variable.getKind() == nn::VariableKind::Slot ? ArenaKind::Slots : ArenaKind::Variables;
      auto [place, isAlone] = offsets.try_emplace(variable.getSymName());
      if (isAlone)
        place->second = takeBytes(sizes[arena], cast<RankedTensorType>(variable.getType()));
      variable->setAttr("offset", Builder(variable).getI64IntegerAttr(place->second));
    }
    getOperation().walk([&](BufferOp buffer) {
      if (buffer.getVariable())
        setOffset(buffer, offsets.lookup(*buffer.getVariable()));
    });
  }

  static void placeProgram(exec::ProgramOp program, DenseMap<ArenaKind, ArenaSize> &sizes) {
    Liveness liveness(program);
    for (ArenaKind arena :
         {ArenaKind::Inputs, ArenaKind::Transient, ArenaKind::Gradients, ArenaKind::Sums}) {
      SmallVector<BufferOp> buffers;
      std::vector<BufferInterval> intervals;
      for (auto [op, live] : liveness.intervals()) {
        auto buffer = cast<BufferOp>(op);
        if (buffer.getArena() != arena)
          continue;
        buffers.push_back(buffer);
        // The host fills inputs before the step and may fill the next step's while this one runs.
        int64_t last = static_cast<int64_t>(liveness.instructions().size()) - 1;
        bool whole = arena == ArenaKind::Inputs;
        intervals.push_back({nn::physicalBytes(buffer.getType().getTensor()),
                             whole ? 0 : live.begin, whole ? last : live.end});
      }
      MemoryPlan plan = planMemory(intervals, bufferAlignment);
      for (auto [buffer, offset] : llvm::zip(buffers, plan.offsets))
        setOffset(buffer, offset);
      sizes[arena].bytes = std::max(sizes[arena].bytes, plan.bytes);
      sizes[arena].lowerBound = std::max(sizes[arena].lowerBound, plan.lowerBound);
    }
  }
};
} // namespace
