// A product's kernel in tiles of registers. Of a transposed b a tile is a few rows of a and of b,
// with one vector of sums for each pair, added up at the end. Else it is a few rows of a and
// vectors of columns: rows of b are read some at a time, a panel. Between blocks of rows or panels
// the sums lie in a buffer; what the next one reads is fetched ahead, since hardware does not
// follow streams from one to the next.
//
// bf16 is multiplied in pairs where there are instructions for that: pairs along a row lie side by
// side; pairs of two rows of b are interleaved, which leaves the columns in another order until the
// end. Elsewhere it is widened to f32.

#include "passes/KernelEmitter.h"
#include "passes/ProductPlan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace dlc;
using LocBuilder = ImplicitLocOpBuilder;

// Rows of b in a panel: as many streams as hardware follows, and enough work between two visits of
// a sum's place.
static constexpr int64_t panelRows = 8;
// Of a row: eight rows of a take half of a first-level cache.
static constexpr int64_t blockBytes = 2048;

namespace {
class ProductEmitter {
public:
  ProductEmitter(OpBuilder &builder, Location loc, StringRef name, const ProductPlan &plan,
                 const CodeTarget &target);

private:
  using Values = SmallVector<Value>;
  /// Some rows of a.
  struct Rows {
    int64_t first, count;
  };
  /// Some rows of a and some of b; `place` is that of the first sum.
  struct DotTile {
    Rows rows;
    Value column;
    int64_t count;
    Value place;
  };

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
  Value plus(Value x, int64_t y) { return y ? arith::AddIOp::create(b, x, index(y)) : x; }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  VectorType vectorOf(Type element, int64_t count) { return VectorType::get(count, element); }
  Value onStack(ArrayRef<int64_t> shape, Type element) {
    return memref::AllocaOp::create(b, MemRefType::get(shape, element), b.getI64IntegerAttr(64));
  }
  Values loop(Value from, Value to, int64_t step, ValueRange carried,
              llvm::function_ref<Values(Value, ValueRange)> body);
  void loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body);
  void onlyIf(Value condition, llvm::function_ref<void()> body);

  Value load(Value memory, ValueRange at, int64_t count, int64_t valid);
  void store(Value vector, Value memory, ValueRange at, int64_t valid);
  Value wide(Value vector) { return emitResize(b, vector, vectorOf(b.getF32Type(), lanes)); }
  void prefetch(Value row, Value column) {
    memref::PrefetchOp::create(b, weight, ValueRange{row, column}, /*isWrite=*/false,
                               /*localityHint=*/2, /*isDataCache=*/true);
  }
  Value multiplyAdd(Value x, Value y, Value sum);
  Value finished(Value sum, Value bias);

  void emitDotItem(Value first);
  void dotTiles(Value first, llvm::function_ref<void(const DotTile &)> body);
  Values loadDots(const DotTile &tile);
  void addBlock(const DotTile &tile, Value begin, Value end);
  void finishDots(const DotTile &tile, int64_t whole);
  void packBlock(Value begin, Value end);
  Value factors(Value memory, Value row, Value at, int64_t valid);
  Values dotStep(const DotTile &tile, Value at, Value place, int64_t valid, ValueRange sums);
  Value sumOfLanes(Value vector);

  void emitSumItem(Value first, Value isLast);
  void packPanel(Value begin, Value end);
  void emitSumTile(Rows tile, Value first, Value offset, Value begin, Value end, int64_t valid);
  Values rowsOfB(Value row, Value column, int64_t valid);
  void storeSums(Value first, Value isLast);
  void storeRow(Value row, Value first, Value offset, int64_t valid);

  LocBuilder b;
  const ProductPlan &plan;
  int64_t lanes;  // of f32
  bool pairs;     // of bf16 are multiplied
  int64_t depth;  // consecutive elements of `inner` that one multiplication of a lane takes
  int64_t across; // rows of b, or vectors of columns, in a tile
  int64_t block;  // elements of a row of b that are read before those of the next
  SmallVector<Rows> tiles;
  Value a, weight, bias, y;
  Value sums, panel; // buffers
};
} // namespace

ProductEmitter::ProductEmitter(OpBuilder &builder, Location loc, StringRef name,
                               const ProductPlan &plan, const CodeTarget &target)
    : b(loc, builder), plan(plan), lanes(target.vectorBytes / 4) {
  nn::MatmulOp op = plan.op;
  bool isNarrow = nn::tensorType(op.getA()).getElementType().isBF16();
  pairs = isNarrow && lanes == 16 && target.has("avx512bf16") &&
          (plan.transposed || plan.inner % 2 == 0);
  depth = pairs ? 2 : 1;
  block = blockBytes / (pairs ? 2 : 4);
  // Three quarters of the registers are sums.
  int64_t registers = lanes == 16 ? 24 : 12, most = lanes == 16 ? 8 : 4;
  int64_t parts = llvm::divideCeil(plan.rows, most), begin = 0;
  for (int64_t part = 0; part < parts; ++part) {
    int64_t end = plan.rows * (part + 1) / parts;
    tiles.push_back({begin, end - begin});
    begin = end;
  }
  across = std::min<int64_t>(4, registers / llvm::divideCeil(plan.rows, parts));
  if (pairs && !plan.transposed)
    across = across / 2 * 2;

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
  if (plan.transposed) {
    sums = onStack({plan.itemColumns() * plan.rows, lanes}, b.getF32Type());
    panel = onStack({plan.rows, block}, pairs ? b.getBF16Type() : Type(b.getF32Type()));
  } else {
    sums = onStack({plan.rows, plan.itemColumns()}, b.getF32Type());
    panel = onStack({panelRows / depth, plan.rows}, pairs ? b.getI32Type() : Type(b.getF32Type()));
  }
  auto range = function.getArguments().take_back(2);
  loop(range[0], range[1], 1, [&](Value item) {
    Value first = arith::MulIOp::create(b, item, index(plan.itemColumns()));
    Value isLast =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, item, index(plan.items() - 1));
    if (plan.transposed)
      emitDotItem(first);
    else
      emitSumItem(first, isLast);
  });
  func::ReturnOp::create(b);
}

//===- Parts of loops -------------------------------------------------------------------------===//

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

/// The first `valid` of some elements, the others zero.
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

/// Sums with their bias, if there is one, and the ReLU, as elements of y. NaN stays NaN.
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

//===- Rows by rows ---------------------------------------------------------------------------===//

/// A block of b's rows and of a's at a time: those of a stay in the first-level cache.
void ProductEmitter::emitDotItem(Value first) {
  int64_t whole = plan.inner / (lanes * depth) * (lanes * depth);
  VectorType type = vectorOf(b.getF32Type(), lanes);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  loop(index(0), index(plan.itemColumns() * plan.rows), 1,
       [&](Value place) { vector::StoreOp::create(b, zero, sums, ValueRange{place, index(0)}); });
  loop(index(0), index(whole), block, [&](Value begin) {
    Value end = arith::MinUIOp::create(b, plus(begin, block), index(whole));
    packBlock(begin, end);
    dotTiles(first, [&](const DotTile &tile) { addBlock(tile, begin, end); });
  });
  dotTiles(first, [&](const DotTile &tile) { finishDots(tile, whole); });
}

/// Copies a block of a: where its rows lie a power of two apart, they would drive each other out of
/// the first-level cache.
void ProductEmitter::packBlock(Value begin, Value end) {
  int64_t step = lanes * depth;
  loop(begin, end, step, [&](Value at) {
    Value place = arith::SubIOp::create(b, at, begin);
    for (int64_t row = 0; row < plan.rows; ++row) {
      Value vector = factors(a, index(row), at, step);
      vector::StoreOp::create(b, vector, panel, ValueRange{index(row), place});
    }
  });
}

/// A vector of a row of a or b as it is multiplied.
Value ProductEmitter::factors(Value memory, Value row, Value at, int64_t valid) {
  Value vector = load(memory, {row, at}, lanes * depth, valid);
  return pairs ? vector : wide(vector);
}

/// All tiles of an item.
void ProductEmitter::dotTiles(Value first, llvm::function_ref<void(const DotTile &)> body) {
  auto ofColumns = [&](Value column, int64_t count) {
    Value place =
        arith::MulIOp::create(b, arith::SubIOp::create(b, column, first), index(plan.rows));
    for (Rows rows : tiles)
      body({rows, column, count, plus(place, rows.first * count)});
  };
  Value end = arith::MinUIOp::create(b, plus(first, plan.itemColumns()),
                                     index(plan.columns / across * across));
  loop(first, end, across, [&](Value column) { ofColumns(column, across); });
  int64_t left = plan.columns % across; // of the last item alone
  if (left == 0)
    return;
  Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::uge,
                                       plus(first, plan.itemColumns()), index(plan.columns));
  onlyIf(isLast, [&] { ofColumns(index(plan.columns - left), left); });
}

ProductEmitter::Values ProductEmitter::loadDots(const DotTile &tile) {
  Values found;
  for (int64_t i = 0; i < tile.rows.count * tile.count; ++i)
    found.push_back(vector::LoadOp::create(b, vectorOf(b.getF32Type(), lanes), sums,
                                           ValueRange{plus(tile.place, i), index(0)}));
  return found;
}

void ProductEmitter::addBlock(const DotTile &tile, Value begin, Value end) {
  int64_t step = lanes * depth;
  Values found = loop(begin, end, step, loadDots(tile), [&](Value at, ValueRange old) {
    Value next = arith::MinUIOp::create(b, plus(at, block), index(plan.inner - 1));
    for (int64_t j = 0; j < tile.count; ++j)
      prefetch(plus(tile.column, j), next);
    return dotStep(tile, at, arith::SubIOp::create(b, at, begin), step, old);
  });
  for (auto [i, sum] : llvm::enumerate(found))
    vector::StoreOp::create(b, sum, sums, ValueRange{plus(tile.place, i), index(0)});
}

/// Adds the rest of the rows and then the lanes.
void ProductEmitter::finishDots(const DotTile &tile, int64_t whole) {
  Values found = loadDots(tile);
  if (whole < plan.inner)
    found = dotStep(tile, index(whole), Value(), plan.inner - whole, found);
  for (int64_t j = 0; j < tile.count; ++j) {
    Value at = plus(tile.column, j);
    Value added = bias ? memref::LoadOp::create(b, bias, at).getResult() : Value();
    for (int64_t i = 0; i < tile.rows.count; ++i) {
      Value sum = sumOfLanes(found[j * tile.rows.count + i]);
      memref::StoreOp::create(b, finished(sum, added), y,
                              ValueRange{index(tile.rows.first + i), at});
    }
  }
}

/// One vector of each row: sums of all pairs, rows of b outermost. Those of a are read at `place`
/// of the block, or at `at` where there is none.
ProductEmitter::Values ProductEmitter::dotStep(const DotTile &tile, Value at, Value place,
                                               int64_t valid, ValueRange old) {
  Values weights, results(old);
  for (int64_t j = 0; j < tile.count; ++j)
    weights.push_back(factors(weight, plus(tile.column, j), at, valid));
  for (int64_t i = 0; i < tile.rows.count; ++i) {
    Value row = index(tile.rows.first + i);
    Value x = place ? factors(panel, row, place, valid) : factors(a, row, at, valid);
    for (int64_t j = 0; j < tile.count; ++j) {
      Value &sum = results[j * tile.rows.count + i];
      sum = multiplyAdd(x, weights[j], sum);
    }
  }
  return results;
}

/// Half added to half: an order that takes few steps.
Value ProductEmitter::sumOfLanes(Value vector) {
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    SmallVector<int64_t> low(half), high(half);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), half);
    Value first = vector::ShuffleOp::create(b, vector, vector, low);
    Value second = vector::ShuffleOp::create(b, vector, vector, high);
    vector = arith::AddFOp::create(b, first, second);
  }
  return vector::ExtractOp::create(b, vector, ArrayRef<int64_t>{0});
}

//===- Rows added up --------------------------------------------------------------------------===//

void ProductEmitter::emitSumItem(Value first, Value isLast) {
  int64_t width = plan.itemColumns(), tileWidth = across * lanes, left = plan.columns % tileWidth;
  VectorType type = vectorOf(b.getF32Type(), lanes);
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  loop(index(0), index(width), lanes, [&](Value offset) {
    for (int64_t row = 0; row < plan.rows; ++row)
      vector::StoreOp::create(b, zero, sums, ValueRange{index(row), offset});
  });
  // Columns of whole tiles; the rest is in the last item.
  Value end = arith::MinUIOp::create(b, index(width),
                                     arith::SubIOp::create(b, index(plan.columns - left), first));
  loop(index(0), index(plan.inner), panelRows, [&](Value begin) {
    Value last = arith::MinUIOp::create(b, plus(begin, panelRows), index(plan.inner));
    packPanel(begin, last);
    loop(index(0), end, tileWidth, [&](Value offset) {
      for (Rows tile : tiles)
        emitSumTile(tile, first, offset, begin, last, tileWidth);
    });
    if (left > 0)
      onlyIf(isLast, [&] {
        for (Rows tile : tiles)
          emitSumTile(tile, first, end, begin, last, left);
      });
  });
  storeSums(first, isLast);
}

/// Gathers what the rows of a panel are multiplied by: in a, it lies too far apart to stay in the
/// first-level cache.
void ProductEmitter::packPanel(Value begin, Value end) {
  loop(begin, end, depth, [&](Value at) {
    Value place = arith::SubIOp::create(b, at, begin);
    if (pairs)
      place = arith::DivUIOp::create(b, place, index(depth));
    for (int64_t row = 0; row < plan.rows; ++row) {
      Values from{index(row), at};
      Value factor;
      if (pairs) {
        Value pair = vector::LoadOp::create(b, vectorOf(b.getBF16Type(), 2), a, from);
        pair = vector::BitCastOp::create(b, vectorOf(b.getI32Type(), 1), pair);
        factor = vector::ExtractOp::create(b, pair, ArrayRef<int64_t>{0});
      } else {
        factor = emitResize(b, memref::LoadOp::create(b, a, from), b.getF32Type());
      }
      memref::StoreOp::create(b, factor, panel, ValueRange{place, index(row)});
    }
  });
}

/// Adds rows [begin, end) of b, `valid` columns from first + offset on.
void ProductEmitter::emitSumTile(Rows tile, Value first, Value offset, Value begin, Value end,
                                 int64_t valid) {
  VectorType type = vectorOf(b.getF32Type(), lanes);
  int64_t vectors = llvm::divideCeil(valid, lanes * depth) * depth;
  auto place = [&](int64_t i, int64_t v) {
    return Values{index(tile.first + i), plus(offset, v * lanes)};
  };
  Values old;
  for (int64_t i = 0; i < tile.count; ++i)
    for (int64_t v = 0; v < vectors; ++v)
      old.push_back(vector::LoadOp::create(b, type, sums, place(i, v)));
  Value column = plus(first, offset);
  Values found = loop(begin, end, depth, old, [&](Value row, ValueRange carried) {
    Values results(carried), weights = rowsOfB(row, column, valid);
    Value next = arith::MinUIOp::create(b, plus(row, panelRows), index(plan.inner - depth));
    for (int64_t part = 0; part < depth; ++part)
      for (int64_t v = 0; v < vectors; v += depth)
        prefetch(plus(next, part), plus(column, v * lanes));
    Value at = arith::SubIOp::create(b, row, begin);
    if (pairs)
      at = arith::DivUIOp::create(b, at, index(depth));
    for (int64_t i = 0; i < tile.count; ++i) {
      Value factor = memref::LoadOp::create(b, panel, ValueRange{at, index(tile.first + i)});
      Value x = vector::BroadcastOp::create(b, vectorOf(factor.getType(), lanes), factor);
      if (pairs)
        x = vector::BitCastOp::create(b, vectorOf(b.getBF16Type(), 2 * lanes), x);
      for (int64_t v = 0; v < vectors; ++v) {
        Value &sum = results[i * vectors + v];
        sum = multiplyAdd(x, weights[v], sum);
      }
    }
    return results;
  });
  for (int64_t i = 0; i < tile.count; ++i)
    for (int64_t v = 0; v < vectors; ++v)
      vector::StoreOp::create(b, found[i * vectors + v], sums, place(i, v));
}

/// Place of each lane when pairs of two rows are interleaved as x86's unpack instructions do it, in
/// parts of eight columns: `high` is the second half of each part.
static SmallVector<int64_t> interleaved(int64_t columns, bool high) {
  SmallVector<int64_t> places;
  for (int64_t part = 0; part < columns; part += 8)
    for (int64_t i = 0; i < 4; ++i) {
      int64_t column = part + (high ? 4 : 0) + i;
      places.append({column, columns + column});
    }
  return places;
}

/// A tile's vectors of a row of b, or of pairs of two rows.
ProductEmitter::Values ProductEmitter::rowsOfB(Value row, Value column, int64_t valid) {
  Values vectors;
  for (int64_t at = 0; at < valid; at += lanes * depth) {
    auto part = [&](int64_t next) {
      return load(weight, {plus(row, next), plus(column, at)}, lanes * depth, valid - at);
    };
    if (!pairs) {
      vectors.push_back(wide(part(0)));
      continue;
    }
    VectorType bits = vectorOf(b.getI16Type(), 2 * lanes);
    Value even = part(0), odd = part(1);
    Type type = even.getType();
    even = vector::BitCastOp::create(b, bits, even);
    odd = vector::BitCastOp::create(b, bits, odd);
    for (bool high : {false, true}) {
      Value mixed = vector::ShuffleOp::create(b, even, odd, interleaved(2 * lanes, high));
      vectors.push_back(vector::BitCastOp::create(b, type, mixed));
    }
  }
  return vectors;
}

void ProductEmitter::storeSums(Value first, Value isLast) {
  int64_t step = lanes * depth, left = plan.columns % step;
  Value end = arith::MinUIOp::create(b, index(plan.itemColumns()),
                                     arith::SubIOp::create(b, index(plan.columns - left), first));
  loop(index(0), index(plan.rows), 1, [&](Value row) {
    loop(index(0), end, step, [&](Value offset) { storeRow(row, first, offset, step); });
    if (left > 0)
      onlyIf(isLast, [&] { storeRow(row, first, end, left); });
  });
}

/// The vectors of one step of columns, in the columns' order.
void ProductEmitter::storeRow(Value row, Value first, Value offset, int64_t valid) {
  Values found;
  for (int64_t v = 0; v < depth; ++v)
    found.push_back(vector::LoadOp::create(b, vectorOf(b.getF32Type(), lanes), sums,
                                           ValueRange{row, plus(offset, v * lanes)}));
  if (pairs) {
    // Parts of four columns come from the two vectors in turn.
    SmallVector<int64_t> low, high;
    for (int64_t column = 0; column < 2 * lanes; ++column)
      (column < lanes ? low : high)
          .push_back(column / 8 * 4 + column % 4 + (column % 8 < 4 ? 0 : lanes));
    found = {vector::ShuffleOp::create(b, found[0], found[1], low),
             vector::ShuffleOp::create(b, found[0], found[1], high)};
  }
  for (int64_t v = 0; v < depth; ++v) {
    int64_t some = valid - v * lanes;
    if (some <= 0)
      continue;
    Value column = plus(first, plus(offset, v * lanes));
    Value added = bias ? load(bias, column, lanes, some) : Value();
    store(finished(found[v], added), y, {row, column}, some);
  }
}

void dlc::emitProduct(OpBuilder &builder, Location loc, StringRef name, const ProductPlan &plan,
                      const CodeTarget &target) {
  ProductEmitter(builder, loc, name, plan, target);
}
