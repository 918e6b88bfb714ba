#include "runtime/data/Batches.h"
#include "runtime/artifact/Error.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace dlc::rt {
namespace {

std::vector<int64_t> firstSamples(int64_t count) {
  std::vector<int64_t> samples(static_cast<size_t>(count));
  std::iota(samples.begin(), samples.end(), 100);
  return samples;
}

TEST(Batches, PermutationsDependOnSeedAndEpochAlone) {
  std::vector<int64_t> one = permutation(50, 7, "data.shuffle", 0);
  EXPECT_EQ(one, permutation(50, 7, "data.shuffle", 0));
  EXPECT_NE(one, permutation(50, 8, "data.shuffle", 0));
  EXPECT_NE(one, permutation(50, 7, "data.shuffle", 1));
  EXPECT_EQ(std::set<int64_t>(one.begin(), one.end()).size(), 50u);
}

TEST(Batches, EveryPositionIsEquallyLikely) {
  std::vector<int> hits(10, 0);
  for (uint32_t epoch = 0; epoch < 2000; ++epoch)
    ++hits[static_cast<size_t>(permutation(10, 1, "x", epoch)[3])];
  for (int hit : hits)
    EXPECT_NEAR(hit, 200, 60);
}

TEST(Batches, SplitHoldsBackTheRoundedShare) {
  Split split = splitSamples(104, 0.2, 3);
  EXPECT_EQ(split.validation.size(), 21u);
  EXPECT_EQ(split.training.size(), 83u);
  std::set<int64_t> all(split.training.begin(), split.training.end());
  all.insert(split.validation.begin(), split.validation.end());
  EXPECT_EQ(all.size(), 104u);
  EXPECT_NE(splitSamples(104, 0.2, 4).validation, split.validation);
}

/// Rows of a global batch do not depend on the number of ranks, and all ranks together see it once.
TEST(Batches, RanksShareTheGlobalBatch) {
  auto rows = [](int ranks, int64_t batch) {
    std::vector<int64_t> seen;
    for (int64_t step = 0; step < 3; ++step)
      for (int rank = 0; rank < ranks; ++rank) {
        Batch part =
            BatchPlan::training(firstSamples(10), {rank, ranks, batch}, 5, 2, true, 0).at(step);
        seen.insert(seen.end(), part.samples.begin(), part.samples.end());
      }
    return seen;
  };
  EXPECT_EQ(rows(1, 4), rows(2, 2));
  EXPECT_EQ(rows(1, 4), rows(4, 1));
}

/// Positions count on where an epoch wraps around or is longer than the data.
TEST(Batches, PositionsDoNotDependOnTheNumberOfRanks) {
  for (int64_t step = 0; step < 5; ++step)
    for (int rank = 0; rank < 2; ++rank) {
      Batch part = BatchPlan::training(firstSamples(6), {rank, 2, 2}, 5, 0, true, 5).at(step);
      EXPECT_EQ(part.positions,
                (std::vector<int64_t>{4 * step + 2 * rank, 4 * step + 2 * rank + 1}));
    }
  BatchPlan evaluation = BatchPlan::evaluation(firstSamples(5), {0, 1, 4});
  EXPECT_EQ(evaluation.at(1).positions, (std::vector<int64_t>{4, 4, 4, 4}));
}

TEST(Batches, TheLastTrainingStepWrapsToTheStart) {
  BatchPlan plan = BatchPlan::training(firstSamples(10), {0, 1, 4}, 5, 0, true, 0);
  ASSERT_EQ(plan.steps(), 3);
  Batch first = plan.at(0), last = plan.at(2);
  EXPECT_EQ(last.valid, 4);
  EXPECT_EQ(last.samples[2], first.samples[0]);
  EXPECT_EQ(last.samples[3], first.samples[1]);
  EXPECT_EQ(BatchPlan::training(firstSamples(10), {0, 1, 4}, 5, 0, true, 7).steps(), 7);
}

TEST(Batches, WithoutShuffleTheOrderIsTheFiles) {
  BatchPlan plan = BatchPlan::training(firstSamples(6), {1, 2, 2}, 5, 0, false, 0);
  EXPECT_EQ(plan.at(0).samples, (std::vector<int64_t>{102, 103}));
}

TEST(Batches, EvaluationWeighsEverySampleOnceAtAnyNumberOfRanks) {
  for (int ranks : {1, 2, 3, 5}) {
    std::vector<int64_t> counted;
    for (int rank = 0; rank < ranks; ++rank) {
      BatchPlan plan = BatchPlan::evaluation(firstSamples(7), {rank, ranks, 3});
      for (int64_t step = 0; step < plan.steps(); ++step) {
        Batch batch = plan.at(step);
        ASSERT_EQ(batch.samples.size(), 3u);
        counted.insert(counted.end(), batch.samples.begin(), batch.samples.begin() + batch.valid);
      }
    }
    std::sort(counted.begin(), counted.end());
    EXPECT_EQ(counted, firstSamples(7)) << ranks;
  }
  // Of five ranks with three rows each, the last two have nothing.
  EXPECT_EQ(BatchPlan::evaluation(firstSamples(7), {4, 5, 3}).at(0).valid, 0);
}

/// Pieces of a rank's rows are the rows of as many ranks.
TEST(Batches, PiecesAreRanks) {
  for (int rank : {0, 1}) {
    BatchPlan pieces = BatchPlan::training(firstSamples(25), {rank, 2, 2, 3}, 7, 1, true, 0);
    ASSERT_EQ(pieces.steps(), 3);
    ASSERT_EQ(pieces.batches(), 9);
    for (int64_t number = 0; number < 9; ++number) {
      int virtualRank = rank * 3 + static_cast<int>(number % 3);
      BatchPlan ranks = BatchPlan::training(firstSamples(25), {virtualRank, 6, 2}, 7, 1, true, 0);
      EXPECT_EQ(pieces.at(number).samples, ranks.at(number / 3).samples);
    }
  }
}

TEST(Batches, NoSamplesIsAnError) { EXPECT_THROW(BatchPlan::evaluation({}, {0, 1, 3}), Error); }

} // namespace
} // namespace dlc::rt
