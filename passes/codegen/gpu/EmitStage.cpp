// A block decodes the number of each of its items; a thread, its iterations inside of it. What is
// the same in all of a thread's iterations, such as a channel's factors, is computed ahead of them.
// Several iterations are computed before any is stored, so that their loads are under way together:
// the compiler may not move a load ahead of a store that could change it.

#include "passes/codegen/gpu/EmitStage.h"

#include "passes/codegen/EmitNode.h"
#include "passes/codegen/EmitRandom.h"
#include "passes/codegen/EmitScalars.h"
#include "passes/codegen/gpu/LaneMemory.h"
#include "passes/codegen/gpu/LowerKernels.h"
#include "passes/codegen/gpu/SharedTiles.h"
#include "passes/codegen/gpu/ThreadReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SmallBitVector.h"

#include <bit>
#include <numeric>

using namespace mlir;
using namespace dlc;

using Kind = ClusterNode::Kind;

// Address spaces of PTX.
static constexpr unsigned globalSpace = 1, sharedSpace = 3;
// Values that iterations which are under way together may have loaded.
static constexpr int64_t mostLoaded = 32;
// Values that are loaded ahead of iterations: registers for as long as these run.
static constexpr int64_t mostLoadedAhead = 96;

namespace {
/// The values of all nodes, lane by lane.
using PointValues = std::vector<LaneValues>;

/// A function, which a stage, its versions and its copies to tiles are emitted into.
struct Kernel {
  LLVM::LLVMFuncOp function = {};
  // What the threads of a block share, null if nothing, and where its tiles are.
  Value shared = {};
  DenseMap<unsigned, Value> places;
  DenseMap<Operation *, LLVM::GlobalOp> tables;
};

class StageEmitter {
public:
  StageEmitter(OpBuilder &builder, Location loc, const StagePlan &stage, Kernel &kernel)
      : b(loc, builder), tiles(SharedTiles::of(stage)), stage(tiles ? tiles->stage : stage),
        threads(ThreadPlan::of(stage)), buffers(stageBuffers(stage)), memory(b, threads.lanes),
        kernel(kernel) {}
  Launch emit(StringRef name);

private:
  /// Of a version of a stage or a copy to its tile, without reductions.
  StageEmitter(const StageEmitter &outer, const StagePlan &inner, int64_t lanes)
      : b(outer.b), stage(inner),
        threads(ThreadPlan::ofThreads(inner, outer.threads.keptThreads, lanes)),
        buffers(outer.buffers), memory(b, threads.lanes), kernel(outer.kernel),
        keptThread(outer.keptThread) {}
  void shareMemory(int64_t bytes);
  void emitItems();
  void emitItem(Value item);
  void emitVersions(Value item);
  LoopIndices placeOf(Value item);
  void emitPoints(LoopIndices at);
  void emitRun(const LoopIndices &at, const PointValues &known, Value first, int64_t count);
  void emitReductions(LoopIndices at);
  void storeResults(LoopIndices at, ArrayRef<Value> sums);
  void guarded(LoopIndices &at, llvm::function_ref<void()> body);
  int64_t mostTogether(const llvm::SmallBitVector &isKnown) const;
  int64_t iterationsTogether(const llvm::SmallBitVector &isKnown) const;
  int64_t termsTogether(const llvm::SmallBitVector &isKnown) const;
  ThreadSums emitTerms(const LoopIndices &at, const PointValues &known, ArrayRef<Value> iterations,
                       ThreadSums run);

  llvm::SmallBitVector nodesWithout(ArrayRef<unsigned> loops) const;
  PointValues evaluateAhead(const llvm::SmallBitVector &nodes, LoopIndices &at);
  std::vector<PointValues> evaluate(const PointValues &known, MutableArrayRef<LoopIndices> places);
  void evaluate(PointValues &values, unsigned first, unsigned last, LaneMemory &from,
                LoopIndices &at);
  Value evaluateLane(const ClusterNode &node, PointValues &values, int64_t lane, LoopIndices &at);
  void store(const PointValues &values, LoopIndices &at);
  void storeWrite(const ClusterWrite &write, const LaneValues &values, LoopIndices &at);
  ThreadSums accumulate(const PointValues &values, ThreadSums sums, LoopIndices &at);

  Value bufferOf(unsigned buffer);
  Value tableOf(Operation *constant);
  void emitRandomBits();
  Value constant(int64_t value) {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(static_cast<int32_t>(value)));
  }
  Value sum(Value x, Value y) { return arith::AddIOp::create(b, x, y); }

  ImplicitLocOpBuilder b;
  std::optional<SharedTiles> tiles;
  const StagePlan &stage;
  ThreadPlan threads;
  SmallVector<unsigned> buffers;
  LaneMemory memory;
  Kernel &kernel;
  Value thread, keptThread, reducedThread;
  // Of a stage without reductions: what of the kept iterations changes from one of a thread's to
  // the next one, and how far that is.
  SmallVector<unsigned> rowLoops;
  int64_t rowThreads = 1;
};
} // namespace

//===- Loops ----------------------------------------------------------------------------------===//

Launch StageEmitter::emit(StringRef name) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext(), globalSpace);
  SmallVector<Type> types(buffers.size(), pointer);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), types);
  kernel.function = LLVM::LLVMFuncOp::create(b, name, type);
  kernel.function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel.function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                           b.getDenseI32ArrayAttr({static_cast<int32_t>(threads.threads())}));
  // One block is enough: the assembler would spill registers for a few more. But it would take all
  // there are to draw numbers for many elements at a time.
  bool draws = llvm::any_of(stage.nodes, [](const ClusterNode &node) {
    return isa_and_present<nn::RandomOpInterface>(node.op);
  });
  kernel.function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                           b.getI32IntegerAttr(draws ? 2 : 1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(kernel.function.addEntryBlock(b));
  int64_t bytes = tiles ? tiles->bytes : ThreadReduction::sharedBytes(stage, threads);
  shareMemory(bytes);
  emitItems();
  LLVM::ReturnOp::create(b, ValueRange());
  emitRandomBits();
  return {static_cast<uint32_t>(threads.threads()), static_cast<uint32_t>(bytes), 0};
}

void StageEmitter::emitItems() {
  thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  keptThread = thread;
  reducedThread = constant(0);
  if (threads.reducedThreads > 1) {
    keptThread = arith::RemUIOp::create(b, thread, constant(threads.keptThreads));
    reducedThread = arith::DivUIOp::create(b, thread, constant(threads.keptThreads));
  }
  Value block = NVVM::BlockIdXOp::create(b, b.getI32Type());
  if (stage.chunk == 1)
    return emitItem(block);
  Value first = arith::MulIOp::create(b, block, constant(stage.chunk));
  Value end = arith::MinUIOp::create(b, sum(first, constant(stage.chunk)), constant(stage.items));
  scf::ForOp::create(b, first, end, constant(1), ValueRange(),
                     [&](OpBuilder &, Location, Value item, ValueRange) {
                       emitItem(item);
                       scf::YieldOp::create(b);
                     });
}

LoopIndices StageEmitter::placeOf(Value item) {
  SmallVector<unsigned> items;
  for (auto [i, loop] : llvm::enumerate(stage.loops))
    if (loop.item)
      items.push_back(i);
  LoopIndices at(b, stage);
  at.decode(item, items, /*lanes=*/1);
  return at;
}

void StageEmitter::emitItem(Value item) {
  auto copyAll = [&](ArrayRef<StagePlan> copies) {
    for (const StagePlan &copy : copies) {
      StageEmitter emitter(*this, copy, ThreadPlan::lanesOf(copy, ThreadPlan::bankBytes));
      emitter.emitPoints(emitter.placeOf(item));
    }
  };
  if (tiles && !tiles->reads.empty()) {
    copyAll(tiles->reads);
    NVVM::Barrier0Op::create(b);
  }
  if (stage.hasReduction())
    emitReductions(placeOf(item));
  else
    emitVersions(item);
  if (tiles && !tiles->stores.empty()) {
    NVVM::Barrier0Op::create(b);
    copyAll(tiles->stores);
  }
  if (tiles && stage.chunk > 1)
    NVVM::Barrier0Op::create(b); // before the next item's tiles
}

/// A stage without reductions; where the last item along a loop is shorter, in two versions,
/// neither of which asks what exists but at its end.
void StageEmitter::emitVersions(Value item) {
  LoopIndices at = placeOf(item);
  std::optional<unsigned> shorter = stage.raggedLoop();
  if (!shorter)
    return emitPoints(at);
  auto emitVersion = [&](int64_t extent) {
    StagePlan version = stage;
    version.loops[*shorter].extent = extent;
    version.loops[*shorter].last = 0;
    StageEmitter emitter(*this, version, std::gcd(threads.lanes, version.loops.back().extent));
    emitter.emitPoints(emitter.placeOf(item));
    scf::YieldOp::create(b);
  };
  const StagePlan::Loop &loop = stage.loops[*shorter];
  scf::IfOp::create(
      b, at.isLastItem(*shorter), [&](OpBuilder &, Location) { emitVersion(loop.last); },
      [&](OpBuilder &, Location) { emitVersion(loop.extent); });
}

/// Does `body` where a loop with a shorter last item goes on.
void StageEmitter::guarded(LoopIndices &at, llvm::function_ref<void()> body) {
  Value exists = at.exists();
  if (!exists)
    return body();
  scf::IfOp::create(b, exists, [&](OpBuilder &, Location) {
    body();
    scf::YieldOp::create(b);
  });
}

/// Iterations whose values may be loaded before those of the first one are needed.
int64_t StageEmitter::mostTogether(const llvm::SmallBitVector &isKnown) const {
  int64_t loaded = 0;
  for (auto [number, node] : llvm::enumerate(stage.nodes))
    loaded += node.kind == Kind::Read && !isKnown[number];
  return mostLoaded / std::max<int64_t>(1, loaded * threads.lanes);
}

int64_t StageEmitter::iterationsTogether(const llvm::SmallBitVector &isKnown) const {
  int64_t most = mostTogether(isKnown), whole = threads.kept / threads.keptThreads;
  for (int64_t count = std::min(most, whole); count > 1; --count)
    if (whole % count == 0)
      return count;
  return 1;
}

/// A stage without reductions: kept iterations alone. Where the threads of a block share whole rows
/// of the innermost loop, each keeps its place in them.
void StageEmitter::emitPoints(LoopIndices at) {
  rowLoops = stage.innerLoops(/*reduced=*/false);
  unsigned innermost = stage.loops.size() - 1;
  int64_t columns = 1;
  if (rowLoops.size() > 1 && rowLoops.back() == innermost)
    columns = stage.loops[innermost].extent / threads.lanes;
  if (threads.keptThreads % columns != 0)
    columns = 1;
  Value rowThread = keptThread;
  if (columns > 1) {
    rowLoops.pop_back();
    at.decode(arith::RemUIOp::create(b, keptThread, constant(columns)), innermost, threads.lanes);
    rowThread = arith::DivUIOp::create(b, keptThread, constant(columns));
  }
  rowThreads = threads.keptThreads / columns;
  llvm::SmallBitVector ahead = nodesWithout(rowLoops);
  PointValues known = evaluateAhead(ahead, at);
  int64_t whole = threads.kept / threads.keptThreads, together = iterationsTogether(ahead);
  auto from = [&](Value step) {
    return sum(arith::MulIOp::create(b, step, constant(rowThreads)), rowThread);
  };
  if (whole == together)
    emitRun(at, known, rowThread, together);
  else
    keepRolled(scf::ForOp::create(b, constant(0), constant(whole), constant(together), ValueRange(),
                                  [&](OpBuilder &, Location, Value step, ValueRange) {
                                    emitRun(at, known, from(step), together);
                                    scf::YieldOp::create(b);
                                  }));
  if (threads.kept % threads.keptThreads == 0)
    return;
  Value last = sum(rowThread, constant(whole * rowThreads));
  Value exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, last, constant(threads.kept / columns));
  scf::IfOp::create(b, exists, [&](OpBuilder &, Location) {
    emitRun(at, known, last, 1);
    scf::YieldOp::create(b);
  });
}

/// Some of a thread's kept iterations: all are computed, then all are stored.
void StageEmitter::emitRun(const LoopIndices &at, const PointValues &known, Value first,
                           int64_t count) {
  std::vector<LoopIndices> places(count, at);
  auto number = [&](int64_t i) { return i == 0 ? first : sum(first, constant(i * rowThreads)); };
  for (auto [i, place] : llvm::enumerate(places))
    place.decode(number(static_cast<int64_t>(i)), rowLoops, threads.lanes);
  for (auto [place, point] : llvm::zip(places, evaluate(known, places)))
    store(point, place);
}

/// Terms whose results are stored, too: all of some are loaded, then all are stored. What is not
/// stored does not keep the compiler from it.
int64_t StageEmitter::termsTogether(const llvm::SmallBitVector &isKnown) const {
  if (!stage.storesTerms() || stage.raggedLoop())
    return 1;
  return std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, mostTogether(isKnown))));
}

/// Some of a thread's terms: all are computed, then all are stored and added up.
ThreadSums StageEmitter::emitTerms(const LoopIndices &at, const PointValues &known,
                                   ArrayRef<Value> iterations, ThreadSums run) {
  std::vector<LoopIndices> places(iterations.size(), at);
  for (auto [place, iteration] : llvm::zip(places, iterations))
    place.decode(iteration, stage.innerLoops(/*reduced=*/true), threads.lanes);
  auto all = [&] {
    for (auto [place, point] : llvm::zip(places, evaluate(known, places))) {
      store(point, place);
      run = accumulate(point, run, place);
    }
    return run;
  };
  Value exists = places.front().exists();
  if (!exists)
    return all();
  auto some = scf::IfOp::create(
      b, exists, [&](OpBuilder &, Location) { scf::YieldOp::create(b, all()); },
      [&, run](OpBuilder &, Location) { scf::YieldOp::create(b, run); });
  return llvm::to_vector_of<Value>(some.getResults());
}

/// A stage with reductions. The loop over kept iterations has one iteration where their terms are
/// shared among threads, which meet inside of it.
void StageEmitter::emitReductions(LoopIndices at) {
  ThreadReduction reduction(b, stage, threads, kernel.shared);
  auto reduceAt = [&](Value kept) {
    LoopIndices place = at;
    place.decode(kept, stage.innerLoops(/*reduced=*/false), threads.lanes);
    llvm::SmallBitVector ahead = nodesWithout(stage.innerLoops(/*reduced=*/true));
    PointValues known = evaluateAhead(ahead, place);
    ThreadSums sums = reduction.reduce(keptThread, reducedThread, termsTogether(ahead),
                                       [&](ArrayRef<Value> iterations, ThreadSums run) {
                                         return emitTerms(place, known, iterations, run);
                                       });
    storeResults(place, sums);
  };
  if (threads.keptSteps() == 1)
    return reduceAt(keptThread);
  scf::ForOp::create(b, keptThread, constant(threads.kept), constant(threads.keptThreads),
                     ValueRange(), [&](OpBuilder &, Location, Value kept, ValueRange) {
                       reduceAt(kept);
                       scf::YieldOp::create(b);
                     });
}

/// The threads that have results store them, and what is computed with them.
void StageEmitter::storeResults(LoopIndices at, ArrayRef<Value> sums) {
  bool isSpread = threads.spreadsResults();
  if (isSpread)
    at.decode(thread, stage.innerLoops(/*reduced=*/false), /*lanes=*/1);
  auto all = [&] {
    PointValues values(stage.nodes.size());
    std::vector<LaneValues> results(stage.writes.size());
    LaneMemory kept(b, threads.reducesLanes || isSpread ? 1 : threads.lanes);
    size_t each = kept.laneCount();
    for (auto [write, result] : llvm::zip(stage.writes, results)) {
      if (!write.reduction)
        continue;
      for (Value sum : sums.take_front(each))
        result.push_back(emitResize(b, sum, write.element));
      sums = sums.drop_front(each);
      if (write.isStored)
        kept.store(write.address, bufferOf(write.buffer), result, at);
    }
    if (!stage.epilogue)
      return;
    for (auto [node, own] : llvm::zip(stage.nodes, values))
      if (node.kind == Kind::Reduced)
        for (Value result : results[node.write])
          own.push_back(emitLoaded(b, result, node.element));
    evaluate(values, *stage.epilogue, stage.nodes.size(), kept, at);
    for (const ClusterWrite &write : stage.writes)
      if (!write.reduction && stage.isEpilogue(write.node))
        storeWrite(write, values[write.node], at);
  };
  auto ofKept = [&] {
    std::optional<unsigned> ragged = stage.raggedLoop();
    if (ragged && !stage.loops[*ragged].reduced)
      guarded(at, all);
    else
      all();
  };
  if (threads.reducedThreads == 1)
    return ofKept();
  auto below = [&](Value x, int64_t limit) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, constant(limit));
  };
  Value has =
      isSpread ? below(thread, threads.keptThreads * threads.lanes) : below(reducedThread, 1);
  scf::IfOp::create(b, has, [&](OpBuilder &, Location) {
    ofKept();
    scf::YieldOp::create(b);
  });
}

//===- Body -----------------------------------------------------------------------------------===//

Value StageEmitter::bufferOf(unsigned buffer) {
  if (auto tile = kernel.places.find(buffer); tile != kernel.places.end())
    return tile->second;
  return kernel.function.getArgument(llvm::find(buffers, buffer) - buffers.begin());
}

/// Nodes that are the same whatever the indices of some loops and of one with a shorter last item,
/// whose indices need not exist, as far as there are registers for them; none of the epilogue.
llvm::SmallBitVector StageEmitter::nodesWithout(ArrayRef<unsigned> loops) const {
  SmallVector<unsigned> moving(loops);
  if (std::optional<unsigned> ragged = stage.raggedLoop())
    moving.push_back(*ragged);
  auto isFixed = [&](const LinearForm &form) {
    return llvm::all_of(moving, [&](unsigned loop) { return form.weights[loop] == 0; });
  };
  llvm::SmallBitVector fixed(stage.nodes.size());
  int64_t loaded = 0;
  for (unsigned i = 0; i < stage.epilogue.value_or(stage.nodes.size()); ++i) {
    const ClusterNode &node = stage.nodes[i];
    fixed[i] = (!node.form || isFixed(*node.form)) &&
               llvm::all_of(node.quotients, [&](const Quotient &q) { return isFixed(q.form); }) &&
               llvm::all_of(node.bounds, [&](const Bound &bound) { return isFixed(bound.form); }) &&
               !(node.address &&
                 llvm::any_of(moving,
                              [&](unsigned loop) { return node.address.isFunctionOfDim(loop); })) &&
               llvm::all_of(node.operands, [&](unsigned operand) { return fixed[operand]; });
    if (fixed[i] && node.kind == Kind::Read)
      fixed[i] = (loaded += threads.lanes) <= mostLoadedAhead;
  }
  return fixed;
}

PointValues StageEmitter::evaluateAhead(const llvm::SmallBitVector &nodes, LoopIndices &at) {
  PointValues values(stage.nodes.size());
  for (unsigned i : nodes.set_bits())
    evaluate(values, i, i + 1, memory, at);
  return values;
}

/// Of some iterations: all that they load first.
std::vector<PointValues> StageEmitter::evaluate(const PointValues &known,
                                                MutableArrayRef<LoopIndices> places) {
  unsigned end = stage.epilogue.value_or(stage.nodes.size());
  std::vector<PointValues> points(places.size(), known);
  std::vector loaded(places.size(), std::vector<PackedLanes>(end));
  for (auto [place, packed] : llvm::zip(places, loaded))
    for (unsigned i = 0; i < end; ++i)
      if (const ClusterNode &node = stage.nodes[i]; node.kind == Kind::Read && known[i].empty())
        packed[i] = memory.load(node, bufferOf(node.buffer), place);
  for (auto [place, point, packed] : llvm::zip(places, points, loaded)) {
    for (unsigned i = 0; i < end; ++i)
      if (!packed[i].empty())
        point[i] = memory.unpack(stage.nodes[i], packed[i]);
    evaluate(point, 0, end, memory, place);
  }
  return points;
}

/// Nodes from the first to before the last, in as many lanes as memory is read in. Those that have
/// a value are known.
void StageEmitter::evaluate(PointValues &values, unsigned first, unsigned last, LaneMemory &from,
                            LoopIndices &at) {
  for (unsigned i = first; i < last; ++i) {
    const ClusterNode &node = stage.nodes[i];
    LaneValues &own = values[i];
    if (!own.empty())
      continue;
    if (node.kind == Kind::Read || node.kind == Kind::Table) {
      Value base = node.kind == Kind::Read ? bufferOf(node.buffer) : tableOf(node.op);
      own = from.unpack(node, from.load(node, base, at));
      continue;
    }
    for (int64_t lane = 0; lane < from.laneCount(); ++lane)
      own.push_back(evaluateLane(node, values, lane, at));
  }
}

Value StageEmitter::evaluateLane(const ClusterNode &node, PointValues &values, int64_t lane,
                                 LoopIndices &at) {
  auto operands = llvm::map_to_vector(node.operands, [&](unsigned i) { return values[i][lane]; });
  return emitNode(b, node, operands,
                  {[&](const ClusterNode &placed) { return at.placeOf(placed, lane); },
                   [&](ArrayRef<Bound> bounds) { return at.insideOf(bounds, lane); },
                   [](const ClusterNode &) { return Value(); }});
}

/// The plain writes but those of the epilogue.
void StageEmitter::store(const PointValues &values, LoopIndices &at) {
  for (const ClusterWrite &write : stage.writes)
    if (!write.reduction && !stage.isEpilogue(write.node))
      storeWrite(write, values[write.node], at);
}

void StageEmitter::storeWrite(const ClusterWrite &write, const LaneValues &values,
                              LoopIndices &at) {
  SmallVector<Value> stored;
  for (auto [lane, value] : llvm::enumerate(values))
    stored.push_back(emitStored(b, write, value, [&, lane = static_cast<int64_t>(lane)] {
      return at.insideOf(write.valid, lane);
    }));
  memory.store(write.address, bufferOf(write.buffer), stored, at);
}

ThreadSums StageEmitter::accumulate(const PointValues &values, ThreadSums sums, LoopIndices &at) {
  size_t next = 0;
  for (const ClusterWrite &write : stage.writes) {
    if (!write.reduction)
      continue;
    for (int64_t lane = 0; lane < threads.lanes; ++lane, ++next)
      sums[next] = emitAccumulated(b, write, values[write.node][lane], sums[next],
                                   [&] { return at.insideOf(write.valid, lane); });
  }
  return sums;
}

/// Random bits, which emission has left as calls.
void StageEmitter::emitRandomBits() {
  SmallVector<func::CallOp> calls;
  kernel.function.walk([&](func::CallOp call) { calls.push_back(call); });
  for (func::CallOp call : calls) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(call);
    ValueRange in = call.getOperands();
    Value index = in[4];
    if (!index.getType().isInteger(64))
      index = arith::ExtSIOp::create(b, b.getI64Type(), index);
    Value bits = dlc::emitRandomBits(b, {in[0], in[1], in[2]}, sum(in[3], index));
    call.getResult(0).replaceAllUsesWith(bits);
    call.erase();
  }
}

//===- Memory ---------------------------------------------------------------------------------===//

/// A constant's elements in global memory; booleans as bytes.
Value StageEmitter::tableOf(Operation *constant) {
  LLVM::GlobalOp &table = kernel.tables[constant];
  if (!table) {
    auto elements = cast<DenseElementsAttr>(cast<nn::ConstantOp>(constant).getValue());
    if (elements.getElementType().isInteger(1))
      elements = elements.mapValues(b.getI8Type(), [](const APInt &bit) { return bit.zext(8); });
    auto flat = elements.reshape(
        RankedTensorType::get({elements.getNumElements()}, elements.getElementType()));
    auto type = LLVM::LLVMArrayType::get(flat.getElementType(), flat.getNumElements());
    std::string name =
        (kernel.function.getName() + "_table_" + Twine(kernel.tables.size() - 1)).str();
    OpBuilder before(kernel.function);
    table =
        LLVM::GlobalOp::create(before, b.getLoc(), type, /*isConstant=*/true,
                               LLVM::Linkage::Internal, name, flat, /*alignment=*/16, globalSpace);
  }
  return LLVM::AddressOfOp::create(b, table);
}

/// Declares what the threads of a block share.
void StageEmitter::shareMemory(int64_t bytes) {
  if (bytes == 0)
    return;
  OpBuilder before(kernel.function);
  auto memory = LLVM::GlobalOp::create(
      before, b.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), bytes), /*isConstant=*/false,
      LLVM::Linkage::Internal, (kernel.function.getName() + "_shared").str(), Attribute(),
      /*alignment=*/16, sharedSpace);
  kernel.shared = LLVM::AddressOfOp::create(b, memory);
  if (!tiles)
    return;
  for (auto [i, offset] : llvm::enumerate(tiles->offsets))
    kernel.places[tiles->firstBuffer + i] = LLVM::GEPOp::create(
        b, kernel.shared.getType(), b.getI8Type(), kernel.shared,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)}, LLVM::GEPNoWrapFlags::inbounds);
}

Launch dlc::emitGpuStage(OpBuilder &builder, Location loc, StringRef name, const StagePlan &stage) {
  Kernel kernel;
  return StageEmitter(builder, loc, stage, kernel).emit(name);
}
