// Updates are collected by bucket, formula and scalars; each group of at least two is laid out as
// one range: its slices side by side in the bucket, its variables side by side in buffers of their
// own, all in one order and at the same distances. One flat kernel then runs over all of it, at the
// place of the group's last update.

#include "passes/Passes.h"
#include "passes/exec/KernelTable.h"
#include "passes/exec/Liveness.h"
#include "passes/planning/BucketLayout.h"
#include "passes/planning/FlatUpdate.h"
#include "passes/planning/PlanningTarget.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

namespace dlc {
#define GEN_PASS_DEF_COMBINEUPDATES
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
struct Group {
  std::string code; // of the cluster, whatever its shape
  ClusterOp cluster;
  Value bucket;
  /// For each operand: its value if it is a scalar, else the first operand with the same buffer.
  SmallVector<std::pair<Value, unsigned>> operands;
  unsigned slice = 0; // operand
  SmallVector<DispatchOp> members;

  bool sameAs(const Group &other) const {
    return bucket == other.bucket && operands == other.operands && slice == other.slice &&
           code == other.code;
  }
  /// Elements of the range, once the place of each member is known.
  int64_t elements = 0;
};

RankedTensorType tensorOf(Value buffer) { return cast<BufferType>(buffer.getType()).getTensor(); }

bool isTensor(Value buffer) { return tensorOf(buffer).getRank() > 0; }

RankedTensorType rangeType(MLIRContext *context, int64_t elements) {
  return RankedTensorType::get(elements, Float32Type::get(context));
}

/// The type of a range of such tensors.
RankedTensorType rangeOfType(RankedTensorType tensor, int64_t elements) {
  return RankedTensorType::get(elements, tensor.getElementType());
}

/// A bucket's slices in the order of their offsets, and its all-reduce.
struct BucketUse {
  explicit BucketUse(Value bucket) {
    for (Operation *user : bucket.getUsers()) {
      if (auto view = dyn_cast<ViewOp>(user))
        slices.push_back(view);
      if (isa<StartOp>(user))
        start = cast<StartOp>(user);
    }
    llvm::sort(slices, [](ViewOp a, ViewOp b) { return a.getOffset() < b.getOffset(); });
  }
  /// False in text where the message does not name one member for each slice.
  bool isNamed() { return start && start.getMembers().size() == slices.size(); }

  SmallVector<ViewOp> slices;
  StartOp start;
};

/// Kernels over ranges, shared by what they compute.
class RangeKernels {
public:
  RangeKernels(nn::ModelOp model, SymbolTable &symbols, const rt::KernelPlanner &planner)
      : model(model), symbols(symbols), planner(planner) {}

  /// Null after a diagnostic.
  KernelOp get(Group &group) {
    Block &cluster = group.cluster.getBody().front();
    KernelOp &kernel =
        known[flatUpdateText(cluster, rangeType(model.getContext(), group.elements))];
    if (!kernel)
      kernel = build(group, cluster);
    return kernel;
  }

private:
  KernelOp build(Group &group, Block &body) {
    OpBuilder builder = OpBuilder::atBlockEnd(&model.getBody().front());
    Location loc = group.cluster.getLoc();
    std::string number = std::to_string(known.size() - 1);
    auto cluster = ClusterOp::create(builder, loc, "update_" + number, DenseI64ArrayAttr());
    buildFlatUpdate(body, rangeType(model.getContext(), group.elements), cluster.getBody());
    symbols.insert(cluster);
    return createKernel(cluster, "optimizer_range_" + number, "optimizer", symbols, planner);
  }

  nn::ModelOp model;
  SymbolTable &symbols;
  const rt::KernelPlanner &planner;
  llvm::StringMap<KernelOp> known;
};

/// Combines the updates of one program.
class UpdateCombiner {
public:
  UpdateCombiner(exec::ProgramOp program, SymbolTable &symbols, const rt::LoopLimits &limits)
      : program(program), symbols(symbols), limits(limits) {
    for (auto dispatch : program.getBody().getOps<DispatchOp>())
      if (std::optional<Group> own = describe(dispatch))
        add(std::move(*own));
    llvm::erase_if(groups, [&](const Group &group) {
      return group.members.size() < 2 || isInterrupted(group);
    });
  }

  MutableArrayRef<Group> found() { return groups; }
  void layOutBuckets();
  void replace(Group &group, KernelOp kernel);

private:
  Value bucketOf(Value buffer);
  std::optional<Group> describe(DispatchOp dispatch);
  void add(Group &&own);
  bool isInterrupted(const Group &group);
  void layOutBucket(BufferOp bucket);
  Value rangeOf(const Group &group, unsigned operand);

  exec::ProgramOp program;
  SymbolTable &symbols;
  const rt::LoopLimits &limits;
  SmallVector<Group> groups;
  DenseSet<Value> seen;                     // variables and slices of groups
  DenseMap<Value, bool> named;              // by bucket: BucketUse::isNamed
  DenseMap<Operation *, std::string> codes; // by cluster; empty if it is not flat
};
} // namespace

//===- Groups ---------------------------------------------------------------------------------===//

/// The bucket that a view is a slice of, or null.
Value UpdateCombiner::bucketOf(Value buffer) {
  auto view = buffer.getDefiningOp<ViewOp>();
  auto root = view ? view.getSource().getDefiningOp<BufferOp>() : BufferOp();
  if (!root || root.getArena() != ArenaKind::Gradients)
    return Value();
  auto [known, isNew] = named.try_emplace(root.getBuffer());
  if (isNew)
    known->second = BucketUse(root.getBuffer()).isNamed();
  return known->second ? root.getBuffer() : Value();
}

std::optional<Group> UpdateCombiner::describe(DispatchOp dispatch) {
  auto kernel = symbols.lookup<KernelOp>(dispatch.getKernel());
  if (dispatch.getPhase() != Phase::Optimizer)
    return std::nullopt;
  Group group;
  group.cluster =
      kernel.getCluster() ? symbols.lookup<ClusterOp>(*kernel.getCluster()) : ClusterOp();
  if (!group.cluster)
    return std::nullopt;
  auto [code, isNew] = codes.try_emplace(group.cluster);
  Block &body = group.cluster.getBody().front();
  if (isNew && isFlatUpdate(body))
    code->second = flatUpdateText(body, rangeType(program.getContext(), 1));
  group.code = code->second;
  if (group.code.empty())
    return std::nullopt;
  OperandRange operands = dispatch.getBuffers();
  for (auto [i, buffer, access] : llvm::enumerate(operands, kernel.getAccess())) {
    auto first = static_cast<unsigned>(llvm::find(operands, buffer) - operands.begin());
    group.operands.push_back({isTensor(buffer) ? Value() : buffer, first});
    bool isWritten = access != static_cast<int32_t>(Access::Read);
    auto root = buffer.getDefiningOp<BufferOp>();
    if (!isTensor(buffer) || (root && root.getVariable()))
      continue;
    // All other operands are one slice of a bucket, which is read.
    if (isWritten || !bucketOf(buffer) || (group.bucket && group.slice != first))
      return std::nullopt;
    group.bucket = bucketOf(buffer);
    group.slice = first;
  }
  if (!group.bucket || !tensorOf(operands[group.slice]).getElementType().isF32())
    return std::nullopt;
  group.members.push_back(dispatch);
  return group;
}

void UpdateCombiner::add(Group &&own) {
  DispatchOp dispatch = own.members.front();
  SmallVector<Value> taken;
  for (auto [i, buffer] : llvm::enumerate(dispatch.getBuffers()))
    if (isTensor(buffer) && own.operands[i].second == i)
      taken.push_back(buffer);
  if (llvm::any_of(taken, [&](Value buffer) { return seen.contains(buffer); }))
    return;
  seen.insert(taken.begin(), taken.end());
  auto same = llvm::find_if(groups, [&](const Group &group) { return group.sameAs(own); });
  if (same == groups.end())
    groups.push_back(std::move(own));
  else
    same->members.push_back(dispatch);
}

/// True if something between the first and the last update touches what they update, or writes
/// what they read.
bool UpdateCombiner::isInterrupted(const Group &group) {
  DenseSet<Value> updated, read;
  for (DispatchOp member : group.members)
    for (auto [i, buffer] : llvm::enumerate(member.getBuffers())) {
      bool isVariable = isTensor(buffer) && group.operands[i].second != group.slice;
      (isVariable ? updated : read).insert(rootOf(buffer).buffer);
    }
  DenseSet<Operation *> members(group.members.begin(), group.members.end());
  Operation *last = group.members.back();
  for (Operation *op = group.members.front(); op != last; op = op->getNextNode()) {
    if (members.contains(op))
      continue;
    for (auto [buffer, access] : llvm::zip(op->getOperands(), accessesOf(op, symbols))) {
      Value root = rootOf(buffer).buffer;
      if (updated.contains(root) || (read.contains(root) && access != Access::Read))
        return true;
    }
  }
  return false;
}

//===- Layout ---------------------------------------------------------------------------------===//

void UpdateCombiner::layOutBuckets() {
  llvm::SetVector<Operation *> buckets;
  for (Group &group : groups) {
    llvm::sort(group.members, [&](DispatchOp a, DispatchOp b) {
      return rootOf(a.getBuffers()[group.slice]).offset <
             rootOf(b.getBuffers()[group.slice]).offset;
    });
    buckets.insert(group.bucket.getDefiningOp());
  }
  for (Operation *bucket : buckets)
    layOutBucket(cast<BufferOp>(bucket));
}

/// Slices in the order of the groups, then the rest; the names of the message follow.
void UpdateCombiner::layOutBucket(BufferOp bucket) {
  auto [slices, start] = BucketUse(bucket.getBuffer());
  DenseMap<Operation *, Attribute> names;
  for (auto [slice, name] : llvm::zip_equal(slices, start.getMembers()))
    names[slice] = name;
  SmallVector<Attribute> members;
  Builder builder(bucket);
  DenseSet<Operation *> placed;
  BucketLayout layout(tensorOf(bucket.getBuffer()).getElementType());
  auto place = [&](ViewOp slice) {
    slice.setOffset(layout.addToRange(tensorOf(slice.getView())));
    members.push_back(names.lookup(slice));
    placed.insert(slice);
  };
  for (Group &group : groups) {
    if (group.bucket != bucket.getBuffer())
      continue;
    int64_t begin = layout.elementCount();
    for (DispatchOp member : group.members)
      place(member.getBuffers()[group.slice].getDefiningOp<ViewOp>());
    group.elements = layout.elementCount() - begin;
    if (group.elements > limits.itemElements)
      group.elements = llvm::alignTo(group.elements, limits.rangeMultiple);
    layout.extendTo(begin + group.elements);
  }
  for (ViewOp slice : slices)
    if (!placed.contains(slice))
      place(slice);
  bucket.getBuffer().setType(BufferType::get(bucket.getContext(), layout.type()));
  start.setMembersAttr(builder.getArrayAttr(members));
}

//===- Ranges ---------------------------------------------------------------------------------===//

/// The buffer of all members' variables at this operand; the variables become views of it.
Value UpdateCombiner::rangeOf(const Group &group, unsigned operand) {
  OpBuilder builder = OpBuilder::atBlockBegin(&program.getBody().front());
  MLIRContext *context = program.getContext();
  DispatchOp any = group.members.front();
  RankedTensorType element = tensorOf(any.getBuffers()[operand]);
  auto type = BufferType::get(context, rangeOfType(element, group.elements));
  SmallVector<BufferOp> variables;
  SmallVector<Attribute> names;
  for (DispatchOp member : group.members) {
    variables.push_back(member.getBuffers()[operand].getDefiningOp<BufferOp>());
    names.push_back(variables.back().getVariableAttr());
  }
  BufferOp first = variables.front();
  auto range =
      BufferOp::create(builder, first.getLoc(), type, first.getArena(), IntegerAttr(), StringAttr(),
                       FlatSymbolRefAttr(), StringAttr(), builder.getArrayAttr(names));
  int64_t offset = 0;
  for (BufferOp variable : variables) {
    auto view = ViewOp::create(builder, variable.getLoc(), variable.getType(), range.getBuffer(),
                               offset, variable.getLabelAttr());
    offset += rangeBytes(tensorOf(variable.getBuffer()));
    variable.replaceAllUsesWith(view.getView());
    variable.erase();
  }
  return range.getBuffer();
}

void UpdateCombiner::replace(Group &group, KernelOp kernel) {
  DispatchOp last = group.members.front();
  for (DispatchOp member : group.members)
    if (last->isBeforeInBlock(member))
      last = member;
  Value slice = group.members.front().getBuffers()[group.slice];
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(group.operands)) {
    auto [scalar, first] = operand;
    if (scalar) {
      operands.push_back(scalar);
    } else if (first < i) {
      operands.push_back(operands[first]);
    } else if (first == group.slice) {
      OpBuilder builder(program.getContext());
      builder.setInsertionPointAfterValue(slice);
      auto type = cast<RankedTensorType>(cast<TypeAttr>(kernel.getTypes()[i]).getValue());
      operands.push_back(ViewOp::create(builder, slice.getLoc(),
                                        BufferType::get(program.getContext(), type), group.bucket,
                                        rootOf(slice).offset, StringAttr()));
    } else {
      operands.push_back(rangeOf(group, i));
    }
  }
  OpBuilder builder(last);
  SmallVector<Attribute> variables;
  for (DispatchOp member : group.members)
    if (std::optional<ArrayAttr> own = member.getVariables())
      llvm::append_range(variables, *own);
  DispatchOp::create(builder, last.getLoc(), kernel.getSymName(), operands, last.getPhase(),
                     StreamAttr(), IntegerAttr(),
                     variables.empty() ? ArrayAttr() : builder.getArrayAttr(variables));
  for (DispatchOp member : group.members)
    member.erase();
}

//===- Pass -----------------------------------------------------------------------------------===//

namespace {
class CombineUpdatesPass : public dlc::impl::CombineUpdatesBase<CombineUpdatesPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    if (failed(requireStage(getOperation(), nn::Stage::Exec)))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    std::shared_ptr<rt::KernelPlanner> planner = openPlanner(getOperation());
    if (!planner)
      return signalPassFailure();
    RangeKernels kernels(getOperation(), symbols, *planner);
    // Updates are in one program: a variable that another program updates, too, keeps a place of
    // its own.
    for (auto program : getOperation().getBody().getOps<exec::ProgramOp>()) {
      if (program.getSymName() != "train")
        continue;
      UpdateCombiner combiner(program, symbols, planner->target().loops);
      combiner.layOutBuckets();
      for (Group &group : combiner.found()) {
        KernelOp kernel = kernels.get(group);
        if (!kernel)
          return signalPassFailure();
        combiner.replace(group, kernel);
      }
    }
    eraseUnused();
  }

private:
  /// Kernels that no program dispatches, and clusters that no kernel runs.
  void eraseUnused() {
    DenseSet<StringRef> used;
    getOperation().walk([&](DispatchOp dispatch) { used.insert(dispatch.getKernel()); });
    for (auto kernel : llvm::make_early_inc_range(getOperation().getBody().getOps<KernelOp>())) {
      if (!used.contains(kernel.getSymName()))
        kernel.erase();
      else if (kernel.getCluster())
        used.insert(*kernel.getCluster());
    }
    for (auto cluster : llvm::make_early_inc_range(getOperation().getBody().getOps<ClusterOp>()))
      if (!used.contains(cluster.getSymName()))
        cluster.erase();
  }
};
} // namespace
