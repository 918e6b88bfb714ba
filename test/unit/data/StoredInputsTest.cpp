// Which inputs may come as files hold them, and what a data set then gives.
#include "runtime/data/steps/StoredInputs.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/StoredTypes.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/Calls.h"
#include "test/unit/data/TestFiles.h"

#include <gtest/gtest.h>
#include <numeric>

namespace dlc::rt::test {
namespace {

using artifact::DType;

CallPointer perImage() { return makeCall("normalize", {text("mode", "per_image")}); }
CallPointer spots(const std::string &replace, std::vector<int64_t> structure = {}) {
  return makeCall("blind_spot", {floats("percent", {10}), ints("radius", {1}),
                                 text("replace", replace), floats("sigma", {1}), text("axis", "X"),
                                 text("box", "exact"), ints("struct", std::move(structure))});
}

template <typename... Calls>
void add(artifact::DataPipelineT &pipeline, std::vector<std::string> inputs,
         std::vector<std::string> outputs, Calls... calls) {
  auto &chain = *pipeline.chains.emplace_back(std::make_unique<artifact::DataChainT>());
  chain.inputs = std::move(inputs);
  chain.outputs = std::move(outputs);
  (chain.steps.push_back(std::move(calls)), ...);
}

/// Of the chain `x -> calls -> x`, or to the outputs.
template <typename... Calls> std::map<std::string, InputOrigin> originsBehind(Calls... calls) {
  artifact::DataPipelineT pipeline;
  add(pipeline, {"x"}, {"x"}, std::move(calls)...);
  return inputOrigins(pipeline);
}

TEST(StoredInputs, StepsThatMoveKeepElements) {
  InputOrigin moved =
      originsBehind(makeCall("flip"), makeCall("rotate90"), makeCall("crop", {ints("size", {2})}),
                    makeCall("random_crop", {ints("size", {2}), ints("padding", {1})}))
          .at("x");
  EXPECT_TRUE(moved.isStored);
  EXPECT_EQ(moved.source, "x");
  EXPECT_FALSE(moved.normalize);
  for (const char *step : {"resize", "resize_pad"})
    EXPECT_FALSE(originsBehind(makeCall(step, {ints("size", {2})})).at("x").isStored) << step;
  EXPECT_FALSE(originsBehind(makeCall("noise", {floats("std", {1})})).at("x").isStored);
}

TEST(StoredInputs, OneNormalizeIsLeftToTheProgram) {
  InputOrigin behind = originsBehind(makeCall("flip"), perImage(), makeCall("rotate90")).at("x");
  EXPECT_TRUE(behind.isStored);
  EXPECT_EQ(behind.normalize, (StepPlace{0, 1}));
  EXPECT_FALSE(originsBehind(perImage(), perImage()).at("x").isStored);
  EXPECT_FALSE(originsBehind(perImage(), makeCall("noise", {floats("std", {1})})).at("x").isStored);
}

TEST(StoredInputs, ZerosBehindNormalizeAreNoElements) {
  auto padded = [](int64_t padding) {
    return makeCall("random_crop", {ints("size", {2}), ints("padding", {padding})});
  };
  EXPECT_FALSE(originsBehind(perImage(), padded(1)).at("x").isStored);
  EXPECT_TRUE(originsBehind(perImage(), padded(0)).at("x").isStored);
  EXPECT_TRUE(originsBehind(padded(1), perImage()).at("x").isStored);
}

TEST(StoredInputs, BlindSpotsThatAreElementsAreStored) {
  auto originsOf = [](CallPointer call) {
    artifact::DataPipelineT pipeline;
    add(pipeline, {"volume"}, {"image", "target", "mask"}, perImage(), std::move(call));
    add(pipeline, {"denoised"}, {"denoised"}, makeCall("denormalize", {text("", "volume")}));
    return inputOrigins(pipeline);
  };
  std::map<std::string, InputOrigin> uniform = originsOf(spots("uniform_with_center"));
  for (const char *name : {"image", "target"}) {
    EXPECT_TRUE(uniform.at(name).isStored) << name;
    EXPECT_TRUE(uniform.at(name).normalize) << name;
    EXPECT_EQ(uniform.at(name).source, "volume");
  }
  EXPECT_TRUE(uniform.at("mask").isStored);
  EXPECT_FALSE(uniform.at("mask").normalize);
  EXPECT_FALSE(uniform.contains("denoised"));
  // The target of computed spots is one of elements, but its normalize is the image's, too.
  for (CallPointer &call : std::array{spots("mean"), spots("uniform", {1, 1, 1})}) {
    std::map<std::string, InputOrigin> computed = originsOf(std::move(call));
    EXPECT_FALSE(computed.at("image").isStored);
    EXPECT_FALSE(computed.at("target").isStored);
    EXPECT_TRUE(computed.at("mask").isStored);
  }
}

/// image -> normalize(per_image) -> flip -> image, in bytes or not.
class StoredDatasetTest : public ::testing::Test {
protected:
  StoredDatasetTest() {
    add(pipeline, {"image"}, {"image"}, perImage(), makeCall("flip"));
    std::vector<uint8_t> image(3 * 4 * 4 * 2);
    std::iota(image.begin(), image.end(), 9);
    path = directory / "image.npy";
    writeFile(path, npyBytes("|u1", "3, 2, 4, 4", bytesOfVector(image)));
  }
  static InputSpec plain() { return {"image", DType::F32, {2, 2, 4, 4}, {}}; }
  static std::vector<InputSpec> stored(DType type) {
    std::vector<InputSpec> specs = {
        plain(), {"image.shift", DType::F32, {2, 2}, {}}, {"image.scale", DType::F32, {2, 2}, {}}};
    specs[0].stored = type;
    specs[0].shift = 1;
    specs[0].scale = 2;
    specs[1].isOfNormalize = specs[2].isOfNormalize = true;
    return specs;
  }
  Dataset open(std::vector<InputSpec> specs) {
    return Dataset(pipeline, std::move(specs), {"image"}, {{"image", path}});
  }

  TemporaryDirectory directory;
  std::string path;
  artifact::DataPipelineT pipeline;
};

TEST_F(StoredDatasetTest, TheProgramHasTheHostsBits) {
  Augmentation augmentation{true, 7, 1};
  Dataset host = open({plain()}), device = open(stored(DType::U8));
  for (int64_t index = 0; index < 3; ++index) {
    std::vector<Sample> whole = host.sample(index, augmentation),
                        parts = device.sample(index, augmentation);
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_EQ(parts[1].shape, std::vector<int64_t>{2});
    ASSERT_EQ(parts[0].values.size(), whole[0].values.size());
    for (size_t i = 0; i < parts[0].values.size(); ++i) {
      float element = parts[0].values[i];
      EXPECT_EQ(element, static_cast<float>(static_cast<uint8_t>(element)));
      size_t channel = i / 16;
      EXPECT_EQ((element - parts[1].values[channel]) * parts[2].values[channel],
                whole[0].values[i]);
    }
  }
}

/// Arrays from which a device can take inputs by itself, and what of them a sample is.
TEST_F(StoredDatasetTest, ElementsInOtherPlacesAreViewsOfHeldArrays) {
  using Sizes = std::vector<uint64_t>;
  Augmentation augmentation{true, 7, 1};
  for (const std::vector<InputSpec> &specs : {std::vector{plain()}, stored(DType::U8)}) {
    Dataset dataset = open(specs);
    EXPECT_FALSE(dataset.unreadSample(1, augmentation)[0].unread->isHeld);
    EXPECT_EQ(dataset.holdArrays({}), Sizes{3 * 2 * 4 * 4});
    Sample image = dataset.unreadSample(1, augmentation)[0];
    ASSERT_TRUE(image.unread);
    EXPECT_TRUE(image.unread->isHeld);
    EXPECT_EQ(image.unread->bytes.size(), 3 * 2 * 4 * 4);
  }
  pipeline.chains[0]->steps.push_back(makeCall("noise", {floats("std", {1})}));
  Dataset noisy = open({plain()});
  EXPECT_EQ(noisy.holdArrays(augmentation), Sizes{});
  EXPECT_FALSE(noisy.unreadSample(1, augmentation)[0].unread);
  EXPECT_EQ(noisy.holdArrays({}), Sizes{3 * 2 * 4 * 4}); // evaluations are without noise
  EXPECT_TRUE(noisy.unreadSample(1, {})[0].unread->isHeld);
}

/// Whichever channel has them.
TEST_F(StoredDatasetTest, StatisticsThatAreNoNumbersAreFound) {
  pipeline.chains[0]->steps[0] = makeCall("normalize", {text("", "dataset")});
  for (size_t channel : {0, 1}) {
    Dataset dataset = open({plain()});
    std::vector<float> means = {1, 2};
    means[channel] = NAN;
    dataset.setStatistics({{"data.image.mean", means}, {"data.image.std", {1, 1}}});
    EXPECT_NE(errorOf([&] { dataset.unreadSample(0, {}); }).find("has the value nan"),
              std::string::npos)
        << channel;
  }
}

/// What the first sample does not show is held of none, and that it is at fault is told later.
TEST_F(StoredDatasetTest, SamplesAreHeldAsTheFirstOneIs) {
  pipeline.chains[0]->steps[0] = makeCall("normalize", {floats("percentile", {0, 100})});
  InputSpec share = plain();
  share.range = ValueRange{0, 1};
  std::vector<uint8_t> values(3 * 2 * 4 * 4, 9);
  values[0] = 10; // of the first sample, which has not all numbers of a byte
  values[32] = 0; // of the second one, which has
  values[33] = 255;
  writeFile(path, npyBytes("|u1", "3, 2, 4, 4", bytesOfVector(values)));
  Dataset dataset = open({share});
  bool isHeld = !dataset.holdArrays({}).empty();
  ASSERT_FALSE(isHeld);
  ASSERT_TRUE(dataset.unreadSample(1, {})[0].unread); // which could be held
  for (int64_t index = 0; index < 3; ++index) {
    Sample image = dataset.unreadSample(index, {})[0];
    EXPECT_FALSE(image.unread && image.unread->isHeld && !isHeld) << index;
  }
  std::vector<float> faulty(3 * 2 * 4 * 4, NAN);
  writeFile(path, npyBytes("<f4", "3, 2, 4, 4", bytesOfVector(faulty)));
  EXPECT_TRUE(open({plain()}).holdArrays({}).empty());
}

/// Whose range is checked when they are read.
TEST_F(StoredDatasetTest, MasksOfZeroAndOneAreNotHeld) {
  pipeline.chains.clear();
  InputSpec mask = plain();
  mask.range = ValueRange{0, 1};
  for (uint8_t most : {1, 255}) {
    std::vector<uint8_t> values(3 * 2 * 4 * 4);
    values[5] = most;
    writeFile(path, npyBytes("|u1", "3, 2, 4, 4", bytesOfVector(values)));
    EXPECT_EQ(open({mask}).holdArrays({}).size(), most == 255);
  }
}

/// Numbers that bytes cannot be are seen where they replace some.
TEST_F(StoredDatasetTest, WhatIsReplacedIsInTheRange) {
  std::vector<InputSpec> specs = {plain(), plain(), plain()};
  specs[1].name = "target";
  specs[2].name = "mask";
  specs[0].range = ValueRange{0, 1000};
  specs[2].range = ValueRange{0, 1};
  auto sampleOf = [&](const std::string &replace, double sigma = 1) {
    CallPointer step = spots(replace);
    for (auto &argument : step->arguments)
      if (argument->name == "sigma")
        argument->floats = {sigma};
    pipeline.chains.clear();
    add(pipeline, {"image"}, {"image", "target", "mask"}, std::move(step));
    Dataset dataset(pipeline, specs, {"image"}, {{"image", path}});
    dataset.holdArrays({true});
    return dataset.unreadSample(0, {true});
  };
  std::vector<Sample> samples = sampleOf("mean");
  for (size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(samples[i].unread && samples[i].unread->isHeld) << i;
  EXPECT_FALSE(samples[0].unread->spots.empty());
  auto expectRefused = [&](double sigma) {
    std::string reason = errorOf([&] { sampleOf("normal", sigma); });
    EXPECT_NE(reason.find("has the value "), std::string::npos) << reason;
  };
  specs[0].range = ValueRange{0, 3e38};
  expectRefused(1e4);
  specs[0].range = ValueRange{-3e38, 1000};
  expectRefused(1e4);
  specs[0].range.reset();
  EXPECT_TRUE(sampleOf("normal", 1e4)[0].unread);
  expectRefused(1e300);
}

/// A source of which the device would have nothing but the zeros of the mask.
TEST_F(StoredDatasetTest, ZerosAloneAreNotHeld) {
  pipeline.chains.clear();
  add(pipeline, {"image"}, {"image", "target", "mask"}, spots("uniform"),
      makeCall("noise", {floats("std", {1})}));
  std::vector<InputSpec> specs = {plain(), plain(), plain()};
  specs[1].name = "target";
  specs[2].name = "mask";
  Dataset dataset(pipeline, specs, {"image"}, {{"image", path}});
  EXPECT_TRUE(dataset.holdArrays({true}).empty());
}

/// What the device does not gather, though the file has bytes: whole numbers, and what is
/// normalized twice or with zeros.
TEST_F(StoredDatasetTest, WhatIsNotGatheredIsNotHeld) {
  EXPECT_FALSE(open({plain()}).holdArrays({true}).empty());
  for (bool isPadded : {true, false}) {
    pipeline.chains.clear();
    CallPointer padded = makeCall("random_crop", {ints("size", {4}), ints("padding", {1})});
    add(pipeline, {"image"}, {"image"}, isPadded ? std::move(padded) : perImage(), perImage());
    EXPECT_TRUE(open({plain()}).holdArrays({true}).empty()) << isPadded;
  }
  pipeline.chains.clear();
  EXPECT_FALSE(open({plain()}).holdArrays({true}).empty());
  InputSpec numbers = plain();
  numbers.dtype = DType::I32;
  EXPECT_TRUE(open({numbers}).holdArrays({true}).empty());
}

TEST_F(StoredDatasetTest, OtherNumbersAreNotHeld) {
  writeFile(path, npyBytes("<i4", "3, 2, 4, 4", bytesOfVector(std::vector<int32_t>(96, 5))));
  EXPECT_TRUE(open({plain()}).holdArrays({}).empty());
}

TEST_F(StoredDatasetTest, LossesLookAtWhatTheProgramMakesOfElements) {
  pipeline.chains[0]->steps.clear();
  pipeline.chains[0]->steps.push_back(
      makeCall("normalize", {floats("mean", {0}), floats("std", {255})}));
  std::vector<InputSpec> specs = stored(DType::U8);
  specs[0].range = ValueRange{0, 1};
  EXPECT_EQ(open(specs).sample(0, {})[0].values[0], 9);
  pipeline.chains[0]->steps[0] = makeCall("normalize", {floats("mean", {0}), floats("std", {8})});
  std::string message = errorOf([&] { open(specs).sample(0, {}); });
  EXPECT_NE(message.find("has the value 1.125"), std::string::npos) << message;
  // Bytes are in the range, what is made of them is not.
  specs[0].range = ValueRange{0, 255};
  pipeline.chains[0]->steps[0] = makeCall("normalize", {floats("mean", {20}), floats("std", {1})});
  EXPECT_NE(errorOf([&] { open(specs).sample(0, {}); }).find("has the value -11,"),
            std::string::npos);
}

TEST_F(StoredDatasetTest, WhatSharesANormalizeIsNormalizedToo) {
  pipeline.chains.clear();
  add(pipeline, {"image", "clean"}, {"image", "clean"}, perImage());
  auto openBoth = [&](bool areStored) {
    std::vector<InputSpec> specs = stored(DType::U8);
    specs.push_back(plain());
    specs[3].name = "clean";
    if (areStored) {
      specs[3].stored = DType::U8;
      specs[3].shift = 4;
      specs[3].scale = 5;
      specs.push_back(specs[1]), specs.push_back(specs[2]);
    }
    return Dataset(pipeline, specs, {"image", "clean"}, {{"image", path}, {"clean", path}});
  };
  EXPECT_EQ(errorOf([&] { openBoth(false); }),
            "input clean is normalised neither by the data block nor by the program");
  std::vector<Sample> both = openBoth(true).sample(1, {});
  EXPECT_EQ(both[1].values, both[4].values);
  EXPECT_EQ(both[2].values, both[5].values);
}

TEST_F(StoredDatasetTest, ArraysMayChangeTheirNames) {
  pipeline.chains.clear();
  add(pipeline, {"image", "clean"}, {"clean", "image"}, perImage());
  Dataset dataset(pipeline, stored(DType::U8), {"image", "clean"},
                  {{"image", directory / "missing.npy"}, {"clean", path}});
  EXPECT_EQ(dataset.sample(0, {})[0].values[0], 9);
}

TEST_F(StoredDatasetTest, FilesOfAnotherTypeAreRefused) {
  EXPECT_EQ(open(stored(DType::U16)).samples(), 3); // which holds bytes
  std::vector<uint16_t> words(3 * 2 * 4 * 4, 300);
  writeFile(path, npyBytes("<u2", "3, 2, 4, 4", bytesOfVector(words)));
  EXPECT_EQ(errorOf([&] { open(stored(DType::U8)); }),
            "'" + path +
                "' holds u16 elements, but the artifact takes image as u8: compile it with "
                "--source image=u16");
  std::vector<float> numbers(3 * 2 * 4 * 4, 0.5f);
  writeFile(path, npyBytes("<f4", "3, 2, 4, 4", bytesOfVector(numbers)));
  EXPECT_EQ(errorOf([&] { open(stored(DType::U8)); }),
            "'" + path +
                "' holds f32 elements, but the artifact takes image as u8: compile it without "
                "--source image");
}

TEST_F(StoredDatasetTest, ArtifactsWhoseDataBlockComputesAreRefused) {
  pipeline.chains[0]->steps.push_back(makeCall("noise", {floats("std", {1})}));
  EXPECT_EQ(errorOf([&] { open(stored(DType::U8)); }),
            "the program takes input image as its files hold it, but the data block computes it");
  pipeline.chains[0]->steps.clear();
  EXPECT_EQ(errorOf([&] { open(stored(DType::U8)); }),
            "the program takes input image as its files hold it, but the data block computes it");
}

TEST(StoredTypes, AreOfTheWidestFile) {
  TemporaryDirectory directory;
  std::string bytes = directory / "bytes.npy", words = directory / "words.npy",
              numbers = directory / "numbers.npy", images = directory / "images";
  writeFile(bytes, npyBytes("|u1", "2, 2", bytesOfVector(std::vector<uint8_t>(4))));
  writeFile(words, npyBytes("<u2", "2, 2", bytesOfVector(std::vector<uint16_t>(4))));
  writeFile(numbers, npyBytes("<f4", "2, 2", bytesOfVector(std::vector<float>(4))));
  using Types = std::vector<std::string>;
  EXPECT_EQ(storedTypes({{"x", bytes}, {"y", words}, {"z", numbers}}, {}),
            (Types{"x=u8", "y=u16"}));
  EXPECT_EQ(storedTypes({{"x", bytes}, {"y", bytes}}, {{"x", words}, {"y", bytes}}),
            (Types{"x=u16", "y=u8"}));
  EXPECT_EQ(storedTypes({{"x", bytes}}, {{"x", numbers}}), Types{});
  EXPECT_EQ(storedTypes({{"x", directory / "missing.npy"}}, {}), Types{});
}

} // namespace
} // namespace dlc::rt::test
