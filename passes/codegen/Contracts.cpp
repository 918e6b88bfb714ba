#include "passes/codegen/Contracts.h"

#include "dialects/NN/ElementType.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace dlc;

rt::KernelContract dlc::contractOf(exec::KernelOp kernel) {
  rt::KernelContract contract(static_cast<int64_t>(kernel.getExtent()),
                              static_cast<int64_t>(kernel.getChunk()));
  for (Type type : kernel.getTypes().getAsValueRange<TypeAttr>()) {
    auto tensor = cast<RankedTensorType>(type);
    contract.add(nn::dtypeOf(tensor.getElementType()), tensor.getShape().vec(),
                 nn::layoutOf(tensor));
  }
  return contract;
}

void dlc::signClusters(nn::ModelOp model) {
  llvm::StringMap<rt::ClusterSignature> signatures;
  for (auto kernel : model.getOps<exec::KernelOp>())
    if (std::optional<StringRef> cluster = kernel.getCluster())
      signatures[*cluster].add(std::to_string(kernel.getStage()), contractOf(kernel).value());
  Builder builder(model.getContext());
  auto named = [&](StringRef cluster) {
    return (cluster + "_" + signatures[cluster].text()).str();
  };
  for (auto kernel : model.getOps<exec::KernelOp>())
    if (std::optional<StringRef> cluster = kernel.getCluster()) {
      std::string name = named(*cluster);
      kernel.setFunction(name + "_" + std::to_string(kernel.getStage()));
      kernel.setCluster(name);
    }
  for (auto cluster : model.getOps<exec::ClusterOp>())
    cluster.setSymName(named(cluster.getSymName()));
}
