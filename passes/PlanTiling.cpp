// dlc-plan-tiling: what ReceptiveField finds of @predict becomes the model's attribute `tiling`.

#include "passes/Passes.h"
#include "passes/ReceptiveField.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_PLANTILING
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class PlanTilingPass : public dlc::impl::PlanTilingBase<PlanTilingPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    ModelOp model = getOperation();
    auto predict = dyn_cast_or_null<ProgramOp>(SymbolTable::lookupSymbolIn(model, "predict"));
    std::optional<Tiling> tiling = predict ? tilingOf(predict) : std::nullopt;
    if (!tiling) {
      model->removeAttr("tiling");
      return;
    }
    Builder builder(model.getContext());
    model->setAttr(
        "tiling",
        builder.getDictionaryAttr(
            {builder.getNamedAttr("alignment", builder.getDenseI64ArrayAttr(tiling->alignment)),
             builder.getNamedAttr("overlap", builder.getDenseI64ArrayAttr(tiling->overlap))}));
  }
};
} // namespace
