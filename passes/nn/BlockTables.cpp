#include "passes/nn/BlockTables.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;
namespace fb = flatbuffers;

fb::Offset<artifact::Argument> BlockTables::argument(NamedAttribute attribute) {
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
fb::Offset<artifact::Call> BlockTables::call(DictionaryAttr dictionary) {
  if (!dictionary)
    return {};
  std::vector<fb::Offset<artifact::Argument>> arguments;
  for (NamedAttribute attribute : dictionary)
    if (attribute.getName() != "name")
      arguments.push_back(argument(attribute));
  auto name = dictionary.getAs<StringAttr>("name");
  return artifact::CreateCallDirect(builder, name ? name.str().c_str() : "", &arguments);
}

BlockTables::List<artifact::Call> BlockTables::calls(Attribute array) {
  std::vector<fb::Offset<artifact::Call>> list;
  if (auto entries = dyn_cast_if_present<ArrayAttr>(array))
    for (auto entry : entries.getAsRange<DictionaryAttr>())
      list.push_back(call(entry));
  return builder.CreateVector(list);
}

BlockTables::List<fb::String> BlockTables::strings(Attribute array) {
  std::vector<std::string> list;
  if (auto entries = dyn_cast_if_present<ArrayAttr>(array))
    for (Attribute entry : entries) {
      auto symbol = dyn_cast<FlatSymbolRefAttr>(entry);
      list.push_back(symbol ? symbol.getValue().str() : cast<StringAttr>(entry).str());
    }
  return builder.CreateVectorOfStrings(list);
}

//===- Data, training -------------------------------------------------------------------------===//

fb::Offset<artifact::DataPipeline> BlockTables::data(DictionaryAttr block) {
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
fb::Offset<artifact::Call> BlockTables::updates(DictionaryAttr block) {
  NamedAttrList given;
  for (StringRef name : {"freeze", "lr_scale", "clip_norm", "ema"})
    if (Attribute value = block.get(name))
      given.set(name, value);
  if (given.empty())
    return {};
  given.set("name", StringAttr::get(block.getContext(), "updates"));
  return call(given.getDictionary(block.getContext()));
}

fb::Offset<artifact::Training> BlockTables::training(DictionaryAttr block) {
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

artifact::DataPipelineT dlc::dataPipeline(DictionaryAttr block) {
  artifact::DataPipelineT pipeline;
  fb::FlatBufferBuilder builder;
  fb::Offset<artifact::DataPipeline> table = BlockTables(builder).data(block);
  if (table.IsNull())
    return pipeline;
  builder.Finish(table);
  fb::GetRoot<artifact::DataPipeline>(builder.GetBufferPointer())->UnPackTo(&pipeline);
  return pipeline;
}
