#include "passes/codegen/gpu/LoopIndices.h"

#include "passes/codegen/EmitNode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;
using namespace dlc;

static constexpr int64_t narrowLimit = int64_t{1} << 31;

Value LoopIndices::constant(Type type, int64_t value) {
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
}

void LoopIndices::decode(Value number, ArrayRef<unsigned> loops, int64_t lanes) {
  Type type = b.getI32Type();
  for (size_t i = loops.size(); i-- > 0;) {
    unsigned loop = loops[i];
    int64_t step = loop + 1 == extents.size() ? lanes : 1, count = extents[loop] / step;
    Value index = number;
    if (i > 0) {
      index = arith::RemUIOp::create(b, number, constant(type, count));
      number = arith::DivUIOp::create(b, number, constant(type, count));
    }
    indices[loop] =
        step == 1 ? index : arith::MulIOp::create(b, index, constant(type, step)).getResult();
  }
}

/// True if no value of a range is beyond 32 bits. What is added up on the way may be, which does
/// not matter.
static bool isNarrow(std::pair<int64_t, int64_t> range) {
  return range.first >= -narrowLimit && range.second < narrowLimit;
}

Value LoopIndices::indexOf(unsigned loop, Type type, int64_t lane) {
  Value index = indices[loop];
  if (type.isInteger(64))
    index = arith::ExtUIOp::create(b, type, index);
  if (loop + 1 == extents.size() && lane > 0)
    index = arith::AddIOp::create(b, index, constant(type, lane));
  return index;
}

Value LoopIndices::valueOf(const LinearForm &form, int64_t lane) {
  Type type = isNarrow(form.range(extents)) ? b.getI32Type() : b.getI64Type();
  Value sum;
  for (auto [loop, weight] : llvm::enumerate(form.weights)) {
    if (weight == 0)
      continue;
    // The lane is a constant of the sum.
    Value term = indexOf(loop, type, /*lane=*/0);
    if (weight != 1)
      term = arith::MulIOp::create(b, term, constant(type, weight));
    sum = sum ? arith::AddIOp::create(b, sum, term).getResult() : term;
  }
  int64_t offset = form.offset + lane * form.weights.back();
  if (!sum)
    return constant(type, offset);
  return offset == 0 ? sum : arith::AddIOp::create(b, sum, constant(type, offset)).getResult();
}

Value LoopIndices::addressOf(AffineExpr address, int64_t lane) {
  Type type = b.getI64Type();
  if (auto dim = dyn_cast<AffineDimExpr>(address))
    return indexOf(dim.getPosition(), type, lane);
  if (auto number = dyn_cast<AffineConstantExpr>(address))
    return constant(type, number.getValue());
  auto binary = cast<AffineBinaryOpExpr>(address);
  Value x = addressOf(binary.getLHS(), lane), y = addressOf(binary.getRHS(), lane);
  switch (binary.getKind()) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(b, x, y);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(b, x, y);
  // A negative coordinate is outside of the bounds, where nothing is loaded.
  case AffineExprKind::Mod:
    return arith::RemUIOp::create(b, x, y);
  case AffineExprKind::FloorDiv:
    return arith::DivUIOp::create(b, x, y);
  default:
    llvm_unreachable("addresses are made of sums, products, quotients and remainders");
  }
}

Value LoopIndices::insideOf(ArrayRef<Bound> bounds, int64_t lane) {
  Value all;
  for (const Bound &bound : bounds) {
    Value coordinate = valueOf(bound.form, lane);
    // Unsigned: a negative coordinate is large. All others of 32 bits are within what is larger.
    constexpr int64_t firstNegative = std::numeric_limits<int32_t>::min();
    bool isBeyond = coordinate.getType().isInteger(32) && bound.extent > -firstNegative;
    Value inside = arith::CmpIOp::create(
        b, arith::CmpIPredicate::ult, coordinate,
        constant(coordinate.getType(), isBeyond ? firstNegative : bound.extent));
    all = all ? arith::AndIOp::create(b, all, inside).getResult() : inside;
    if (bound.rest == bound.divisor)
      continue;
    Value rest =
        arith::RemUIOp::create(b, coordinate, constant(coordinate.getType(), bound.divisor));
    Value isLess = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, rest,
                                         constant(coordinate.getType(), bound.rest));
    all = arith::AndIOp::create(b, all, isLess);
  }
  return all;
}

Value LoopIndices::placeOf(const ClusterNode &node, int64_t lane) {
  if (!node.form)
    return addressOf(node.address, lane);
  Value place = valueOf(*node.form, lane);
  if (node.quotients.empty())
    return place;
  auto range = node.form->range(extents);
  for (const Quotient &quotient : node.quotients) {
    int64_t most = quotient.form.range(extents).second / quotient.divisor * quotient.weight;
    (most < 0 ? range.first : range.second) += most;
  }
  Type type = isNarrow(range) ? b.getI32Type() : b.getI64Type();
  auto resized = [&](Value x) { return emitNumber(b, x, type); };
  place = resized(place);
  for (const Quotient &quotient : node.quotients) {
    Value form = valueOf(quotient.form, lane);
    Value times = arith::DivUIOp::create(b, form, constant(form.getType(), quotient.divisor));
    Value more = arith::MulIOp::create(b, resized(times), constant(type, quotient.weight));
    place = arith::AddIOp::create(b, place, more);
  }
  return place;
}

Value LoopIndices::isLastItem(unsigned loop) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, indices[loop - 1],
                               constant(b.getI32Type(), extents[loop - 1] - 1));
}

Value LoopIndices::exists() {
  std::optional<unsigned> ragged = stage.raggedLoop();
  if (!ragged)
    return {};
  Type type = b.getI32Type();
  Value extent =
      arith::SelectOp::create(b, isLastItem(*ragged), constant(type, stage.loops[*ragged].last),
                              constant(type, extents[*ragged]));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, indices[*ragged], extent);
}
