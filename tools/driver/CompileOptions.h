// What to make of a model, and for what.
#pragma once

#include "dialects/NN/Stage.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlc {

/// What a compilation ends with: text of a stage, by its number, text of the generated kernels, or
/// an artifact.
enum class Output { NN, Train, Schedule, Exec, Linalg, Llvm, Ptx, Artifact };

/// As `--emit` names them, in this order.
std::vector<std::string> outputNames();

/// Nothing for a name that is no output's.
std::optional<Output> outputNamed(llvm::StringRef name);
/// The stage that a model has to reach for it.
nn::Stage stageFor(Output output);

struct CompileOptions {
  Output output = Output::Artifact;
  std::vector<std::string> sets; // name=value: parameters of the model
  std::string dumpPasses;        // directory for the IR after each pass; empty: none
  uint64_t memoryLimit = 0;      // bytes of a rank; 0: none

  // What is planned for. Nothing where the user says nothing: then it is the model's to say, and
  // the default (passes/planning/Decisions.h) where it is not decided yet.
  std::optional<std::string> target, math, precision, wire, link;
  std::vector<std::string> sources;   // name=type: what the files of a source of data hold
  std::optional<unsigned> threads;    // by default this host's cores
  std::optional<uint64_t> bucketSize; // bytes; 0, the default: from the link
  std::optional<bool> noOverlap;
};

} // namespace dlc
