// Random bits in generated code: Philox as in runtime/core/Philox.h, every 32-bit word in 64 bits,
// since products need them anyway.

#include "passes/codegen/EmitRandom.h"
#include "passes/codegen/EmitScalars.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dlc;

int64_t dlc::elementsOfRow(nn::RandomOpInterface op) {
  auto type = nn::tensorType(op->getResult(0));
  return type.getRank() == 0 ? 1 : type.getNumElements() / type.getDimSize(0);
}

void dlc::declareRandomBits(ModuleOp module) {
  if (module.lookupSymbol(randomBitsName))
    return;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  Type wide = b.getI64Type();
  auto type = b.getFunctionType({wide, wide, wide, wide, b.getIndexType()}, {b.getI32Type()});
  func::FuncOp::create(b, module.getLoc(), randomBitsName, type).setPrivate();
}

namespace {
/// Arithmetic on 64-bit integers of one type; scalars are repeated over the lanes.
class WideBuilder {
public:
  WideBuilder(ImplicitLocOpBuilder &b, Type type) : b(b), type(type) {}

  Value constant(int64_t value) {
    return lanes(arith::ConstantOp::create(b, b.getI64IntegerAttr(value)));
  }
  Value lanes(Value x) {
    return x.getType() == type ? x : vector::BroadcastOp::create(b, type, x).getResult();
  }
  Value low(Value x) { return arith::AndIOp::create(b, x, constant(0xFFFFFFFF)); }
  Value high(Value x) { return arith::ShRUIOp::create(b, x, constant(32)); }
  Value exclusiveOr(Value x, Value y) { return arith::XOrIOp::create(b, x, lanes(y)); }
  Value times(Value x, int64_t factor) { return arith::MulIOp::create(b, x, constant(factor)); }
  Value plus(Value x, int64_t summand) { return arith::AddIOp::create(b, x, constant(summand)); }

private:
  ImplicitLocOpBuilder &b;
  Type type;
};
} // namespace

std::array<Value, 4> dlc::emitPhilox(ImplicitLocOpBuilder &b, const RandomStream &random,
                                     Value group) {
  WideBuilder wide(b, group.getType()), key(b, b.getI64Type());
  std::array<Value, 4> counter = {wide.low(group), wide.high(group), wide.lanes(random.stream),
                                  wide.lanes(key.low(random.step))};
  Value k0 = key.low(random.seed), k1 = key.high(random.seed);
  for (int round = 0; round < 10; ++round) {
    Value p0 = wide.times(counter[0], 0xD2511F53), p1 = wide.times(counter[2], 0xCD9E8D57);
    counter = {wide.exclusiveOr(wide.exclusiveOr(wide.high(p1), counter[1]), k0), wide.low(p1),
               wide.exclusiveOr(wide.exclusiveOr(wide.high(p0), counter[3]), k1), wide.low(p0)};
    k0 = key.low(key.plus(k0, 0x9E3779B9));
    k1 = key.low(key.plus(k1, 0xBB67AE85));
  }
  return counter;
}

Value dlc::emitRandomBits(ImplicitLocOpBuilder &b, const RandomStream &random, Value element) {
  WideBuilder wide(b, element.getType());
  Value group = arith::ShRUIOp::create(b, element, wide.constant(2));
  std::array<Value, 4> words = emitPhilox(b, random, group);
  Value word = arith::AndIOp::create(b, element, wide.constant(3));
  Value result = words[3];
  for (int i = 2; i >= 0; --i) {
    Value chosen = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, word, wide.constant(i));
    result = arith::SelectOp::create(b, chosen, words[i], result);
  }
  return emitLowHalf(b, result);
}

Value dlc::emitLowHalf(ImplicitLocOpBuilder &b, Value x) {
  Type half = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(x.getType()))
    half = vector.clone(half);
  return arith::TruncIOp::create(b, half, x);
}

/// Words in the order of elements: word k of group g is element 4 g + k.
static Value interleaved(ImplicitLocOpBuilder &b, ArrayRef<Value> words) {
  Value even = vector::InterleaveOp::create(b, words[0], words[2]);
  Value odd = vector::InterleaveOp::create(b, words[1], words[3]);
  return vector::InterleaveOp::create(b, even, odd);
}

SmallVector<Value> dlc::emitRandomRun(ImplicitLocOpBuilder &b, const RandomStream &random,
                                      Value element, int64_t lanes) {
  auto type = VectorType::get({lanes}, b.getI64Type());
  WideBuilder one(b, b.getI64Type()), wide(b, type);
  Value group = arith::ShRUIOp::create(b, element, one.constant(2));
  Value steps = arith::IndexCastOp::create(
      b, type, vector::StepOp::create(b, VectorType::get({lanes}, b.getIndexType())));
  group = arith::AddIOp::create(b, steps, wide.lanes(group));
  SmallVector<Value> words;
  for (Value word : emitPhilox(b, random, group))
    words.push_back(emitLowHalf(b, word));
  Value all = interleaved(b, words);
  for (int64_t i = 0; i < 4; ++i)
    words[i] = vector::ExtractStridedSliceOp::create(b, all, i * lanes, lanes, 1);
  return words;
}
