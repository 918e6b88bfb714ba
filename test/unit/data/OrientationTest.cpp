// flip and rotate90: every orientation of small images and volumes, by hand.
#include "runtime/data/Dataset.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/Calls.h"
#include "test/unit/data/TestFiles.h"

#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <set>

namespace dlc::rt::test {
namespace {

using artifact::DType;
using Floats = std::vector<float>;

/// Elements that count up from 1.
Sample counted(const Extents &shape) {
  int64_t elements = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  Sample sample{shape, Floats(static_cast<size_t>(elements))};
  std::iota(sample.values.begin(), sample.values.end(), 1.0f);
  return sample;
}

/// All that many draws make of a sample in training.
std::set<Floats> madeBy(const std::vector<const CallPointer *> &calls, const Sample &sample) {
  std::set<Floats> seen;
  for (uint32_t number = 0; number < 400; ++number) {
    std::vector<Sample> members = {sample};
    for (uint32_t i = 0; i < calls.size(); ++i)
      applyStep(makeStep(**calls[i]), members, Draw(philox(7, {number, i, 0, 0})), Use::Training);
    EXPECT_EQ(members[0].shape, sample.shape);
    members[0].settle();
    seen.insert(members[0].values);
  }
  return seen;
}

std::set<Floats> flipped(const std::string &axes, const Sample &sample) {
  CallPointer call = axes.empty() ? makeCall("flip") : makeCall("flip", {text("axes", axes)});
  return madeBy({&call}, sample);
}

std::set<Floats> turned(const Sample &sample) {
  CallPointer call = makeCall("rotate90");
  return madeBy({&call}, sample);
}

TEST(Orientation, AQuarterTurnIsCounterclockwise) {
  Sample image = counted({1, 3, 3});
  quarterTurn(image); // the last column comes first
  image.settle();
  EXPECT_EQ(image.values, (Floats{3, 6, 9, 2, 5, 8, 1, 4, 7}));
}

// 1 2 3
// 4 5 6
TEST(Orientation, FlipMirrorsEitherAxisOfAnImage) {
  const Floats own = {1, 2, 3, 4, 5, 6}, x = {3, 2, 1, 6, 5, 4}, y = {4, 5, 6, 1, 2, 3},
               both = {6, 5, 4, 3, 2, 1};
  Sample image = counted({1, 2, 3});
  EXPECT_EQ(flipped("", image), (std::set<Floats>{own, x, y, both}));
  EXPECT_EQ(flipped("YX", image), (std::set<Floats>{own, x, y, both}));
  EXPECT_EQ(flipped("XY", image), (std::set<Floats>{own, x, y, both}));
  EXPECT_EQ(flipped("X", image), (std::set<Floats>{own, x}));
  EXPECT_EQ(flipped("Y", image), (std::set<Floats>{own, y}));
  EXPECT_EQ(flipped("ZX", image), (std::set<Floats>{own, x}));
  EXPECT_EQ(flipped("Z", image), (std::set<Floats>{own})); // which an image lacks
}

// 1 2 3
// 4 5 6
// 7 8 9
const std::set<Floats> turns = {{1, 2, 3, 4, 5, 6, 7, 8, 9},
                                {3, 6, 9, 2, 5, 8, 1, 4, 7},
                                {9, 8, 7, 6, 5, 4, 3, 2, 1},
                                {7, 4, 1, 8, 5, 2, 9, 6, 3}};
const std::set<Floats> mirroredTurns = {{3, 2, 1, 6, 5, 4, 9, 8, 7},
                                        {7, 8, 9, 4, 5, 6, 1, 2, 3},
                                        {1, 4, 7, 2, 5, 8, 3, 6, 9},
                                        {9, 6, 3, 8, 5, 2, 7, 4, 1}};

TEST(Orientation, Rotate90MakesFourTurns) { EXPECT_EQ(turned(counted({1, 3, 3})), turns); }

TEST(Orientation, FlipAndRotate90MakeAllEight) {
  std::set<Floats> eight = turns;
  eight.insert(mirroredTurns.begin(), mirroredTurns.end());
  CallPointer flip = makeCall("flip"), flipX = makeCall("flip", {text("axes", "X")}),
              rotate = makeCall("rotate90");
  EXPECT_EQ(madeBy({&flip, &rotate}, counted({1, 3, 3})), eight);
  EXPECT_EQ(madeBy({&rotate, &flipX}, counted({1, 3, 3})), eight);
}

// Slices 1 2 3 / 4 5 6 and 7 8 9 / 10 11 12.
TEST(Orientation, FlipMirrorsEachAxisOfAVolume) {
  const Floats own = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
               x = {3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10},
               y = {4, 5, 6, 1, 2, 3, 10, 11, 12, 7, 8, 9},
               yx = {6, 5, 4, 3, 2, 1, 12, 11, 10, 9, 8, 7},
               z = {7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6},
               zx = {9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4},
               zy = {10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3},
               zyx = {12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1};
  Sample volume = counted({1, 2, 2, 3});
  EXPECT_EQ(flipped("", volume), (std::set<Floats>{own, x, y, yx, z, zx, zy, zyx}));
  EXPECT_EQ(flipped("ZYX", volume), flipped("", volume));
  EXPECT_EQ(flipped("Z", volume), (std::set<Floats>{own, z}));
  EXPECT_EQ(flipped("Y", volume), (std::set<Floats>{own, y}));
  EXPECT_EQ(flipped("X", volume), (std::set<Floats>{own, x}));
  EXPECT_EQ(flipped("ZX", volume), (std::set<Floats>{own, x, z, zx}));
  EXPECT_EQ(flipped("YX", volume), (std::set<Floats>{own, x, y, yx}));
}

/// All slices turn alike in the plane of Y and X, and stay in their order. So do channels.
TEST(Orientation, Rotate90TurnsThePlanesOfAVolume) {
  const std::set<Floats> wanted = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                                   {2, 4, 1, 3, 6, 8, 5, 7, 10, 12, 9, 11},
                                   {4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9},
                                   {3, 1, 4, 2, 7, 5, 8, 6, 11, 9, 12, 10}};
  EXPECT_EQ(turned(counted({1, 3, 2, 2})), wanted);
  EXPECT_EQ(turned(counted({3, 2, 2})), wanted);
  EXPECT_EQ(flipped("X", counted({3, 1, 4})),
            (std::set<Floats>{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                              {4, 3, 2, 1, 8, 7, 6, 5, 12, 11, 10, 9}}));
}

TEST(Orientation, Rotate90RefusesPlanesThatAreNotSquare) {
  EXPECT_EQ(errorOf([] { turned(counted({1, 2, 2, 3})); }),
            "data step rotate90 wants square images, got samples of shape 1 x 2 x 2 x 3");
}

//===- Of files -------------------------------------------------------------------------------===//

/// Pixels of the mask are those of the image plus 100, in a channel or as a map of classes. An
/// image of these extents has `wanted` orientations, each as likely as the others.
void expectPairsMove(const Extents &extents, size_t wanted) {
  TemporaryDirectory directory;
  Sample image = counted(extents), mask = image;
  for (float &value : mask.values)
    value += 100;
  std::string shape = "1";
  for (int64_t extent : extents)
    shape += ", " + std::to_string(extent);
  DataPaths paths = {{"image", directory / "image.npy"}, {"mask", directory / "mask.npy"}};
  writeFile(paths[0].second, npyBytes("<f4", shape, bytesOfVector(image.values)));
  writeFile(paths[1].second, npyBytes("<f4", shape, bytesOfVector(mask.values)));
  std::vector<int32_t> classes(mask.values.begin(), mask.values.end());
  writeFile(directory / "map.npy", npyBytes("<i4", shape, bytesOfVector(classes)));
  artifact::DataPipelineT pipeline;
  pipeline.chains.push_back(std::make_unique<artifact::DataChainT>());
  pipeline.chains[0]->inputs = pipeline.chains[0]->outputs = {"image", "mask"};
  pipeline.chains[0]->steps.push_back(makeCall("flip"));
  pipeline.chains[0]->steps.push_back(makeCall("rotate90"));
  for (bool isMap : {false, true}) {
    Extents channels = {1, 1}, none = {1};
    channels.insert(channels.end(), extents.begin(), extents.end());
    none.insert(none.end(), extents.begin(), extents.end());
    if (isMap)
      paths[1].second = directory / "map.npy";
    Dataset dataset(pipeline,
                    {{"image", DType::F32, channels, {}, true},
                     {"mask", isMap ? DType::I32 : DType::F32, isMap ? none : channels, {}, false}},
                    {"image", "mask"}, paths);
    std::map<Floats, int> seen;
    constexpr uint32_t epochs = 1600;
    for (uint32_t epoch = 0; epoch < epochs; ++epoch) {
      std::vector<Sample> made = dataset.sample(0, {true, 3, epoch});
      ++seen[made[0].values];
      for (size_t i = 0; i < image.values.size(); ++i)
        ASSERT_EQ(made[1].values[i], made[0].values[i] + 100) << "element " << i;
    }
    EXPECT_EQ(seen.size(), wanted);
    for (const auto &[values, times] : seen) {
      EXPECT_GT(times, 0.6 * epochs / static_cast<double>(wanted));
      EXPECT_LT(times, 1.4 * epochs / static_cast<double>(wanted));
    }
    EXPECT_EQ(dataset.sample(0, {})[0].values, image.values); // evaluation
  }
}

TEST(Orientation, ImagesAndMasksMoveTogether) { expectPairsMove({3, 3}, 8); }

/// Mirrored along Z, too.
TEST(Orientation, VolumesAndMasksMoveTogether) { expectPairsMove({2, 3, 3}, 16); }

} // namespace
} // namespace dlc::rt::test
