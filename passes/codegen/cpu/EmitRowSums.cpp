// Rows of b added up. A tile is a few rows of a and vectors of columns. Rows of b are read some at
// a time, a panel; what the next one reads is fetched ahead, since hardware does not follow streams
// from one panel to the next. Between panels the sums lie in a buffer.
//
// Pairs of bf16 are of two rows: they are interleaved, which leaves the columns in another order
// until the end.

#include "passes/codegen/cpu/ProductEmitter.h"

using namespace mlir;
using namespace dlc;

// Hardware follows so many streams; between two visits of a sum's place lies enough work.
static constexpr int64_t panelRows = 8;

namespace {
class RowSumEmitter : ProductEmitter {
public:
  RowSumEmitter(OpBuilder &builder, Location loc, StringRef name, const ProductPlan &plan,
                const CodeTarget &target)
      : ProductEmitter(builder, loc, plan, target) {
    across = across / depth * depth;
    auto prologue = [&] {
      sums = onStack({plan.rows, plan.itemColumns}, b.getF32Type());
      panel =
          onStack({panelRows / depth, plan.rows}, pairs ? b.getI32Type() : Type(b.getF32Type()));
    };
    emit(name, prologue, [&](Value first, Value isLast) { emitItem(first, isLast); });
  }

private:
  void emitItem(Value first, Value isLast);
  void packPanel(Value begin, Value end);
  void emitTile(Rows tile, Value first, Value offset, Value begin, Value end, int64_t valid);
  Values rowsOfB(Value row, Value column, int64_t valid);
  void storeSums(Value first, Value isLast);
  void storeRow(Value row, Value first, Value offset, int64_t valid);

  Value sums, panel;
};
} // namespace

void RowSumEmitter::emitItem(Value first, Value isLast) {
  int64_t width = plan.itemColumns, tileWidth = across * lanes, left = plan.columns % tileWidth;
  VectorType type = sumType();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  loop(index(0), index(width), lanes, [&](Value offset) {
    for (int64_t row = 0; row < plan.rows; ++row)
      vector::StoreOp::create(b, zero, sums, ValueRange{index(row), offset});
  });
  // Columns of whole tiles; the rest is in the last item.
  Value end = least(index(width), minus(index(plan.columns - left), first));
  loop(index(0), index(plan.inner), panelRows, [&](Value begin) {
    Value last = least(plus(begin, panelRows), index(plan.inner));
    packPanel(begin, last);
    loop(index(0), end, tileWidth, [&](Value offset) {
      for (Rows tile : tiles)
        emitTile(tile, first, offset, begin, last, tileWidth);
    });
    if (left > 0)
      onlyIf(isLast, [&] {
        for (Rows tile : tiles)
          emitTile(tile, first, end, begin, last, left);
      });
  });
  storeSums(first, isLast);
}

/// Gathers what the rows of a panel are multiplied by: in a, it lies too far apart to stay in the
/// first-level cache.
void RowSumEmitter::packPanel(Value begin, Value end) {
  loop(begin, end, depth, [&](Value at) {
    Value place = minus(at, begin);
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
void RowSumEmitter::emitTile(Rows tile, Value first, Value offset, Value begin, Value end,
                             int64_t valid) {
  VectorType type = sumType();
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
    Value next = least(plus(row, panelRows), index(plan.inner - depth));
    for (int64_t part = 0; part < depth; ++part)
      for (int64_t v = 0; v < vectors; v += depth)
        prefetch(plus(next, part), plus(column, v * lanes));
    Value at = minus(row, begin);
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
RowSumEmitter::Values RowSumEmitter::rowsOfB(Value row, Value column, int64_t valid) {
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

void RowSumEmitter::storeSums(Value first, Value isLast) {
  int64_t step = lanes * depth, left = plan.columns % step;
  Value end = least(index(plan.itemColumns), minus(index(plan.columns - left), first));
  loop(index(0), index(plan.rows), 1, [&](Value row) {
    loop(index(0), end, step, [&](Value offset) { storeRow(row, first, offset, step); });
    if (left > 0)
      onlyIf(isLast, [&] { storeRow(row, first, end, left); });
  });
}

/// The vectors of one step of columns, in the columns' order.
void RowSumEmitter::storeRow(Value row, Value first, Value offset, int64_t valid) {
  Values found;
  for (int64_t v = 0; v < depth; ++v)
    found.push_back(
        vector::LoadOp::create(b, sumType(), sums, ValueRange{row, plus(offset, v * lanes)}));
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

void dlc::emitRowSums(OpBuilder &builder, Location loc, StringRef name, const ProductPlan &plan,
                      const CodeTarget &target) {
  RowSumEmitter(builder, loc, name, plan, target);
}
