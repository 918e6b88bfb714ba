// `dlc compile`: from a model's text to any stage or to an artifact.
#pragma once

#include "passes/OverlapSimulator.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dlc {

struct CompileOptions {
  std::string input;        // .dl or .mlir
  std::string output;       // "-" or empty: standard output for text, MODEL.dlx for an artifact
  std::string emit = "dlx"; // nn, train, schedule, exec, linalg, llvm, dlx
  std::vector<std::string> sets; // name=value
  std::string target = "cpu:native";
  std::string math = "fast";
  std::string precision = "f32";
  std::string wire = "f32";
  std::string link = "10:30";
  std::string dumpPasses;   // directory for the IR after each pass
  unsigned threads = 0;     // 0: this host's cores
  uint64_t bucketSize = 0;  // bytes; 0: from the link
  uint64_t memoryLimit = 0; // bytes; 0: none
  bool noOverlap = false;
};

/// Compiles and writes; diagnostics go to standard error, one line each. Returns the exit code.
int compile(const CompileOptions &options);

/// `dlc inspect` of a model that is not compiled: parameters and programs. Returns the exit code.
int inspectModel(const CompileOptions &options, bool json);

} // namespace dlc
