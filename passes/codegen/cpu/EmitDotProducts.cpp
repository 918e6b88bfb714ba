// Products of rows with rows. A tile is a few rows of a and of b with one vector of sums for each
// pair, added up at the end. A block of the rows is read at a time; the next block of b is fetched
// ahead, since hardware does not follow streams from one block to the next. Between blocks the sums
// lie in a buffer. Pairs of bf16 lie side by side.

#include "passes/codegen/cpu/ProductEmitter.h"

#include <numeric>

using namespace mlir;
using namespace dlc;

// Elements of a row: eight rows of a take half of a first-level cache.
static constexpr int64_t blockBytes = 2048;

namespace {
class DotEmitter : ProductEmitter {
public:
  DotEmitter(OpBuilder &builder, Location loc, StringRef name, const ProductPlan &plan,
             const CodeTarget &target)
      : ProductEmitter(builder, loc, plan, target), block(blockBytes / (pairs ? 2 : 4)) {
    auto prologue = [&] {
      sums = onStack({plan.itemColumns * plan.rows, lanes}, b.getF32Type());
      panel = onStack({plan.rows, block}, pairs ? b.getBF16Type() : Type(b.getF32Type()));
    };
    emit(name, prologue, [&](Value first, Value isLast) { emitItem(first, isLast); });
  }

private:
  /// Some rows of a and some of b; `place` is that of the first sum.
  struct Tile {
    Rows rows;
    Value column;
    int64_t count;
    Value place;
  };

  void emitItem(Value first, Value isLast);
  void packBlock(Value begin, Value end);
  Value factors(Value memory, Value row, Value at, int64_t valid);
  void tilesOf(Value first, Value isLast, llvm::function_ref<void(const Tile &)> body);
  Values loadSums(const Tile &tile);
  void addBlock(const Tile &tile, Value begin, Value end);
  void finish(const Tile &tile, int64_t whole);
  Values step(const Tile &tile, Value at, Value place, int64_t valid, ValueRange sums);
  Value sumOfLanes(Value vector);

  int64_t block; // elements
  Value sums, panel;
};
} // namespace

/// A block of b's rows and of a's at a time: those of a stay in the first-level cache.
void DotEmitter::emitItem(Value first, Value isLast) {
  int64_t whole = plan.inner / (lanes * depth) * (lanes * depth);
  VectorType type = sumType();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(type));
  loop(index(0), index(plan.itemColumns * plan.rows), 1,
       [&](Value place) { vector::StoreOp::create(b, zero, sums, ValueRange{place, index(0)}); });
  loop(index(0), index(whole), block, [&](Value begin) {
    Value end = least(plus(begin, block), index(whole));
    packBlock(begin, end);
    tilesOf(first, isLast, [&](const Tile &tile) { addBlock(tile, begin, end); });
  });
  tilesOf(first, isLast, [&](const Tile &tile) { finish(tile, whole); });
}

/// Copies a block of a: where its rows lie a power of two apart, they would drive each other out of
/// the first-level cache.
void DotEmitter::packBlock(Value begin, Value end) {
  int64_t width = lanes * depth;
  loop(begin, end, width, [&](Value at) {
    Value place = minus(at, begin);
    for (int64_t row = 0; row < plan.rows; ++row) {
      Value vector = factors(a, index(row), at, width);
      vector::StoreOp::create(b, vector, panel, ValueRange{index(row), place});
    }
  });
}

/// A vector of a row of a or b as it is multiplied.
Value DotEmitter::factors(Value memory, Value row, Value at, int64_t valid) {
  Value vector = load(memory, {row, at}, lanes * depth, valid);
  return pairs ? vector : wide(vector);
}

/// All tiles of an item.
void DotEmitter::tilesOf(Value first, Value isLast, llvm::function_ref<void(const Tile &)> body) {
  auto ofColumns = [&](Value column, int64_t count) {
    Value place = arith::MulIOp::create(b, minus(column, first), index(plan.rows));
    for (Rows rows : tiles)
      body({rows, column, count, plus(place, rows.first * count)});
  };
  Value end = least(plus(first, plan.itemColumns), index(plan.columns / across * across));
  loop(first, end, across, [&](Value column) { ofColumns(column, across); });
  int64_t left = plan.columns % across; // of the last item alone
  if (left == 0)
    return;
  onlyIf(isLast, [&] { ofColumns(index(plan.columns - left), left); });
}

DotEmitter::Values DotEmitter::loadSums(const Tile &tile) {
  Values found;
  for (int64_t i = 0; i < tile.rows.count * tile.count; ++i)
    found.push_back(
        vector::LoadOp::create(b, sumType(), sums, ValueRange{plus(tile.place, i), index(0)}));
  return found;
}

void DotEmitter::addBlock(const Tile &tile, Value begin, Value end) {
  int64_t width = lanes * depth;
  Values found = loop(begin, end, width, loadSums(tile), [&](Value at, ValueRange old) {
    Value next = least(plus(at, block), index(plan.inner - 1));
    for (int64_t j = 0; j < tile.count; ++j)
      prefetch(plus(tile.column, j), next);
    return step(tile, at, minus(at, begin), width, old);
  });
  for (auto [i, sum] : llvm::enumerate(found))
    vector::StoreOp::create(b, sum, sums, ValueRange{plus(tile.place, i), index(0)});
}

/// Adds the rest of the rows and then the lanes.
void DotEmitter::finish(const Tile &tile, int64_t whole) {
  Values found = loadSums(tile);
  if (whole < plan.inner)
    found = step(tile, index(whole), Value(), plan.inner - whole, found);
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
DotEmitter::Values DotEmitter::step(const Tile &tile, Value at, Value place, int64_t valid,
                                    ValueRange old) {
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
Value DotEmitter::sumOfLanes(Value vector) {
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

void dlc::emitDotProducts(OpBuilder &builder, Location loc, StringRef name, const ProductPlan &plan,
                          const CodeTarget &target) {
  DotEmitter(builder, loc, name, plan, target);
}
