// The sentences of a run's report.
#pragma once

#include "runtime/data/Batches.h"
#include "runtime/record/RunLog.h"
#include "runtime/train/Monitor.h"
#include "runtime/train/StepRunner.h"

#include <string>

namespace dlc::rt {

/// "2 ranks x batch 16 = 32 samples a step, 7 steps an epoch".
std::string openingText(const RankBatch &shape, int64_t stepsPerEpoch);
/// "2 ranks x batch 16 x 1 thread".
std::string workersText(int ranks, int64_t batch, unsigned threads);
/// Which epoch will be best, and when the run stops early. `asked` is what the model says to watch.
std::string monitorText(const Monitor &monitor, bool validated, const std::string &asked);
/// One line of an epoch record's figures.
std::string epochText(const Record &record, int64_t epochs, bool isBest);
/// Wall time split by what it was spent on.
std::string closingText(double seconds, const TimeShares &shares);
/// How fast a thread makes samples of what the files hold; the first rank's.
std::string loadingText(const BatchLoader::Work &work, unsigned threads);
/// "huge pages: variables 10.0 of 12.3 MiB, ..., gradients none"; arenas smaller than a page are
/// left out.
std::string pagesText(const std::vector<ArenaPages> &arenas);
/// Four significant digits.
std::string figureText(double value);

} // namespace dlc::rt
