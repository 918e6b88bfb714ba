#include "passes/codegen/cpu/vectorize/SumTerms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dlc;

/// An f32 as it lies in memory, or an integer.
static bool isStored(Value value) {
  return isa<BlockArgument>(value) ||
         isa<memref::LoadOp, scf::IfOp, arith::SIToFPOp>(value.getDefiningOp());
}

/// The f32 that a value of f64 was, or null.
static Value narrowed(Value value) {
  auto wide = value.getDefiningOp<arith::ExtFOp>();
  return wide && wide.getIn().getType().isF32() ? wide.getIn() : Value();
}

/// What bf16 holds: a product of two such is exact in f32.
static bool isBFloat16(Value value) {
  auto wide = value.getDefiningOp<arith::ExtFOp>();
  return wide && wide.getIn().getType().isBF16();
}

/// The term of a sum that f32 is good enough for, and the ops that add it. Elements of f32 are left
/// to f64, and so are products of f32 values, computed or not, that are not rounded: a variance is
/// the difference of a sum of squares and a mean's, both of which may be millions of times as
/// large. So are integers, whose sums are exact.
std::optional<SumTerm> SumTerms::termOf(Value sum) {
  SumTerm term;
  Operation *added = sum.getDefiningOp();
  if (auto valid = dyn_cast_if_present<arith::SelectOp>(added)) {
    term.inside = valid.getCondition();
    replaced.insert(valid);
    added = valid.getTrueValue().getDefiningOp();
  }
  replaced.insert(added);
  if (auto add = dyn_cast_if_present<arith::AddFOp>(added)) {
    term.value = narrowed(add.getRhs());
    if (auto product = term.value ? term.value.getDefiningOp<arith::MulFOp>() : nullptr)
      term = {product.getLhs(), product.getRhs(), term.inside};
  } else if (auto product = dyn_cast_if_present<math::FmaOp>(added)) {
    term.value = narrowed(product.getA());
    term.factor = narrowed(product.getB());
    if (!term.value || !term.factor || !isBFloat16(term.value) || !isBFloat16(term.factor))
      return std::nullopt;
  }
  if (!term.value || (isStored(term.value) && (!term.factor || isStored(term.factor))))
    return std::nullopt;
  return term;
}

SumTerms::SumTerms(const StagePlan &plan, linalg::GenericOp generic) {
  if (plan.innerLoops(/*reduced=*/true).empty())
    return;
  for (auto [write, sum] :
       llvm::zip(plan.writes, generic.getRegion().front().getTerminator()->getOperands())) {
    if (!write.reduction)
      continue;
    std::optional<SumTerm> term = termOf(sum);
    if (!term) {
      terms.clear();
      replaced.clear();
      return;
    }
    terms.push_back(*term);
  }
}
