#include "passes/exec/SumVerifier.h"

#include "passes/codegen/GeneratedKernel.h"
#include "passes/exec/InstructionPhase.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

static bool counts(Operation *instruction) {
  return phaseOf(instruction) == artifact::Phase::Count;
}

LogicalResult SumVerifier::verify(Operation *instruction) {
  if (failed(verifyOperands(instruction)))
    return failure();
  if (auto add = dyn_cast<AccumulateOp>(instruction))
    return verifyAccumulate(add);
  if (auto start = dyn_cast<StartOp>(instruction))
    return verifyStart(start);
  if (auto wait = dyn_cast<exec::WaitOp>(instruction))
    return verifyWait(wait);
  if (auto recall = dyn_cast<RecallOp>(instruction))
    return verifyRecall(recall);
  return success();
}

LogicalResult SumVerifier::verifyOperands(Operation *op) {
  auto add = dyn_cast<AccumulateOp>(op);
  auto recall = dyn_cast<RecallOp>(op);
  for (Value operand : op->getOperands()) {
    BufferOp buffer = rootOf(operand).buffer;
    if (recall && operand == recall.getSum())
      continue;
    bool isSum = add && operand == add.getSum();
    if (isSum ? operand != buffer.getBuffer() || !used.insert(buffer).second
              : buffer.getArena() == ArenaKind::Sums)
      return op->emitOpError("uses a sum that is not its own");
    if (isSum && buffer.getArena() != ArenaKind::Sums)
      return op->emitOpError("adds up in the arena ")
             << stringifyArenaKind(buffer.getArena()) << ", expected sums";
    if (!isSum && !isa<StartOp>(op) && summed.contains(buffer))
      return op->emitOpError("uses a bucket after it was added to its sum");
    if (!recall && awaiting.contains(buffer))
      return op->emitOpError("uses a bucket that has not been recalled");
  }
  return success();
}

LogicalResult SumVerifier::verifyAccumulate(AccumulateOp add) {
  if (!add.getBucket().getDefiningOp<BufferOp>())
    return add.emitOpError("adds up a part of a bucket");
  BufferOp bucket = rootOf(add.getBucket()).buffer;
  summed.insert(bucket);
  sums[bucket] = add;
  auto kernel = symbols.lookup<KernelOp>(add.getKernel());
  auto cluster = symbols.lookup<ClusterOp>(kernel.getCluster().value_or(""));
  if (!cluster || !canShare(cluster, 0, 0))
    return add.emitOpError("adds by ") << add.getKernelAttr() << ", which is not in place";
  Block &body = cluster.getBody().front();
  auto sum = dyn_cast<nn::AddOp>(body.front());
  if (!sum || body.getOperations().size() != 2 || body.getTerminator()->getOperand(0) != sum ||
      !llvm::equal(sum->getOperands(), body.getArguments()))
    return add.emitOpError("adds by ") << add.getKernelAttr() << ", which is no sum";
  return success();
}

LogicalResult SumVerifier::verifyStart(StartOp start) {
  BufferOp bucket = rootOf(start.getBucket()).buffer;
  if (summed.remove(bucket) && counts(sums.lookup(bucket)) != counts(start))
    return start.emitOpError("is not of the phase of its sum");
  inFlight[start.getCollective()] = start;
  return success();
}

LogicalResult SumVerifier::verifyWait(exec::WaitOp wait) {
  StartOp start = inFlight.lookup(wait.getCollective());
  if (!start)
    return success(); // which is reported with the collectives
  if (counts(wait) != counts(start))
    return wait.emitOpError("is not of the phase of its collective");
  BufferOp bucket = rootOf(start.getBucket()).buffer;
  if (counts(wait) && sums.contains(bucket)) // before dlc-accumulate-gradients there are no sums
    awaiting.insert(bucket);
  return success();
}

LogicalResult SumVerifier::verifyRecall(RecallOp recall) {
  BufferOp bucket = rootOf(recall.getBucket()).buffer;
  if (!awaiting.remove(bucket) || recall.getSum() != sums.lookup(bucket).getSum() ||
      recall.getBucket() != bucket.getBuffer())
    return recall.emitOpError("recalls no sum of a collective of phase count");
  return success();
}

LogicalResult SumVerifier::finish() {
  if (!summed.empty())
    return summed.front()->emitOpError("is added up, but no collective of it starts afterwards");
  if (!awaiting.empty())
    return awaiting.front()->emitOpError("is counted ahead and never recalled");
  return success();
}
