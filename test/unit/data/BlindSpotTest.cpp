#include "runtime/data/steps/BlindSpot.h"
#include "runtime/data/Dataset.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/Calls.h"
#include "test/unit/data/TestFiles.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace dlc::rt::test {
namespace {

using Floats = std::vector<float>;

BlindSpot spots(double percent, SpotReplacement replacement = SpotReplacement::UniformWithCenter,
                int64_t radius = 5, double sigma = 1) {
  return {percent, radius, replacement, sigma, false, {}, 'X'};
}

Sample counted(Extents shape) {
  Sample sample{std::move(shape), {}};
  int64_t elements = 1;
  for (int64_t extent : sample.shape)
    elements *= extent;
  sample.values.resize(static_cast<size_t>(elements));
  std::iota(sample.values.begin(), sample.values.end(), 0.0f);
  return sample;
}

std::array<Sample, 3> made(const BlindSpot &step, const Sample &sample, uint32_t number) {
  std::array<Sample, 3> made =
      makeBlindSpots(step, sample, Draw(philox(2, {number, 0, 0, 0})), true);
  std::ranges::for_each(made, &Sample::settle);
  return made;
}

float sumOf(const Floats &values) { return std::accumulate(values.begin(), values.end(), 0.0f); }

/// Elements as files hold them are hidden as the same numbers are.
template <typename T> void expectHiddenAlike(const BlindSpot &step, T last) {
  Sample numbers = counted({2, 6, 8});
  std::vector<T> elements;
  for (float &value : numbers.values) {
    elements.push_back(static_cast<T>(last - static_cast<T>(2 * value)));
    value = static_cast<float>(elements.back());
  }
  Sample unread{numbers.shape, {}};
  unread.unread = View::of(std::move(elements), numbers.shape);
  std::array<Sample, 3> got = made(step, unread, 5), wanted = made(step, numbers, 5);
  EXPECT_NE(got[0].values, numbers.values);
  EXPECT_EQ(got[1].values, numbers.values);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(got[i].values, wanted[i].values) << i;
}

/// Of an image that has spots, as of any other: each place is replaced once.
TEST(BlindSpots, HideWhatIsHidden) {
  Draw draw(philox(2, {3, 0, 0, 0}));
  BlindSpot step = spots(30, SpotReplacement::Mean, 1);
  Sample once = makeBlindSpots(step, counted({2, 8, 8}), draw, true)[0], numbers = once;
  ASSERT_FALSE(once.view().spots.empty());
  numbers.settle();
  std::array<Sample, 3> twice = made(step, once, 4), wanted = made(step, numbers, 4);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(twice[i].values, wanted[i].values) << i;
  Sample image = makeBlindSpots(step, once, draw, true)[0];
  std::set<View::Indices> places;
  for (const View::Spot &spot : image.view().spots)
    EXPECT_TRUE(places.insert(spot.at).second);
  EXPECT_FALSE(places.empty());
}

/// Statistics of a file's sample are not those of what is hidden.
TEST(BlindSpots, AreNoWholeSample) {
  Sample whole = counted({1, 8, 8});
  whole.view().isWhole = true;
  std::array<Sample, 3> made = makeBlindSpots(spots(10), whole, Draw(philox(2, {})), true);
  EXPECT_FALSE(made[0].view().isWhole);
  EXPECT_TRUE(made[1].view().isWhole);
  EXPECT_FALSE(made[2].view().isWhole);
}

TEST(BlindSpots, ElementsThatAreUnreadAreHiddenAsNumbersAre) {
  for (auto replacement :
       {SpotReplacement::Uniform, SpotReplacement::UniformWithCenter, SpotReplacement::Normal,
        SpotReplacement::Mean, SpotReplacement::Median}) {
    BlindSpot step = spots(12.5);
    step.replacement = replacement;
    SCOPED_TRACE(static_cast<int>(replacement));
    expectHiddenAlike<uint8_t>(step, 250);
    expectHiddenAlike<uint16_t>(step, 60001);
    step.structure = {1, 1, 1};
    expectHiddenAlike<uint8_t>(step, 250);
  }
}

TEST(BlindSpots, BoxesHoldOneSpotEach) {
  EXPECT_DOUBLE_EQ(boxEdge(spots(12.5), 1), 8);
  EXPECT_NEAR(boxEdge(spots(0.198), 2), 22.473, 1e-3); // the root of 505.05
  EXPECT_NEAR(boxEdge(spots(0.198), 3), 7.964, 1e-3);  // its third root
  EXPECT_EQ(boxEdge(spots(100.0 / 64), 3), 4); // no less, or a plane would have one box more
  BlindSpot compat = spots(0.198);
  compat.squareRootBoxes = true;
  EXPECT_EQ(boxEdge(compat, 2), 22);
  EXPECT_EQ(boxEdge(compat, 3), 22);
  EXPECT_EQ(boxEdge(spots(100), 3), 1);
}

TEST(BlindSpots, OnePixelOfEachBoxIsASpot) {
  std::set<Floats> masks;
  for (uint32_t number = 0; number < 100; ++number) {
    auto [image, target, mask] = made(spots(25), counted({1, 4, 4}), number);
    for (size_t box : {0u, 2u, 8u, 10u})
      EXPECT_EQ(
          mask.values[box] + mask.values[box + 1] + mask.values[box + 4] + mask.values[box + 5], 1);
    EXPECT_EQ(target.values, counted({1, 4, 4}).values);
    for (size_t i = 0; i < 16; ++i)
      if (mask.values[i] == 0)
        EXPECT_EQ(image.values[i], target.values[i]);
    EXPECT_TRUE(mask.isCategorical);
    masks.insert(mask.values);
  }
  EXPECT_GT(masks.size(), 50u); // of 256
}

/// Of all pixels of so many samples, in percent.
double shareOfSpots(const BlindSpot &step, const Extents &shape, uint32_t samples) {
  double share = 0;
  for (uint32_t number = 0; number < samples; ++number) {
    Floats mask = made(step, counted(shape), number)[2].values;
    share += 100.0 * sumOf(mask) / static_cast<double>(mask.size()) / samples;
  }
  return share;
}

TEST(BlindSpots, TheShareOfSpotsIsTheStatedOne) {
  for (double percent : {0.198, 0.5, 1.6, 5.0, 10.0, 15.0, 20.0, 30.0, 50.0}) {
    EXPECT_NEAR(shareOfSpots(spots(percent), {1, 96, 110}, 60), percent, 0.02 * percent);
    EXPECT_NEAR(shareOfSpots(spots(percent), {1, 16, 32, 24}, 60), percent, 0.02 * percent);
  }
  // Of compat, that of boxes whose edge is rounded: 2 instead of 2.24, in volumes, too.
  BlindSpot compat = spots(20);
  compat.squareRootBoxes = true;
  EXPECT_EQ(shareOfSpots(compat, {1, 96, 110}, 5), 25);
  EXPECT_EQ(shareOfSpots(compat, {1, 16, 32, 24}, 5), 12.5);
}

/// Also those that two boxes share.
TEST(BlindSpots, AllPixelsAreSpotsEquallyOften) {
  Floats hits(7 * 9);
  for (uint32_t number = 0; number < 4000; ++number) {
    Floats mask = made(spots(20), counted({1, 7, 9}), number)[2].values;
    for (size_t i = 0; i < hits.size(); ++i)
      hits[i] += mask[i] / 4000;
  }
  for (size_t i = 0; i < hits.size(); ++i)
    EXPECT_NEAR(hits[i], 0.2, 0.03) << i;
}

TEST(BlindSpots, BoxesOfVolumesAreCubes) {
  auto [image, target, mask] = made(spots(12.5), counted({1, 2, 4, 2}), 0);
  EXPECT_EQ(sumOf(mask.values), 2);
}

/// Where the spot of 9 x 9 came from, as an offset, for a radius of 1.
std::set<std::pair<int, int>> origins(SpotReplacement replacement) {
  std::set<std::pair<int, int>> seen;
  for (uint32_t number = 0; number < 400; ++number) {
    auto [image, target, mask] = made(spots(100.0 / 9, replacement, 1), counted({1, 9, 9}), number);
    for (int i = 0; i < 81; ++i)
      if (mask.values[static_cast<size_t>(i)] == 1) {
        auto from = static_cast<int>(image.values[static_cast<size_t>(i)]);
        seen.insert({from / 9 - i / 9, from % 9 - i % 9});
      }
  }
  return seen;
}

TEST(BlindSpots, NeighboursAreWithinTheRadius) {
  std::set<std::pair<int, int>> all;
  for (int row : {-1, 0, 1})
    for (int column : {-1, 0, 1})
      all.insert({row, column});
  EXPECT_EQ(origins(SpotReplacement::UniformWithCenter), all);
  all.erase({0, 0});
  EXPECT_EQ(origins(SpotReplacement::Uniform), all);
}

TEST(BlindSpots, NeighboursAreAllEquallyLikely) {
  // 1 x 4 and a radius of 3: without the spot, three others.
  std::map<float, int> hits;
  for (uint32_t number = 0; number < 4000; ++number) {
    auto [image, target, mask] =
        made(spots(25, SpotReplacement::Uniform, 3), counted({1, 4}), number);
    ++hits[4 * target.values[static_cast<size_t>(
                   std::max_element(mask.values.begin(), mask.values.end()) -
                   mask.values.begin())] +
           image.values[static_cast<size_t>(
               std::max_element(mask.values.begin(), mask.values.end()) - mask.values.begin())]];
  }
  EXPECT_EQ(hits.size(), 12u);
  for (auto [pair, count] : hits)
    EXPECT_NEAR(count, 4000 / 12, 80) << pair;
}

TEST(BlindSpots, MeanAndMedianAreOfTheNeighbours) {
  Sample sample{{1, 3, 3}, {0, 0, 0, 0, 9, 0, 0, 8, 16}}; // 33 in all, 5 others are 0
  for (uint32_t number = 0; number < 50; ++number) {
    auto [image, target, mask] = made(spots(100.0 / 9, SpotReplacement::Mean), sample, number);
    auto [middle, same, where] = made(spots(100.0 / 9, SpotReplacement::Median), sample, number);
    EXPECT_EQ(mask.values, where.values);
    for (size_t i = 0; i < 9; ++i)
      if (mask.values[i] == 1) {
        EXPECT_FLOAT_EQ(image.values[i], (33 - sample.values[i]) / 8);
        EXPECT_EQ(middle.values[i], 0);
      }
  }
  // Two neighbours: their mean.
  Sample row{{1, 1, 3}, {1, 5, 8}};
  auto [image, target, mask] = made(spots(100, SpotReplacement::Median, 1), row, 0);
  EXPECT_EQ(image.values, (Floats{5, 4.5f, 5}));
}

/// Of a volume of 3 x 3 x 3, in which every pixel is a spot.
TEST(BlindSpots, NeighboursInVolumesAreWithinTheRadius) {
  std::set<float> ofFirst, ofCentre, ofLast, others;
  for (uint32_t number = 0; number < 400; ++number) {
    Floats image =
        made(spots(100, SpotReplacement::Uniform, 1), counted({1, 3, 3, 3}), number)[0].values;
    ofFirst.insert(image[0]);
    ofCentre.insert(image[13]);
    ofLast.insert(image[26]);
  }
  EXPECT_EQ(ofFirst, (std::set<float>{1, 3, 4, 9, 10, 12, 13}));
  EXPECT_EQ(ofLast, (std::set<float>{13, 14, 16, 17, 22, 23, 25}));
  for (float i = 0; i < 27; ++i)
    others.insert(i);
  others.erase(13);
  EXPECT_EQ(ofCentre, others);
}

TEST(BlindSpots, MeansInVolumesAreOfTheNeighboursWithinTheRadius) {
  // The centre is near all others, the last corner near the eight pixels around it.
  Sample sample{{1, 3, 3, 3}, Floats(27, 0)};
  sample.values[13] = 1;
  sample.values[26] = 2;
  Floats image = made(spots(100, SpotReplacement::Mean, 1), sample, 0)[0].values;
  // There are 17 others around the middle of a face, 11 around that of an edge, 7 around a corner.
  float face = 1.0f / 17, edge = 1.0f / 11, corner = 1.0f / 7;
  Floats expected{corner, edge, corner, edge, face,      edge,     corner, edge,     corner,
                  edge,   face, edge,   face, 2.0f / 26, 3 * face, edge,   3 * face, 3 * edge,
                  corner, edge, corner, edge, 3 * face,  3 * edge, corner, 3 * edge, corner};
  for (size_t i = 0; i < 27; ++i)
    EXPECT_FLOAT_EQ(image[i], expected[i]) << i;
}

/// Of the others around a pixel, fewer than half lie above the middle plane, and fewer than half
/// below.
TEST(BlindSpots, MediansInVolumesAreOfAllThreePlanes) {
  Sample sample{{1, 3, 3, 3}, Floats(27, 0)};
  std::fill(sample.values.begin() + 9, sample.values.begin() + 18, 5.0f);
  std::fill(sample.values.begin() + 18, sample.values.end(), 100.0f);
  EXPECT_EQ(made(spots(100, SpotReplacement::Median, 1), sample, 0)[0].values, Floats(27, 5));
}

TEST(BlindSpots, NormalAddsNoise) {
  Sample sample{{1, 100, 100}, Floats(10000, 5)};
  auto [image, target, mask] = made(spots(100, SpotReplacement::Normal, 5, 2), sample, 0);
  double sum = 0, squares = 0;
  for (float value : image.values) {
    sum += value - 5;
    squares += (value - 5) * (value - 5);
  }
  EXPECT_NEAR(sum / 10000, 0, 0.08);
  EXPECT_NEAR(squares / 10000, 4, 0.25);
}

/// Pixels beside a spot are hidden from the network, and not asked for.
TEST(BlindSpots, StructuresHideNeighboursAlongAnAxis) {
  BlindSpot step = spots(100.0 / 25, SpotReplacement::Mean);
  step.structure = {1, 0, 0, 1, 0}; // two before, one behind
  for (char axis : {'X', 'Y'})
    for (uint32_t number = 0; number < 50; ++number) {
      step.axis = axis;
      Sample sample{{1, 5, 5}, Floats(25, 100)};
      auto [image, target, mask] = made(step, sample, number);
      ASSERT_EQ(sumOf(mask.values), 1);
      auto spot = std::find(mask.values.begin(), mask.values.end(), 1.0f) - mask.values.begin();
      std::set<std::ptrdiff_t> hidden;
      auto along = axis == 'X' ? spot % 5 : spot / 5;
      if (along >= 2)
        hidden.insert(spot - 2 * (axis == 'X' ? 1 : 5));
      if (along < 4)
        hidden.insert(spot + (axis == 'X' ? 1 : 5));
      for (std::ptrdiff_t i = 0; i < 25; ++i) {
        float value = image.values[static_cast<size_t>(i)];
        if (hidden.contains(i))
          EXPECT_TRUE(-2 <= value && value < 2) << value;
        else
          EXPECT_EQ(value, 100);
      }
      EXPECT_EQ(target.values, sample.values);
    }
}

TEST(BlindSpots, StructuresHideNeighboursAlongZ) {
  BlindSpot step = spots(100.0 / 27, SpotReplacement::Mean);
  step.structure = {1, 0, 0, 1, 0}; // two before, one behind
  step.axis = 'Z';
  Sample sample{{1, 3, 3, 3}, Floats(27, 100)};
  std::set<std::ptrdiff_t> planes;
  for (uint32_t number = 0; number < 50; ++number) {
    auto [image, target, mask] = made(step, sample, number);
    ASSERT_EQ(sumOf(mask.values), 1);
    auto spot = std::find(mask.values.begin(), mask.values.end(), 1.0f) - mask.values.begin();
    // Of the planes 0 and 1 the next one is in the volume, of plane 2 the last but one.
    std::ptrdiff_t hidden = spot < 18 ? spot + 9 : spot - 18;
    for (std::ptrdiff_t i = 0; i < 27; ++i) {
      float value = image.values[static_cast<size_t>(i)];
      if (i == hidden)
        EXPECT_TRUE(-2 <= value && value < 2) << value;
      else
        EXPECT_EQ(value, 100) << i;
    }
    planes.insert(spot / 9);
  }
  EXPECT_EQ(planes, (std::set<std::ptrdiff_t>{0, 1, 2}));
}

TEST(BlindSpots, ChannelsHaveSpotsOfTheirOwn) {
  auto [image, target, mask] = made(spots(1), counted({2, 40, 40}), 0);
  Floats first(mask.values.begin(), mask.values.begin() + 1600);
  Floats second(mask.values.begin() + 1600, mask.values.end());
  EXPECT_EQ(sumOf(first), 16);
  EXPECT_EQ(sumOf(second), 16);
  EXPECT_NE(first, second);
  for (size_t i = 0; i < 1600; ++i)
    EXPECT_LT(image.values[i], 1600);
}

/// Neighbours are those in a spot's own channel.
TEST(BlindSpots, ChannelsAreReplacedByTheirOwn) {
  Sample sample{{3, 10, 10}, Floats(300)};
  for (size_t channel = 0; channel < 3; ++channel)
    for (float &value : std::span(sample.values).subspan(channel * 100, 100))
      value = static_cast<float>(channel);
  for (auto replacement : {SpotReplacement::Mean, SpotReplacement::Median, SpotReplacement::Uniform,
                           SpotReplacement::UniformWithCenter}) {
    auto [image, target, mask] = made(spots(10, replacement, 2), sample, 1);
    EXPECT_EQ(image.values, sample.values);
    EXPECT_GT(sumOf(mask.values), 20);
  }
}

/// What is hidden beside spots is spread over all of its range, with a mean of 0 and a variance of
/// 4 / 3, and drawn anew for each.
TEST(BlindSpots, WhatStructuresHideIsUniform) {
  BlindSpot step = spots(4, SpotReplacement::Mean);
  step.structure = {0, 0, 1};
  Sample sample{{1, 100, 100}, Floats(10000, 100)};
  Floats hidden = made(step, sample, 1)[0].values;
  std::erase(hidden, 100.0F);
  ASSERT_GT(hidden.size(), 300);
  double sum = 0, squares = 0;
  for (float value : hidden) {
    sum += value;
    squares += value * value;
  }
  auto count = static_cast<double>(hidden.size());
  EXPECT_NEAR(sum / count, 0, 0.25);
  EXPECT_NEAR(squares / count, 4.0 / 3, 0.25);
  EXPECT_GT(std::set<float>(hidden.begin(), hidden.end()).size(), hidden.size() - 3);
}

/// Boxes of 10 x 10 in a plane of 1 x 100: mostly, none of the ten pixels is in the plane.
TEST(BlindSpots, NoSampleIsWithoutASpot) {
  for (uint32_t number = 0; number < 100; ++number)
    EXPECT_GE(sumOf(made(spots(1), counted({1, 1, 100}), number)[2].values), 1);
}

TEST(BlindSpots, ImagesSmallerThanABoxAreRefused) {
  EXPECT_EQ(
      errorOf([] { checkSpots(spots(0.198), Extents{1, 4, 4}); }),
      "data step blind_spot finds no spot in images of 4 x 4: one pixel in 505.050505 is one; take "
      "larger patches, or percent = 6.25 at least");
  checkSpots(spots(6.25), Extents{1, 4, 4});
  EXPECT_NE(errorOf([] { checkSpots(spots(1), Extents{1, 1, 13}); }).find("percent = 7.693 at"),
            std::string::npos);
  checkSpots(spots(7.693), Extents{1, 1, 13});
  BlindSpot compat = spots(0.198);
  compat.squareRootBoxes = true;
  EXPECT_NE(errorOf([&] {
              checkSpots(compat, Extents{1, 16, 16, 16});
            }).find("one pixel in 10648 is one; take larger patches, or percent = 0.391 at"),
            std::string::npos);
  compat.percent = 0.391;
  checkSpots(compat, Extents{1, 16, 16, 16});
  EXPECT_NE(errorOf([] { checkSpots(spots(1), Extents{}); }).find("is for images"),
            std::string::npos);
  BlindSpot deep = spots(50);
  deep.structure = {1, 0, 1};
  deep.axis = 'Z';
  EXPECT_NE(errorOf([&] { checkSpots(deep, Extents{1, 4, 4}); }).find("along Z, which images of"),
            std::string::npos);
}

/// A chain of one file that ends in three inputs.
class BlindSpotChain : public ::testing::Test {
protected:
  BlindSpotChain() {
    std::vector<uint8_t> values(8 * 8);
    std::iota(values.begin(), values.end(), 0);
    writeFile(directory / "v.npy", npyBytes("|u1", "8, 8", bytesOfVector(values)));
    pipeline.sources.push_back(std::make_unique<artifact::DataSourceT>());
    pipeline.sources[0]->name = "volume";
    pipeline.sources[0]->axes = "YX";
    pipeline.chains.push_back(std::make_unique<artifact::DataChainT>());
    artifact::DataChainT &chain = *pipeline.chains[0];
    chain.inputs = {"volume"};
    chain.outputs = {"image", "target", "mask"};
    chain.steps.push_back(makeCall("normalize", {floats("mean", {10}), floats("std", {2})}));
    chain.steps.push_back(makeCall("patches", {ints("size", {4})}));
    chain.steps.push_back(makeCall("flip"));
    chain.steps.push_back(makeCall("blind_spot", {floats("percent", {25}), ints("radius", {2}),
                                                  text("replace", "mean"), floats("sigma", {1}),
                                                  text("axis", "X"), text("box", "exact")}));
  }

  Dataset open(int64_t edge, bool isPrediction = false) {
    auto spec = [&](const std::string &name, std::optional<ValueRange> range) {
      return InputSpec{name, artifact::DType::F32, {1, 1, edge, edge}, range, name == "image"};
    };
    std::vector<InputSpec> inputs = {spec("image", {})};
    if (!isPrediction)
      inputs = {spec("image", {}), spec("target", {}), spec("mask", ValueRange{0, 1e30})};
    return Dataset(pipeline, inputs, {"image", "target", "mask"}, {{"volume", directory / "v.npy"}},
                   isPrediction);
  }

  TemporaryDirectory directory;
  artifact::DataPipelineT pipeline;
};

TEST_F(BlindSpotChain, OneFileBecomesThreeInputs) {
  Dataset dataset = open(4);
  std::set<Floats> masks;
  for (int64_t position = 0; position < 20; ++position) {
    std::vector<Sample> inputs = dataset.sample({0, position}, {true, 1, 0});
    ASSERT_EQ(inputs.size(), 3u);
    for (size_t i = 0; i < 16; ++i) {
      float stored = inputs[1].values[i] * 2 + 10;
      EXPECT_EQ(stored, std::round(stored));
      if (inputs[2].values[i] == 0)
        EXPECT_EQ(inputs[0].values[i], inputs[1].values[i]);
    }
    EXPECT_EQ(sumOf(inputs[2].values), 4);
    masks.insert(inputs[2].values);
  }
  EXPECT_GT(masks.size(), 15u);
}

/// Validation masks a patch once, whatever the epoch; patches have masks of their own.
TEST_F(BlindSpotChain, EvaluationMasksAlikeInAllEpochs) {
  Dataset dataset = open(4);
  std::vector<Sample> once = dataset.sample(2, {}), again = dataset.sample(2, {});
  EXPECT_EQ(once[0].values, again[0].values);
  EXPECT_EQ(once[2].values, again[2].values);
  EXPECT_EQ(sumOf(once[2].values), 4);
  EXPECT_NE(once[2].values, dataset.sample(1, {})[2].values);
}

TEST_F(BlindSpotChain, PredictionsSeeTheVolumeAsItIs) {
  Dataset dataset = open(8, true);
  std::vector<Sample> inputs = dataset.sample(0, {});
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(inputs[0].values[10], 0);
  EXPECT_EQ(inputs[0].values[63], 26.5f);
}

TEST_F(BlindSpotChain, ArraysAreCounted) {
  pipeline.chains[0]->outputs = {"image", "target"};
  EXPECT_NE(errorOf([&] { open(4); }).find("does not end in as many names"), std::string::npos);
  pipeline.chains[0]->outputs = {"image", "target", "mask"};
  pipeline.chains[0]->steps.push_back(
      makeCall("blind_spot", {floats("percent", {25}), ints("radius", {2}), text("replace", "mean"),
                              floats("sigma", {1}), text("axis", "X"), text("box", "exact")}));
  EXPECT_NE(errorOf([&] { open(4); }).find("behind more than one array"), std::string::npos);
}

} // namespace
} // namespace dlc::rt::test
