// Applies the predict program to every sample and keeps its outputs as files.
//
// Where outputs are images, samples may have any size: they are predicted tile by tile, which gives
// what a program of their size would. Collective: ranks share the samples.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/predict/PredictionFiles.h"
#include "runtime/record/Console.h"
#include "runtime/train/TrainOptions.h"

namespace dlc::rt {

struct PredictOptions {
  DataPaths data;
  std::string init;
  std::string directory;
  std::vector<PredictionFormat> formats; // empty: chosen by what was read
  bool averagesTurns = false;            // over flips and turns by 90 degrees
};

/// Throws Error for data or weights that do not fit and for what cannot be written.
void predict(Session &session, const PredictOptions &options, Console &console);

} // namespace dlc::rt
