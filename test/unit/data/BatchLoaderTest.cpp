#include "runtime/data/BatchLoader.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
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

} // namespace
} // namespace dlc::rt::test
