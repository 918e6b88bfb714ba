// Tables of an artifact that are made of one attribute alone: types, and the descriptions of
// inputs, data, training and target. None has an index of a buffer, a kernel or a program.
#pragma once

#include "passes/exec/Export.h"
#include "passes/nn/BlockTables.h"
#include "runtime/artifact/Writer.h"

namespace dlc {

/// Each method adds one table, or a list of tables; an attribute that is null makes none.
class AttributeTables : public BlockTables {
public:
  using BlockTables::BlockTables;

  flatbuffers::Offset<artifact::TensorType> type(mlir::RankedTensorType tensor);
  List<artifact::InputSignature> inputs(mlir::ArrayAttr entries);
  /// The target as its planner describes it, and what else the model says that it was planned for.
  flatbuffers::Offset<artifact::Target> target(const rt::PlannerTarget &planned, nn::ModelOp model);
};

} // namespace dlc
