// `dlc compile`: from a model's text to any stage or to an artifact.
#pragma once

#include "passes/planning/OverlapSimulator.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dlc {

struct CompileOptions {
  std::string input;        // .dl or .mlir
  std::string output;       // "-" or empty: standard output for text, MODEL.dlx for an artifact
  std::string emit = "dlx"; // nn, train, schedule, exec, linalg, llvm, dlx
  std::vector<std::string> sets; // name=value
  std::string dumpPasses;        // directory for the IR after each pass
  uint64_t memoryLimit = 0;      // bytes; 0: none

  // What is planned for. Nothing where the user says nothing: then it is the model's to say, and
  // the default (Decisions.h) where it is not decided yet.
  std::optional<std::string> target, math, precision, wire, link;
  std::optional<unsigned> threads;    // by default this host's cores
  std::optional<uint64_t> bucketSize; // bytes; 0, the default: from the link
  std::optional<bool> noOverlap;
};

/// Compiles and writes; diagnostics go to standard error, one line each. Returns the exit code.
int compile(const CompileOptions &options);

/// `dlc inspect` of a model that is not compiled: parameters and programs. Returns the exit code.
int inspectModel(const CompileOptions &options, bool json);

} // namespace dlc
