// The half of the cluster runner that executes PTX.

#include "passes/codegen/ProductPlan.h"
#include "passes/codegen/gpu/GenerateKernels.h"
#include "runtime/cuda/CudaTarget.h"
#include "test/ptx/Emulator.h"
#include "test/unit/passes/ClusterRunner.h"
#include "test/unit/passes/Elements.h"
#include "test/unit/passes/GpuModels.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace dlc;
using namespace dlc::test;
using reference::Tensor;

namespace {
/// A cluster as kernels for a GPU, and its buffers in the emulated device's memory.
class GpuCluster {
public:
  /// `isModels`: its stages' bytes are compared with the plan's, which are more than those of
  /// windows that a test spreads over next to nothing.
  GpuCluster(Operation *module, bool isModels);
  std::vector<Tensor> run(const std::vector<Tensor> &operands);

private:
  void addBuffer(RankedTensorType type, const Tensor *values);
  void runStage(unsigned index);
  void expectTouched(const GeneratedStage &stage, const std::string &entry);
  void runInOtherOrder(const GeneratedStage &stage, ptx::Launch launch);
  Tensor result(unsigned buffer);

  bool isModels;
  OwningOpRef<Operation *> module;
  exec::ClusterOp cluster;
  GeneratedKernel kernel;
  llvm::StringMap<Launch> launches;
  ptx::Module code;
  ptx::Memory memory;
  std::vector<RankedTensorType> types;
  std::vector<uint64_t> addresses;
  std::vector<uint64_t> written; // bytes of each buffer, by all stages
  // The same for blocks in another order: unchecked, since it takes a fraction of the time.
  ptx::Memory otherMemory;
  std::vector<std::vector<std::byte>> copies;
  std::vector<uint64_t> otherAddresses;
};
} // namespace

GpuCluster::GpuCluster(Operation *original, bool isModels)
    : isModels(isModels), module(original->clone()) {
  auto model = *cast<ModuleOp>(*module).getOps<nn::ModelOp>().begin();
  for (auto other : llvm::make_early_inc_range(model.getOps<exec::ClusterOp>()))
    if (other.getSymName() != "c")
      other.erase();
  cluster = model.lookupSymbol<exec::ClusterOp>("c");
  FailureOr<GeneratedKernel> plan =
      planGeneratedKernel(cluster.getBody().front(), rt::CudaTarget::loops());
  EXPECT_TRUE(succeeded(plan));
  kernel = *plan;
  kernel.writeTo(cluster);
  FailureOr<std::string> text = emitGpuClusters(model, launches);
  EXPECT_TRUE(succeeded(text));
  std::string reason;
  code = ptx::parse(*text, reason);
  EXPECT_EQ(reason, "");
}

/// Results start as bytes that nobody wrote, and operands' padding as zeros.
void GpuCluster::addBuffer(RankedTensorType type, const Tensor *values) {
  types.push_back(type);
  uint64_t bytes = nn::physicalBytes(type);
  auto use = values ? ptx::Use::Read : ptx::Use::ReadWrite;
  addresses.push_back(memory.add("buffer " + std::to_string(addresses.size()), bytes, use));
  written.push_back(0);
  copies.emplace_back(bytes);
  otherAddresses.push_back(otherMemory.add("copy", copies.back(), use));
  if (!values)
    return;
  rt::Layout layout = nn::layoutOf(type);
  std::vector<int64_t> shape = type.getShape().vec();
  unsigned each = nn::elementBytes(type.getElementType());
  std::vector<char> physical(bytes);
  reference::forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
    storeElement(type.getElementType(), &physical[layout.offsetOf(shape, index.vec()) * each],
                 values->at(index));
  });
  memory.write(addresses.back(), physical.data(), bytes);
  std::memcpy(copies.back().data(), physical.data(), bytes);
}

/// A stage touches what it is planned to, to 1 %. Three things are planned as read that are not all
/// read: padding, an operand of which a slice is read more than once, and the upper half of a
/// number of 64 bits, of which random draws may need the lower one.
void GpuCluster::expectTouched(const GeneratedStage &stage, const std::string &entry) {
  bool slices = !cluster.getBody().getOps<nn::SliceOp>().empty();
  uint64_t touched = 0, unread = 0;
  for (auto [buffer, access] : llvm::zip(stage.buffers, stage.access)) {
    uint64_t own = memory.touchedIn(addresses[buffer]);
    touched += own;
    RankedTensorType type = types[buffer];
    uint64_t physical = nn::physicalBytes(type),
             logical = type.getNumElements() * nn::elementBytes(type.getElementType());
    if (access == exec::Access::Read)
      unread += physical - (slices ? own : logical);
    if (access == exec::Access::Read && type.getRank() == 0 && own > 0 && !slices)
      unread += logical - own;
  }
  auto planned = static_cast<double>(stage.bytes);
  EXPECT_LE(static_cast<double>(touched), 1.01 * planned) << entry;
  EXPECT_GE(static_cast<double>(touched + unread), 0.99 * planned) << entry << ": " << touched;
}

/// Runs the blocks of a stage once more, the first one first: no bit of what it writes may differ.
void GpuCluster::runInOtherOrder(const GeneratedStage &stage, ptx::Launch launch) {
  launch.order.clear();
  for (auto [argument, buffer] : llvm::zip(launch.arguments, stage.buffers))
    argument = otherAddresses[buffer];
  if (launch.blocks > 1)
    EXPECT_THAT(ptx::Emulator(code, otherMemory).run(launch).faults, testing::IsEmpty());
  for (auto [buffer, access] : llvm::zip(stage.buffers, stage.access)) {
    if (access == exec::Access::Read)
      continue;
    std::vector<std::byte> bytes(copies[buffer].size());
    memory.read(addresses[buffer], bytes.data(), bytes.size());
    if (launch.blocks > 1)
      EXPECT_TRUE(bytes == copies[buffer])
          << launch.entry << ": buffer " << buffer << " depends on the order of blocks";
    llvm::copy(bytes, copies[buffer].begin());
  }
}

/// Runs the blocks of a stage, the last one first.
void GpuCluster::runStage(unsigned index) {
  const GeneratedStage &stage = kernel.stages[index];
  ptx::Launch launch = launchOf(cluster, index, stage, launches, addresses);
  for (uint32_t block = launch.blocks; block-- > 0;)
    launch.order.push_back(block);
  ptx::Report report = ptx::Emulator(code, memory).run(launch);
  for (const std::string &fault : report.faults)
    ADD_FAILURE() << fault;
  EXPECT_EQ(launches.at(launch.entry).sharedBytes, code.entries.at(launch.entry).sharedBytes);
  for (auto [total, address] : llvm::zip(written, addresses))
    total += memory.writtenIn(address);
  if (isModels)
    expectTouched(stage, launch.entry);
  runInOtherOrder(stage, launch);
}

/// The logical tensor; all of its memory was written, once, and what lies beside it is zero.
Tensor GpuCluster::result(unsigned buffer) {
  RankedTensorType type = types[buffer];
  rt::Layout layout = nn::layoutOf(type);
  std::vector<int64_t> shape = type.getShape().vec();
  unsigned each = nn::elementBytes(type.getElementType());
  std::vector<char> physical(nn::physicalBytes(type));
  EXPECT_EQ(written[buffer], physical.size()) << "bytes of result " << buffer;
  memory.read(addresses[buffer], physical.data(), physical.size());
  Tensor values(type.getShape());
  reference::forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
    char *place = &physical[layout.offsetOf(shape, index.vec()) * each];
    values.at(index) = loadElement(type.getElementType(), place);
    std::fill(place, place + each, 0);
  });
  EXPECT_TRUE(llvm::all_of(physical, [](char byte) { return byte == 0; })) << "padding is not zero";
  return values;
}

std::vector<Tensor> GpuCluster::run(const std::vector<Tensor> &operands) {
  for (auto [argument, operand] : llvm::zip(cluster.getBody().getArguments(), operands))
    addBuffer(nn::tensorType(argument), &operand);
  auto yield = cast<nn::YieldOp>(cluster.getBody().front().getTerminator());
  for (Value value : yield.getValues())
    addBuffer(nn::tensorType(value), nullptr);
  for (RankedTensorType type : kernel.scratch)
    addBuffer(type, nullptr);
  for (unsigned stage = 0; stage < kernel.stages.size(); ++stage)
    runStage(stage);
  std::vector<Tensor> outcome;
  for (unsigned i = 0; i < yield.getNumOperands(); ++i)
    outcome.push_back(result(operands.size() + i));
  return outcome;
}

std::vector<Tensor> ClusterRunner::runOnGpu(const std::vector<Tensor> &operands) {
  return GpuCluster(*module, /*isModels=*/false).run(operands);
}

std::vector<Tensor> ClusterRunner::runOnGpu(Region &body, const std::vector<Tensor> &operands) {
  return GpuCluster(*moduleOf(body), /*isModels=*/true).run(operands);
}

/// Sums of ones are exact in whatever order.
static bool isCount(Operation *op) {
  auto sum = dyn_cast<nn::ReduceSumOp>(op);
  auto choice = sum ? sum.getX().getDefiningOp<nn::SelectOp>() : nn::SelectOp();
  return choice && nn::splatValue(choice.getA()) == 0 && nn::splatValue(choice.getB()) == 1;
}

bool ClusterRunner::mayDifferOnGpu(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  bool isWide = nn::isTensor(value.getType()) && getElementTypeOrSelf(value.getType()).isF64();
  return isWide ||
         (isa<nn::ReductionOpInterface, nn::ConvGradFilterOp, nn::PowOp>(op) && !isCount(op)) ||
         llvm::any_of(op->getOperands(), mayDifferOnGpu);
}

void ClusterRunner::checkOnGpu(const std::vector<Tensor> &operands,
                               const std::vector<Tensor> &onCpu, const std::vector<Tensor> &want,
                               double ulps, double absolute) {
  if (productOf(cluster()))
    return; // the library's
  SCOPED_TRACE("on a GPU");
  std::vector<Tensor> got = runOnGpu(operands);
  if (llvm::any_of(cluster().getTerminator()->getOperands(), mayDifferOnGpu))
    compare(got, want, ulps, absolute);
  else
    compare(got, onCpu, /*ulps=*/0, /*absolute=*/0);
}
