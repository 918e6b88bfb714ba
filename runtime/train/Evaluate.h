// Losses and metrics of a program over samples, exact over all ranks.
//
// Every sample weighs once: the last batches repeat a sample and count only their valid rows.
// Collective; one compute thread.
#pragma once

#include "runtime/data/BatchLoader.h"
#include "runtime/train/Totals.h"

namespace dlc::rt {

/// Sets the scalars that every program may read. K micro-batches of N ranks are what K N ranks are.
void setStepScalars(Session &session, uint64_t seed, int64_t step, int64_t batch, int64_t valid,
                    MicroBatch part = {});

/// The same for a batch of an evaluation or prediction, whose first row is at position `firstRow`:
/// a row's random numbers depend on its position in that alone, as if it were the first step's.
void setEvaluationScalars(Session &session, uint64_t seed, int64_t firstRow, int64_t batch,
                          int64_t valid);

/// Why a rank has no totals; nothing if there is no text.
struct EvaluationFailure {
  std::string text;
  bool isOfData = true; // else a device or a library has failed

  /// Of the exception that is being handled.
  static EvaluationFailure current();
};

/// Throws CollectiveError with the first rank's error: BadInput if no rank has met with another
/// than a batch that cannot be loaded, else Runtime.
Totals evaluate(Session &session, const std::string &program, const Dataset &dataset,
                const std::vector<int64_t> &samples, uint64_t seed);

/// The totals of all ranks. `failure` is this rank's; if any rank has failed, all throw as above.
Totals sumOverRanks(ControlPlane &control, Totals totals, const EvaluationFailure &failure);

} // namespace dlc::rt
