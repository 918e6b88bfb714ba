// The blocks of a model that the runtime reads, data and train, as tables of an artifact: calls
// with constant arguments.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace dlc {

/// Each method adds one table, or a list of tables; an attribute that is null makes none.
class BlockTables {
public:
  explicit BlockTables(flatbuffers::FlatBufferBuilder &builder) : builder(builder) {}

  template <typename Table>
  using List = flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<Table>>>;

  List<flatbuffers::String> strings(mlir::Attribute array);
  flatbuffers::Offset<artifact::Argument> argument(mlir::NamedAttribute attribute);
  flatbuffers::Offset<artifact::DataPipeline> data(mlir::DictionaryAttr block);
  flatbuffers::Offset<artifact::Training> training(mlir::DictionaryAttr block);

protected:
  flatbuffers::FlatBufferBuilder &builder;

private:
  flatbuffers::Offset<artifact::Call> call(mlir::DictionaryAttr dictionary);
  flatbuffers::Offset<artifact::Call> updates(mlir::DictionaryAttr block);
  List<artifact::Call> calls(mlir::Attribute array);
};

/// The data block as the runtime unpacks it; empty if there is none.
artifact::DataPipelineT dataPipeline(mlir::DictionaryAttr block);

} // namespace dlc
