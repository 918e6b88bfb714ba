// normalize and denormalize of images with several channels, by hand.
#include "runtime/data/Dataset.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/Calls.h"
#include "test/unit/data/TestFiles.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>

namespace dlc::rt::test {
namespace {

using artifact::DType;
using Floats = std::vector<float>;

Floats normalized(const CallPointer &call, Sample sample) {
  std::vector<Sample> members = {std::move(sample)};
  applyStep(makeStep(*call), members, Draw({1, 2, 3, 4}), Use::Evaluation);
  return members[0].values;
}

void expectNear(const Floats &values, const std::vector<double> &wanted) {
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(values[i], wanted[i], 1e-6 * std::max(1.0, std::abs(wanted[i]))) << "element " << i;
}

/// Three channels of two pixels.
const Sample three = {{3, 1, 2}, {10, 20, 1, 3, -4, 0}};

CallPointer byLists() {
  return makeCall("normalize", {ints("mean", {14, 2, -2}), floats("std", {4, 0.5, 2})});
}

TEST(Normalization, ListsHaveAFigureForEachChannel) {
  EXPECT_EQ(normalized(byLists(), three), (Floats{-1, 1.5f, -2, 2, -1, 1}));
  // In a volume a channel is all of its slices.
  EXPECT_EQ(normalized(byLists(), {{3, 2, 1, 1}, three.values}), (Floats{-1, 1.5f, -2, 2, -1, 1}));
}

TEST(Normalization, OneFigureIsForAllChannels) {
  EXPECT_EQ(normalized(makeCall("normalize", {floats("mean", {2}), floats("std", {4})}), three),
            (Floats{2, 4.5f, -0.25f, 0.25f, -1.5f, -0.5f}));
  EXPECT_EQ(
      normalized(makeCall("normalize", {floats("mean", {14, 2, -2}), floats("std", {2})}), three),
      (Floats{-2, 3, -0.5f, 0.5f, -1, 1}));
}

TEST(Normalization, ListsOfAnotherLengthAreRefused) {
  EXPECT_EQ(errorOf([] {
              normalized(makeCall("normalize", {floats("mean", {1, 2}), floats("std", {1})}),
                         three);
            }),
            "data step normalize has statistics for 2 channels, the data has 3");
  EXPECT_EQ(errorOf([] {
              normalized(makeCall("normalize", {floats("mean", {1}), floats("std", {1, 2, 3, 4})}),
                         three);
            }),
            "data step normalize has statistics for 4 channels, the data has 3");
}

/// All channels of a sample together: mean 6, variance (36 + 16 + 16 + 36) / 4.
TEST(Normalization, PerImageIsOneFigureForAllChannels) {
  expectNear(
      normalized(makeCall("normalize", {text("mean", "per_image")}), {{2, 1, 2}, {0, 2, 10, 12}}),
      {-6 / std::sqrt(26), -4 / std::sqrt(26), 4 / std::sqrt(26), 6 / std::sqrt(26)});
}

/// Of 0..9 in both channels together, 25 % is 2.25 and 75 % is 6.75.
TEST(Normalization, PercentilesAreOfAllChannels) {
  expectNear(normalized(makeCall("normalize", {floats("percentile", {25, 75})}),
                        {{2, 1, 5}, {9, 0, 4, 2, 7, 1, 3, 5, 8, 6}}),
             {1.5, -0.5, 1.75 / 4.5, -0.25 / 4.5, 4.75 / 4.5, -1.25 / 4.5, 0.75 / 4.5, 2.75 / 4.5,
              5.75 / 4.5, 3.75 / 4.5});
}

//===- Of files -------------------------------------------------------------------------------===//

/// Three samples of three channels and two pixels. Of the first and the last one channel 0 has mean
/// 4 and variance (9 + 1 + 1 + 9) / 4 = 5, channel 1 is constant, channel 2 has mean 0 and
/// deviation 2.
class NormalizedFiles : public ::testing::Test {
protected:
  static constexpr float pixels[3][3][2] = {
      {{1, 3}, {10, 10}, {-2, 2}}, {{90, 70}, {10, 10}, {50, 10}}, {{5, 7}, {10, 10}, {2, -2}}};

  /// With channels behind the pixels, or before them.
  std::string write(bool channelsLast) {
    Floats values;
    for (const auto &sample : pixels)
      for (size_t i = 0; i < 6; ++i)
        values.push_back(channelsLast ? sample[i % 3][i / 3] : sample[i / 2][i % 2]);
    return writeFile(
        directory / (channelsLast ? "last.npy" : "first.npy"),
        npyBytes("<f4", channelsLast ? "3, 1, 2, 3" : "3, 3, 1, 2", bytesOfVector(values)));
  }

  void addChain(const std::string &value, CallPointer call) {
    pipeline.chains.push_back(std::make_unique<artifact::DataChainT>());
    pipeline.chains.back()->inputs = pipeline.chains.back()->outputs = {value};
    pipeline.chains.back()->steps.push_back(std::move(call));
  }

  Dataset open(const std::string &axes, CallPointer normalize) {
    pipeline = {};
    pipeline.sources.push_back(std::make_unique<artifact::DataSourceT>());
    pipeline.sources[0]->name = "x";
    pipeline.sources[0]->axes = axes;
    addChain("x", std::move(normalize));
    addChain("y", makeCall("denormalize", {text("source", "x")}));
    return Dataset(pipeline, {{"x", DType::F32, {1, 3, 1, 2}, {}, true}}, {"x"},
                   {{"x", write(axes == "NYXC")}});
  }

  Floats restored(const Dataset &dataset, int64_t index, size_t channels, Floats values) {
    dataset.restoreUnits("y", index, channels, values);
    return values;
  }

  TemporaryDirectory directory;
  artifact::DataPipelineT pipeline;
};

/// Two rows of bytes: of mean 4 and deviation 4, of mean 15 and variance (3 * 25 + 225) / 4. What
/// is kept of them when they are read again is their own, and not that of their parts.
TEST_F(NormalizedFiles, StatisticsOfASampleAreItsOwn) {
  writeFile(directory / "x.npy",
            npyBytes("|u1", "2, 1, 1, 4", bytesOfVector<uint8_t>({0, 0, 8, 8, 10, 10, 10, 30})));
  auto open = [&](int64_t columns) {
    return Dataset(pipeline, {{"x", DType::F32, {1, 1, 1, columns}, {}}}, {"x"},
                   {{"x", directory / "x.npy"}});
  };
  addChain("x", makeCall("normalize", {text("mean", "per_image")}));
  Dataset whole = open(4);
  addChain("x", makeCall("random_crop", {ints("size", {1, 2}), ints("padding", {0})}));
  std::swap(pipeline.chains[0], pipeline.chains[1]);
  Dataset part = open(2);
  float root = std::sqrt(75.0f);
  for (int pass = 0; pass < 2; ++pass) {
    expectNear(whole.sample(1, {})[0].values, {-5 / root, -5 / root, -5 / root, 15 / root});
    expectNear(whole.sample(0, {})[0].values, {-1, -1, 1, 1});
  }
  std::set<Floats> seen; // of 10, 10 and of 10, 30
  for (int64_t place = 0; place < 40; ++place)
    seen.insert(part.sample({1, place}, {true, 1, 0})[0].values);
  ASSERT_EQ(seen.size(), 2u);
  expectNear(*seen.begin(), {-1, 1});
  EXPECT_EQ(*seen.rbegin(), (Floats{0, 0}));
}

TEST_F(NormalizedFiles, StatisticsAreOfEachChannel) {
  for (const char *axes : {"NCYX", "NYXC"}) {
    Dataset dataset = open(axes, makeCall("normalize", {text("mean", "dataset")}));
    dataset.measureStatistics({0, 2});
    EXPECT_EQ(dataset.statistics().at("data.x.mean"), (Floats{4, 10, 0})) << axes;
    EXPECT_EQ(dataset.statistics().at("data.x.std"), (Floats{std::sqrt(5.0f), 0, 2})) << axes;
    expectNear(dataset.sample(0, {})[0].values,
               {-3 / std::sqrt(5), -1 / std::sqrt(5), 0, 0, -1, 1});
    expectNear(dataset.sample(1, {})[0].values,
               {86 / std::sqrt(5), 66 / std::sqrt(5), 0, 0, 25, 5});
  }
}

TEST_F(NormalizedFiles, StatisticsOfWeightsAreOfEachChannel) {
  Dataset dataset = open("NYXC", makeCall("normalize", {text("mean", "dataset")}));
  dataset.setStatistics({{"data.x.mean", {1, 2, 3}}, {"data.x.std", {8, 4, 5}}});
  expectNear(dataset.sample(0, {})[0].values, {0, 0.25, 2, 2, -1, -0.2});
}

/// A prediction may have other extents; its channels are those of the source.
TEST_F(NormalizedFiles, DenormalizesEachChannelOfAPrediction) {
  Dataset given = open("NCYX", byLists());
  EXPECT_EQ(restored(given, 0, 3, {-1, 1.5f, -2, 2, -1, 1}), three.values);
  EXPECT_EQ(restored(given, 2, 3, {0, 1, 2, 0, 1, 2, 0, 1, 2}),
            (Floats{14, 18, 22, 2, 2.5f, 3, -2, 0, 2}));

  Dataset measured = open("NYXC", makeCall("normalize", {text("mean", "dataset")}));
  measured.measureStatistics({0, 2});
  double root = std::sqrt(5);
  expectNear(restored(measured, 1, 3, {0, 1, -1, 0, 1, -1, 0, 1, -1}),
             {4, 4 + root, 4 - root, 10, 10, 10, 0, 2, -2});
  EXPECT_EQ(errorOf([&] { restored(measured, 0, 2, {1, 2}); }),
            "data step normalize has statistics for 3 channels, the data has 2");
}

/// Of the sample that was predicted: 1, 3, 10, 10, -2, 2 have mean 4 and deviation sqrt(122 / 6),
/// 5, 7, 10, 10, 2, -2 mean 16 / 3. From 0 to 100 % they reach from -2 to 10.
TEST_F(NormalizedFiles, DenormalizesByTheFiguresOfTheImage) {
  Dataset perImage = open("NYXC", makeCall("normalize", {text("mean", "per_image")}));
  double deviation = std::sqrt(122.0 / 6);
  expectNear(restored(perImage, 0, 3, {0, 1, -1}), {4, 4 + deviation, 4 - deviation});
  expectNear(restored(perImage, 2, 2, {0, 0}), {16.0 / 3, 16.0 / 3});

  Dataset percentiles = open("NYXC", makeCall("normalize", {floats("percentile", {0, 100})}));
  expectNear(restored(percentiles, 0, 3, {0, 0.5f, 1}), {-2, 4, 10});
  expectNear(restored(percentiles, 1, 3, {0, 0.5f, 1}), {10, 50, 90});
}

} // namespace
} // namespace dlc::rt::test
