// Losses and metrics of images larger than the eval program: each is evaluated tile by tile, and of
// every tile counts what the program computes as of the whole image, so that each pixel counts
// once.
//
// Collective; one compute thread.
#pragma once

#include "runtime/core/Session.h"
#include "runtime/data/Dataset.h"
#include "runtime/train/Totals.h"

namespace dlc::rt {

/// What an evaluation takes: images of any size, if the program can be tiled.
std::vector<InputSpec> evaluationInputs(const Artifact &artifact);

/// Whether a data set of evaluationInputs() has images of other sizes than the program's.
bool isEvaluatedInTiles(const Artifact &artifact, const Dataset &dataset);

/// evaluate() by the eval program, in tiles where a data set is evaluated so.
Totals evaluateAnySize(Session &session, const Dataset &dataset,
                       const std::vector<int64_t> &samples, uint64_t seed);

} // namespace dlc::rt
