#include "passes/codegen/gpu/LaneMemory.h"

#include "passes/codegen/EmitNode.h"
#include "passes/codegen/EmitScalars.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dlc;

// The widest access there is; buffers begin at multiples of it.
static constexpr int64_t accessBytes = 16;

/// True if the lanes' elements are next to each other, from a multiple of their number on.
bool LaneMemory::isAligned(const LinearForm &form) const {
  auto isMultiple = [&](int64_t value) { return value % lanes == 0; };
  return lanes > 1 && form.weights.back() == 1 && isMultiple(form.offset) &&
         llvm::all_of(ArrayRef(form.weights).drop_back(), isMultiple);
}

bool LaneMemory::isAligned(const ClusterNode &node) const {
  return node.form && isAligned(*node.form) &&
         llvm::all_of(node.quotients, [&](const Quotient &quotient) {
           return quotient.form.weights.back() == 0 && quotient.weight % lanes == 0;
         });
}

Value LaneMemory::place(Value base, Type element, Value index) {
  return LLVM::GEPOp::create(b, base.getType(), element, base, ArrayRef<LLVM::GEPArg>{index},
                             LLVM::GEPNoWrapFlags::inbounds);
}

/// Elements of a type in one access.
static int64_t elementsOfAccess(Type stored, int64_t lanes) {
  return std::min<int64_t>(lanes, accessBytes / nn::elementBytes(stored));
}

/// The elements of some lanes, which exist.
PackedLanes LaneMemory::loadInside(const ClusterNode &node, Value base, LoopIndices &at,
                                   int64_t firstLane, int64_t count) {
  Type stored = storedType(node.element), type = stored;
  int64_t each = 1; // lanes of an access
  if (count == lanes && isAligned(node)) {
    each = elementsOfAccess(stored, lanes);
    type = VectorType::get({each}, stored);
  }
  PackedLanes values;
  for (int64_t lane = firstLane; lane < firstLane + count; lane += each)
    values.push_back(LLVM::LoadOp::create(b, type, place(base, stored, at.placeOf(node, lane)),
                                          each * nn::elementBytes(stored)));
  return values;
}

/// Nothing but loads depends on the bounds, so that others may be under way before these are
/// needed.
PackedLanes LaneMemory::loadBounded(const ClusterNode &node, Value base, LoopIndices &at,
                                    int64_t firstLane, int64_t count) {
  if (node.bounds.empty())
    return loadInside(node, base, at, firstLane, count);
  SmallVector<Type> types;
  auto inside = scf::IfOp::create(
      b, at.insideOf(node.bounds, firstLane),
      [&](OpBuilder &, Location) {
        PackedLanes values = loadInside(node, base, at, firstLane, count);
        llvm::append_range(types, ValueRange(values).getTypes());
        scf::YieldOp::create(b, values);
      },
      [&](OpBuilder &, Location) {
        scf::YieldOp::create(b, llvm::map_to_vector(types, [&](Type type) -> Value {
                               return LLVM::ZeroOp::create(b, type);
                             }));
      });
  return llvm::to_vector_of<Value, 8>(inside.getResults());
}

static bool movesWithLane(const LinearForm &form) { return form.weights.back() != 0; }

static bool movesWithLane(const ClusterNode &node) {
  return movesWithLane(*node.form) || llvm::any_of(node.quotients, [](const Quotient &quotient) {
           return movesWithLane(quotient.form);
         });
}

PackedLanes LaneMemory::load(const ClusterNode &node, Value base, LoopIndices &at) {
  bool existsByLane =
      llvm::any_of(node.bounds, [](const Bound &bound) { return movesWithLane(bound.form); });
  if (!existsByLane)
    return loadBounded(node, base, at, 0, node.form && !movesWithLane(node) ? 1 : lanes);
  PackedLanes values;
  for (int64_t lane = 0; lane < lanes; ++lane)
    values.push_back(loadBounded(node, base, at, lane, 1).front());
  return values;
}

LaneValues LaneMemory::unpack(const ClusterNode &node, const PackedLanes &loaded) {
  LaneValues values;
  for (Value part : loaded) {
    auto vector = dyn_cast<VectorType>(part.getType());
    if (!vector)
      values.push_back(part);
    for (int32_t i = 0; vector && i < vector.getDimSize(0); ++i)
      values.push_back(LLVM::ExtractElementOp::create(
          b, part, LLVM::ConstantOp::create(b, b.getI32IntegerAttr(i))));
  }
  if (values.size() == 1)
    values.assign(lanes, values.front());
  for (Value &value : values)
    value = emitLoaded(b, value, node.element);
  return values;
}

void LaneMemory::store(const LinearForm &form, Value base, ArrayRef<Value> values,
                       LoopIndices &at) {
  Type stored = values.front().getType();
  bool isWide = static_cast<int64_t>(values.size()) == lanes && isAligned(form);
  int64_t count = isWide ? elementsOfAccess(stored, lanes) : 1;
  for (size_t lane = 0; lane < values.size(); lane += count) {
    Value to = place(base, stored, at.valueOf(form, static_cast<int64_t>(lane)));
    Value value = values[lane];
    if (count > 1) {
      value = LLVM::PoisonOp::create(b, VectorType::get({count}, stored));
      for (int64_t i = 0; i < count; ++i)
        value = LLVM::InsertElementOp::create(
            b, value, values[lane + i],
            LLVM::ConstantOp::create(b, b.getI32IntegerAttr(static_cast<int32_t>(i))));
    }
    LLVM::StoreOp::create(b, value, to, count * nn::elementBytes(stored));
  }
}
