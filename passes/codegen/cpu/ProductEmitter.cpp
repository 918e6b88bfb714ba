#include "passes/codegen/cpu/ProductEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dlc;
using LocBuilder = ImplicitLocOpBuilder;

ProductEmitter::ProductEmitter(OpBuilder &builder, Location loc, const ProductPlan &plan,
                               const CodeTarget &target)
    : b(loc, builder), plan(plan), lanes(target.vectorBytes / 4) {
  nn::MatmulOp op = plan.op;
  pairs = nn::tensorType(op.getA()).getElementType().isBF16() && lanes == 16 &&
          target.has("avx512bf16") && (plan.transposed || plan.inner % 2 == 0);
  depth = pairs ? 2 : 1;
  // Three quarters of the registers are sums.
  int64_t registers = lanes == 16 ? 24 : 12, most = lanes == 16 ? 8 : 4;
  int64_t parts = llvm::divideCeil(plan.rows, most), begin = 0;
  for (int64_t part = 0; part < parts; ++part) {
    int64_t end = plan.rows * (part + 1) / parts;
    tiles.push_back({begin, end - begin});
    begin = end;
  }
  across = std::min<int64_t>(4, registers / llvm::divideCeil(plan.rows, parts));
}

void ProductEmitter::emit(StringRef name, llvm::function_ref<void()> prologue,
                          llvm::function_ref<void(Value, Value)> item) {
  nn::MatmulOp op = plan.op;
  SmallVector<Type> types;
  SmallVector<Value> tensors(op->getOperands());
  tensors.push_back(op.getY());
  for (Value tensor : tensors) {
    RankedTensorType type = nn::tensorType(tensor);
    types.push_back(MemRefType::get(type.getShape(), type.getElementType()));
  }
  types.append(2, b.getIndexType());
  auto function = func::FuncOp::create(b, name, b.getFunctionType(types, {}));
  LocBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(function.addEntryBlock());
  a = function.getArgument(0);
  weight = function.getArgument(1);
  bias = op.getBias() ? function.getArgument(2) : Value();
  y = function.getArgument(types.size() - 3);
  prologue();
  auto range = function.getArguments().take_back(2);
  loop(range[0], range[1], 1, [&](Value number) {
    Value first = arith::MulIOp::create(b, number, index(plan.itemColumns));
    Value isLast =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, number, index(plan.items() - 1));
    item(first, isLast);
  });
  func::ReturnOp::create(b);
}

Value ProductEmitter::onStack(ArrayRef<int64_t> shape, Type element) {
  return memref::AllocaOp::create(b, MemRefType::get(shape, element), b.getI64IntegerAttr(64));
}

ProductEmitter::Values ProductEmitter::loop(Value from, Value to, int64_t step, ValueRange carried,
                                            llvm::function_ref<Values(Value, ValueRange)> body) {
  auto forOp = scf::ForOp::create(b, from, to, index(step), carried);
  LocBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(forOp.getBody());
  Values results = body(forOp.getInductionVar(), forOp.getRegionIterArgs());
  scf::YieldOp::create(b, results);
  return Values(forOp.getResults());
}

void ProductEmitter::loop(Value from, Value to, int64_t step,
                          llvm::function_ref<void(Value)> body) {
  auto forOp = scf::ForOp::create(b, from, to, index(step));
  LocBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(forOp.getBody()->getTerminator());
  body(forOp.getInductionVar());
}

void ProductEmitter::onlyIf(Value condition, llvm::function_ref<void()> body) {
  auto ifOp = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  LocBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  body();
}

Value ProductEmitter::load(Value memory, ValueRange at, int64_t count, int64_t valid) {
  Type element = cast<MemRefType>(memory.getType()).getElementType();
  VectorType type = vectorOf(element, count);
  if (valid >= count)
    return vector::LoadOp::create(b, type, memory, at);
  Value mask = vector::CreateMaskOp::create(b, vectorOf(b.getI1Type(), count), index(valid));
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  return vector::MaskedLoadOp::create(b, type, memory, at, mask, zero);
}

void ProductEmitter::store(Value vector, Value memory, ValueRange at, int64_t valid) {
  if (valid >= lanes) {
    vector::StoreOp::create(b, vector, memory, at);
    return;
  }
  Value mask = vector::CreateMaskOp::create(b, vectorOf(b.getI1Type(), lanes), index(valid));
  vector::MaskedStoreOp::create(b, memory, at, mask, vector);
}

Value ProductEmitter::multiplyAdd(Value x, Value y, Value sum) {
  if (!pairs)
    return math::FmaOp::create(b, x, y, sum);
  return LLVM::CallIntrinsicOp::create(b, sum.getType(),
                                       b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                       ValueRange{sum, x, y})
      .getResult(0);
}

// NaN stays NaN.
Value ProductEmitter::finished(Value sum, Value added) {
  Type type = sum.getType();
  if (added)
    sum = arith::AddFOp::create(b, sum, emitResize(b, added, type));
  if (nn::MatmulOp op = plan.op; op.getRelu()) {
    Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
    Value negative = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, sum, zero);
    sum = arith::SelectOp::create(b, negative, zero, sum);
  }
  Type element = cast<MemRefType>(y.getType()).getElementType();
  auto vector = dyn_cast<VectorType>(type);
  return emitResize(b, sum, vector ? Type(vector.clone(element)) : element);
}

void ProductEmitter::prefetch(Value row, Value column) {
  memref::PrefetchOp::create(b, weight, ValueRange{row, column}, /*isWrite=*/false,
                             /*localityHint=*/2, /*isDataCache=*/true);
}

// A tile is 1, 2, 3 or 4 rows of b, or as many vectors of columns.
int64_t dlc::productUnit(const ProductPlan &plan, const CodeTarget &target) {
  return 12 * (plan.transposed ? 1 : target.vectorBytes / 4);
}

void dlc::emitProduct(OpBuilder &builder, Location loc, StringRef name, const ProductPlan &plan,
                      const CodeTarget &target) {
  if (plan.transposed)
    emitDotProducts(builder, loc, name, plan, target);
  else
    emitRowSums(builder, loc, name, plan, target);
}
