#include "passes/exec/AttributeTables.h"

#include "dialects/NN/ElementType.h"
#include "passes/planning/Decisions.h"
#include "passes/planning/OverlapSimulator.h"
#include "passes/planning/PlanningTarget.h"
#include "runtime/artifact/LayoutIo.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;
namespace fb = flatbuffers;

fb::Offset<artifact::TensorType> AttributeTables::type(RankedTensorType tensor) {
  return rt::writeTensorType(builder, nn::dtypeOf(tensor.getElementType()), tensor.getShape().vec(),
                             nn::layoutOf(tensor));
}

fb::Offset<artifact::Argument> AttributeTables::argument(NamedAttribute attribute) {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::string text;
  std::function<void(Attribute)> add = [&](Attribute value) {
    llvm::TypeSwitch<Attribute>(value)
        .Case<BoolAttr>([&](BoolAttr flag) { ints.push_back(flag.getValue()); })
        .Case<IntegerAttr>([&](IntegerAttr number) { ints.push_back(number.getInt()); })
        .Case<FloatAttr>([&](FloatAttr number) { floats.push_back(number.getValueAsDouble()); })
        .Case<StringAttr>(
            [&](StringAttr string) { text += (text.empty() ? "" : ",") + string.str(); })
        .Case<ArrayAttr>([&](ArrayAttr array) { llvm::for_each(array, add); });
  };
  add(attribute.getValue());
  return artifact::CreateArgumentDirect(builder, attribute.getName().str().c_str(), &ints, &floats,
                                        text.c_str());
}

/// {name = "adam", lr = ...}
fb::Offset<artifact::Call> AttributeTables::call(DictionaryAttr dictionary) {
  if (!dictionary)
    return {};
  std::vector<fb::Offset<artifact::Argument>> arguments;
  for (NamedAttribute attribute : dictionary)
    if (attribute.getName() != "name")
      arguments.push_back(argument(attribute));
  auto name = dictionary.getAs<StringAttr>("name");
  return artifact::CreateCallDirect(builder, name ? name.str().c_str() : "", &arguments);
}

AttributeTables::List<artifact::Call> AttributeTables::calls(Attribute array) {
  std::vector<fb::Offset<artifact::Call>> list;
  if (auto entries = dyn_cast_if_present<ArrayAttr>(array))
    for (auto entry : entries.getAsRange<DictionaryAttr>())
      list.push_back(call(entry));
  return builder.CreateVector(list);
}

AttributeTables::List<fb::String> AttributeTables::strings(Attribute array) {
  std::vector<std::string> list;
  if (auto entries = dyn_cast_if_present<ArrayAttr>(array))
    for (Attribute entry : entries) {
      auto symbol = dyn_cast<FlatSymbolRefAttr>(entry);
      list.push_back(symbol ? symbol.getValue().str() : cast<StringAttr>(entry).str());
    }
  return builder.CreateVectorOfStrings(list);
}

//===- Data, training, target -----------------------------------------------------------------===//

fb::Offset<artifact::DataPipeline> AttributeTables::data(DictionaryAttr block) {
  if (!block)
    return {};
  std::vector<fb::Offset<artifact::DataSource>> sources;
  if (auto list = block.getAs<ArrayAttr>("sources"))
    for (auto source : list.getAsRange<DictionaryAttr>()) {
      auto axes = source.getAs<StringAttr>("axes");
      sources.push_back(artifact::CreateDataSourceDirect(
          builder, source.getAs<StringAttr>("name").str().c_str(), axes ? axes.str().c_str() : ""));
    }
  std::vector<fb::Offset<artifact::DataChain>> chains;
  if (auto list = block.getAs<ArrayAttr>("chains"))
    for (auto chain : list.getAsRange<DictionaryAttr>()) {
      auto from = strings(chain.get("inputs"));
      auto steps = calls(chain.get("steps"));
      auto to = strings(chain.get("outputs"));
      chains.push_back(artifact::CreateDataChain(builder, from, steps, to));
    }
  auto validation = block.getAs<FloatAttr>("validation");
  return artifact::CreateDataPipelineDirect(builder, &sources, &chains,
                                            validation ? validation.getValueAsDouble() : 0.0);
}

/// The settings of the block that change updates, as one call; none if it has none of them.
fb::Offset<artifact::Call> AttributeTables::updates(DictionaryAttr block) {
  NamedAttrList given;
  for (StringRef name : {"freeze", "lr_scale", "clip_norm", "ema"})
    if (Attribute value = block.get(name))
      given.set(name, value);
  if (given.empty())
    return {};
  given.set("name", StringAttr::get(block.getContext(), "updates"));
  return call(given.getDictionary(block.getContext()));
}

fb::Offset<artifact::Training> AttributeTables::training(DictionaryAttr block) {
  if (!block)
    return {};
  auto integer = [&](StringRef name) {
    auto attribute = block.getAs<IntegerAttr>(name);
    return attribute ? static_cast<uint32_t>(attribute.getInt()) : 0;
  };
  auto optimizer = call(block.getAs<DictionaryAttr>("optimizer"));
  auto schedule = calls(block.get("schedule"));
  auto earlyStop = call(block.getAs<DictionaryAttr>("early_stop"));
  auto changes = updates(block);
  auto monitor = block.getAs<DictionaryAttr>("monitor");
  auto name = builder.CreateString(monitor ? monitor.getAs<StringAttr>("name").str() : "loss");
  bool isMax = monitor && monitor.getAs<StringAttr>("goal") == "max";
  return artifact::CreateTraining(builder, optimizer, integer("epochs"), integer("steps_per_epoch"),
                                  schedule, earlyStop, name,
                                  isMax ? artifact::Goal::Max : artifact::Goal::Min, changes);
}

fb::Offset<artifact::Target> AttributeTables::target(const rt::PlannerTarget &planned,
                                                     nn::ModelOp model) {
  Link plan = plannedLink(model);
  auto link = artifact::CreateLink(builder, plan.gbitPerSecond, plan.latencyMicroseconds);
  auto name = builder.CreateString(planned.name);
  auto features = builder.CreateVectorOfStrings(planned.features);
  auto library = builder.CreateString(planned.library);
  auto math = builder.CreateString(model->getAttrOfType<StringAttr>("math").str());
  auto narrow = model->getAttrOfType<StringAttr>("precision");
  auto precision =
      builder.CreateString(narrow ? narrow.str() : std::string(DefaultDecisions::precision));
  std::vector<fb::Offset<artifact::LayoutCost>> costs;
  if (auto layouts = model->getAttrOfType<ArrayAttr>("layouts"))
    for (auto cost : layouts.getAsRange<DictionaryAttr>())
      costs.push_back(artifact::CreateLayoutCostDirect(
          builder, cost.getAs<StringAttr>("family").str().c_str(),
          static_cast<uint64_t>(cost.getAs<IntegerAttr>("nanoseconds").getInt()),
          static_cast<uint32_t>(cost.getAs<IntegerAttr>("exceptions").getInt())));
  return artifact::CreateTarget(builder, name, features, library,
                                PlanningTarget::of(model)->threads, math, precision, link,
                                builder.CreateVector(costs));
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
