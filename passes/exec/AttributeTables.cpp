#include "passes/exec/AttributeTables.h"

#include "dialects/NN/ElementType.h"
#include "passes/planning/Decisions.h"
#include "passes/planning/OverlapSimulator.h"
#include "passes/planning/PlanningTarget.h"
#include "runtime/artifact/LayoutIo.h"

using namespace mlir;
using namespace dlc;
namespace fb = flatbuffers;

fb::Offset<artifact::TensorType> AttributeTables::type(RankedTensorType tensor) {
  return rt::writeTensorType(builder, nn::dtypeOf(tensor.getElementType()), tensor.getShape().vec(),
                             nn::layoutOf(tensor));
}

/// Of the products that a model's kernels compute.
static double productPeak(const rt::Peaks &peaks, StringRef precision, StringRef math) {
  if (precision == "bf16")
    return peaks.bf16;
  if (precision == "f16")
    return peaks.f16;
  return math == "strict" ? peaks.f32 : peaks.fastF32;
}

fb::Offset<artifact::Target> AttributeTables::target(const rt::PlannerTarget &planned,
                                                     nn::ModelOp model) {
  Link plan = plannedLink(model);
  auto link = artifact::CreateLink(builder, plan.gbitPerSecond, plan.latencyMicroseconds);
  auto name = builder.CreateString(planned.name);
  auto features = builder.CreateVectorOfStrings(planned.features);
  auto library = builder.CreateString(planned.library);
  StringRef mathName = model->getAttrOfType<StringAttr>("math").getValue();
  auto math = builder.CreateString(mathName.str());
  auto narrow = model->getAttrOfType<StringAttr>("precision");
  std::string precisionName = narrow ? narrow.str() : std::string(DefaultDecisions::precision);
  auto precision = builder.CreateString(precisionName);
  auto peaks = artifact::CreatePeaks(builder, productPeak(planned.peaks, precisionName, mathName),
                                     planned.peaks.elements, planned.peaks.bandwidth);
  std::vector<fb::Offset<artifact::LayoutCost>> costs;
  if (auto layouts = model->getAttrOfType<ArrayAttr>("layouts"))
    for (auto cost : layouts.getAsRange<DictionaryAttr>())
      costs.push_back(artifact::CreateLayoutCostDirect(
          builder, cost.getAs<StringAttr>("family").str().c_str(),
          static_cast<uint64_t>(cost.getAs<IntegerAttr>("nanoseconds").getInt()),
          static_cast<uint32_t>(cost.getAs<IntegerAttr>("exceptions").getInt())));
  return artifact::CreateTarget(builder, name, features, library,
                                PlanningTarget::of(model)->threads, math, precision, link,
                                builder.CreateVector(costs), peaks);
}

AttributeTables::List<artifact::InputSignature> AttributeTables::inputs(ArrayAttr entries) {
  std::vector<fb::Offset<artifact::InputSignature>> list;
  if (entries)
    for (auto entry : entries.getAsRange<DictionaryAttr>()) {
      auto values = entry.getAs<DenseF64ArrayAttr>("range");
      artifact::Range range(values ? values[0] : 0, values ? values[1] : 0);
      std::vector<double> others;
      if (values)
        llvm::append_range(others, values.asArrayRef().drop_front(2));
      auto flag = [&](StringRef name) {
        auto value = entry.getAs<BoolAttr>(name);
        return value && value.getValue();
      };
      list.push_back(artifact::CreateInputSignatureDirect(
          builder, entry.getAs<StringAttr>("name").str().c_str(),
          type(cast<RankedTensorType>(entry.getAs<TypeAttr>("type").getValue())),
          flag("needed_by_predict"), values ? &range : nullptr, &others, flag("sums_to_one")));
    }
  return builder.CreateVector(list);
}
