// Tables of an artifact that are made of one attribute alone: types, calls with constant arguments,
// and the descriptions of data, training and target. None has an index of a buffer, a kernel or a
// program.
#pragma once

#include "passes/exec/Export.h"
#include "runtime/artifact/Writer.h"

namespace dlc {

/// Each method adds one table, or a list of tables; an attribute that is null makes none.
class AttributeTables {
public:
  explicit AttributeTables(flatbuffers::FlatBufferBuilder &builder) : builder(builder) {}

  template <typename Table>
  using List = flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<Table>>>;

  flatbuffers::Offset<artifact::TensorType> type(mlir::RankedTensorType tensor);
  List<flatbuffers::String> strings(mlir::Attribute array);
  flatbuffers::Offset<artifact::Argument> argument(mlir::NamedAttribute attribute);
  List<artifact::InputSignature> inputs(mlir::ArrayAttr entries);
  flatbuffers::Offset<artifact::DataPipeline> data(mlir::DictionaryAttr block);
  flatbuffers::Offset<artifact::Training> training(mlir::DictionaryAttr block);
  /// The target as its planner describes it, and what else the model says that it was planned for.
  flatbuffers::Offset<artifact::Target> target(const rt::PlannerTarget &planned, nn::ModelOp model);

private:
  flatbuffers::Offset<artifact::Call> call(mlir::DictionaryAttr dictionary);
  flatbuffers::Offset<artifact::Call> updates(mlir::DictionaryAttr block);
  List<artifact::Call> calls(mlir::Attribute array);

  flatbuffers::FlatBufferBuilder &builder;
};

} // namespace dlc
