// How far a run goes, in steps and in epochs.
//
// Both count the same unless a run is resumed with other ranks or another batch: an epoch has other
// steps then, and epochs count from where the run stands.
#pragma once

#include "runtime/train/RunState.h"
#include "runtime/train/TrainOptions.h"

namespace dlc::rt {

struct Course {
  int64_t stepsPerEpoch = 1;
  int64_t epochs = 1;
  int64_t totalSteps = 1; // of the run, over all its starts
  int64_t end = 1;        // the same in epochs of this many steps
  int64_t share = 1;      // of the epochs that were asked for, one in so many is done

  /// What is done of so many epochs asked for.
  int64_t epochsOf(int64_t asked) const { return (asked + share - 1) / share; }

  /// False for an epoch, or the part of one with which the run ends, that was interrupted at its
  /// very end and has still to be ended.
  bool isOver(const RunState &state) const;
};

/// The course of a run from where it stands. `options` are complete; of their epochs the run does
/// one in `share`, rounded up.
Course courseOf(int64_t stepsPerEpoch, const TrainOptions &options, const RunState &state,
                int64_t share);

/// Why a run that is resumed ends where it stands, and how it goes on.
std::string nothingToDoText(const Course &course, const TrainOptions &options,
                            const RunState &state);

} // namespace dlc::rt
