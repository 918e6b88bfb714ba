#include "passes/codegen/EmitNode.h"
#include "passes/codegen/EmitScalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dlc;

using LocBuilder = ImplicitLocOpBuilder;
using Kind = ClusterNode::Kind;

Type dlc::storedType(Type element) {
  if (element.isUnsignedInteger())
    return IntegerType::get(element.getContext(), element.getIntOrFloatBitWidth());
  return element.isInteger(1) ? Type(IntegerType::get(element.getContext(), 8)) : element;
}

Value dlc::emitLoaded(LocBuilder &b, Value stored, Type element) {
  if (element.isInteger(1))
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, stored,
                                 emitConstant(b, b.getI8Type(), 0));
  if (element.isUnsignedInteger())
    return arith::ExtUIOp::create(b, b.getI32Type(), stored);
  return isa<FloatType>(element) ? emitResize(b, stored, computeType(element)) : stored;
}

Value dlc::emitNumber(LocBuilder &b, Value index, Type type) {
  if (isa<IndexType>(index.getType()))
    return arith::IndexCastOp::create(b, type, index);
  unsigned from = index.getType().getIntOrFloatBitWidth(), to = type.getIntOrFloatBitWidth();
  if (from == to)
    return index;
  return from < to ? arith::ExtSIOp::create(b, type, index).getResult()
                   : arith::TruncIOp::create(b, type, index).getResult();
}

/// Greater, or the first that is not a number.
static Value emitWins(LocBuilder &b, Value x, Value maximum) {
  Value greater = arith::CmpFOp::create(b, arith::CmpFPredicate::UGT, x, maximum);
  Value ordered = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, maximum, maximum);
  return arith::AndIOp::create(b, greater, ordered);
}

static Value emitProducts(LocBuilder &b, const ClusterNode &node, ValueRange operands) {
  Value sum = operands.size() % 2 ? operands.back() : Value();
  for (size_t i = 0; i + 1 < operands.size(); i += 2) {
    Value x = operands[i], y = operands[i + 1];
    sum = sum ? math::FmaOp::create(b, x, y, sum).getResult()
              : arith::MulFOp::create(b, x, y).getResult();
  }
  auto epilogue = dyn_cast_if_present<nn::EpilogueOpInterface>(node.op);
  if (epilogue && epilogue.getRelu())
    sum = emitRelu(b, sum);
  return emitRounded(b, sum, node.element);
}

Value dlc::emitNode(LocBuilder &b, const ClusterNode &node, ValueRange operands,
                    const PointEmitter &point) {
  auto constant = [&](double value) {
    return emitResize(b, emitConstant(b, node.element, value), computeType(node.element));
  };
  switch (node.kind) {
  case Kind::Read:
  case Kind::Table:
    return point.load(node);
  case Kind::Index:
    return emitNumber(b, point.index(node), node.element);
  case Kind::Inside:
    return point.inside(node.bounds);
  case Kind::Select:
    return arith::SelectOp::create(b, operands[0], operands[1], operands[2]);
  case Kind::Constant:
    return constant(*nn::splatValue(node.op->getResult(0)));
  case Kind::Fill:
    return constant(cast<nn::PadOp>(node.op).getValue().convertToDouble());
  case Kind::Zero:
    return constant(0);
  case Kind::Equal:
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, operands[0], operands[1]);
  case Kind::Wins:
    return emitWins(b, operands[0], operands[1]);
  case Kind::Sum: {
    Value sum = operands.front();
    for (Value operand : operands.drop_front())
      sum = arith::AddFOp::create(b, sum, operand);
    return emitRounded(b, sum, node.element);
  }
  case Kind::Products:
    return emitProducts(b, node, operands);
  case Kind::Reduced:
    llvm_unreachable("the emitter of the reduction has it");
  case Kind::Op:
    break;
  }
  return emitScalar(b, node, operands, node.form ? point.index(node) : Value());
}

Value dlc::emitCombined(LocBuilder &b, const ClusterWrite &write, Value x, Value y) {
  if (addsUp(write.reduction))
    return arith::AddFOp::create(b, x, y);
  return arith::MaximumFOp::create(b, x, y);
}

/// Products are added without being rounded: those of two f32 or bf16 are exact in f64 in any case.
Value dlc::emitAccumulated(LocBuilder &b, const ClusterWrite &write, Value value, Value old,
                           InsideEmitter inside) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product ||
      getElementTypeOrSelf(value).getIntOrFloatBitWidth() < old.getType().getIntOrFloatBitWidth()) {
    value = emitResize(b, value, old.getType()); // of the product once it is rounded
    product = nullptr;
  }
  if (product && addsUp(write.reduction))
    value = math::FmaOp::create(b, emitResize(b, product.getLhs(), old.getType()),
                                emitResize(b, product.getRhs(), old.getType()), old);
  else
    value = emitCombined(b, write, old, value);
  return write.valid.empty() ? value : arith::SelectOp::create(b, inside(), value, old).getResult();
}

Value dlc::emitStored(LocBuilder &b, const ClusterWrite &write, Value value, InsideEmitter inside) {
  if (!write.valid.empty())
    value = arith::SelectOp::create(b, inside(), value, emitConstant(b, value.getType(), 0));
  if (value.getType().isInteger(1))
    return arith::ExtUIOp::create(b, b.getI8Type(), value);
  return emitResize(b, value, write.element);
}
