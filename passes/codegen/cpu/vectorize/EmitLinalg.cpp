// A stage as one linalg.generic on memrefs. Operands that the loops address linearly and within
// bounds are operands of the generic. Their shape is that of the loops they depend on if they are
// dense over these, else flat. Operands with bounds, or addressed through blocks of another layout,
// are loaded in the body. Booleans are bytes in memory, 16-bit floats are f32 outside of it.

#include "passes/codegen/cpu/vectorize/EmitLinalg.h"
#include "passes/codegen/EmitNode.h"
#include "passes/codegen/EmitRandom.h"
#include "passes/codegen/EmitScalars.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dlc;

using LocBuilder = ImplicitLocOpBuilder;
using Kind = ClusterNode::Kind;

/// The loops over which a form is dense row-major from 0 on, if it is.
static std::optional<SmallVector<unsigned>> denseLoops(const LinearForm &form,
                                                       ArrayRef<int64_t> extents) {
  SmallVector<unsigned> loops;
  int64_t stride = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    if (form.weights[i] == 0)
      continue;
    if (form.weights[i] != stride)
      return std::nullopt;
    stride *= extents[i];
    loops.push_back(i);
  }
  std::reverse(loops.begin(), loops.end());
  return form.offset == 0 ? std::optional(loops) : std::nullopt;
}

namespace {
/// How a buffer looks to the function, and how the generic indexes it.
struct View {
  std::optional<SmallVector<unsigned>> loops; // dense over these; flat if unset
  MemRefType type;
};

class LinalgBuilder {
public:
  LinalgBuilder(OpBuilder &builder, Location loc, const ClusterPlan &plan, const StagePlan &stage)
      : b(loc, builder), plan(plan), stage(stage), extents(stage.extents()),
        buffers(stageBuffers(stage)) {}
  LinalgStage build(StringRef name);

private:
  View viewOf(unsigned buffer) const;
  AffineMap mapOf(unsigned buffer, const LinearForm &form) const;
  Value argument(unsigned buffer) {
    return function.getArgument(llvm::find(buffers, buffer) - buffers.begin());
  }
  Value operandOf(unsigned buffer, AffineMap map);
  void coverLoops(SmallVector<Value> &ins, SmallVector<AffineMap> &maps);
  Value accumulator(const ClusterWrite &write);
  void roundResult(const ClusterWrite &write, Value accumulator);
  void buildBody(LocBuilder &body, ValueRange arguments);
  Value buildNode(LocBuilder &body, const ClusterNode &node);
  Value buildLoad(LocBuilder &body, const ClusterNode &node);
  Value tableOf(Operation *constant);
  Value indexOf(LocBuilder &body, AffineExpr expression);
  Value insideOf(LocBuilder &body, ArrayRef<Bound> bounds);
  Value placeOf(LocBuilder &body, const ClusterNode &node);
  Value buildWrite(LocBuilder &body, const ClusterWrite &write, Value old);

  LocBuilder b;
  const ClusterPlan &plan;
  const StagePlan &stage;
  SmallVector<int64_t> extents;
  SmallVector<unsigned> buffers;
  func::FuncOp function;
  SmallVector<Value> values;  // of nodes
  SmallVector<Value> indices; // of loops
  DenseMap<AffineExpr, Value> applied;
  DenseMap<Operation *, Value> tables;
  unsigned nextInput = 0;
};
} // namespace

//===- Buffers --------------------------------------------------------------------------------===//

View LinalgBuilder::viewOf(unsigned buffer) const {
  RankedTensorType tensor = plan.buffers[buffer];
  int64_t elements = nn::layoutOf(tensor).physicalElements(tensor.getShape().vec());
  Type stored = storedType(tensor.getElementType());
  std::optional<SmallVector<unsigned>> common;
  bool flat = false;
  int64_t covered = elements; // a shorter last item counts as a whole one
  auto visit = [&](const std::optional<LinearForm> &form, bool whole) {
    std::optional<SmallVector<unsigned>> loops =
        form && whole ? denseLoops(*form, extents) : std::nullopt;
    flat |= !loops || (common && *common != *loops);
    common = loops;
    if (form && whole)
      covered = std::max(covered, form->range(extents).second + 1);
  };
  for (const ClusterNode &node : stage.nodes)
    if (node.kind == Kind::Read && node.buffer == buffer)
      visit(node.form, isPlainRead(node));
  for (const ClusterWrite &write : stage.writes)
    if (write.buffer == buffer)
      visit(write.address, true);
  SmallVector<int64_t> shape;
  if (!flat)
    for (unsigned loop : *common)
      shape.push_back(extents[loop]);
  if (flat || ShapedType::getNumElements(shape) != elements)
    return {std::nullopt, MemRefType::get({covered}, stored)};
  return {common, MemRefType::get(shape, stored)};
}

AffineMap LinalgBuilder::mapOf(unsigned buffer, const LinearForm &form) const {
  View view = viewOf(buffer);
  SmallVector<AffineExpr> results;
  if (view.loops)
    for (unsigned loop : *view.loops)
      results.push_back(getAffineDimExpr(loop, b.getContext()));
  else
    results.push_back(form.expression(b.getContext()));
  return AffineMap::get(extents.size(), 0, results, b.getContext());
}

/// The buffer, or its beginning where a loop ends before it: extents of operands are extents of
/// loops.
Value LinalgBuilder::operandOf(unsigned buffer, AffineMap map) {
  Value memory = argument(buffer);
  auto type = cast<MemRefType>(memory.getType());
  AffineExpr index = map.getNumResults() == 1 ? map.getResult(0) : AffineExpr();
  auto dim = dyn_cast_if_present<AffineDimExpr>(index);
  if (!dim || type.getDimSize(0) == extents[dim.getPosition()])
    return memory;
  return memref::SubViewOp::create(b, memory, ArrayRef<OpFoldResult>{b.getIndexAttr(0)},
                                   {b.getIndexAttr(extents[dim.getPosition()])},
                                   {b.getIndexAttr(1)});
}

/// Each loop's extent must follow from an operand's shape. If it follows from none, an operand is
/// added that is never read, like the window of linalg's poolings.
void LinalgBuilder::coverLoops(SmallVector<Value> &ins, SmallVector<AffineMap> &maps) {
  llvm::SmallBitVector covered(extents.size());
  for (AffineMap map : maps)
    for (AffineExpr result : map.getResults())
      if (auto dim = dyn_cast<AffineDimExpr>(result))
        covered.set(dim.getPosition());
  if (covered.all())
    return;
  Value window = memref::AllocaOp::create(b, MemRefType::get(extents, b.getI8Type()));
  ins.push_back(window);
  // Inputs precede outputs among the maps.
  maps.insert(maps.begin() + (ins.size() - 1), b.getMultiDimIdentityMap(extents.size()));
}

/// Where a reduction accumulates: its buffer, or a temporary of the accumulator's type.
Value LinalgBuilder::accumulator(const ClusterWrite &write) {
  Type type = write.accumulator;
  Value target = argument(write.buffer);
  if (type != write.element)
    target = memref::AllocaOp::create(
        b, MemRefType::get(cast<MemRefType>(target.getType()).getShape(), type));
  Value identity = emitConstant(b, type, identityOf(write.reduction));
  linalg::FillOp::create(b, ValueRange(identity), ValueRange(target));
  return target;
}

void LinalgBuilder::roundResult(const ClusterWrite &write, Value accumulator) {
  auto type = cast<MemRefType>(accumulator.getType());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> parallel(type.getRank(), utils::IteratorType::parallel);
  linalg::GenericOp::create(b, ValueRange(accumulator), ValueRange(argument(write.buffer)),
                            ArrayRef<AffineMap>{identity, identity}, parallel,
                            [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                              LocBuilder body(loc, nested);
                              linalg::YieldOp::create(
                                  body, emitResize(body, arguments[0], write.element));
                            });
}

LinalgStage LinalgBuilder::build(StringRef name) {
  SmallVector<Type> types;
  for (unsigned buffer : buffers)
    types.push_back(viewOf(buffer).type);
  function = func::FuncOp::create(b, name, b.getFunctionType(types, {}));
  LocBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(function.addEntryBlock());
  if (llvm::any_of(stage.nodes, [](const ClusterNode &node) {
        return isa_and_present<nn::RandomOpInterface>(node.op);
      }))
    declareRandomBits(function->getParentOfType<ModuleOp>());
  SmallVector<Value> ins, outs;
  SmallVector<AffineMap> maps;
  for (const ClusterNode &node : stage.nodes)
    if (isPlainRead(node)) {
      maps.push_back(mapOf(node.buffer, *node.form));
      ins.push_back(operandOf(node.buffer, maps.back()));
    }
  for (const ClusterWrite &write : stage.writes) {
    maps.push_back(mapOf(write.buffer, write.address));
    outs.push_back(write.reduction ? accumulator(write) : operandOf(write.buffer, maps.back()));
  }
  coverLoops(ins, maps);
  SmallVector<utils::IteratorType> iterators;
  for (const StagePlan::Loop &loop : stage.loops)
    iterators.push_back(loop.reduced ? utils::IteratorType::reduction
                                     : utils::IteratorType::parallel);
  auto nest = linalg::GenericOp::create(b, ins, outs, maps, iterators,
                                        [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                                          LocBuilder body(loc, nested);
                                          buildBody(body, arguments);
                                        });
  for (auto [write, out] : llvm::zip(stage.writes, outs))
    if (write.reduction && out != argument(write.buffer))
      roundResult(write, out);
  func::ReturnOp::create(b);
  return {function, nest};
}

//===- Body -----------------------------------------------------------------------------------===//

void LinalgBuilder::buildBody(LocBuilder &body, ValueRange arguments) {
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    indices.push_back(linalg::IndexOp::create(body, loop));
  for (const ClusterNode &node : stage.nodes) {
    if (!isPlainRead(node)) {
      values.push_back(buildNode(body, node));
      continue;
    }
    values.push_back(emitLoaded(body, arguments[nextInput++], node.element));
  }
  SmallVector<Value> results;
  ValueRange outs = arguments.take_back(stage.writes.size());
  for (auto [write, old] : llvm::zip(stage.writes, outs))
    results.push_back(buildWrite(body, write, old));
  for (Value index : indices)
    if (index.use_empty())
      index.getDefiningOp()->erase();
  linalg::YieldOp::create(body, results);
}

Value LinalgBuilder::indexOf(LocBuilder &body, AffineExpr expression) {
  Value &known = applied[expression];
  if (known)
    return known;
  SmallVector<Value> operands;
  SmallVector<AffineExpr> dims(extents.size(), getAffineConstantExpr(0, body.getContext()));
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    if (expression.isFunctionOfDim(loop)) {
      dims[loop] = getAffineDimExpr(operands.size(), body.getContext());
      operands.push_back(indices[loop]);
    }
  AffineMap map = AffineMap::get(operands.size(), 0, expression.replaceDims(dims));
  return known = affine::AffineApplyOp::create(body, map, operands);
}

Value LinalgBuilder::insideOf(LocBuilder &body, ArrayRef<Bound> bounds) {
  Value all;
  for (const Bound &bound : bounds) {
    // Unsigned: a negative coordinate is large.
    AffineExpr form = bound.form.expression(body.getContext());
    Value extent = arith::ConstantIndexOp::create(body, bound.extent);
    Value inside =
        arith::CmpIOp::create(body, arith::CmpIPredicate::ult, indexOf(body, form), extent);
    all = all ? arith::AndIOp::create(body, all, inside).getResult() : inside;
    if (bound.rest == bound.divisor)
      continue;
    Value rest = indexOf(body, form % bound.divisor);
    Value isLess = arith::CmpIOp::create(body, arith::CmpIPredicate::ult, rest,
                                         arith::ConstantIndexOp::create(body, bound.rest));
    all = arith::AndIOp::create(body, all, isLess);
  }
  return all;
}

/// A global with a constant's elements; booleans as bytes.
Value LinalgBuilder::tableOf(Operation *constant) {
  Value &table = tables[constant];
  if (table)
    return table;
  auto elements = cast<DenseElementsAttr>(cast<nn::ConstantOp>(constant).getValue());
  if (elements.getElementType().isInteger(1))
    elements = elements.mapValues(b.getI8Type(), [](const APInt &bit) { return bit.zext(8); });
  auto type = MemRefType::get({elements.getNumElements()}, elements.getElementType());
  auto flat = elements.reshape(RankedTensorType::get(type.getShape(), type.getElementType()));
  std::string name = (function.getName() + "_table_" + Twine(tables.size() - 1)).str();
  LocBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(function);
  memref::GlobalOp::create(b, name, b.getStringAttr("private"), type, flat, /*constant=*/true,
                           IntegerAttr());
  b.setInsertionPointToStart(&function.front());
  return table = memref::GetGlobalOp::create(b, type, name);
}

/// An address, or a coordinate.
Value LinalgBuilder::placeOf(LocBuilder &body, const ClusterNode &node) {
  AffineExpr place = node.form ? node.form->expression(body.getContext()) : node.address;
  for (const Quotient &quotient : node.quotients)
    place = place + quotient.form.expression(body.getContext()).floorDiv(quotient.divisor) *
                        quotient.weight;
  return indexOf(body, place);
}

Value LinalgBuilder::buildLoad(LocBuilder &body, const ClusterNode &node) {
  Value index = placeOf(body, node);
  Value memory = node.kind == Kind::Table ? tableOf(node.op) : argument(node.buffer);
  auto load = [&](OpBuilder &nested) -> Value {
    return memref::LoadOp::create(nested, body.getLoc(), memory, index);
  };
  Value stored;
  if (node.bounds.empty()) {
    stored = load(body);
  } else {
    auto inside = scf::IfOp::create(
        body, insideOf(body, node.bounds),
        [&](OpBuilder &nested, Location loc) { scf::YieldOp::create(nested, loc, load(nested)); },
        [&](OpBuilder &nested, Location loc) {
          LocBuilder zero(loc, nested);
          scf::YieldOp::create(zero, emitConstant(zero, storedType(node.element), 0));
        });
    stored = inside.getResult(0);
  }
  return emitLoaded(body, stored, node.element);
}

Value LinalgBuilder::buildNode(LocBuilder &body, const ClusterNode &node) {
  auto operands = llvm::map_to_vector(node.operands, [&](unsigned i) { return values[i]; });
  return emitNode(body, node, operands,
                  {[&](const ClusterNode &placed) { return placeOf(body, placed); },
                   [&](ArrayRef<Bound> bounds) { return insideOf(body, bounds); },
                   [&](const ClusterNode &memory) { return buildLoad(body, memory); }});
}

Value LinalgBuilder::buildWrite(LocBuilder &body, const ClusterWrite &write, Value old) {
  auto inside = [&] { return insideOf(body, write.valid); };
  if (write.reduction)
    return emitAccumulated(body, write, values[write.node], old, inside);
  return emitStored(body, write, values[write.node], inside);
}

LinalgStage dlc::buildLinalgStage(OpBuilder &builder, Location loc, StringRef name,
                                  const ClusterPlan &plan, const StagePlan &stage) {
  return LinalgBuilder(builder, loc, plan, stage).build(name);
}
