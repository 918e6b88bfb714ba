// Applies the predict program to every sample and keeps its outputs as files.
//
// Each output becomes DIR/OUTPUT.npy of shape [samples, ...]; planar outputs of one channel also
// one PNG per sample, DIR/OUTPUT-00000.png, with [0, 1] (or else the output's own range) as
// black to white. One rank.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/train/Console.h"
#include "runtime/train/TrainOptions.h"

namespace dlc::rt {

struct PredictOptions {
  DataPaths data;
  std::string init;
  std::string directory;
};

/// Throws Error for data or weights that do not fit and for what cannot be written.
void predict(Session &session, const PredictOptions &options, Console &console);

} // namespace dlc::rt
