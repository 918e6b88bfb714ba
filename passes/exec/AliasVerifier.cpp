// Buffers are compared by the range of their root that they cover.

#include "passes/exec/AliasVerifier.h"

#include "passes/codegen/GeneratedKernel.h"
#include "passes/exec/Liveness.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

static RankedTensorType tensorOf(Value buffer) {
  return cast<BufferType>(buffer.getType()).getTensor();
}

static bool overlap(Value a, Value b) {
  Root first = rootOf(a), second = rootOf(b);
  return first.buffer == second.buffer &&
         first.offset < second.offset + nn::physicalBytes(tensorOf(b)) &&
         second.offset < first.offset + nn::physicalBytes(tensorOf(a));
}

LogicalResult AliasVerifier::verify(Operation *instruction) {
  SmallVector<Access> accesses = accessesOf(instruction, kernels);
  OperandRange buffers = instruction->getOperands();
  for (unsigned written = 0; written < buffers.size(); ++written)
    for (unsigned other = 0; other < buffers.size(); ++other) {
      if (accesses[written] == Access::Read || other == written ||
          !overlap(buffers[written], buffers[other]))
        continue;
      bool isInPlace = accesses[other] == Access::Read &&
                       tensorOf(buffers[other]) == tensorOf(buffers[written]) &&
                       rootOf(buffers[other]).offset == rootOf(buffers[written]).offset;
      if (!isInPlace || !isElementwise(instruction, other, written))
        return instruction->emitOpError("writes buffer ")
               << written << " over buffer " << other << ", which it uses otherwise";
    }
  return success();
}

bool AliasVerifier::isElementwise(Operation *instruction, unsigned read, unsigned written) {
  auto dispatch = dyn_cast<DispatchOp>(instruction);
  auto kernel = dispatch ? kernels.lookup<KernelOp>(dispatch.getKernel()) : KernelOp();
  if (!kernel || !kernel.getCluster())
    return false;
  auto cluster = kernels.lookup<ClusterOp>(*kernel.getCluster());
  if (!cluster)
    return false;
  std::optional<GeneratedKernel> plan = GeneratedKernel::of(cluster);
  if (!plan || kernel.getStage() >= plan->stages.size())
    return false;
  const SmallVector<unsigned> &buffers = plan->stages[kernel.getStage()].buffers;
  unsigned operands = cluster.getBody().getNumArguments();
  return read < buffers.size() && written < buffers.size() && buffers[written] >= operands &&
         canShare(cluster, buffers[read], buffers[written] - operands);
}
