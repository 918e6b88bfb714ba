// The common part of the emitters of matrix products: the kernel's frame, loops, vectors with a
// rest, and one multiplication.
#pragma once

#include "passes/codegen/EmitScalars.h"
#include "passes/codegen/ProductPlan.h"
#include "passes/codegen/cpu/CodeTarget.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace dlc {

class ProductEmitter {
protected:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  using Values = llvm::SmallVector<Value>;
  /// Some rows of a.
  struct Rows {
    int64_t first, count;
  };

  ProductEmitter(mlir::OpBuilder &builder, mlir::Location loc, const ProductPlan &plan,
                 const CodeTarget &target);
  /// The function: `prologue` comes first, then a loop over items, whose first column is given.
  void emit(llvm::StringRef name, llvm::function_ref<void()> prologue,
            llvm::function_ref<void(Value first, Value isLast)> item);

  Value index(int64_t value) { return mlir::arith::ConstantIndexOp::create(b, value); }
  Value plus(Value x, int64_t y) { return y ? mlir::arith::AddIOp::create(b, x, index(y)) : x; }
  Value plus(Value x, Value y) { return mlir::arith::AddIOp::create(b, x, y); }
  Value minus(Value x, Value y) { return mlir::arith::SubIOp::create(b, x, y); }
  Value least(Value x, Value y) { return mlir::arith::MinUIOp::create(b, x, y); }
  mlir::VectorType vectorOf(mlir::Type element, int64_t count) {
    return mlir::VectorType::get(count, element);
  }
  mlir::VectorType sumType() { return vectorOf(b.getF32Type(), lanes); }
  Value onStack(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  Values loop(Value from, Value to, int64_t step, ValueRange carried,
              llvm::function_ref<Values(Value, ValueRange)> body);
  void loop(Value from, Value to, int64_t step, llvm::function_ref<void(Value)> body);
  void onlyIf(Value condition, llvm::function_ref<void()> body);

  /// The first `valid` of some elements, the others zero.
  Value load(Value memory, ValueRange at, int64_t count, int64_t valid);
  void store(Value vector, Value memory, ValueRange at, int64_t valid);
  Value wide(Value vector) { return emitResize(b, vector, sumType()); }
  /// Fetches an element of b ahead.
  void prefetch(Value row, Value column);
  Value multiplyAdd(Value x, Value y, Value sum);
  /// Sums with their bias, if there is one, and the ReLU, as elements of y.
  Value finished(Value sum, Value bias);

  mlir::ImplicitLocOpBuilder b;
  const ProductPlan &plan;
  int64_t lanes;  // of f32
  bool pairs;     // of bf16 are multiplied
  int64_t depth;  // elements of `inner` that one multiplication of a lane takes
  int64_t across; // rows of b, or vectors of columns, in a tile
  llvm::SmallVector<Rows> tiles;
  Value a, weight, bias, y;
};

/// What an item's columns must be a multiple of: whole tiles, of whatever size they are.
int64_t productUnit(const ProductPlan &plan, const CodeTarget &target);

/// Emits a product whose b is transposed.
void emitDotProducts(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                     const ProductPlan &plan, const CodeTarget &target);

/// Emits any other product.
void emitRowSums(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                 const ProductPlan &plan, const CodeTarget &target);

/// Emits `NAME(a, b, bias?, y, begin, end)` over vectors: sums have one order, whatever the items
/// that a call is for.
void emitProduct(mlir::OpBuilder &builder, mlir::Location loc, llvm::StringRef name,
                 const ProductPlan &plan, const CodeTarget &target);

} // namespace dlc
