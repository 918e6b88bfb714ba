// dlc-assign-nontemporal-stores: finds the results of generated kernels that the cache has lost
// when they are read. For each result the pass counts the bytes that instructions touch between its
// writing and the next instruction that touches it, every buffer once, as a least recently used
// cache would. The next reader of a variable may be in the next step.

#include "passes/Passes.h"
#include "passes/codegen/GeneratedKernel.h"
#include "passes/codegen/ProductPlan.h"
#include "passes/exec/Liveness.h"
#include "passes/planning/PlanningTarget.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

namespace dlc {
#define GEN_PASS_DEF_ASSIGNNONTEMPORALSTORES
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class AssignNontemporalStoresPass
    : public dlc::impl::AssignNontemporalStoresBase<AssignNontemporalStoresPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Exec)))
      return signalPassFailure();
    std::shared_ptr<rt::KernelPlanner> planner = openPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    cacheBytes = static_cast<int64_t>(planner->target().cacheBytes);
    if (cacheBytes == 0)
      return;
    for (auto cluster : getOperation().getBody().getOps<ClusterOp>()) {
      if (failed(verifyPlan(cluster)))
        return signalPassFailure();
      plans.try_emplace(cluster, *GeneratedKernel::of(cluster));
    }
    SymbolTable symbols(getOperation());
    SmallVector<exec::ProgramOp> programs(getOperation().getBody().getOps<exec::ProgramOp>());
    auto *train = llvm::find_if(
        programs, [](exec::ProgramOp program) { return program.getSymName() == "train"; });
    if (train != programs.end())
      std::rotate(programs.begin(), train, train + 1);
    for (exec::ProgramOp program : programs)
      visit(Liveness(program).instructions(), symbols);
    for (auto &[cluster, use] : found) {
      SmallVector<int64_t> list;
      for (auto [result, isFar] : use.farReuse)
        if (isFar)
          list.push_back(result);
      llvm::sort(list);
      if (!list.empty())
        cast<ClusterOp>(cluster).setNontemporal(list);
    }
  }

private:
  void visit(ArrayRef<Operation *> instructions, SymbolTable &symbols) {
    for (auto [at, op] : llvm::enumerate(instructions)) {
      auto dispatch = dyn_cast<DispatchOp>(op);
      auto kernel =
          dispatch ? symbols.lookup<exec::KernelOp>(dispatch.getKernel()) : exec::KernelOp();
      if (!kernel || !kernel.getCluster())
        continue;
      auto cluster = symbols.lookup<ClusterOp>(*kernel.getCluster());
      visit(dispatch, kernel, cluster, instructions, at, symbols);
    }
  }

  /// Notes for each result that a dispatch, instruction `at`, writes whether it is read late.
  void visit(DispatchOp dispatch, exec::KernelOp kernel, ClusterOp cluster,
             ArrayRef<Operation *> instructions, size_t at, SymbolTable &symbols) {
    Block &body = cluster.getBody().front();
    if (productOf(body)) // Next to what it reads, a product writes nothing.
      return;
    unsigned operands = body.getNumArguments(), results = body.getTerminator()->getNumOperands();
    Use &use = found[cluster];
    if (!use.program)
      use.program = dispatch->getParentOp();
    if (use.program != dispatch->getParentOp())
      return;
    const GeneratedStage &stage = plans.find(cluster)->second.stages[kernel.getStage()];
    SmallVector<Access> accesses = accessesOf(dispatch, symbols);
    for (auto [i, buffer] : llvm::enumerate(dispatch.getBuffers())) {
      unsigned index = stage.buffers[i];
      if (accesses[i] != Access::Write || index < operands || index >= operands + results)
        continue;
      Operation *root = rootOf(buffer).buffer;
      bool inPlace = false;
      for (auto [other, access] : llvm::zip(dispatch.getBuffers(), accesses))
        inPlace |= access != Access::Write && rootOf(other).buffer == root;
      auto [entry, inserted] = use.farReuse.insert({index - operands, true});
      entry->second &= !inPlace && isFar(buffer, instructions, at);
    }
  }

  static bool overlap(Value a, Value b) {
    auto end = [](Value buffer) {
      return rootOf(buffer).offset +
             nn::physicalBytes(cast<BufferType>(buffer.getType()).getTensor());
    };
    return rootOf(a).buffer == rootOf(b).buffer && rootOf(a).offset < end(b) &&
           rootOf(b).offset < end(a);
  }

  /// True if a result of instruction `first` has left the cache when the next instruction touches
  /// it.
  bool isFar(Value written, ArrayRef<Operation *> instructions, size_t first) const {
    BufferOp root = rootOf(written).buffer;
    size_t end = instructions.size() + (root.getVariable() || root.getVariables() ? first : 0);
    llvm::SmallPtrSet<void *, 16> seen;
    int64_t bytes = 0;
    for (size_t at = first; at < end; ++at) {
      for (Value buffer : instructions[at % instructions.size()]->getOperands()) {
        if (at > first && overlap(buffer, written))
          return false;
        if (seen.insert(buffer.getAsOpaquePointer()).second)
          bytes += nn::physicalBytes(cast<BufferType>(buffer.getType()).getTensor());
      }
      if (bytes > cacheBytes)
        return true;
    }
    return false;
  }

  int64_t cacheBytes = 0;
  /// The uses of a cluster in the first program that has it.
  struct Use {
    Operation *program = nullptr;
    llvm::SmallMapVector<int64_t, bool, 2> farReuse; // by result
  };
  llvm::MapVector<Operation *, Use> found;
  DenseMap<Operation *, GeneratedKernel> plans;
};
} // namespace
