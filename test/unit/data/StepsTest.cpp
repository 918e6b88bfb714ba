#include "runtime/data/steps/Steps.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/Calls.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace dlc::rt::test {
namespace {

Draw drawOf(uint32_t number) { return Draw(philox(1, {number, 0, 0, 0})); }

Sample countedImage(int64_t height, int64_t width, bool isCategorical = false) {
  Sample sample{{1, height, width}, {}, isCategorical};
  sample.values.resize(static_cast<size_t>(height * width));
  std::iota(sample.values.begin(), sample.values.end(), 0.0f);
  return sample;
}

/// The sample behind the step, whose shape is the one that was promised.
Sample after(const CallPointer &call, Sample sample, Use use = Use::Evaluation,
             uint32_t number = 0) {
  DataStep step = makeStep(*call);
  Extents promised = resultShape(step, sample.shape, use);
  std::vector<Sample> members = {sample, std::move(sample)};
  members[1].view(); // as if nothing had read it
  applyStep(step, members, drawOf(number), use);
  for (Sample &member : members)
    member.settle();
  EXPECT_EQ(members[0].shape, promised);
  EXPECT_EQ(members[1].values, members[0].values);
  return members[0];
}

using Floats = std::vector<float>;

TEST(Steps, CropTakesTheCentre) {
  EXPECT_EQ(after(makeCall("crop", {ints("size", {2})}), countedImage(4, 4)).values,
            (Floats{5, 6, 9, 10}));
  // An odd rest leaves one more behind than before.
  Sample flat = after(makeCall("crop", {ints("size", {1, 4})}), countedImage(2, 5));
  EXPECT_EQ(flat.shape, (Extents{1, 1, 4}));
  EXPECT_EQ(flat.values, (Floats{0, 1, 2, 3}));
}

TEST(Steps, CropsOfSeveralChannelsAndOfVolumes) {
  Sample sample{{2, 2, 2, 2}, {}};
  sample.values.resize(16);
  std::iota(sample.values.begin(), sample.values.end(), 0.0f);
  EXPECT_EQ(after(makeCall("crop", {ints("size", {1, 2, 1})}), sample).values,
            (Floats{0, 2, 8, 10}));
}

TEST(Steps, CropRefusesImagesThatAreTooSmall) {
  std::string message = errorOf([] {
    resultShape(makeStep(*makeCall("crop", {ints("size", {4, 5})})), {1, 4, 4}, Use::Training);
  });
  EXPECT_EQ(message, "data step crop takes 4 x 5 of an image that is only 4 x 4: put resize_pad "
                     "before it, or take less");
  message = errorOf([] {
    resultShape(makeStep(*makeCall("crop", {ints("size", {4, 5, 1})})), {1, 9, 9}, Use::Training);
  });
  EXPECT_NE(message.find("gives 3 extents to images of shape 1 x 9 x 9"), std::string::npos);
}

/// Every place of the padded image comes up, and the zeros around it.
TEST(Steps, RandomCropReachesEveryPlace) {
  CallPointer call = makeCall("random_crop", {ints("size", {2}), ints("padding", {1})});
  Sample image{{1, 2, 2}, {1, 2, 3, 4}};
  std::set<Floats> seen;
  for (uint32_t number = 0; number < 200; ++number)
    seen.insert(after(call, image, Use::Training, number).values);
  EXPECT_EQ(seen, (std::set<Floats>{{0, 0, 0, 1},
                                    {0, 0, 1, 2},
                                    {0, 0, 2, 0},
                                    {0, 1, 0, 3},
                                    {1, 2, 3, 4},
                                    {2, 0, 4, 0},
                                    {0, 3, 0, 0},
                                    {3, 4, 0, 0},
                                    {4, 0, 0, 0}}));
  EXPECT_EQ(after(call, image, Use::Evaluation).values, image.values);
}

/// The same place in all channels.
TEST(Steps, RandomCropsOfVolumesReachEveryPlace) {
  auto seen = [](const CallPointer &call, const Sample &sample) {
    std::set<Floats> values;
    for (uint32_t number = 0; number < 200; ++number)
      values.insert(after(call, sample, Use::Training, number).values);
    return values;
  };
  // Two channels of 2 x 2 x 1: one of two planes.
  Sample channels{{2, 2, 2, 1}, {1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_EQ(
      seen(makeCall("random_crop", {ints("size", {1, 2, 1}), ints("padding", {0})}), channels),
      (std::set<Floats>{{1, 2, 5, 6}, {3, 4, 7, 8}}));
  // Columns along Z.
  Sample volume{{1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_EQ(seen(makeCall("random_crop", {ints("size", {2, 1, 1}), ints("padding", {0})}), volume),
            (std::set<Floats>{{1, 5}, {2, 6}, {3, 7}, {4, 8}}));
  // One element with zeros on all sides.
  std::set<Floats> corners;
  for (size_t corner = 0; corner < 8; ++corner) {
    Floats values(8, 0);
    values[corner] = 5;
    corners.insert(values);
  }
  EXPECT_EQ(seen(makeCall("random_crop", {ints("size", {2}), ints("padding", {1})}),
                 Sample{{1, 1, 1, 1}, {5}}),
            corners);
}

TEST(Steps, RandomCropIsTheCentreInEvaluationAndNothingInTiles) {
  CallPointer call = makeCall("random_crop", {ints("size", {2}), ints("padding", {0})});
  EXPECT_EQ(after(call, countedImage(4, 4), Use::Evaluation).values, (Floats{5, 6, 9, 10}));
  EXPECT_EQ(after(call, countedImage(4, 4), Use::Prediction).values, (Floats{5, 6, 9, 10}));
  EXPECT_EQ(after(call, countedImage(4, 4), Use::PredictionInTiles).values.size(), 16u);
}

/// One draw serves all inputs of a chain.
TEST(Steps, ImageAndMaskAreCutAlike) {
  for (const CallPointer &call :
       {makeCall("random_crop", {ints("size", {3}), ints("padding", {1})}),
        makeCall("random_resized_crop",
                 {ints("size", {3}), floats("scale", {0.3, 0.3}), floats("ratio", {1, 1})})})
    for (uint32_t number = 0; number < 20; ++number) {
      std::vector<Sample> members = {countedImage(6, 6, true), countedImage(6, 6, true)};
      for (float &value : members[1].values)
        value = 100 + value;
      applyStep(makeStep(*call), members, drawOf(number), Use::Training);
      std::ranges::for_each(members, &Sample::settle);
      for (size_t i = 0; i < 9; ++i)
        if (members[1].values[i] != 0)
          EXPECT_EQ(members[1].values[i], 100 + members[0].values[i]);
    }
}

/// Half-pixel centres: 2 elements become 4 at -0.25, 0.25, 0.75, 1.25 of the old ones.
TEST(Steps, ResizeIsLinearWithHalfPixelCentres) {
  Sample row{{1, 1, 2}, {0, 4}};
  EXPECT_EQ(after(makeCall("resize", {ints("size", {1, 4})}), row).values, (Floats{0, 1, 3, 4}));
  // Down by 2: the means of pairs. Down by 3: the middles.
  Sample wide{{1, 1, 6}, {0, 2, 4, 6, 8, 10}};
  EXPECT_EQ(after(makeCall("resize", {ints("size", {1, 3})}), wide).values, (Floats{1, 5, 9}));
  EXPECT_EQ(after(makeCall("resize", {ints("size", {1, 2})}), wide).values, (Floats{2, 8}));
  // Both axes: the middle of four.
  EXPECT_EQ(after(makeCall("resize", {ints("size", {1})}), countedImage(2, 2)).values,
            (Floats{1.5f}));
}

TEST(Steps, ResizeTakesTheNearestOfCategories) {
  Sample row{{1, 1, 4}, {7, 1, 5, 3}, true};
  EXPECT_EQ(after(makeCall("resize", {ints("size", {1, 8})}), row).values,
            (Floats{7, 7, 1, 1, 5, 5, 3, 3}));
  EXPECT_EQ(after(makeCall("resize", {ints("size", {1, 2})}), row).values, (Floats{1, 3}));
}

/// To 4 along Z, as it is along Y, to the mean of two along X.
TEST(Steps, ResizesVolumes) {
  CallPointer call = makeCall("resize", {ints("size", {4, 2, 1})});
  Sample volume{{1, 2, 2, 2}, {0, 4, 8, 0, 16, 0, 4, 4}}; // means 2, 4 and 8, 4
  EXPECT_EQ(after(call, volume).values, (Floats{2, 4, 3.5f, 4, 6.5f, 4, 8, 4}));
  // Channels do not mix.
  Sample channels{{2, 1, 1, 2}, {1, 3, 10, 30}};
  EXPECT_EQ(after(makeCall("resize", {ints("size", {1})}), channels).values, (Floats{2, 20}));
  Sample categories{{1, 2, 1, 2}, {7, 1, 5, 3}, true};
  EXPECT_EQ(after(makeCall("resize", {ints("size", {4, 1, 1})}), categories).values,
            (Floats{1, 1, 3, 3}));
}

TEST(Steps, ResizePadKeepsTheRatioInZeros) {
  // 2 x 4 into 4 x 4: no scaling, one row of zeros above and below.
  EXPECT_EQ(after(makeCall("resize_pad", {ints("size", {4})}), countedImage(2, 4)).values,
            (Floats{0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0}));
  // 2 x 1 into 4 x 4, doubled to 4 x 2.
  Sample column{{1, 2, 1}, {4, 8}};
  EXPECT_EQ(after(makeCall("resize_pad", {ints("size", {4})}), column).values,
            (Floats{0, 4, 4, 0, 0, 5, 5, 0, 0, 7, 7, 0, 0, 8, 8, 0}));
}

TEST(Steps, ResizePadKeepsTheRatioOfVolumes) {
  // 2 x 1 x 1 into 4 x 4 x 4, doubled to 4 x 2 x 2.
  Sample column{{1, 2, 1, 1}, {4, 8}};
  Floats planes;
  for (float value : {4, 5, 7, 8})
    for (float share : {0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0})
      planes.push_back(share * value);
  EXPECT_EQ(after(makeCall("resize_pad", {ints("size", {4})}), column).values, planes);
  // 1 x 2 x 2 into 3 x 2 x 2: as it is, between planes of zeros.
  Sample plane{{1, 1, 2, 2}, {1, 2, 3, 4}};
  EXPECT_EQ(after(makeCall("resize_pad", {ints("size", {3, 2, 2})}), plane).values,
            (Floats{0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0}));
}

TEST(Steps, ResizePadTakesTheNearestOfCategories) {
  Sample column{{1, 2, 1}, {4, 8}, true};
  EXPECT_EQ(after(makeCall("resize_pad", {ints("size", {4})}), column).values,
            (Floats{0, 4, 4, 0, 0, 4, 4, 0, 0, 8, 8, 0, 0, 8, 8, 0}));
  // 2 x 4 halved to 1 x 2: the elements behind the middles of 2 x 2.
  Sample wide{{1, 2, 4}, {9, 9, 9, 9, 7, 1, 5, 3}, true};
  EXPECT_EQ(after(makeCall("resize_pad", {ints("size", {2})}), wide).values, (Floats{1, 3, 0, 0}));
}

/// Areas and ratios of the boxes are those that were asked for, and inside of the image.
TEST(Steps, RandomResizedCropDrawsAreaAndRatio) {
  // A quarter of the area at ratio 4 is 32 wide and 8 high; elements tell the column that they are
  // from, and the width follows from the distance of neighbours.
  Sample columns{{1, 32, 32}, {}}, rows{{1, 32, 32}, {}};
  for (int row = 0; row < 32; ++row)
    for (int column = 0; column < 32; ++column) {
      columns.values.push_back(static_cast<float>(column));
      rows.values.push_back(static_cast<float>(row));
    }
  CallPointer call =
      makeCall("random_resized_crop",
               {ints("size", {2}), floats("scale", {0.25, 0.25}), floats("ratio", {4, 4})});
  std::set<float> tops;
  for (uint32_t number = 0; number < 50; ++number) {
    Floats across = after(call, columns, Use::Training, number).values;
    EXPECT_FLOAT_EQ(across[1] - across[0], 16);
    EXPECT_FLOAT_EQ(across[0], 7.5f); // all of the width
    Floats down = after(call, rows, Use::Training, number).values;
    EXPECT_FLOAT_EQ(down[2] - down[0], 4);
    tops.insert(down[0] - 1.5f);
  }
  EXPECT_GT(tops.size(), 10u);
  EXPECT_GE(*tops.begin(), 0);
  EXPECT_LE(*tops.rbegin(), 24);
}

/// No box of the whole area and twice as wide as high fits a square: the centre at that ratio.
TEST(Steps, RandomResizedCropFallsBackToTheCentre) {
  CallPointer call = makeCall("random_resized_crop", {ints("size", {1, 4}), floats("scale", {1, 1}),
                                                      floats("ratio", {2, 2})});
  EXPECT_EQ(after(call, countedImage(4, 4), Use::Training).values, (Floats{6, 7, 8, 9}));
}

TEST(Steps, RandomResizedCropIsAResizeInEvaluation) {
  CallPointer call =
      makeCall("random_resized_crop",
               {ints("size", {2}), floats("scale", {0.1, 0.5}), floats("ratio", {0.75, 1.33})});
  EXPECT_EQ(after(call, countedImage(4, 4)).values,
            after(makeCall("resize", {ints("size", {2})}), countedImage(4, 4)).values);
  EXPECT_EQ(after(call, countedImage(4, 4), Use::PredictionInTiles).values.size(), 16u);
}

TEST(Steps, BrightnessAddsOneNumberToAll) {
  CallPointer call = makeCall("brightness", {floats("delta", {3})});
  float low = 3, high = -3;
  for (uint32_t number = 0; number < 200; ++number) {
    Floats values = after(call, {{1, 1, 2}, {10, 20}}, Use::Training, number).values;
    float added = values[0] - 10;
    EXPECT_NEAR(values[1], 20 + added, 1e-5);
    low = std::min(low, added);
    high = std::max(high, added);
  }
  EXPECT_TRUE(-3 <= low && low < -2.8f && 2.8f < high && high <= 3) << low << " " << high;
}

TEST(Steps, ContrastScalesAboutTheMean) {
  Sample sample{{1, 1, 3}, {1, 2, 6}}; // mean 3
  EXPECT_EQ(
      after(makeCall("contrast", {floats("low", {2}), floats("high", {2})}), sample, Use::Training)
          .values,
      (Floats{-1, 1, 9}));
  // One mean of all channels: 3 again.
  Sample channels{{2, 1, 2}, {1, 2, 3, 6}};
  EXPECT_EQ(after(makeCall("contrast", {floats("low", {2}), floats("high", {2})}), channels,
                  Use::Training)
                .values,
            (Floats{-1, 1, 3, 9}));
}

TEST(Steps, GammaKeepsTheRange) {
  Sample sample{{1, 1, 3}, {-2, 0, 2}}; // 0, 1/2, 1
  CallPointer square = makeCall("gamma", {floats("low", {2}), floats("high", {2})});
  EXPECT_EQ(after(square, sample, Use::Training).values, (Floats{-2, -1, 2}));
  EXPECT_EQ(after(square, {{1, 1, 2}, {5, 5}}, Use::Training).values, (Floats{5, 5}));
}

TEST(Steps, NoiseIsNormal) {
  Sample sample{{1, 100, 100}, Floats(10000, 7)};
  Floats values = after(makeCall("noise", {floats("std", {2})}), sample, Use::Training).values;
  double sum = 0, squares = 0, within = 0;
  for (float value : values) {
    sum += value - 7;
    squares += (value - 7) * (value - 7);
    within += std::fabs(value - 7) < 2;
  }
  EXPECT_NEAR(sum / 10000, 0, 0.08);
  EXPECT_NEAR(squares / 10000, 4, 0.25);
  EXPECT_NEAR(within / 10000, 0.6827, 0.02);
}

TEST(Steps, AugmentationIsForTrainingAndForImages) {
  CallPointer calls[] = {makeCall("flip"),
                         makeCall("rotate90"),
                         makeCall("brightness", {floats("delta", {3})}),
                         makeCall("contrast", {floats("low", {2}), floats("high", {3})}),
                         makeCall("gamma", {floats("low", {2}), floats("high", {3})}),
                         makeCall("noise", {floats("std", {2})})};
  for (const CallPointer &call : calls)
    EXPECT_EQ(after(call, countedImage(3, 3), Use::Evaluation).values, countedImage(3, 3).values);
  for (const CallPointer &call : std::span(calls).subspan(2)) {
    EXPECT_NE(after(call, countedImage(3, 3), Use::Training).values, countedImage(3, 3).values);
    EXPECT_EQ(after(call, countedImage(3, 3, true), Use::Training).values,
              countedImage(3, 3).values);
  }
}

TEST(Steps, OneHotMakesAChannelOfEachClass) {
  CallPointer call = makeCall("one_hot", {ints("classes", {3})});
  Sample map{{1, 1, 3}, {2, 0, 2}};
  EXPECT_EQ(after(call, map).values, (Floats{0, 1, 0, 0, 0, 0, 1, 0, 1}));
  EXPECT_EQ(after(call, {{}, {1}}).values, (Floats{0, 1, 0}));
  for (float wrong : {3.0f, -1.0f, 0.5f, NAN})
    EXPECT_NE(errorOf([&] {
                after(call, {{1, 1, 1}, {wrong}});
              }).find("one_hot of 3 classes met the value"),
              std::string::npos);
  EXPECT_NE(errorOf([&] { after(call, {{2, 1, 1}, {0, 0}}); }).find("wants one channel"),
            std::string::npos);
}

TEST(Steps, NormalizesByPercentiles) {
  // 0..10: 10 % is 1, 90 % is 9; 25 % of 0..3 lies at 0.75 between 0 and 1.
  Sample sample = countedImage(1, 11);
  Floats values = after(makeCall("normalize", {floats("percentile", {10, 90})}), sample).values;
  EXPECT_NEAR(values[1], 0, 1e-6);
  EXPECT_NEAR(values[9], 1, 1e-6);
  EXPECT_NEAR(values[10], 9.0 / 8, 1e-6);
  values =
      after(makeCall("normalize", {floats("percentile", {25, 100})}), countedImage(1, 4)).values;
  EXPECT_NEAR(values[0], -0.75 / 2.25, 1e-6);
}

TEST(Steps, StepsWithoutSoundArgumentsAreRefused) {
  for (const CallPointer &call :
       {makeCall("crop"), makeCall("crop", {ints("size", {0})}), makeCall("noise"),
        makeCall("one_hot", {ints("classes", {0})}), makeCall("brightness"),
        makeCall("random_crop", {ints("size", {2}), ints("padding", {-1})}),
        makeCall("random_resized_crop",
                 {ints("size", {2}), floats("scale", {1}), floats("ratio", {1, 1})}),
        makeCall("normalize", {floats("percentile", {90, 10})})})
    EXPECT_NE(errorOf([&] { makeStep(*call); }).find("data step " + call->name + " has no sound"),
              std::string::npos);
}

} // namespace
} // namespace dlc::rt::test
