#include "passes/codegen/gpu/ThreadPlan.h"

#include "passes/codegen/gpu/SharedTiles.h"

#include <bit>
#include <numeric>

using namespace mlir;
using namespace dlc;

static constexpr int64_t mostLanes = 8;
// Of a thread. Each is three registers: a run in f32 and a sum in f64.
static constexpr int64_t mostAccumulators = 40;

/// Bytes of the widest element that lies next to its neighbour of the innermost loop; of sums, each
/// of which is written once, only where there is nothing else; of a vector where there is nothing
/// at all, so that threads take one iteration each.
static int64_t widestBytes(const StagePlan &stage) {
  int64_t bytes = 0, ofSums = 0;
  auto visit = [](const LinearForm &form, Type element, int64_t &widest) {
    if (form.weights.back() == 1)
      widest = std::max<int64_t>(widest, nn::elementBytes(element));
  };
  for (const ClusterNode &node : stage.nodes)
    if (node.kind == ClusterNode::Kind::Read && node.form)
      visit(*node.form, node.element, bytes);
  for (const ClusterWrite &write : stage.writes)
    visit(write.address, write.element, write.reduction ? ofSums : bytes);
  return bytes > 0 ? bytes : ofSums > 0 ? ofSums : ThreadPlan::vectorBytes;
}

int64_t ThreadPlan::lanesOf(const StagePlan &stage, int64_t accessBytes) {
  const StagePlan::Loop &innermost = stage.loops.back();
  if (innermost.item)
    return 1;
  int64_t wanted = std::clamp<int64_t>(accessBytes / widestBytes(stage), 1, mostLanes);
  int64_t reductions =
      llvm::count_if(stage.writes, [](const ClusterWrite &write) { return write.reduction; });
  while (wanted > 1 && wanted * reductions > mostAccumulators)
    wanted /= 2;
  // Powers of two, so that vectors stay aligned, in rows behind the first one, too. A shorter last
  // item has a version of its own where nothing is reduced.
  bool isOneRow = stage.loops.size() == 2 && reductions == 0;
  return std::gcd(wanted, std::gcd(innermost.extent, isOneRow ? 0 : innermost.last));
}

ThreadPlan ThreadPlan::of(const StagePlan &stage) {
  ThreadPlan plan;
  bool isAcross = !stage.hasReduction() && SharedTiles::of(stage);
  plan.lanes = lanesOf(stage, isAcross ? bankBytes : vectorBytes);
  plan.reducesLanes = !stage.loops.back().item && stage.loops.back().reduced;
  for (const StagePlan::Loop &loop : stage.loops)
    if (!loop.item)
      (loop.reduced ? plan.reduced : plan.kept) *= loop.extent;
  (plan.reducesLanes ? plan.reduced : plan.kept) /= plan.lanes;
  plan.keptThreads = std::min(plan.kept, mostThreads);
  if (plan.reduced > 1) {
    auto most = static_cast<uint64_t>(std::min(mostThreads / plan.keptThreads, plan.reduced));
    plan.reducedThreads = static_cast<int64_t>(std::bit_floor(most));
  }
  return plan;
}

ThreadPlan ThreadPlan::ofThreads(const StagePlan &stage, int64_t threads, int64_t lanes) {
  ThreadPlan plan;
  plan.lanes = lanes;
  for (const StagePlan::Loop &loop : stage.loops)
    plan.kept *= loop.item ? 1 : loop.extent;
  plan.kept /= plan.lanes;
  plan.keptThreads = threads;
  return plan;
}

int64_t dlc::blocksOf(const StagePlan &stage) { return llvm::divideCeil(stage.items, stage.chunk); }
