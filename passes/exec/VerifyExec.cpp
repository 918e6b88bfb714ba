// dlc-verify-exec: read-only checks of exec programs; numbers are those of the pass's description.

#include "passes/Passes.h"
#include "passes/codegen/GeneratedKernel.h"
#include "passes/exec/AliasVerifier.h"
#include "passes/exec/ContentsVerifier.h"
#include "passes/exec/InstructionPhase.h"
#include "passes/exec/Liveness.h"
#include "passes/exec/SumVerifier.h"
#include "passes/nn/ModelChecks.h"
#include "passes/planning/BucketLayout.h"
#include "runtime/artifact/OrderProof.h"
#include "runtime/artifact/Ranges.h"

#include <map>

using namespace mlir;
using namespace dlc;
using namespace dlc::exec;

namespace dlc {
#define GEN_PASS_DEF_VERIFYEXEC
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class VerifyExecPass : public dlc::impl::VerifyExecBase<VerifyExecPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    nn::ModelOp model = getOperation();
    sizes.clear();
    reached.clear();
    if (failed(requireStage(model, nn::Stage::Exec)) || failed(verifyAttributes(model)) ||
        failed(verifyVariables(model)) || failed(verifyContents(model))) // 8.
      return signalPassFailure();
    SymbolTable symbols(model);
    if (failed(verifyArenas()) || failed(verifyVariablePlaces()) || failed(verifyRanges(symbols)) ||
        failed(verifyKernels(symbols)))
      return signalPassFailure();
    for (auto program : model.getBody().getOps<exec::ProgramOp>()) {
      Liveness liveness(program);
      if (failed(verifyPlaces(liveness, symbols)) || failed(verifyViews(program, symbols)) ||
          failed(verifyOverlap(liveness)) || failed(verifyUploads(program, symbols)) ||
          failed(verifySums(liveness, symbols)) || failed(verifyStreams(liveness)) ||
          failed(ContentsVerifier(program, symbols).verify(liveness)) || // 3. 13. 16.
          failed(verifyCollectives(liveness)) || failed(verifyOrder(liveness, symbols)))
        return signalPassFailure();
      AliasVerifier aliases(symbols);
      for (Operation *instruction : liveness.instructions())
        if (failed(aliases.verify(instruction)))
          return signalPassFailure();
    }
    if (failed(verifySizes()))
      return signalPassFailure();
  }

private:
  static LogicalResult verifyContents(nn::ModelOp model) { // 8.
    for (Operation &op : model.getBody().front()) {
      if (!isa<nn::VariableOp, ArenaOp, ClusterOp, KernelOp, exec::ProgramOp>(op))
        return op.emitOpError("does not belong into a model of stage exec");
      auto program = dyn_cast<exec::ProgramOp>(op);
      if (!program)
        continue;
      if (program.getBody().getNumArguments() != 0)
        return program.emitOpError("takes arguments; inputs are buffers");
      for (Operation &inner : program.getBody().front())
        if (!inner.hasTrait<Instruction>() && !isa<BufferOp, ViewOp>(inner))
          return inner.emitOpError("is neither a buffer nor an instruction");
      if (auto checks = program.getBody().getOps<CheckOp>(); !checks.empty())
        return (*checks.begin()).emitOpError("is left; run dlc-check-gradients");
      if (failed(verifyRows(program)) || failed(verifySignature(program)))
        return failure();
      if (llvm::none_of(program.getBody().front(),
                        [](Operation &inner) { return inner.hasTrait<Instruction>(); }))
        return program.emitOpError("has no instructions");
    }
    return success();
  }

  /// Each input and output is there once; losses and metrics are pairs of numbers.
  static LogicalResult verifySignature(exec::ProgramOp program) { // 8.
    DenseSet<StringRef> inputs, outputs, metrics;
    for (auto buffer : program.getBody().getOps<BufferOp>())
      if (buffer.getInput() && !inputs.insert(*buffer.getInput()).second)
        return buffer.emitOpError("holds input '")
               << *buffer.getInput() << "', which another buffer holds";
    for (auto download : program.getBody().getOps<DownloadOp>()) {
      if (download.getKind() == ResultKind::Output) {
        if (!outputs.insert(download.getResult()).second)
          return download.emitOpError("gives output '")
                 << download.getResult() << "' a second time";
        continue;
      }
      bool isLoss = download.getKind() == ResultKind::Loss;
      if (isLoss != (download.getResult() == "loss"))
        return download.emitOpError("gives ")
               << stringifyResultKind(download.getKind()) << " '" << download.getResult()
               << "'; 'loss' is the name of losses and of nothing else";
      if (!isLoss && !metrics.insert(download.getResult()).second)
        return download.emitOpError("gives metric '") << download.getResult() << "' a second time";
      for (Type type : download.getBuffers().getTypes()) {
        RankedTensorType tensor = cast<exec::BufferType>(type).getTensor();
        if (!tensor.getElementType().isF32() || tensor.getNumElements() != 1)
          return download.emitOpError("gives ")
                 << stringifyResultKind(download.getKind()) << " '" << download.getResult()
                 << "' of type " << tensor << ", expected one f32 each for sum and count";
      }
      if (!rt::ranges::finite.contains(download.getWeight().convertToDouble()))
        return download.emitOpError("has a weight that is not finite");
    }
    return success();
  }

  /// Inputs and outputs have the rows of one batch.
  static LogicalResult verifyRows(exec::ProgramOp program) { // 8.
    std::optional<int64_t> batch;
    auto hasBatch = [&](RankedTensorType type) {
      return type.getRank() > 0 && type.getDimSize(0) == batch.value_or(type.getDimSize(0));
    };
    auto batchText = [&] { return batch ? " of " + std::to_string(*batch) : std::string(); };
    for (auto buffer : program.getBody().getOps<BufferOp>()) {
      if (!buffer.getInput())
        continue;
      RankedTensorType type = buffer.getType().getTensor();
      if (!hasBatch(type) || buffer.getArena() != ArenaKind::Inputs)
        return buffer.emitOpError("holds input '")
               << *buffer.getInput() << "' of type " << type << " in the arena "
               << stringifyArenaKind(buffer.getArena())
               << "; inputs lie in the arena inputs and dimension 0 must be the batch"
               << batchText();
      batch = type.getDimSize(0);
    }
    for (auto download : program.getBody().getOps<DownloadOp>()) {
      if (download.getKind() != ResultKind::Output)
        continue;
      RankedTensorType type =
          cast<exec::BufferType>(download.getBuffers().front().getType()).getTensor();
      if (!hasBatch(type))
        return download.emitOpError("gives output '")
               << download.getResult() << "' of type " << type << "; dimension 0 must be the batch"
               << batchText();
    }
    return success();
  }

  LogicalResult verifyArenas() { // 9.
    for (auto arena : getOperation().getBody().getOps<ArenaOp>()) {
      auto bytes = static_cast<int64_t>(arena.getBytes().value_or(0));
      if (bytes < 0 || bytes % bufferAlignment != 0)
        return arena.emitOpError("has ")
               << bytes << " bytes, expected a multiple of " << bufferAlignment;
      if (!sizes.insert({arena.getKind(), bytes}).second)
        return arena.emitOpError("is the second one of ") << stringifyArenaKind(arena.getKind());
    }
    return success();
  }

  LogicalResult verifySizes() { // 9.
    for (auto arena : getOperation().getBody().getOps<ArenaOp>())
      if (sizes[arena.getKind()] > reached[arena.getKind()])
        return arena.emitOpError("has ")
               << sizes[arena.getKind()] << " bytes, but what lies in it ends at "
               << reached[arena.getKind()];
    return success();
  }

  /// A range of an arena: aligned and inside.
  LogicalResult verifyPlace(Operation *op, ArenaKind arena, int64_t begin, int64_t bytes) { // 1.
    int64_t size = sizes.lookup(arena);
    reached[arena] = std::max(reached[arena], begin + alignUp(bytes));
    if (begin < 0 || begin % bufferAlignment != 0 || begin > size || bytes > size - begin)
      return op->emitOpError("lies at [")
             << begin << ", " << begin + bytes << "), expected a multiple of " << bufferAlignment
             << " inside of an arena of " << size << " bytes";
    return success();
  }

  static ArenaKind arenaOf(nn::VariableOp variable) {
    return variable.getKind() == nn::VariableKind::Slot ? ArenaKind::Slots : ArenaKind::Variables;
  }

  LogicalResult verifyVariablePlaces() { // 10.
    struct Place {
      ArenaKind arena;
      int64_t begin, end;
      nn::VariableOp variable;
    };
    SmallVector<Place> places;
    for (auto variable : getOperation().getBody().getOps<nn::VariableOp>()) {
      auto offset = variable->getAttrOfType<IntegerAttr>("offset");
      if (!offset || !offset.getType().isSignlessInteger(64))
        return variable.emitOpError("has no offset; run dlc-plan-memory first");
      int64_t begin = offset.getInt();
      int64_t bytes = nn::physicalBytes(cast<RankedTensorType>(variable.getType()));
      if (failed(verifyPlace(variable, arenaOf(variable), begin, bytes)))
        return failure();
      places.push_back({arenaOf(variable), begin, begin + bytes, variable});
    }
    llvm::sort(places, [](const Place &a, const Place &b) {
      return std::pair(a.arena, a.begin) < std::pair(b.arena, b.begin);
    });
    for (size_t i = 1; i < places.size(); ++i)
      if (places[i].arena == places[i - 1].arena && places[i].begin < places[i - 1].end)
        return places[i].variable.emitOpError("overlaps @") << places[i - 1].variable.getSymName();
    return success();
  }

  LogicalResult verifyKernels(SymbolTable &symbols) { // 11.
    DenseMap<Operation *, GeneratedKernel> plans;
    for (auto cluster : getOperation().getBody().getOps<ClusterOp>()) {
      Block &body = cluster.getBody().front();
      if (body.empty() || !isa<nn::YieldOp>(body.back()))
        return cluster.emitOpError("needs nn.yield as its last op");
      int64_t results = body.back().getNumOperands();
      for (int64_t result : cluster.getNontemporal().value_or(ArrayRef<int64_t>()))
        if (result < 0 || result >= results)
          return cluster.emitOpError("has non-temporal stores of result ")
                 << result << " of " << results;
    }
    for (auto kernel : getOperation().getBody().getOps<KernelOp>()) {
      if (!kernel.getCluster())
        continue;
      auto cluster = symbols.lookup<ClusterOp>(*kernel.getCluster());
      if (!cluster)
        return kernel.emitOpError("is generated from @")
               << *kernel.getCluster() << ", which is no cluster of the model";
      auto [plan, isNew] = plans.try_emplace(cluster);
      if (isNew) {
        if (failed(verifyPlan(cluster)))
          return failure();
        plan->second = *GeneratedKernel::of(cluster);
      }
      if (failed(verifyKernel(kernel, cluster, plan->second)))
        return failure();
    }
    return success();
  }

  /// The kernel is a stage of its cluster's plan.
  static LogicalResult verifyKernel(KernelOp kernel, ClusterOp cluster,
                                    const GeneratedKernel &plan) {
    if (kernel.getStage() >= plan.stages.size())
      return kernel.emitOpError("is stage ") << kernel.getStage() << " of @" << cluster.getSymName()
                                             << ", which has " << plan.stages.size();
    const GeneratedStage &stage = plan.stages[kernel.getStage()];
    std::string function = (cluster.getSymName() + "_" + Twine(kernel.getStage())).str();
    SmallVector<Type> types = plan.typesOf(stage, cluster.getBody().front());
    SmallVector<int32_t> access = stage.accessNumbers();
    if (kernel.getFunction() != function)
      return kernel.emitOpError("needs the function '") << function << "'";
    if (static_cast<int64_t>(kernel.getExtent()) != stage.extent ||
        static_cast<int64_t>(kernel.getChunk()) != stage.chunk)
      return kernel.emitOpError("runs ")
             << kernel.getExtent() << " iterations in chunks of " << kernel.getChunk() << ", but @"
             << cluster.getSymName() << " has " << stage.extent << " in chunks of " << stage.chunk;
    if (!llvm::equal(kernel.getTypes().getAsValueRange<TypeAttr>(), types) ||
        kernel.getAccess() != ArrayRef<int32_t>(access) || kernel.getPart() != stage.part)
      return kernel.emitOpError("takes other buffers than stage ")
             << kernel.getStage() << " of @" << cluster.getSymName() << ": expected "
             << ArrayRef<Type>(types) << " access [" << access << "]";
    return success();
  }

  LogicalResult verifyRanges(SymbolTable &symbols) { // 7.
    DenseSet<StringRef> seen;
    WalkResult result = getOperation().walk([&](BufferOp buffer) -> WalkResult {
      if (!buffer.getVariables())
        return WalkResult::advance();
      if (!buffer.getOffset()) // 1.
        return buffer.emitOpError("has no offset; run dlc-plan-memory first");
      int64_t bytes = 0;
      for (auto name : buffer.getVariables()->getAsRange<FlatSymbolRefAttr>()) {
        auto variable = symbols.lookup<nn::VariableOp>(name.getValue());
        if (!variable || !seen.insert(name.getValue()).second)
          return buffer.emitOpError("holds ")
                 << name << ", which " << (variable ? "another buffer holds" : "is no variable");
        if (arenaOf(variable) != buffer.getArena())
          return buffer.emitOpError("holds ") << name << ", which lies in another arena";
        auto place = variable->getAttrOfType<IntegerAttr>("offset");
        int64_t wanted = static_cast<int64_t>(*buffer.getOffset()) + bytes;
        if (!place || place.getInt() != wanted)
          return buffer.emitOpError("holds ")
                 << name << " at " << wanted << ", not at " << (place ? place.getInt() : -1);
        bytes += rangeBytes(cast<RankedTensorType>(variable.getType()));
      }
      int64_t size = nn::physicalBytes(buffer.getType().getTensor());
      if (failed(verifyPlace(buffer, buffer.getArena(), static_cast<int64_t>(*buffer.getOffset()),
                             size))) // 1.
        return failure();
      if (bytes > size)
        return buffer.emitOpError("has ") << size << " bytes for variables of " << bytes;
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult verifyPlaces(const Liveness &liveness, SymbolTable &symbols) {
    for (auto [op, live] : liveness.intervals()) {
      auto buffer = cast<BufferOp>(op);
      if (!buffer.getOffset()) // 1.
        return buffer.emitOpError("has no offset; run dlc-plan-memory first");
      auto begin = static_cast<int64_t>(*buffer.getOffset());
      int64_t bytes = nn::physicalBytes(buffer.getType().getTensor());
      if (failed(verifyPlace(buffer, buffer.getArena(), begin, bytes)))
        return failure();
      if (!buffer.getVariable())
        continue;
      auto variable = symbols.lookup<nn::VariableOp>(*buffer.getVariable()); // 10.
      if (!variable)
        return buffer.emitOpError("holds @")
               << *buffer.getVariable() << ", which is no variable of the model";
      if (variable.getType() != buffer.getType().getTensor() ||
          arenaOf(variable) != buffer.getArena() ||
          variable->getAttrOfType<IntegerAttr>("offset").getInt() != begin)
        return buffer.emitOpError("has another type or place than @") << *buffer.getVariable();
    }
    return success();
  }

  /// A view of a view counts from the buffer.
  static LogicalResult verifyViews(exec::ProgramOp program, SymbolTable &symbols) { // 1. 7.
    for (auto view : program.getBody().getOps<ViewOp>()) {
      RankedTensorType type = view.getType().getTensor();
      int64_t bytes = nn::elementBytes(type.getElementType());
      auto [root, begin] = rootOf(view.getView());
      if (begin % bytes != 0)
        return view.emitOpError("begins at byte ")
               << begin << " of its buffer, expected a multiple of " << bytes;
      if (root.getVariables() && !isPartOfVariables(type, begin, root, symbols))
        return view.emitOpError("at byte ")
               << begin << " of its buffer is none of the variables there, nor a part or range of "
               << "them";
    }
    return success();
  }

  /// True for one of a buffer's variables, for rows of one, and for several, taken as a vector.
  static bool isPartOfVariables(RankedTensorType type, int64_t begin, BufferOp root,
                                SymbolTable &symbols) {
    int64_t place = 0, end = begin + nn::physicalBytes(type);
    for (auto name : root.getVariables()->getAsRange<FlatSymbolRefAttr>()) {
      auto variable = symbols.lookup<nn::VariableOp>(name.getValue());
      auto whole = cast<RankedTensorType>(variable.getType());
      int64_t wholeEnd = place + nn::physicalBytes(whole);
      bool isRange = type.getRank() == 1 && begin == place && end > wholeEnd;
      bool areRows = begin >= place && end <= wholeEnd && type.getRank() == whole.getRank() &&
                     type.getRank() > 0 &&
                     type.getShape().drop_front() == whole.getShape().drop_front() &&
                     type.getShape() != whole.getShape();
      if ((begin == place && type == whole) || isRange || areRows)
        return true;
      place += rangeBytes(whole);
    }
    return false;
  }

  /// Walks the buffers by the begin of their lives, with those that are still live by their places:
  /// as these are apart, a new one can only overlap the one below it or the one above.
  static LogicalResult verifyOverlap(const Liveness &liveness) { // 2.
    struct Placed {
      BufferOp buffer;
      int64_t bytes;
      LiveInterval live;
      size_t number; // in the order of first use
      int64_t begin() { return *buffer.getOffset(); }
    };
    std::vector<Placed> buffers;
    for (auto [op, live] : liveness.intervals()) {
      auto buffer = cast<BufferOp>(op);
      buffers.push_back(
          {buffer, nn::physicalBytes(buffer.getType().getTensor()), live, buffers.size()});
    }
    llvm::sort(buffers, [](const Placed &a, const Placed &b) {
      return std::pair(a.live.begin, a.number) < std::pair(b.live.begin, b.number);
    });
    DenseMap<ArenaKind, std::map<int64_t, Placed *>> present;
    std::multimap<int64_t, Placed *> byEnd;
    for (Placed &own : buffers) {
      for (; !byEnd.empty() && byEnd.begin()->first < own.live.begin; byEnd.erase(byEnd.begin()))
        present[byEnd.begin()->second->buffer.getArena()].erase(byEnd.begin()->second->begin());
      std::map<int64_t, Placed *> &arena = present[own.buffer.getArena()];
      auto above = arena.lower_bound(own.begin());
      Placed *other = nullptr;
      if (above != arena.end() && above->first < own.begin() + own.bytes)
        other = above->second;
      else if (above != arena.begin() &&
               std::prev(above)->first + std::prev(above)->second->bytes > own.begin())
        other = std::prev(above)->second;
      if (other)
        return (own.buffer.emitOpError("overlaps another buffer that is live at the same time")
                    .attachNote(other->buffer.getLoc())
                << "the other buffer");
      arena[own.begin()] = &own;
      byEnd.emplace(own.live.end, &own);
    }
    return success();
  }

  static LogicalResult verifyUploads(exec::ProgramOp program, SymbolTable &symbols) { // 14.
    DenseSet<StringRef> seen;
    for (auto upload : program.getBody().getOps<UploadOp>()) {
      unsigned inputs = 0;
      for (Value place : upload.getBuffers()) {
        auto buffer = place.getDefiningOp<BufferOp>();
        bool isInput = buffer && buffer.getInput();
        if (!isInput && !(buffer && isHostScalar(buffer, symbols)))
          return upload.emitOpError("writes what is neither an input nor a scalar");
        if (!seen.insert(isInput ? *buffer.getInput() : *buffer.getVariable()).second)
          return upload.emitOpError("brings a value a second time");
        inputs += isInput;
      }
      if (inputs != 0 && inputs != upload.getBuffers().size())
        return upload.emitOpError("brings inputs and scalars in one");
    }
    return success();
  }

  static LogicalResult verifyStreams(const Liveness &liveness) { // 6.
    for (Operation *op : liveness.instructions())
      if (!op->getAttr("stream"))
        return op->emitOpError("has no stream; run dlc-assign-streams first");
    return success();
  }

  static LogicalResult verifyCollectives(const Liveness &liveness) { // 4. 5. 13.
    int64_t next = 0;
    llvm::MapVector<int64_t, BufferOp> inFlight;
    for (Operation *op : liveness.instructions()) {
      for (Value operand : op->getOperands())
        for (auto &[number, bucket] : inFlight)
          if (rootOf(operand).buffer == bucket)
            return op->emitOpError("touches the bucket of collective ")
                   << number << " while it is in flight";
      if (auto start = dyn_cast<StartOp>(op)) {
        if (static_cast<int64_t>(start.getCollective()) != next++)
          return start.emitOpError("starts collective ")
                 << start.getCollective() << ", expected " << next - 1;
        auto bucket = start.getBucket().getDefiningOp<BufferOp>();
        if (!bucket)
          return start.emitOpError("adds up a part of a bucket");
        if (bucket.getArena() != ArenaKind::Gradients)
          return start.emitOpError("adds up what lies in the arena ")
                 << stringifyArenaKind(bucket.getArena()) << ", expected gradients";
        for (Operation *user : bucket.getBuffer().getUsers())
          if (auto slice = dyn_cast<ViewOp>(user);
              slice && !BucketLayout::canBegin(static_cast<int64_t>(slice.getOffset())))
            return slice.emitOpError("begins at byte ")
                   << slice.getOffset() << " of a bucket, where no slice can";
        if (auto wire = bucket->getParentOfType<nn::ModelOp>()->getAttrOfType<StringAttr>("wire");
            !start.getWire().isF32() && !(wire && wire.getValue() == "bf16"))
          return start.emitOpError("sends ") << start.getWire() << ", which the model does not";
        inFlight[start.getCollective()] = bucket;
      }
      if (auto wait = dyn_cast<exec::WaitOp>(op))
        if (!inFlight.erase(wait.getCollective()))
          return wait.emitOpError("waits for collective ")
                 << wait.getCollective() << ", which is not in flight";
    }
    if (!inFlight.empty())
      return liveness.instructions().back()->emitOpError(
          "ends the program with a collective in flight");
    return success();
  }

  static LogicalResult verifySums(const Liveness &liveness, SymbolTable &symbols) { // 15. 17.
    SumVerifier verifier(symbols);
    for (Operation *op : liveness.instructions())
      if (failed(verifier.verify(op)))
        return failure();
    return verifier.finish();
  }

  static LogicalResult verifyEvent(Operation *op, DenseSet<int64_t> &recorded,
                                   rt::StepOrderProof &proof) { // 12.
    if (auto record = dyn_cast<RecordOp>(op)) {
      if (!recorded.insert(record.getEvent()).second)
        return op->emitOpError("records event ") << record.getEvent() << " a second time";
      proof.record(record.getEvent());
    }
    if (auto wait = dyn_cast<WaitEventOp>(op)) {
      if (!recorded.contains(wait.getEvent()))
        return op->emitOpError("waits for event ")
               << wait.getEvent() << ", which nothing has recorded";
      proof.wait(wait.getEvent());
    }
    return success();
  }

  /// The earlier instruction whose memory this one meets unordered, if there is one.
  static std::optional<uint32_t> meets(Operation *op, SymbolTable &symbols,
                                       rt::StepOrderProof &proof) {
    if (auto start = dyn_cast<StartOp>(op))
      return proof.start(start.getCollective(), rangeOf(start.getBucket()));
    if (auto wait = dyn_cast<exec::WaitOp>(op))
      proof.finish(wait.getCollective());
    for (auto [operand, access] : llvm::zip(op->getOperands(), accessesOf(op, symbols)))
      if (std::optional<uint32_t> earlier =
              access == Access::Read ? proof.read(rangeOf(operand)) : proof.write(rangeOf(operand)))
        return earlier;
    return std::nullopt;
  }

  /// What meets in memory, one writing, is ordered by streams, events and collectives.
  static LogicalResult verifyOrder(const Liveness &liveness, SymbolTable &symbols) { // 12.
    rt::StepOrderProof proof;
    DenseSet<int64_t> recorded;
    for (auto [number, op] : llvm::enumerate(liveness.instructions())) {
      auto stream = op->getAttrOfType<exec::StreamAttr>("stream");
      proof.begin(number, static_cast<rt::OrderProof::Stream>(stream.getValue()), operationOf(op),
                  phaseOf(op));
      if (failed(verifyEvent(op, recorded, proof)))
        return failure();
      if (std::optional<uint32_t> earlier = meets(op, symbols, proof))
        return (
            op->emitOpError("meets memory of an earlier instruction, and nothing orders the two")
                .attachNote(liveness.instructions()[*earlier]->getLoc())
            << "the earlier instruction");
    }
    return success();
  }

  DenseMap<ArenaKind, int64_t> sizes, reached; // of what lies there
};
} // namespace
