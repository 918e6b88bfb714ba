// dlc-plan-tiling: what ReceptiveField finds of @predict becomes the model's attribute `tiling`, or
// `untiled`.

#include "passes/Passes.h"
#include "passes/nn/ReceptiveField.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/Path.h"

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
    model->removeAttr("tiling");
    model->removeAttr("untiled");
    auto predict = dyn_cast_or_null<ProgramOp>(SymbolTable::lookupSymbolIn(model, "predict"));
    if (!predict)
      return;
    std::variant<Tiling, TilingObstacle> found = tilingOf(predict);
    if (const auto *tiling = std::get_if<Tiling>(&found))
      model->setAttr("tiling", attributeOf(predict, *tiling));
    else
      report(std::get<TilingObstacle>(found));
  }

private:
  Attribute attributeOf(ProgramOp predict, const Tiling &tiling) {
    Builder builder(&getContext());
    NamedAttrList entries;
    entries.set("alignment", builder.getDenseI64ArrayAttr(tiling.alignment));
    entries.set("overlap", builder.getDenseI64ArrayAttr(tiling.overlap));
    // All inputs have one size, so that those of one are those of all.
    auto names = predict.getArgAttrOfType<ArrayAttr>(0, "nn.parameters");
    if (names && names.size() > tiling.overlap.size())
      entries.set("parameters",
                  builder.getArrayAttr(names.getValue().take_back(tiling.overlap.size())));
    return entries.getDictionary(&getContext());
  }

  /// Names the obstacle's file without its folder, which is no part of an artifact. A location in
  /// IR's text is left out: it differs in the next text.
  void report(const TilingObstacle &obstacle) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    auto place = obstacle.loc->findInstanceOf<FileLineColLoc>();
    if (place && place.getFilename().strref().ends_with(".dl"))
      stream << llvm::sys::path::filename(place.getFilename()) << ":" << place.getLine() << ":"
             << place.getColumn() << ": ";
    if (StringRef layer = layerName(obstacle.loc); !layer.empty())
      stream << layer << " ";
    stream << obstacle.text;
    getOperation()->setAttr("untiled", StringAttr::get(&getContext(), text));
    remark::missed(obstacle.loc, remark::RemarkOpts::name("untiled").category("dlc-tiling"))
        << text;
  }
};
} // namespace
