// What the inputs and variables of an artifact's programs look like to data and checkpoints.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/data/BatchLoader.h"

#include <string>
#include <vector>

namespace dlc::rt {

/// Throws Error(Artifact) if the artifact lacks the program.
const artifact::Program &requireProgram(const Artifact &artifact, const std::string &name);

/// Inputs of a program with the shapes it wants, and, if it has losses or metrics, the values that
/// these take.
std::vector<InputSpec> inputSpecs(const Artifact &artifact, const std::string &program);

/// Names of all inputs of the model.
std::vector<std::string> inputNames(const Artifact &artifact);

/// The data block of the artifact, empty if it has none.
artifact::DataPipelineT dataPipeline(const Artifact &artifact);

/// Where a program takes the given inputs from, one entry per input, empty where it lacks it.
Destinations destinationsOf(Session &session, const std::string &program,
                            const std::vector<InputSpec> &inputs);

/// A variable as files know it.
struct VariableInfo {
  std::string name;
  std::string tensor; // in files: slots are `optimizer.<slot>.<parameter>`, or of no parameter
  std::vector<int64_t> shape;
  artifact::VariableKind kind = artifact::VariableKind::Parameter;
};

/// Parameters, state and slots; scalars are the host's.
std::vector<VariableInfo> variablesOf(const Artifact &artifact);

} // namespace dlc::rt
