#include "passes/planning/TargetKernels.h"

#include "dialects/NN/ElementType.h"
#include "passes/codegen/GeneratedKernel.h"
#include "passes/planning/PlannedKernel.h"

#include <limits>

using namespace mlir;
using namespace dlc;

static constexpr double infinity = std::numeric_limits<double>::infinity();

TargetKernels::TargetKernels(std::shared_ptr<rt::KernelPlanner> planner, PlanningTarget target)
    : planned(std::move(target)), library(std::move(planner)) {
  providers.push_back(std::make_unique<LibraryProvider>(*library));
  providers.push_back(std::make_unique<CodeProvider>(*library));
}

std::unique_ptr<TargetKernels> TargetKernels::open(nn::ModelOp model) {
  std::shared_ptr<rt::KernelPlanner> planner = openPlanner(model);
  if (!planner)
    return nullptr;
  return std::make_unique<TargetKernels>(std::move(planner), *PlanningTarget::of(model));
}

rt::CandidateList TargetKernels::candidates(Operation *op, const rt::KernelRequest &request) {
  rt::CandidateList all = providers.front()->candidates(op, request);
  for (auto &provider : llvm::drop_begin(providers))
    for (rt::KernelCandidate &candidate : provider->candidates(op, request).candidates)
      all.add(std::move(candidate));
  return all;
}

bool TargetKernels::isGenerated(Operation *op) {
  rt::KernelRequest request = *kernelRequest(op, planned);
  bool isOffered = llvm::any_of(llvm::drop_begin(providers), [&](const auto &provider) {
    return !provider->candidates(op, request).candidates.empty();
  });
  if (!isOffered) // Asking the library takes longer.
    return false;
  rt::CandidateList list = candidates(op, request);
  return !list.candidates.empty() && list.candidates.front().implementation == generatedName;
}

double TargetKernels::reorderCost(RankedTensorType tensor, const rt::Layout &from,
                                  const rt::Layout &to) {
  auto [known, isNew] = reorderCosts.try_emplace(
      {nn::withLayout(tensor, from), nn::withLayout(tensor, to)}, infinity);
  if (!isNew)
    return known->second;
  rt::KernelRequest request;
  request.op = rt::KernelOp::Reorder;
  request.math = planned.math;
  request.threads = planned.threads;
  rt::DType dtype = nn::dtypeOf(tensor.getElementType());
  for (const rt::Layout &layout : {from, to})
    request.operands.push_back({dtype, tensor.getShape().vec(), layout});
  rt::CandidateList list = candidates(nullptr, request);
  if (!list.candidates.empty())
    known->second = list.candidates.front().nanoseconds;
  return known->second;
}

nn::KernelAttr dlc::kernelAttr(MLIRContext *context, const rt::KernelCandidate &candidate) {
  return nn::KernelAttr::get(context, candidate.implementation, candidate.workspaceBytes,
                             candidate.flops, candidate.bytes,
                             static_cast<uint64_t>(candidate.nanoseconds));
}

LogicalResult TargetKernels::planCluster(nn::FusedOp cluster, const rt::KernelCandidate *offer) {
  Block &body = cluster.getBody().front();
  FailureOr<GeneratedKernel> plan = planGeneratedKernel(body, description().loops);
  if (failed(plan))
    return failure();
  plan->writeTo(cluster);
  rt::KernelCandidate kernel{{}, generatedName.str()};
  for (const GeneratedStage &stage : plan->stages) {
    kernel.bytes += stage.bytes;
    kernel.flops += stage.flops;
    kernel.nanoseconds += generatedCost(stage.bytes, stage.flops);
  }
  cluster->setAttr(plannedKernelName, kernelAttr(cluster.getContext(), offer ? *offer : kernel));
  return success();
}
