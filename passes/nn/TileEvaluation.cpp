// dlc-tile-evaluation: sums over the pixels of an image leave out those that lie near an edge of a
// tile, as many as the host says; constant counts shrink alike.

#include "dialects/NN/NN.h"
#include "dialects/NN/Scalars.h"
#include "passes/Passes.h"
#include "passes/nn/ReceptiveField.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_TILEEVALUATION
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class TileEvaluationPass : public dlc::impl::TileEvaluationBase<TileEvaluationPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    ModelOp model = getOperation();
    auto eval = dyn_cast_or_null<ProgramOp>(SymbolTable::lookupSymbolIn(model, "eval"));
    if (!eval || model->hasAttr("eval_tiling")) // its sums are masked already
      return;
    std::variant<EvaluationTiling, TilingObstacle> found = evaluationTilingOf(eval);
    auto *tiling = std::get_if<EvaluationTiling>(&found);
    if (!tiling)
      return;
    readSkips(model, eval, tiling->tiling.overlap.size());
    for (ReduceSumOp sum : tiling->sums)
      mask(sum);
    for (OpOperand *count : tiling->counts)
      shrink(*count, tiling->extents);
    Builder builder(&getContext());
    NamedAttrList entries;
    entries.set("alignment", builder.getDenseI64ArrayAttr(tiling->tiling.alignment));
    entries.set("overlap", builder.getDenseI64ArrayAttr(tiling->tiling.overlap));
    model->setAttr("eval_tiling", entries.getDictionary(&getContext()));
  }

private:
  void readSkips(ModelOp model, ProgramOp eval, size_t spatial) {
    OpBuilder builder = OpBuilder::atBlockBegin(&eval.getBody().front());
    lows.clear();
    highs.clear();
    for (size_t dim = 0; dim < spatial; ++dim) {
      lows.push_back(readScalar(builder, eval.getLoc(), model, ("skip_low_" + Twine(dim)).str()));
      highs.push_back(readScalar(builder, eval.getLoc(), model, ("skip_high_" + Twine(dim)).str()));
    }
  }

  /// low <= i < extent - high along the dimension, as i1 of the shape.
  Value isCounted(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, int64_t dim,
                  size_t spatial) {
    // Extents are exact in f32.
    auto type = RankedTensorType::get({shape[dim]}, builder.getF32Type());
    auto spread = [&](Value scalar) -> Value {
      return BroadcastOp::create(builder, loc, type, scalar, ArrayRef<int64_t>{});
    };
    Value number = IotaOp::create(builder, loc, type.clone(builder.getI64Type()), 0);
    Value index = CastOp::create(builder, loc, type, number);
    Value extent = splat(builder, loc, type, static_cast<double>(shape[dim]));
    Value end = SubOp::create(builder, loc, extent, spread(highs[spatial]));
    Value begins = CompareOp::create(builder, loc, Comparison::GE, index, spread(lows[spatial]));
    Value ends = CompareOp::create(builder, loc, Comparison::LT, index, end);
    Value both = AndOp::create(builder, loc, begins, ends);
    auto maskType = RankedTensorType::get(shape, builder.getI1Type());
    return BroadcastOp::create(builder, loc, maskType, both, ArrayRef<int64_t>{dim});
  }

  /// The image's dimensions are the last ones.
  void mask(ReduceSumOp sum) {
    OpBuilder builder(sum);
    Value kept = sum.getX();
    auto type = tensorType(kept);
    Value zero = splat(builder, sum.getLoc(), type, 0);
    int64_t leading = type.getRank() - static_cast<int64_t>(lows.size());
    for (size_t spatial = 0; spatial < lows.size(); ++spatial) {
      Value counted = isCounted(builder, sum.getLoc(), type.getShape(),
                                leading + static_cast<int64_t>(spatial), spatial);
      kept = SelectOp::create(builder, sum.getLoc(), counted, kept, zero);
    }
    sum.getXMutable().assign(kept);
  }

  /// count x (extent - low - high) / extent for every dimension.
  void shrink(OpOperand &count, ArrayRef<int64_t> extents) {
    OpBuilder builder(count.getOwner());
    Location loc = count.getOwner()->getLoc();
    Value value = count.get();
    for (auto [spatial, extent] : llvm::enumerate(extents)) {
      Value whole = splat(builder, loc, tensorType(lows[spatial]), static_cast<double>(extent));
      Value skipped = AddOp::create(builder, loc, lows[spatial], highs[spatial]);
      Value kept = SubOp::create(builder, loc, whole, skipped);
      Value share = DivOp::create(builder, loc, kept, whole);
      value = MulOp::create(builder, loc, value, share);
    }
    count.set(value);
  }

  SmallVector<Value> lows, highs; // pixels that do not count at either end, per dimension
};
} // namespace
