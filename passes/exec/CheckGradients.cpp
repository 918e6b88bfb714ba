// dlc-check-gradients: one reduction over each run of slices, and a sum of what they count; runs of
// one length share kernels. What lies between slices may be anything.

#include "passes/Passes.h"
#include "passes/codegen/GeneratedKernel.h"
#include "passes/exec/KernelTable.h"
#include "passes/exec/Liveness.h"
#include "passes/planning/PlanningTarget.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

#include <limits>

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

namespace dlc {
#define GEN_PASS_DEF_CHECKGRADIENTS
#include "passes/Passes.h.inc"
} // namespace dlc

static RankedTensorType scalarType(Builder &b) { return RankedTensorType::get({}, b.getF32Type()); }

/// How many of so many elements are not finite, as a float.
static void buildCount(ImplicitLocOpBuilder &b, Block &body, int64_t elements) {
  auto type = RankedTensorType::get(elements, b.getF32Type());
  Value x = body.addArgument(type, b.getLoc()), scale = body.addArgument(scalarType(b), b.getLoc());
  auto constant = [&](double value) { return nn::splat(b, b.getLoc(), type, value); };
  Value factor = nn::BroadcastOp::create(b, type, scale, ArrayRef<int64_t>());
  Value size = nn::AbsOp::create(b, type, nn::MulOp::create(b, x, factor));
  Value isFinite = nn::CompareOp::create(b, nn::Comparison::LE, size,
                                         constant(std::numeric_limits<float>::max()));
  Value wild = nn::SelectOp::create(b, type, isFinite, constant(0), constant(1));
  nn::YieldOp::create(b, nn::ReduceSumOp::create(b, wild, ArrayRef<int64_t>{0}).getY());
}

/// Of so many scalars.
static void buildSum(ImplicitLocOpBuilder &b, Block &body, int64_t scalars) {
  Value sum;
  for (int64_t i = 0; i < scalars; ++i) {
    Value count = body.addArgument(scalarType(b), b.getLoc());
    sum = sum ? nn::AddOp::create(b, sum, count).getResult() : count;
  }
  nn::YieldOp::create(b, sum);
}

namespace {
class CheckGradientsPass : public dlc::impl::CheckGradientsBase<CheckGradientsPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Exec)))
      return signalPassFailure();
    SmallVector<CheckOp> checks;
    for (auto program : getOperation().getBody().getOps<exec::ProgramOp>())
      llvm::append_range(checks, program.getBody().getOps<CheckOp>());
    if (checks.empty())
      return;
    SymbolTable table(getOperation());
    symbols = &table;
    planner = openPlanner(getOperation());
    known.clear();
    if (!planner || !llvm::all_of(checks, [&](CheckOp check) { return replace(check); }))
      signalPassFailure();
  }

private:
  using Build = llvm::function_ref<void(ImplicitLocOpBuilder &, Block &, int64_t size)>;
  struct Kernels {
    ClusterOp cluster;
    SmallVector<KernelOp> stages; // none after a diagnostic
  };

  /// Of the cluster that is built for a size.
  Kernels &kernels(Location loc, StringRef name, int64_t size, Build build) {
    Kernels &own = known[{name, size}];
    if (own.cluster)
      return own;
    std::string number = std::to_string(known.size() - 1);
    ImplicitLocOpBuilder b(loc, OpBuilder::atBlockEnd(&getOperation().getBody().front()));
    own.cluster = ClusterOp::create(b, "check_" + number, DenseI64ArrayAttr());
    Block &body = own.cluster.getBody().emplaceBlock();
    b.setInsertionPointToEnd(&body);
    build(b, body, size);
    symbols->insert(own.cluster);
    own.stages =
        createKernels(own.cluster, (name + "_" + number).str(), "optimizer", *symbols, *planner);
    return own;
  }

  /// `buffers` are the cluster's operands and its result. False if there are no kernels.
  static bool dispatch(ImplicitLocOpBuilder &b, Kernels &kernels, SmallVector<Value> buffers) {
    if (kernels.stages.empty())
      return false;
    GeneratedKernel plan = *GeneratedKernel::of(kernels.cluster);
    for (RankedTensorType type : plan.scratch)
      buffers.push_back(buffer(b, type));
    for (auto [stage, kernel] : llvm::zip_equal(plan.stages, kernels.stages)) {
      SmallVector<Value> own = llvm::map_to_vector(
          stage.buffers, [&](unsigned index) -> Value { return buffers[index]; });
      DispatchOp::create(b, kernel.getSymName(), own, Phase::Optimizer, StreamAttr(), IntegerAttr(),
                         ArrayAttr());
    }
    return true;
  }

  /// Bytes of a bucket, from `begin` on.
  struct Run {
    Value bucket;
    int64_t begin = 0, end = 0;
  };

  /// Slices without a gap are one.
  static SmallVector<Run> runsOf(ValueRange slices) {
    SmallVector<Run> runs;
    for (Value slice : slices) {
      auto [buffer, offset] = rootOf(slice);
      auto begin = static_cast<int64_t>(offset);
      int64_t bytes = nn::physicalBytes(cast<BufferType>(slice.getType()).getTensor());
      runs.push_back({buffer.getBuffer(), begin, begin + bytes});
    }
    llvm::sort(runs, [](const Run &a, const Run &b) {
      return a.bucket == b.bucket
                 ? a.begin < b.begin
                 : a.bucket.getDefiningOp()->isBeforeInBlock(b.bucket.getDefiningOp());
    });
    SmallVector<Run> joined;
    for (const Run &run : runs)
      if (!joined.empty() && joined.back().bucket == run.bucket && run.begin <= joined.back().end)
        joined.back().end = std::max(joined.back().end, run.end);
      else
        joined.push_back(run);
    return joined;
  }

  /// False after a diagnostic.
  bool replace(CheckOp check) {
    ImplicitLocOpBuilder b(check.getLoc(), check);
    SmallVector<Value> counts;
    for (const Run &run : runsOf(check.getSlices())) {
      int64_t elements = (run.end - run.begin) / static_cast<int64_t>(sizeof(float));
      auto type = RankedTensorType::get(elements, b.getF32Type());
      Value all = ViewOp::create(b, BufferType::get(b.getContext(), type), run.bucket, run.begin,
                                 StringAttr());
      counts.push_back(buffer(b, scalarType(b)));
      if (!dispatch(b, kernels(b.getLoc(), "count", elements, buildCount),
                    {all, check.getScale(), counts.back()}))
        return false;
    }
    while (counts.size() > mostOperands) {
      SmallVector<Value> sums;
      for (ArrayRef<Value> left = counts; !left.empty();) {
        ArrayRef<Value> some = left.take_front(mostOperands);
        sums.push_back(buffer(b, scalarType(b)));
        if (!addUp(b, some, sums.back()))
          return false;
        left = left.drop_front(some.size());
      }
      counts = std::move(sums);
    }
    if (!addUp(b, counts, check.getCount()))
      return false;
    check.erase();
    return true;
  }

  /// False after a diagnostic.
  bool addUp(ImplicitLocOpBuilder &b, ArrayRef<Value> counts, Value sum) {
    SmallVector<Value> buffers(counts);
    buffers.push_back(sum);
    auto scalars = static_cast<int64_t>(counts.size());
    return dispatch(b, kernels(b.getLoc(), "sum_counts", scalars, buildSum), std::move(buffers));
  }

  static Value buffer(ImplicitLocOpBuilder &b, RankedTensorType type) {
    OpBuilder atTop = OpBuilder::atBlockBegin(b.getInsertionBlock());
    return BufferOp::create(atTop, b.getLoc(), BufferType::get(b.getContext(), type),
                            ArenaKind::Transient, IntegerAttr(), StringAttr(), FlatSymbolRefAttr(),
                            StringAttr(), ArrayAttr());
  }

  std::shared_ptr<rt::KernelPlanner> planner;
  SymbolTable *symbols = nullptr;
  DenseMap<std::pair<StringRef, int64_t>, Kernels> known; // by name and size
};
} // namespace
