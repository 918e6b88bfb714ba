// dlc-verify-exec: read-only checks of exec programs; numbers are those of the pass's description.

#include "passes/AliasVerifier.h"
#include "passes/Liveness.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

namespace dlc {
#define GEN_PASS_DEF_VERIFYEXEC
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class VerifyExecPass : public dlc::impl::VerifyExecBase<VerifyExecPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    if (getOperation().getStage() != "exec") {
      getOperation().emitOpError("is at stage '")
          << getOperation().getStage() << "', expected exec";
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    if (failed(verifyRanges(symbols)))
      return signalPassFailure();
    for (auto program : getOperation().getBody().getOps<exec::ProgramOp>()) {
      Liveness liveness(program);
      if (failed(verifyPlaces(liveness)) || failed(verifyOverlap(liveness)) ||
          failed(verifyOrder(liveness, symbols)) || failed(verifyCollectives(liveness)))
        return signalPassFailure();
      AliasVerifier aliases(symbols);
      for (Operation *instruction : liveness.instructions())
        if (failed(aliases.verify(instruction)))
          return signalPassFailure();
    }
  }

private:
  LogicalResult verifyRanges(SymbolTable &symbols) { // 7.
    DenseSet<StringRef> seen;
    WalkResult result = getOperation().walk([&](BufferOp buffer) -> WalkResult {
      if (!buffer.getVariables())
        return WalkResult::advance();
      int64_t bytes = 0;
      for (auto name : buffer.getVariables()->getAsRange<FlatSymbolRefAttr>()) {
        auto variable = symbols.lookup<nn::VariableOp>(name.getValue());
        if (!variable || !seen.insert(name.getValue()).second)
          return buffer.emitOpError("holds ")
                 << name << ", which " << (variable ? "another buffer holds" : "is no variable");
        auto place = variable->getAttrOfType<IntegerAttr>("offset");
        int64_t wanted = static_cast<int64_t>(buffer.getOffset().value_or(0)) + bytes;
        if (!place || place.getInt() != wanted)
          return buffer.emitOpError("holds ")
                 << name << " at " << wanted << ", not at " << (place ? place.getInt() : -1);
        bytes += alignUp(nn::physicalBytes(cast<RankedTensorType>(variable.getType())));
      }
      int64_t size = nn::physicalBytes(buffer.getType().getTensor());
      if (bytes > size)
        return buffer.emitOpError("has ") << size << " bytes for variables of " << bytes;
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult verifyPlaces(const Liveness &liveness) {
    DenseMap<ArenaKind, int64_t> sizes;
    for (auto arena : getOperation().getBody().getOps<ArenaOp>())
      sizes[arena.getKind()] = arena.getBytes().value_or(0);
    for (auto [op, live] : liveness.intervals()) {
      auto buffer = cast<BufferOp>(op);
      if (!buffer.getOffset()) // 1.
        return buffer.emitOpError("has no offset; run dlc-plan-memory first");
      int64_t end = *buffer.getOffset() + nn::physicalBytes(buffer.getType().getTensor());
      if (static_cast<int64_t>(*buffer.getOffset()) < 0 ||
          *buffer.getOffset() % bufferAlignment != 0 || end > sizes[buffer.getArena()])
        return buffer.emitOpError("lies at [")
               << *buffer.getOffset() << ", " << end << ") of an arena of "
               << sizes[buffer.getArena()] << " bytes";
    }
    return success();
  }

  static LogicalResult verifyOverlap(const Liveness &liveness) { // 2.
    SmallVector<std::pair<BufferOp, LiveInterval>> placed;
    for (auto [op, live] : liveness.intervals()) {
      auto buffer = cast<BufferOp>(op);
      int64_t begin = *buffer.getOffset(),
              end = begin + nn::physicalBytes(buffer.getType().getTensor());
      for (auto [other, otherLive] : placed) {
        int64_t otherBegin = *other.getOffset();
        int64_t otherEnd = otherBegin + nn::physicalBytes(other.getType().getTensor());
        bool together = live.begin <= otherLive.end && otherLive.begin <= live.end;
        if (other.getArena() == buffer.getArena() && together && begin < otherEnd &&
            otherBegin < end)
          return (buffer.emitOpError("overlaps another buffer that is live at the same time")
                      .attachNote(other.getLoc())
                  << "the other buffer");
      }
      placed.push_back({buffer, live});
    }
    return success();
  }

  static LogicalResult verifyOrder(const Liveness &liveness, SymbolTable &symbols) { // 3. 6.
    DenseSet<Operation *> written;
    for (Operation *op : liveness.instructions()) {
      if (!op->getAttr("stream"))
        return op->emitOpError("has no stream; run dlc-assign-streams first");
      SmallVector<Access> accesses = accessesOf(op, symbols);
      for (auto [operand, access] : llvm::zip(op->getOperands(), accesses)) {
        BufferOp root = rootOf(operand).buffer;
        bool external = root.getVariable() || root.getVariables() || root.getInput();
        if (access == Access::Read && !external && !written.contains(root))
          return op->emitOpError("reads a buffer that nothing has written");
      }
      for (auto [operand, access] : llvm::zip(op->getOperands(), accesses))
        if (access != Access::Read)
          written.insert(rootOf(operand).buffer);
    }
    return success();
  }

  static LogicalResult verifyCollectives(const Liveness &liveness) { // 4. 5.
    int64_t next = 0;
    llvm::MapVector<int64_t, BufferOp> inFlight;
    for (Operation *op : liveness.instructions()) {
      for (Value operand : op->getOperands())
        for (auto &[number, bucket] : inFlight)
          if (rootOf(operand).buffer == bucket)
            return op->emitOpError("touches the bucket of collective ")
                   << number << " while it is in flight";
      if (auto start = dyn_cast<StartOp>(op)) {
        if (static_cast<int64_t>(start.getCollective()) != next++)
          return start.emitOpError("starts collective ")
                 << start.getCollective() << ", expected " << next - 1;
        inFlight[start.getCollective()] = rootOf(start.getBucket()).buffer;
      }
      if (auto wait = dyn_cast<exec::WaitOp>(op))
        if (!inFlight.erase(wait.getCollective()))
          return wait.emitOpError("waits for collective ")
                 << wait.getCollective() << ", which is not in flight";
    }
    if (!inFlight.empty())
      return liveness.instructions().back()->emitOpError(
          "ends the program with a collective in flight");
    return success();
  }
};
} // namespace
