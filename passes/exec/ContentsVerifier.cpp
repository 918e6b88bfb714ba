#include "passes/exec/ContentsVerifier.h"

#include "dialects/NN/NN.h"
#include "passes/exec/InstructionPhase.h"
#include "runtime/artifact/StepPass.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

rt::ArenaRange dlc::rangeOf(Value buffer) {
  Root root = rootOf(buffer);
  auto begin = static_cast<uint64_t>(*root.buffer.getOffset()) + root.offset;
  int64_t bytes = nn::physicalBytes(cast<exec::BufferType>(buffer.getType()).getTensor());
  return {static_cast<uint32_t>(root.buffer.getArena()), begin, begin + bytes};
}

static rt::WrittenRanges::Range bytesOf(Value buffer) {
  rt::ArenaRange range = rangeOf(buffer);
  return {range.begin, range.end};
}

static bool counts(Operation *instruction) {
  return phaseOf(instruction) == artifact::Phase::Count;
}

static nn::VariableOp variableOf(BufferOp buffer, SymbolTable &symbols) {
  return symbols.lookup<nn::VariableOp>(buffer.getVariable().value_or(""));
}

bool dlc::isHostScalar(BufferOp buffer, SymbolTable &symbols) {
  nn::VariableOp variable = variableOf(buffer, symbols);
  return variable && variable.getKind() == nn::VariableKind::Scalar;
}

/// True for scalars, and for states like running statistics.
static bool isChangedAnywhere(Value operand, SymbolTable &symbols) {
  auto buffer = operand.getDefiningOp<BufferOp>();
  nn::VariableOp variable = buffer ? variableOf(buffer, symbols) : nn::VariableOp();
  return variable && (variable.getKind() == nn::VariableKind::Scalar ||
                      variable.getKind() == nn::VariableKind::State);
}

/// Between the slices of a bucket and behind them, nothing is ever written.
void ContentsVerifier::findPadding() {
  DenseMap<Operation *, std::vector<rt::WrittenRanges::Range>> views;
  for (auto view : program.getBody().getOps<ViewOp>())
    if (BufferOp root = rootOf(view.getView()).buffer; root.getArena() == ArenaKind::Gradients)
      views[root].push_back(bytesOf(view.getView()));
  for (auto &[bucket, ranges] : views)
    written[bucket] = rt::WrittenRanges::paddingOf(bytesOf(cast<BufferOp>(bucket).getBuffer()),
                                                   std::move(ranges));
}

/// What is taken for padding may be a slice that nothing writes, so the buckets are as full as
/// their members are large, whose gradients may lack the lanes that a variable's layout pads.
/// Before anything is written.
LogicalResult ContentsVerifier::verifyMembers() {
  DenseSet<Attribute> members;
  int64_t carried = 0, wanted = 0;
  for (auto start : program.getBody().getOps<StartOp>()) {
    BufferOp bucket = rootOf(start.getBucket()).buffer;
    carried += nn::physicalBytes(bucket.getType().getTensor()) -
               static_cast<int64_t>(written.lookup(bucket).total());
    for (Attribute member : start.getMembers())
      if (auto name = dyn_cast<FlatSymbolRefAttr>(member); name && members.insert(name).second)
        if (auto variable = symbols.lookup<nn::VariableOp>(name.getValue()))
          wanted += nn::physicalBytes(nn::logicalType(cast<RankedTensorType>(variable.getType())));
  }
  if (carried < wanted)
    return program.emitOpError("sums ") << carried << " bytes over ranks for members of " << wanted;
  return success();
}

LogicalResult ContentsVerifier::verifyUse(Operation *op, Value operand, Access access) {
  BufferOp root = rootOf(operand).buffer;
  bool isVariables = root.getVariables() || root.getVariable();
  bool isKept = (isVariables && !isHostScalar(root, symbols)) ||
                root.getArena() == ArenaKind::Sums; // over micro-batches
  if (access != Access::Write && !isKept && !written[root].covers(bytesOf(operand)))
    return op->emitOpError("reads a buffer that nothing has written");
  if (access != Access::Write && counts(op) && !isa<RecallOp>(op) &&
      (isVariables ? !isHostScalar(root, symbols) : ofPass.contains(root)))
    return op->emitOpError("of phase count reads what does not depend on inputs alone");
  if (access == Access::Read)
    return success();
  if (taken.contains(root))
    return op->emitOpError("writes a buffer that the host has taken");
  if (isVariables && !rt::isOncePerStep(operationOf(op), phaseOf(op)) &&
      !isChangedAnywhere(operand, symbols))
    return op->emitOpError("writes a variable that the optimizer alone may change");
  if (isVariables && written[root].meets(bytesOf(operand)))
    return op->emitOpError("writes a variable a second time in a step");
  return success();
}

/// Of what several kernels write together, each writes its part.
void ContentsVerifier::write(Operation *op, Value operand) {
  // What all micro-batches and ranks sum up is not one's to count.
  if ((!counts(op) || isa<StartOp>(op)) && !isa<UploadOp>(op))
    ofPass.insert(rootOf(operand).buffer);
  rt::WrittenRanges &root = written[rootOf(operand).buffer];
  auto dispatch = dyn_cast<DispatchOp>(op);
  auto kernel = dispatch ? symbols.lookup<KernelOp>(dispatch.getKernel()) : KernelOp();
  if (!kernel || kernel.getPart() == 0)
    return root.add(bytesOf(operand));
  auto type = cast<exec::BufferType>(operand.getType()).getTensor();
  uint64_t bytes = kernel.getPart() * nn::elementBytes(type.getElementType());
  root.addPart(bytesOf(operand), {reinterpret_cast<uintptr_t>(kernel.getOperation()), bytes});
}

LogicalResult ContentsVerifier::verify(const Liveness &liveness) {
  findPadding();
  if (failed(verifyMembers()))
    return failure();
  for (Operation *op : liveness.instructions()) {
    SmallVector<Access> accesses = accessesOf(op, symbols);
    for (auto [operand, access] : llvm::zip(op->getOperands(), accesses))
      if (failed(verifyUse(op, operand, access)))
        return failure();
    for (auto [operand, access] : llvm::zip(op->getOperands(), accesses)) {
      if (access != Access::Read)
        write(op, operand);
      if (isa<DownloadOp>(op))
        taken.insert(rootOf(operand).buffer);
    }
  }
  return success();
}
