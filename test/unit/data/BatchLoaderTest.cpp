#include "runtime/data/BatchLoader.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

namespace dlc::rt::test {
namespace {

class BatchLoaderTest : public ::testing::Test {
protected:
  BatchLoaderTest()
      : destinations{
            InputDestination{TensorWriter(artifact::DType::F32, {2, 4}, Layout::rowMajor(2)),
                             {std::as_writable_bytes(std::span(memory[0])),
                              std::as_writable_bytes(std::span(memory[1]))}}} {
    std::vector<float> values(5 * 4);
    std::iota(values.begin(), values.end(), 0.0f);
    writeFile(directory / "x.npy", npyBytes("<f4", "5, 4", bytesOfVector(values)));
  }
  Dataset open(std::vector<int64_t> shape) {
    return Dataset({}, {{"x", artifact::DType::F32, std::move(shape), {}, true}}, {"x"},
                   {{"x", directory / "x.npy"}});
  }

  TemporaryDirectory directory;
  std::array<std::vector<float>, 2> memory = {std::vector<float>(8), std::vector<float>(8)};
  Destinations destinations;
};

TEST_F(BatchLoaderTest, FillsTheSlotsInTurn) {
  Dataset dataset = open({2, 4});
  BatchLoader loader(dataset, BatchPlan::evaluation({0, 1, 2, 3, 4}, {0, 1, 2}), 0, {},
                     destinations);
  for (unsigned step = 0; step < 3; ++step) {
    BatchLoader::Loaded loaded = loader.acquire();
    EXPECT_EQ(loaded.slot, step % 2);
    EXPECT_EQ(memory[loaded.slot][0], 8.0f * static_cast<float>(step));
    EXPECT_EQ(loaded.batch.valid, step == 2 ? 1 : 2);
    loader.release();
  }
  EXPECT_EQ(memory[0][4], 16.0f); // the last batch repeats its sample
}

/// The end of the last page of a mapped file that is cut reads as zeros.
TEST_F(BatchLoaderTest, AFileThatIsCutEndsTheBatches) {
  Dataset dataset = open({2, 4});
  std::filesystem::resize_file(directory / "x.npy",
                               std::filesystem::file_size(directory / "x.npy") - 1);
  BatchLoader loader(dataset, BatchPlan::evaluation({0, 1, 2, 3, 4}, {0, 1, 2}), 0, {},
                     destinations);
  EXPECT_EQ(errorOf([&] { loader.acquire(); }),
            "'" + directory / "x.npy" +
                "' became shorter while it was read, or its disk failed; put it back as it was");
}

TEST_F(BatchLoaderTest, StartsInTheMiddleAndStopsEarly) {
  Dataset dataset = open({2, 4});
  BatchLoader loader(dataset, BatchPlan::evaluation({0, 1, 2, 3, 4}, {0, 1, 2}), 1, {},
                     destinations);
  EXPECT_EQ(memory[loader.acquire().slot][0], 8.0f);
}

/// 59 batches of 29 rows, of which a thread takes several, by teams of several sizes.
TEST_F(BatchLoaderTest, ManyThreadsFillWhatOneDoes) {
  constexpr int64_t samples = 31, rows = 29, rowElements = 50;
  std::vector<float> values(samples * rowElements);
  std::iota(values.begin(), values.end(), 0.0f);
  writeFile(directory / "x.npy", npyBytes("<f4", "31, 50", bytesOfVector(values)));
  Dataset dataset = open({rows, rowElements});
  std::array<std::vector<float>, 2> slots = {std::vector<float>(rows * rowElements),
                                             std::vector<float>(rows * rowElements)};
  Destinations to{InputDestination{
      TensorWriter(artifact::DType::F32, {rows, rowElements}, Layout::rowMajor(2)),
      {std::as_writable_bytes(std::span(slots[0])), std::as_writable_bytes(std::span(slots[1]))}}};
  std::vector<int64_t> all(samples);
  std::iota(all.begin(), all.end(), 0);
  BatchPlan plan = BatchPlan::training(all, {0, 1, rows}, 3, 1, true, 60);
  auto batches = [&](unsigned threads) {
    BatchLoader loader(dataset, plan, 1, {}, to, threads);
    std::vector<std::vector<float>> seen;
    for (int64_t batch = 1; batch < plan.batches(); ++batch) { // one is kept while the next comes
      seen.push_back(slots[loader.acquire().slot]);
      if (batch > 1)
        loader.release();
    }
    EXPECT_EQ(loader.work().samples, 59 * rows);
    return seen;
  };
  std::vector<std::vector<float>> wanted = batches(1);
  EXPECT_EQ(wanted.size(), 59u);
  EXPECT_NE(wanted[0], wanted[1]);
  for (unsigned threads : {2u, 5u, 16u})
    EXPECT_EQ(batches(threads), wanted) << threads;
}

/// Samples 20 and 23 are no numbers: the first of them in the order of the pass is told, after all
/// batches before, wherever in what a thread takes it is.
TEST_F(BatchLoaderTest, ManyThreadsFailAsOneDoes) {
  std::vector<float> values(32 * 4, 1);
  values[20 * 4 + 2] = values[23 * 4] = std::numeric_limits<float>::quiet_NaN();
  writeFile(directory / "x.npy", npyBytes("<f4", "32, 4", bytesOfVector(values)));
  Dataset dataset = open({16, 4});
  std::array<std::vector<float>, 2> slots = {std::vector<float>(64), std::vector<float>(64)};
  Destinations to{InputDestination{
      TensorWriter(artifact::DType::F32, {16, 4}, Layout::rowMajor(2)),
      {std::as_writable_bytes(std::span(slots[0])), std::as_writable_bytes(std::span(slots[1]))}}};
  std::vector<int64_t> order(32);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[20], order[23]);
  for (unsigned threads : {1u, 2u, 7u})
    for (int repeat = 0; repeat < 50; ++repeat) {
      BatchLoader loader(dataset, BatchPlan::evaluation(order, {0, 1, 16}), 0, {}, to, threads);
      loader.acquire();
      std::string error = errorOf([&] { loader.acquire(); });
      EXPECT_NE(error.find("sample 23 "), std::string::npos) << error;
    }
}

} // namespace
} // namespace dlc::rt::test
