#include "runtime/data/steps/Patches.h"
#include "runtime/data/Dataset.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/Calls.h"
#include "test/unit/data/TestFiles.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace dlc::rt::test {
namespace {

TEST(Patches, TheLastShareOfTheAxisOfMostPatchesIsApart) {
  DividedBox parts = divideBox({{0, 0, 0}, {4, 10, 6}}, 0.25, Extents{2, 2, 2}); // 2.5 rounds to 3
  EXPECT_FALSE(parts.isRaised);
  EXPECT_EQ(parts.training.first, (Extents{0, 0, 0}));
  EXPECT_EQ(parts.training.size, (Extents{4, 7, 6}));
  EXPECT_EQ(parts.validation.first, (Extents{0, 7, 0}));
  EXPECT_EQ(parts.validation.size, (Extents{4, 3, 6}));
}

TEST(Patches, AtLeastOnePatchIsApart) {
  // 37 / 16 is more than 118 / 64 and 108 / 64.
  DividedBox parts = divideBox({{0, 0, 0}, {37, 118, 108}}, 0.1, Extents{16, 64, 64});
  EXPECT_TRUE(parts.isRaised);
  EXPECT_EQ(parts.training.size, (Extents{21, 118, 108}));
  EXPECT_EQ(parts.validation.first, (Extents{21, 0, 0}));
  EXPECT_EQ(parts.validation.size, (Extents{16, 118, 108}));
  // 414 / 64 is less than 576 / 64, whose tenth is 58.
  parts = divideBox({{0, 0, 0}, {30, 414, 576}}, 0.1, Extents{16, 64, 64});
  EXPECT_EQ(parts.validation.size, (Extents{30, 414, 64}));
  // Of axes of as many patches the longest one, then the first one.
  EXPECT_EQ(divideBox({{0, 0}, {4, 6}}, 0.5, Extents{2, 3}).training.size, (Extents{4, 3}));
  EXPECT_EQ(divideBox({{0, 0}, {6, 6}}, 0.5, Extents{3, 3}).training.size, (Extents{3, 6}));
  // There is no more than all of it.
  EXPECT_EQ(divideBox({{0}, {5}}, 0.1, Extents{8}).validation.size, (Extents{5}));
}

TEST(Patches, AnEpochIsTheVolumeOverThePatch) {
  Box box{{0, 0}, {5, 7}};
  EXPECT_EQ(patchesOf(box, Extents{2, 2}), 8); // 35 / 4
  EXPECT_EQ(patchesOf(box, Extents{5, 7}), 1);
  EXPECT_EQ(patchesOf(box, Extents{6, 1}), 0);
}

TEST(Patches, TheGridStandsSideBySide) {
  Box box{{1, 0}, {5, 7}};
  EXPECT_EQ(gridCells(box, Extents{2, 3}), 4);
  EXPECT_EQ(gridCells(box, Extents{6, 3}), 0);
  EXPECT_EQ(gridCell(box, Extents{2, 3}, 0).first, (Extents{1, 0}));
  EXPECT_EQ(gridCell(box, Extents{2, 3}, 1).first, (Extents{1, 3}));
  EXPECT_EQ(gridCell(box, Extents{2, 3}, 3).first, (Extents{3, 3}));
}

TEST(Patches, EveryPlaceOfTheBoxIsDrawn) {
  std::set<Extents> seen;
  for (uint32_t number = 0; number < 200; ++number)
    seen.insert(
        drawPatch({{1, 2}, {3, 2}}, Extents{2, 1}, Draw(philox(1, {number, 0, 0, 0}))).first);
  EXPECT_EQ(seen, (std::set<Extents>{{1, 2}, {1, 3}, {2, 2}, {2, 3}}));
}

/// A volume of 4 x 6 elements that tell their place, and its chain.
class PatchesOfFiles : public ::testing::Test {
protected:
  PatchesOfFiles() {
    pipeline.sources.push_back(std::make_unique<artifact::DataSourceT>());
    pipeline.sources[0]->name = "x";
    pipeline.sources[0]->axes = "YX";
    pipeline.chains.push_back(std::make_unique<artifact::DataChainT>());
    pipeline.chains[0]->inputs = pipeline.chains[0]->outputs = {"x"};
  }
  std::string write(const std::string &name, int rows, int columns) {
    std::vector<uint8_t> values(static_cast<size_t>(rows * columns));
    std::iota(values.begin(), values.end(), 0);
    return writeFile(directory / name,
                     npyBytes("|u1", std::to_string(rows) + ", " + std::to_string(columns),
                              bytesOfVector(values)));
  }
  void step(CallPointer call) { pipeline.chains[0]->steps.push_back(std::move(call)); }
  Dataset open(int rows, int columns, bool isPrediction = false) {
    return Dataset(pipeline, {{"x", artifact::DType::F32, {1, 1, rows, columns}, {}, true}}, {"x"},
                   {{"x", write("x.npy", 4, 6)}}, isPrediction);
  }

  TemporaryDirectory directory;
  artifact::DataPipelineT pipeline;
};

using Floats = std::vector<float>;

TEST_F(PatchesOfFiles, TrainingTakesRandomPlacesByPosition) {
  step(makeCall("patches", {ints("size", {2, 3})}));
  Dataset dataset = open(2, 3);
  EXPECT_EQ(dataset.split(0, 1).training, (std::vector<int64_t>{0, 0, 0, 0}));
  std::set<float> corners;
  for (int64_t position = 0; position < 300; ++position) {
    std::vector<Sample> sample = dataset.sample({0, position}, {true, 1, 0});
    float corner = sample[0].values[0];
    EXPECT_EQ(sample[0].shape, (Extents{1, 2, 3}));
    EXPECT_EQ(sample[0].values,
              (Floats{corner, corner + 1, corner + 2, corner + 6, corner + 7, corner + 8}));
    corners.insert(corner);
    EXPECT_EQ(dataset.sample({0, position}, {true, 1, 0})[0].values, sample[0].values);
  }
  EXPECT_EQ(corners, (std::set<float>{0, 1, 2, 3, 6, 7, 8, 9, 12, 13, 14, 15}));
}

TEST_F(PatchesOfFiles, EvaluationTakesTheGridAndPredictionTheWhole) {
  step(makeCall("patches", {ints("size", {2, 3})}));
  Dataset dataset = open(2, 3);
  EXPECT_EQ(dataset.evaluationSamples(), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(dataset.sample(0, {})[0].values[0], 0);
  EXPECT_EQ(dataset.sample(1, {})[0].values[0], 3);
  EXPECT_EQ(dataset.sample(3, {})[0].values, (Floats{15, 16, 17, 21, 22, 23}));
  Dataset whole = open(4, 6, true);
  EXPECT_EQ(whole.samples(), 1);
  EXPECT_EQ(whole.sample(0, {})[0].values.size(), 24u);
}

/// Columns 4 and 5 are for validation: no training patch has them, no other is in the grid.
TEST_F(PatchesOfFiles, ValidationHasAPartOfItsOwn) {
  step(makeCall("patches", {ints("size", {2})}));
  Dataset dataset = open(2, 2);
  Split split = dataset.split(0.3, 1);
  EXPECT_EQ(split.training.size(), 4u);
  EXPECT_EQ(split.validation, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(dataset.sample(0, {})[0].values, (Floats{4, 5, 10, 11}));
  EXPECT_EQ(dataset.sample(1, {})[0].values, (Floats{16, 17, 22, 23}));
  for (int64_t position = 0; position < 100; ++position) {
    std::vector<Sample> sample = dataset.sample({0, position}, {true, 1, 0});
    for (float value : sample[0].values)
      EXPECT_LT(std::fmod(value, 6), 4);
  }
}

TEST_F(PatchesOfFiles, StatisticsAreOfTheWholeTrainingPart) {
  step(makeCall("normalize", {text("mean", "dataset")}));
  step(makeCall("patches", {ints("size", {3, 2})}));
  Dataset dataset = open(3, 2);
  dataset.measureStatistics(dataset.split(0.34, 1).training);
  EXPECT_FLOAT_EQ(dataset.statistics().at("data.x.mean")[0], 10.5f); // 0..3, 6..9, 12..15, 18..21
  EXPECT_FLOAT_EQ(dataset.sample(0, {})[0].values[0],
                  (4 - 10.5f) / (dataset.statistics().at("data.x.std")[0] + 1e-6f));
}

TEST_F(PatchesOfFiles, SharesThatHoldNoPatchAreRefused) {
  step(makeCall("patches", {ints("size", {2, 3})}));
  Dataset dataset = open(2, 3);
  std::string message = errorOf([&] { dataset.split(0.7, 1); });
  EXPECT_NE(message.find("x.npy': sample 0 (4 x 6) with validation = 0.7 leaves 4 x 2 for "
                         "training, which holds no patch of 2 x 3: set another share, take "
                         "smaller patches, or give --val"),
            std::string::npos)
      << message;
}

TEST_F(PatchesOfFiles, ASmallShareIsRaisedToAPatch) {
  step(makeCall("patches", {ints("size", {2, 3})}));
  Dataset dataset = open(2, 3);
  EXPECT_EQ(dataset.split(0.3, 1).validation, (std::vector<int64_t>{0, 1}));
  ASSERT_EQ(dataset.notices().size(), 1u);
  EXPECT_EQ(dataset.notices()[0],
            "validation = 0.3 of 4 x 6 is less than a patch of 2 x 3: 4 x 3 is kept apart");
}

TEST_F(PatchesOfFiles, VolumesSmallerThanAPatchAreRefused) {
  step(makeCall("patches", {ints("size", {5, 3})}));
  EXPECT_NE(errorOf([&] { open(5, 3); })
                .find("x.npy' (4 x 6): data step patches takes 5 x 3 of a volume that is only "
                      "4 x 6: take smaller patches or larger volumes"),
            std::string::npos);
}

/// Image and mask are cut at one place; a label of the volume comes with each of its patches.
TEST_F(PatchesOfFiles, AllInputsOfAChainAreCutAlike) {
  step(makeCall("patches", {ints("size", {2})}));
  pipeline.chains[0]->inputs = pipeline.chains[0]->outputs = {"x", "mask"};
  pipeline.sources.push_back(std::make_unique<artifact::DataSourceT>());
  pipeline.sources[1]->name = "mask";
  pipeline.sources[1]->axes = "YX";
  std::vector<InputSpec> inputs = {{"x", artifact::DType::F32, {1, 1, 2, 2}, {}, true},
                                   {"mask", artifact::DType::F32, {1, 1, 2, 2}, {}, false},
                                   {"label", artifact::DType::I32, {1}, {}, false}};
  writeFile(directory / "label.npy", npyBytes("|u1", "1,", "\5"));
  auto dataset = [&](const std::string &mask) {
    return Dataset(
        pipeline, inputs, {"x", "mask", "label"},
        {{"x", write("x.npy", 4, 6)}, {"mask", mask}, {"label", directory / "label.npy"}});
  };
  Dataset same = dataset(write("same.npy", 4, 6));
  for (int64_t position = 0; position < 20; ++position) {
    std::vector<Sample> sample = same.sample({0, position}, {true, 1, 0});
    EXPECT_EQ(sample[0].values, sample[1].values);
    EXPECT_EQ(sample[2].values, (Floats{5}));
  }
  std::string other = write("other.npy", 4, 5);
  EXPECT_NE(errorOf([&] { dataset(other); }).find("patches are cut alike from volumes of one size"),
            std::string::npos);
}

/// Two volumes of one file, or of two sizes in a directory, count by their own grids.
TEST_F(PatchesOfFiles, GridsOfSeveralVolumesFollowEachOther) {
  step(makeCall("patches", {ints("size", {2})}));
  std::vector<uint8_t> values(2 * 2 * 4);
  std::iota(values.begin(), values.end(), 0);
  writeFile(directory / "two.npy", npyBytes("|u1", "2, 2, 4", bytesOfVector(values)));
  Dataset dataset(pipeline, {{"x", artifact::DType::F32, {1, 1, 2, 2}, {}, true}}, {"x"},
                  {{"x", directory / "two.npy"}});
  EXPECT_EQ(dataset.samples(), 2);
  EXPECT_EQ(dataset.split(0, 1).training, (std::vector<int64_t>{0, 0, 1, 1}));
  EXPECT_EQ(dataset.evaluationSamples().size(), 4u);
  EXPECT_EQ(dataset.sample(1, {})[0].values, (Floats{2, 3, 6, 7}));
  EXPECT_EQ(dataset.sample(2, {})[0].values, (Floats{8, 9, 12, 13}));
}

} // namespace
} // namespace dlc::rt::test
