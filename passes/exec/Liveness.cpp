// One walk over the instructions finds the first and the last that touch a buffer. Collectives in
// flight and the host extend the interval.

#include "passes/exec/Liveness.h"

using namespace mlir;
using namespace dlc;

Liveness::Liveness(exec::ProgramOp program) {
  for (Operation &op : program.getBody().front())
    if (op.hasTrait<exec::Instruction>())
      order.push_back(&op);
  DenseMap<int64_t, Value> inFlight;
  for (auto [index, op] : llvm::enumerate(order)) {
    auto at = static_cast<int64_t>(index);
    for (Value operand : op->getOperands())
      touch(operand, at);
    if (auto start = dyn_cast<exec::StartOp>(op))
      inFlight[start.getCollective()] = start.getBucket();
    if (auto wait = dyn_cast<exec::WaitOp>(op))
      if (Value bucket = inFlight.lookup(wait.getCollective()))
        touch(bucket, at);
    if (auto download = dyn_cast<exec::DownloadOp>(op))
      for (Value buffer : download.getBuffers())
        touch(buffer, static_cast<int64_t>(order.size()) - 1);
  }
  for (auto &[op, interval] : live) {
    auto buffer = cast<exec::BufferOp>(op);
    bool isSum = buffer.getArena() == exec::ArenaKind::Sums;
    if (isSum || buffer.getInput())
      interval.begin = 0;
    if (isSum)
      interval.end = static_cast<int64_t>(order.size()) - 1;
  }
}

void Liveness::touch(Value buffer, int64_t at) {
  exec::BufferOp root = exec::rootOf(buffer).buffer;
  auto [entry, inserted] = live.insert({root.getOperation(), LiveInterval{at, at}});
  entry->second.end = std::max(entry->second.end, at);
}

SmallVector<exec::Access> dlc::accessesOf(Operation *op, SymbolTable &kernels) {
  using exec::Access;
  SmallVector<Access> accesses(op->getNumOperands(), Access::Read);
  if (auto dispatch = dyn_cast<exec::DispatchOp>(op)) {
    auto kernel = kernels.lookup<exec::KernelOp>(dispatch.getKernel());
    for (auto [access, number] : llvm::zip(accesses, kernel.getAccess()))
      access = static_cast<Access>(number);
  } else if (isa<exec::StartOp, exec::AccumulateOp, exec::RecallOp>(op)) {
    llvm::fill(accesses, Access::ReadWrite);
  } else if (isa<exec::UploadOp>(op)) {
    llvm::fill(accesses, Access::Write);
  } else if (isa<exec::CopyOp, exec::CheckOp>(op)) {
    accesses.back() = Access::Write;
  }
  return accesses;
}
