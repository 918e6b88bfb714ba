// Stages that do the same with each of many operands: copy the inputs of a concatenation to their
// places, or add them up. A loop over the operands is one body for any number of them, where the
// lines of each would be a body for every number. Where an operand lies comes from the kernel's
// sizes: the number of operands, the loops' extents, then a row for each place, the element's
// number at the loops' begin and its distance along each loop but the innermost.

#include "passes/codegen/cpu/EmitOperandLoops.h"

#include "passes/codegen/EmitScalars.h"
#include "passes/codegen/cpu/vectorize/VectorMemory.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <algorithm>

using namespace mlir;
using namespace dlc;
using Kind = ClusterNode::Kind;

// Stages of fewer operands have short bodies, which few kernels could share.
static constexpr size_t manyOperands = 5;
// Vectors that share the work of finding an operand.
static constexpr int64_t blockVectors = 8;
// Operands that are copied side by side, since one stream is not all that memory gives; and
// elements of these that are copied before the next ones.
static constexpr int64_t sideBySide = 2, copiedRun = 128;
// The least number of loops of a body; stages with fewer get loops of one iteration.
static constexpr size_t itemLoops = 2, innerLoops = 2;

//===- Which stages ---------------------------------------------------------------------------===//

namespace {
struct OperandLoop {
  bool sums = false, nonTemporal = false;
  Type element;
  /// Forms of the operands in the order of the function's arguments; of the sum, or of each copy.
  SmallVector<const LinearForm *> sources, targets;
  /// Numbers of loops in the body.
  size_t items = 0, inner = 0;
};
} // namespace

/// Operands of a sum from left to right; the node itself if it is no sum.
static SmallVector<unsigned> termsOf(const StagePlan &stage, unsigned node) {
  SmallVector<unsigned> terms;
  while (isa_and_present<nn::AddOp>(stage.nodes[node].op)) {
    terms.push_back(stage.nodes[node].operands[1]);
    node = stage.nodes[node].operands[0];
  }
  terms.push_back(node);
  std::reverse(terms.begin(), terms.end());
  return terms;
}

/// True if vectors go through a form's elements one after the other.
static bool isDense(const LinearForm &form) { return form.weights.back() == 1; }

static std::optional<OperandLoop> findOperandLoop(const StagePlan &stage, int64_t lanes) {
  const StagePlan::Loop &innermost = stage.loops.back();
  if (stage.raggedLoop() || innermost.item || innermost.extent % lanes != 0 ||
      !std::ranges::is_partitioned(stage.loops, std::identity(), &StagePlan::Loop::item))
    return std::nullopt;
  OperandLoop found;
  size_t items = llvm::count_if(stage.loops, [](const auto &loop) { return loop.item; });
  found.items = std::max(items, itemLoops);
  found.inner = std::max(stage.loops.size() - items, innerLoops);
  const ClusterWrite &first = stage.writes.front();
  found.element = first.element;
  found.nonTemporal = first.nonTemporal && fillsLines(stage, first, lanes);
  found.sums = stage.writes.size() == 1;
  SmallVector<unsigned> nodes = found.sums ? termsOf(stage, first.node) : SmallVector<unsigned>();
  for (const ClusterWrite &write : stage.writes) {
    if (write.reduction || !write.valid.empty() || write.buffer != first.buffer ||
        write.element != found.element || !isDense(write.address) ||
        (write.nonTemporal && fillsLines(stage, write, lanes)) != found.nonTemporal)
      return std::nullopt;
    found.targets.push_back(&write.address);
    if (!found.sums)
      nodes.push_back(write.node);
  }
  SmallVector<unsigned> buffers = stageBuffers(stage);
  if (nodes.size() < manyOperands || buffers.size() != nodes.size() + 1 ||
      !isa<FloatType>(found.element))
    return std::nullopt;
  for (auto [i, number] : llvm::enumerate(nodes)) {
    const ClusterNode &node = stage.nodes[number];
    if (!isPlainRead(node) || node.buffer != buffers[i] || node.element != found.element ||
        !isDense(*node.form))
      return std::nullopt;
    found.sources.push_back(&*node.form);
  }
  return found;
}

//===- Code -----------------------------------------------------------------------------------===//

namespace {
class OperandLoopEmitter {
public:
  OperandLoopEmitter(OpBuilder &builder, Location loc, const OperandLoop &plan, int64_t lanes)
      : b(loc, builder), plan(plan), lanes(lanes), pointer(b.getType<LLVM::LLVMPointerType>()),
        loops(plan.items + plan.inner) {}
  func::FuncOp emit(StringRef name);

private:
  using Values = SmallVector<Value>;

  Value number(int64_t value) { return arith::ConstantIntOp::create(b, value, /*width=*/64); }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value times(Value x, Value y) { return arith::MulIOp::create(b, x, y); }
  Value at(Value memory, Type element, Value place) {
    return LLVM::GEPOp::create(b, pointer, element, memory, ArrayRef<LLVM::GEPArg>{place});
  }
  Value size(Value place) {
    return LLVM::LoadOp::create(b, b.getI64Type(), at(sizes, b.getI64Type(), place));
  }
  Value extent(size_t loop) { return size(number(1 + static_cast<int64_t>(loop))); }
  Values loop(Value from, Value to, Value step, ValueRange carried,
              llvm::function_ref<Values(Value, ValueRange)> body);
  void loop(Value from, Value to, Value step, llvm::function_ref<void(Value)> body);

  void nest(size_t inner);
  Value memoryOf(Value operand, Value row);
  Values load(Value memory, Value first, int64_t vectors);
  void store(Value memory, Value first, ValueRange vectors);
  void addUp();
  void copy();

  ImplicitLocOpBuilder b;
  const OperandLoop &plan;
  int64_t lanes;
  Type pointer;
  size_t loops;
  Value buffers, sizes, operands; // the number of operands
  Values indices;                 // of the loops that are open
};
} // namespace

OperandLoopEmitter::Values
OperandLoopEmitter::loop(Value from, Value to, Value step, ValueRange carried,
                         llvm::function_ref<Values(Value, ValueRange)> body) {
  auto forOp = scf::ForOp::create(b, from, to, step, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(forOp.getBody());
  Values results = body(forOp.getInductionVar(), forOp.getRegionIterArgs());
  scf::YieldOp::create(b, results);
  return Values(forOp.getResults());
}

void OperandLoopEmitter::loop(Value from, Value to, Value step,
                              llvm::function_ref<void(Value)> body) {
  auto forOp = scf::ForOp::create(b, from, to, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forOp.getBody()->getTerminator());
  body(forOp.getInductionVar());
}

func::FuncOp OperandLoopEmitter::emit(StringRef name) {
  OpBuilder::InsertionGuard guard(b);
  Type integer = b.getI64Type();
  auto function = func::FuncOp::create(
      b, name, b.getFunctionType({pointer, integer, integer, pointer}, TypeRange()));
  b.setInsertionPointToStart(function.addEntryBlock());
  buffers = function.getArgument(0);
  sizes = function.getArgument(3);
  operands = size(number(0));
  loop(function.getArgument(1), function.getArgument(2), number(1), [&](Value rest) {
    indices.assign(plan.items, Value());
    for (size_t i = plan.items; i-- > 0;) {
      Value count = extent(i);
      indices[i] = i == 0 ? rest : arith::RemUIOp::create(b, rest, count).getResult();
      if (i > 0)
        rest = arith::DivUIOp::create(b, rest, count);
    }
    nest(plan.items);
  });
  if (plan.nonTemporal)
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
  func::ReturnOp::create(b);
  return function;
}

/// The loops from this one on.
void OperandLoopEmitter::nest(size_t inner) {
  if (inner + 1 == loops)
    return plan.sums ? addUp() : copy();
  loop(number(0), extent(inner), number(1), [&](Value index) {
    indices.push_back(index);
    nest(inner + 1);
    indices.pop_back();
  });
}

/// Where the innermost loop begins in a buffer, as a row of the sizes says.
Value OperandLoopEmitter::memoryOf(Value operand, Value row) {
  auto width = static_cast<int64_t>(loops);
  Value numbers = plus(number(1 + width), times(row, number(width)));
  Value place = size(numbers);
  for (auto [i, index] : llvm::enumerate(indices))
    place = plus(place, times(index, size(plus(numbers, number(1 + static_cast<int64_t>(i))))));
  return at(LLVM::LoadOp::create(b, pointer, at(buffers, pointer, operand)), plan.element, place);
}

OperandLoopEmitter::Values OperandLoopEmitter::load(Value memory, Value first, int64_t vectors) {
  Values loaded;
  auto type = VectorType::get(lanes, plan.element);
  Value begin = at(memory, plan.element, first);
  for (int64_t i = 0; i < vectors; ++i)
    loaded.push_back(LLVM::LoadOp::create(b, type, at(begin, plan.element, number(i * lanes)),
                                          nn::elementBytes(plan.element)));
  return loaded;
}

void OperandLoopEmitter::store(Value memory, Value first, ValueRange vectors) {
  unsigned bytes = nn::elementBytes(plan.element);
  Value begin = at(memory, plan.element, first);
  for (auto [i, vector] : llvm::enumerate(vectors))
    LLVM::StoreOp::create(
        b, vector, at(begin, plan.element, number(static_cast<int64_t>(i) * lanes)),
        plan.nonTemporal ? lanes * bytes : bytes, /*isVolatile=*/false, plan.nonTemporal);
}

/// Blocks of vectors, then what is left one by one.
void OperandLoopEmitter::addUp() {
  auto stored = VectorType::get(lanes, plan.element);
  VectorType wide = stored.clone(computeType(plan.element));
  auto loadWide = [&](Value operand, Value first, int64_t vectors) {
    Values loaded = load(memoryOf(operand, operand), first, vectors);
    for (Value &value : loaded)
      value = emitResize(b, value, wide);
    return loaded;
  };
  auto addOperand = [&](ValueRange sums, ValueRange terms) {
    Values now;
    for (auto [sum, term] : llvm::zip(sums, terms)) {
      Value rounded = emitResize(b, arith::AddFOp::create(b, sum, term), stored);
      now.push_back(emitResize(b, rounded, wide));
    }
    return now;
  };
  auto vectorsFrom = [&](Value first, int64_t vectors) {
    Values sums = loop(number(1), operands, number(1), loadWide(number(0), first, vectors),
                       [&](Value operand, ValueRange sums) {
                         return addOperand(sums, loadWide(operand, first, vectors));
                       });
    for (Value &sum : sums)
      sum = emitResize(b, sum, stored);
    store(memoryOf(operands, operands), first, sums);
  };
  Value all = extent(loops - 1), block = number(blockVectors * lanes);
  Value whole = times(arith::DivUIOp::create(b, all, block), block);
  loop(number(0), whole, block, [&](Value first) { vectorsFrom(first, blockVectors); });
  loop(whole, all, number(lanes), [&](Value first) { vectorsFrom(first, 1); });
}

void OperandLoopEmitter::copy() {
  Value all = extent(loops - 1), count = number(sideBySide);
  Value whole = times(arith::DivUIOp::create(b, operands, count), count);
  loop(number(0), all, number(copiedRun), [&](Value begin) {
    Value end = arith::MinUIOp::create(b, all, plus(begin, number(copiedRun)));
    auto copyRuns = [&](Value operand, int64_t count) {
      Values from, to;
      for (int64_t i = 0; i < count; ++i) {
        Value source = plus(operand, number(i));
        from.push_back(memoryOf(source, source));
        to.push_back(memoryOf(operands, plus(operands, source)));
      }
      loop(begin, end, number(lanes), [&](Value first) {
        Values loaded;
        for (Value memory : from)
          loaded.append(load(memory, first, 1));
        for (auto [memory, vector] : llvm::zip(to, loaded))
          store(memory, first, vector);
      });
    };
    loop(number(0), whole, count, [&](Value operand) { copyRuns(operand, sideBySide); });
    loop(whole, operands, number(1), [&](Value operand) { copyRuns(operand, 1); });
  });
}

std::optional<KernelEntry> dlc::emitOperandLoop(OpBuilder &builder, Location loc, StringRef name,
                                                const StagePlan &stage, unsigned lanes) {
  std::optional<OperandLoop> plan = findOperandLoop(stage, lanes);
  if (!plan)
    return std::nullopt;
  KernelEntry entry{name.str()};
  llvm::raw_string_ostream(entry.body)
      << (plan->sums ? "sum" : "copies") << "_of_operands_" << plan->element << "_" << plan->items
      << "_" << plan->inner << (plan->nonTemporal ? "_streams" : "");
  auto module = cast<ModuleOp>(builder.getBlock()->getParentOp());
  if (!module.lookupSymbol(entry.body))
    OperandLoopEmitter(builder, loc, *plan, lanes)
        .emit(entry.body)
        ->setAttr("llvm.linkage",
                  LLVM::LinkageAttr::get(builder.getContext(), LLVM::Linkage::Internal));
  // With loops of one iteration before both kinds, to the body's numbers.
  size_t items = llvm::count_if(stage.loops, [](const auto &loop) { return loop.item; });
  auto addNumbers = [&](ArrayRef<int64_t> numbers, int64_t filling) {
    entry.sizes.append(plan->items - items, filling);
    llvm::append_range(entry.sizes, numbers.take_front(items));
    entry.sizes.append(plan->inner - (stage.loops.size() - items), filling);
    llvm::append_range(entry.sizes, numbers.drop_front(items));
  };
  entry.sizes.push_back(static_cast<int64_t>(plan->sources.size()));
  addNumbers(stage.extents(), 1);
  for (const LinearForm *form : llvm::concat<const LinearForm *>(plan->sources, plan->targets)) {
    entry.sizes.push_back(form->offset);
    addNumbers(form->weights, 0);
    entry.sizes.pop_back();
  }
  return entry;
}
