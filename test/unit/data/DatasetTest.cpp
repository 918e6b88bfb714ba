#include "runtime/data/Dataset.h"
#include "runtime/artifact/Error.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/Calls.h"
#include "test/unit/data/TestFiles.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace dlc::rt::test {
namespace {

using artifact::DType;

std::unique_ptr<artifact::CallT> call(const std::string &name, const std::string &mode = "") {
  auto result = std::make_unique<artifact::CallT>();
  result->name = name;
  if (!mode.empty()) {
    result->arguments.push_back(std::make_unique<artifact::ArgumentT>());
    result->arguments[0]->text = mode;
  }
  return result;
}

std::unique_ptr<artifact::CallT> normalizeBy(double mean, double deviation) {
  auto result = call("normalize");
  for (auto [name, value] : {std::pair("mean", mean), {"std", deviation}}) {
    result->arguments.push_back(std::make_unique<artifact::ArgumentT>());
    result->arguments.back()->name = name;
    result->arguments.back()->floats = {value};
  }
  return result;
}

std::unique_ptr<artifact::DataChainT> chain(std::vector<std::string> inputs,
                                            std::vector<std::unique_ptr<artifact::CallT>> steps) {
  auto result = std::make_unique<artifact::DataChainT>();
  result->inputs = inputs;
  result->outputs = inputs;
  result->steps = std::move(steps);
  return result;
}

/// The data block of a U-Net, and files for it.
class DatasetTest : public ::testing::Test {
protected:
  void source(const std::string &name, const std::string &axes) {
    pipeline.sources.push_back(std::make_unique<artifact::DataSourceT>());
    pipeline.sources.back()->name = name;
    pipeline.sources.back()->axes = axes;
  }

  template <typename... Calls> void addChain(std::vector<std::string> inputs, Calls... calls) {
    std::vector<std::unique_ptr<artifact::CallT>> steps;
    (steps.push_back(std::move(calls)), ...);
    pipeline.chains.push_back(chain(std::move(inputs), std::move(steps)));
  }

  void unetFiles() {
    std::vector<uint8_t> image(3 * 4 * 4), mask(3 * 4 * 4);
    std::iota(image.begin(), image.end(), 1);
    for (size_t i = 0; i < mask.size(); ++i)
      mask[i] = image[i] % 3 ? 255 : 0;
    writeFile(directory / "image.npy", npyBytes("|u1", "3, 4, 4", bytesOfVector(image)));
    writeFile(directory / "mask.npy", npyBytes("|u1", "3, 4, 4", bytesOfVector(mask)));
  }

  std::vector<InputSpec> unetInputs() {
    return {{"image", DType::F32, {2, 1, 4, 4}, {}, true},
            {"mask", DType::F32, {2, 1, 4, 4}, {}, false}};
  }

  Dataset open(std::vector<InputSpec> inputs, const DataPaths &paths) {
    return Dataset(pipeline, std::move(inputs), {"image", "mask"}, paths);
  }
  Dataset openUnet() {
    unetFiles();
    return open(unetInputs(),
                {{"image", directory / "image.npy"}, {"mask", directory / "mask.npy"}});
  }

  std::string failure(std::vector<InputSpec> inputs, const DataPaths &paths) {
    return errorOf([&] { open(std::move(inputs), paths); });
  }

  TemporaryDirectory directory;
  artifact::DataPipelineT pipeline;
};

TEST_F(DatasetTest, WithoutADataBlockInputsAreUnscaled) {
  Dataset dataset = openUnet();
  EXPECT_EQ(dataset.samples(), 3);
  std::vector<Sample> sample = dataset.sample(1, {});
  EXPECT_EQ(sample[0].shape, (std::vector<int64_t>{1, 4, 4}));
  EXPECT_EQ(sample[0].values[0], 17);
}

TEST_F(DatasetTest, MasksOf255AreReadAsOneWithANotice) {
  Dataset dataset = openUnet();
  EXPECT_EQ(dataset.sample(0, {})[1].values[0], 1); // image 1, mask 255
  EXPECT_EQ(dataset.sample(0, {})[1].values[2], 0);
  ASSERT_EQ(dataset.notices().size(), 1u);
  EXPECT_NE(dataset.notices()[0].find("mask holds 0 and 255"), std::string::npos);
  // An input of the prediction keeps its units.
  writeFile(directory / "two.npy", npyBytes("|u1", "1, 4, 4", std::string(16, '\xff')));
  std::vector<InputSpec> inputs = {{"image", DType::F32, {2, 1, 4, 4}, {}, true}};
  EXPECT_EQ(open(inputs, {{"image", directory / "two.npy"}}).sample(0, {})[0].values[0], 255);
  // And so does what a step scales: 255 becomes 1, not 1 / 255.
  addChain({"mask"}, normalizeBy(0, 255));
  Dataset scaled = openUnet();
  EXPECT_EQ(scaled.sample(0, {})[1].values[0], 1);
  EXPECT_TRUE(scaled.notices().empty());
}

TEST_F(DatasetTest, NormalizesPerImage) {
  addChain({"image"}, call("normalize", "per_image"));
  std::vector<float> values = openUnet().sample(2, {})[0].values;
  double sum = std::accumulate(values.begin(), values.end(), 0.0);
  double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
  EXPECT_NEAR(sum, 0, 1e-5);
  EXPECT_NEAR(squares / 16, 1, 1e-5);
}

TEST_F(DatasetTest, NormalizesByTheStatisticsOfTheTrainingPart) {
  addChain({"image"}, call("normalize", "dataset"));
  Dataset dataset = openUnet();
  dataset.measureStatistics({0, 2});
  const std::vector<float> &mean = dataset.statistics().at("data.image.mean");
  ASSERT_EQ(mean.size(), 1u);
  EXPECT_FLOAT_EQ(mean[0], 24.5f); // of 1..16 and 33..48
  float deviation = dataset.statistics().at("data.image.std")[0];
  EXPECT_NEAR(deviation, std::sqrt(256 + 255.0 / 12), 1e-3);
  EXPECT_FLOAT_EQ(dataset.sample(0, {})[0].values[0], (1 - 24.5f) / (deviation + 1e-6f));

  Dataset other = openUnet();
  EXPECT_THROW(other.setStatistics({}), Error);
  other.setStatistics(dataset.statistics());
  EXPECT_EQ(other.sample(1, {})[0].values, dataset.sample(1, {})[0].values);
}

TEST_F(DatasetTest, NormalizesByGivenFigures) {
  addChain({"image"}, normalizeBy(3, 2));
  EXPECT_EQ(openUnet().sample(0, {})[0].values[0], -1.0f);
}

/// Image and mask stay aligned: the mask follows from the image's values.
TEST_F(DatasetTest, AChainMakesOneDrawForAllItsMembers) {
  addChain({"image", "mask"}, call("flip"), call("rotate90"));
  Dataset dataset = openUnet();
  bool moved = false;
  for (uint32_t epoch = 0; epoch < 20; ++epoch)
    for (int64_t index = 0; index < 3; ++index) {
      std::vector<Sample> sample = dataset.sample(index, {true, 9, epoch});
      for (size_t i = 0; i < 16; ++i)
        EXPECT_EQ(sample[1].values[i], std::fmod(sample[0].values[i], 3) != 0 ? 1 : 0);
      moved |= sample[0].values != dataset.sample(index, {})[0].values;
      EXPECT_EQ(sample[0].values, dataset.sample(index, {true, 9, epoch})[0].values);
    }
  EXPECT_TRUE(moved);
}

/// Before the first step, not when a sample is loaded.
TEST_F(DatasetTest, StepsThatCannotTakeEverySampleAreRefusedAtOnce) {
  DataPaths paths = {{"image", directory / "image.npy"}, {"mask", directory / "mask.npy"}};
  writeFile(paths[0].second, npyBytes("|u1", "3, 4, 4", std::string(48, '\1')));
  writeFile(paths[1].second, npyBytes("|u1", "3, 5, 5", std::string(75, '\1')));
  addChain({"image", "mask"}, makeCall("random_crop", {ints("size", {2}), ints("padding", {0})}));
  std::vector<InputSpec> inputs = {{"image", DType::F32, {2, 1, 2, 2}, {}, true},
                                   {"mask", DType::F32, {2, 1, 2, 2}, {}, false}};
  EXPECT_EQ(failure(inputs, paths),
            "'" + paths[0].second +
                "': sample 0: data step random_crop cuts arrays of 4 x 4 and of 5 x 5 alike: give "
                "both one size first, as resize_pad does");
}

/// Evaluation turns nothing.
TEST_F(DatasetTest, TurnsOfPlanesThatAreNotSquareAreRefusedBeforeTraining) {
  DataPaths paths = {{"image", directory / "wide.npy"}};
  writeFile(paths[0].second, npyBytes("|u1", "3, 4, 5", std::string(60, '\1')));
  addChain({"image"}, call("rotate90"));
  Dataset dataset = open({{"image", DType::F32, {2, 1, 4, 5}, {}, true}}, paths);
  EXPECT_EQ(dataset.sample(2, {})[0].values.size(), 20u);
  EXPECT_EQ(errorOf([&] { dataset.split(0, 1); }),
            "'" + paths[0].second +
                "': sample 0: data step rotate90 wants square images, got samples of shape 1 x 4 x "
                "5: put crop, resize or resize_pad before it");
}

TEST_F(DatasetTest, FlipAndRotateReachAllEightOrientations) {
  addChain({"image"}, call("flip"), call("rotate90"));
  Dataset dataset = openUnet();
  std::vector<std::vector<float>> seen;
  for (uint32_t epoch = 0; epoch < 100; ++epoch) {
    std::vector<float> values = dataset.sample(0, {true, 1, epoch})[0].values;
    if (std::find(seen.begin(), seen.end(), values) == seen.end())
      seen.push_back(values);
  }
  EXPECT_EQ(seen.size(), 8u);
}

TEST_F(DatasetTest, FlipMirrorsTheAxesItNames) {
  std::unique_ptr<artifact::CallT> flip = call("flip");
  flip->arguments.push_back(std::make_unique<artifact::ArgumentT>());
  flip->arguments.back()->name = "axes";
  flip->arguments.back()->text = "X";
  addChain({"image"}, std::move(flip));
  Dataset dataset = openUnet();
  std::vector<float> plain = dataset.sample(0, {})[0].values, mirrored = plain;
  for (size_t row = 0; row < 4; ++row)
    std::reverse(mirrored.begin() + 4 * static_cast<ptrdiff_t>(row),
                 mirrored.begin() + 4 * static_cast<ptrdiff_t>(row + 1));
  int seen = 0;
  for (uint32_t epoch = 0; epoch < 40; ++epoch) {
    std::vector<float> values = dataset.sample(0, {true, 1, epoch})[0].values;
    ASSERT_TRUE(values == plain || values == mirrored) << epoch;
    seen |= values == plain ? 1 : 2;
  }
  EXPECT_EQ(seen, 3);
}

TEST_F(DatasetTest, ChainsRenameSourcesToInputs) {
  source("volume", "NYX");
  addChain({"volume"}, call("normalize", "per_image"));
  pipeline.chains[0]->outputs = {"image"};
  unetFiles();
  std::vector<InputSpec> inputs = {{"image", DType::F32, {2, 1, 4, 4}, {}, true}};
  Dataset dataset = open(inputs, {{"volume", directory / "image.npy"}});
  EXPECT_EQ(dataset.sample(0, {})[0].values.size(), 16u);
  EXPECT_NE(failure(inputs, {{"image", directory / "image.npy"}}).find("it reads volume"),
            std::string::npos);
}

TEST_F(DatasetTest, AxesMayComeInAnyOrder) {
  source("image", "YXNC");
  std::vector<uint8_t> values(2 * 3 * 2 * 2);
  std::iota(values.begin(), values.end(), 0);
  writeFile(directory / "a.npy", npyBytes("|u1", "2, 3, 2, 2", bytesOfVector(values)));
  std::vector<InputSpec> inputs = {{"image", DType::F32, {2, 2, 2, 3}, {}, true}};
  Dataset dataset = open(inputs, {{"image", directory / "a.npy"}});
  ASSERT_EQ(dataset.samples(), 2);
  EXPECT_EQ(dataset.sample(1, {})[0].values,
            (std::vector<float>{2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23}));
}

TEST_F(DatasetTest, PredictionNeedsOnlyItsInputs) {
  addChain({"image", "mask"}, call("flip"));
  unetFiles();
  std::vector<InputSpec> inputs = {{"image", DType::F32, {1, 1, 4, 4}, {}, true}};
  Dataset dataset = open(inputs, {{"image", directory / "image.npy"}, {"mask", "/none"}});
  EXPECT_EQ(dataset.sample(0, {}).size(), 1u);
  EXPECT_EQ(dataset.notices().size(), 1u);
}

TEST_F(DatasetTest, NamesWhatDoesNotFit) {
  unetFiles();
  std::string image = directory / "image.npy", mask = directory / "mask.npy";
  auto expect = [&](std::vector<InputSpec> inputs, const DataPaths &paths,
                    const std::string &text) {
    std::string message = failure(std::move(inputs), paths);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  expect(unetInputs(), {{"image", image}}, "add --data mask=PATH");
  expect(unetInputs(), {{"picture", image}}, "it reads image, mask");
  expect(unetInputs(), {{"image", image}, {"image", image}}, "given twice");
  std::vector<InputSpec> larger = unetInputs();
  larger[0].shape = {2, 1, 8, 8};
  expect(larger, {{"image", image}, {"mask", mask}}, "samples of shape 1 x 4 x 4");
  expect(larger, {{"image", image}, {"mask", mask}}, "takes 1 x 8 x 8");
  writeFile(directory / "few.npy", npyBytes("|u1", "1, 4, 4", std::string(16, '\0')));
  expect(unetInputs(), {{"image", image}, {"mask", directory / "few.npy"}}, "few.npy' has 1");
  writeFile(directory / "flat.npy", npyBytes("|u1", "48,", std::string(48, '\0')));
  expect(unetInputs(), {{"image", directory / "flat.npy"}}, "or one less");
}

TEST_F(DatasetTest, ChecksLabels) {
  auto labels = [&](const std::string &descr, const std::string &bytes) {
    writeFile(directory / "label.npy", npyBytes(descr, "3,", bytes));
    std::vector<InputSpec> inputs = {{"mask", DType::I32, {2}, ValueRange{0, 9}, false}};
    return failure(inputs, {{"mask", directory / "label.npy"}});
  };
  EXPECT_EQ(labels("|u1", bytesOfVector<uint8_t>({0, 9, 3})), "no error");
  EXPECT_NE(labels("|u1", bytesOfVector<uint8_t>({0, 9, 10}))
                .find("label.npy': sample 2 has the value 10, but the loss or metric on input "
                      "mask takes 0..9: number the classes from 0"),
            std::string::npos);
  EXPECT_NE(labels("|u1", bytesOfVector<uint8_t>({0, 255, 3})).find("sample 1 has the value 255,"),
            std::string::npos);
  EXPECT_NE(labels("|i1", bytesOfVector<int8_t>({0, -1, 3})).find("the value -1"),
            std::string::npos);
  EXPECT_NE(labels("<f4", bytesOfVector<float>({0, 1, 3})).find("takes integers"),
            std::string::npos);
}

TEST_F(DatasetTest, TakesLabelsOfIgnoredClasses) {
  std::vector<InputSpec> inputs = {{"mask", DType::I32, {2}, ValueRange{0, 1, {255}}, false}};
  auto labels = [&](const std::vector<uint8_t> &values) {
    writeFile(directory / "label.npy", npyBytes("|u1", "3,", bytesOfVector(values)));
    return failure(inputs, {{"mask", directory / "label.npy"}});
  };
  EXPECT_EQ(labels({0, 255, 1}), "no error");
  EXPECT_NE(labels({0, 255, 2})
                .find("sample 2 has the value 2, but the loss or metric on input "
                      "mask takes 0..1 and 255: number the classes from 0"),
            std::string::npos);
  // 255 alone beside 0 is no mask's 1 here.
  EXPECT_EQ(labels({0, 255, 0}), "no error");
  Dataset dataset = open(inputs, {{"mask", directory / "label.npy"}});
  EXPECT_EQ(dataset.sample(1, {})[0].values[0], 255);
}

/// Masks of whole numbers are looked through before the first step.
TEST_F(DatasetTest, ChecksTargetsOfIntegersAtOnce) {
  std::vector<InputSpec> inputs = {{"mask", DType::F32, {2, 1, 2, 2}, ValueRange{0, 1}, false}};
  auto masks = [&](const std::vector<uint8_t> &values) {
    writeFile(directory / "mask.npy", npyBytes("|u1", "2, 2, 2", bytesOfVector(values)));
    return failure(inputs, {{"mask", directory / "mask.npy"}});
  };
  EXPECT_EQ(masks({0, 1, 0, 1, 1, 1, 0, 0}), "no error");
  EXPECT_EQ(masks({0, 255, 0, 255, 255, 255, 0, 0}), "no error"); // read as 0 and 1
  std::string message = masks({0, 0, 0, 0, 0, 100, 200, 0});
  EXPECT_NE(message.find("mask.npy': sample 1 has the value 100, but the loss or metric on input "
                         "mask takes 0..1: save it as 0 and 1"),
            std::string::npos)
      << message;
  // Not the 255 of sample 0, which would be read as 1 but for the 7.
  message = masks({0, 255, 0, 255, 0, 7, 255, 9});
  EXPECT_NE(message.find("mask.npy': sample 1 has the value 7 beside 0 and 255, but the loss or "
                         "metric on input mask takes 0..1: save it as 0 and 1"),
            std::string::npos)
      << message;
}

/// Floats are looked at when a sample is loaded, as the data steps leave it.
TEST_F(DatasetTest, ChecksTargetsOfFloatsWhenTheyAreLoaded) {
  std::vector<InputSpec> inputs = {{"mask", DType::F32, {2, 1, 1, 2}, ValueRange{0, 1}, false}};
  writeFile(directory / "mask.npy",
            npyBytes("<f4", "2, 1, 2", bytesOfVector<float>({0, 0.5f, 1, 1.5f})));
  Dataset dataset = open(inputs, {{"mask", directory / "mask.npy"}});
  EXPECT_EQ(dataset.sample(0, {})[0].values[1], 0.5f);
  std::string message = errorOf([&] { dataset.sample(1, {}); });
  EXPECT_NE(message.find("mask.npy': sample 1 has the value 1.5,"), std::string::npos) << message;
  // A step that makes other numbers of them decides.
  addChain({"mask"}, call("normalize", "per_image"));
  Dataset normalized = open(inputs, {{"mask", directory / "mask.npy"}});
  message = errorOf([&] { normalized.sample(0, {}); });
  EXPECT_NE(message.find("sample 0 after the data steps has the value -"), std::string::npos)
      << message;
}

/// Shares of the classes, as the data steps leave them.
TEST_F(DatasetTest, SharesOfClassesSumToOne) {
  std::vector<InputSpec> inputs = {{"mask", DType::F32, {2, 3}, ValueRange{0, 1}, false, true}};
  writeFile(directory / "label.npy",
            npyBytes("<f4", "4, 3",
                     bytesOfVector<float>({0.25f, 0.25f, 0.5f, 1, 0, 0, 0.3333f, 0.3333f, 0.3333f,
                                           0.5f, 0.25f, 0.125f})));
  Dataset dataset = open(inputs, {{"mask", directory / "label.npy"}});
  for (int64_t good : {0, 1, 2})
    EXPECT_EQ(dataset.sample(good, {})[0].values.size(), 3u);
  EXPECT_EQ(errorOf([&] { dataset.sample(3, {}); }),
            "'" + (directory / "label.npy") +
                "': sample 3 has shares of the classes that sum to 0.875, but the loss on input "
                "mask takes such that sum to 1: divide them by their sum, or pad images before "
                "one_hot");

  // Bytes, too, though each is in its range.
  writeFile(directory / "bytes.npy", npyBytes("|u1", "2, 3", std::string("\0\1\0\1\1\0", 6)));
  inputs[0].range.reset();
  Dataset bytes = open(inputs, {{"mask", directory / "bytes.npy"}});
  EXPECT_EQ(bytes.sample(0, {})[0].values, (std::vector<float>{0, 1, 0}));
  EXPECT_NE(errorOf([&] { bytes.sample(1, {}); }).find("that sum to 2,"), std::string::npos);

  // Of each pixel: 0 and 1 become shares, and the zeros around them none.
  std::vector<InputSpec> planes = {
      {"mask", DType::F32, {1, 2, 1, 4}, ValueRange{0, 1}, false, true}};
  writeFile(directory / "mask.npy", npyBytes("|u1", "1, 1, 4", std::string("\0\1\1\0", 4)));
  addChain({"mask"}, makeCall("one_hot", {ints("classes", {2})}));
  EXPECT_EQ(open(planes, {{"mask", directory / "mask.npy"}}).sample(0, {})[0].values,
            (std::vector<float>{1, 0, 0, 1, 0, 1, 1, 0}));
  addChain({"mask"}, makeCall("resize_pad", {ints("size", {2, 4})}));
  planes[0].shape = {1, 2, 2, 4};
  Dataset padded = open(planes, {{"mask", directory / "mask.npy"}});
  std::string message = errorOf([&] { padded.sample(0, {}); });
  EXPECT_NE(message.find("mask.npy': sample 0 after the data steps has shares of the classes that "
                         "sum to 0, but"),
            std::string::npos)
      << message;
}

TEST_F(DatasetTest, AChainMayTakeAnArrayTwice) {
  unetFiles();
  addChain({"image", "image"}, makeCall("flip"));
  pipeline.chains[0]->outputs = {"image", "mask"};
  Dataset dataset = open(unetInputs(), {{"image", directory / "image.npy"}});
  std::set<std::vector<float>> seen;
  for (int64_t place = 0; place < 20; ++place) {
    std::vector<Sample> sample = dataset.sample({1, place}, {true, 1, 0});
    EXPECT_EQ(sample[0].values, sample[1].values);
    seen.insert(sample[0].values);
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(DatasetTest, EachArrayIsNormalizedByItself) {
  writeFile(directory / "image.npy", npyBytes("|u1", "1, 1, 4", std::string("\0\0\10\10", 4)));
  writeFile(directory / "mask.npy", npyBytes("|u1", "1, 1, 4", std::string("\2\2\2\6", 4)));
  std::vector<InputSpec> inputs = {{"image", DType::F32, {1, 1, 1, 4}, {}},
                                   {"mask", DType::F32, {1, 1, 1, 4}, {}}};
  auto values = [&](int pass) {
    Dataset dataset =
        open(inputs, {{"image", directory / "image.npy"}, {"mask", directory / "mask.npy"}});
    std::vector<Sample> sample = dataset.sample(0, {});
    while (pass-- > 0)
      sample = dataset.sample(0, {});
    return std::pair(sample[0].values, sample[1].values);
  };
  // Of mean 4 and deviation 4, and of mean 3 and deviation the root of 3.
  addChain({"image", "mask"}, makeCall("normalize", {text("mode", "per_image")}));
  for (int pass : {0, 1}) {
    auto [image, mask] = values(pass);
    EXPECT_NEAR(image[0], -1, 1e-5);
    EXPECT_NEAR(mask[0], -1 / std::sqrt(3.0), 1e-5);
  }
  // From the lowest, 2, to the highest, 6, in a chain of its own.
  pipeline.chains.clear();
  addChain({"image"}, makeCall("normalize", {text("mode", "per_image")}));
  addChain({"mask"}, makeCall("normalize", {floats("percentile", {0, 100})}));
  for (int pass : {0, 1}) {
    auto [image, mask] = values(pass);
    EXPECT_NEAR(image[3], 1, 1e-5);
    EXPECT_NEAR(mask[3], 1, 1e-5);
    EXPECT_NEAR(mask[0], 0, 1e-5);
  }
}

TEST_F(DatasetTest, IntegersThatSamplesCannotCarryAreRefused) {
  writeFile(directory / "ids.npy", npyBytes("<i8", "2,", bytesOfVector<int64_t>({1, 1 << 30})));
  Dataset dataset = open({{"mask", DType::I32, {2}, {}, false}}, {{"mask", directory / "ids.npy"}});
  std::string message = errorOf([&] { dataset.sample(1, {}); });
  EXPECT_NE(message.find("input mask takes -16777216..16777216"), std::string::npos) << message;
}

TEST_F(DatasetTest, NumbersAreFinite) {
  std::vector<InputSpec> inputs = {{"image", DType::F32, {2, 1, 1, 2}, {}, true}};
  auto message = [&](const std::string &type, const std::string &bytes, int64_t sample) {
    writeFile(directory / "image.npy", npyBytes(type, "2, 1, 2", bytes));
    return errorOf([&] { open(inputs, {{"image", directory / "image.npy"}}).sample(sample, {}); });
  };
  std::string floats = bytesOfVector<float>({1, 2, NAN, -INFINITY});
  EXPECT_EQ(message("<f4", floats, 0), "no error");
  EXPECT_NE(message("<f4", floats, 1).find("image.npy': sample 1 holds nan: leave the sample out"),
            std::string::npos);
  EXPECT_NE(message("<f8", bytesOfVector<double>({1, 1e300, 3, 4}), 0).find("too large for f32"),
            std::string::npos);
}

TEST_F(DatasetTest, EmptyFilesAreRefused) {
  std::vector<InputSpec> inputs = {{"image", DType::F32, {2, 1, anyExtent, anyExtent}, {}, true}};
  for (const char *shape : {"0, 4, 4", "3, 0, 4"}) {
    writeFile(directory / "image.npy", npyBytes("|u1", shape, ""));
    std::string message = failure(inputs, {{"image", directory / "image.npy"}});
    EXPECT_NE(message.find("image.npy' ("), std::string::npos) << message;
    EXPECT_NE(message.find("holds no "), std::string::npos) << message;
  }
}

TEST_F(DatasetTest, HasShapesIfAllSamplesHave) {
  unetFiles();
  std::vector<InputSpec> any = {{"image", DType::F32, {2, 1, anyExtent, anyExtent}, {}, true},
                                {"mask", DType::I32, {2, anyExtent, anyExtent}, {}, false}};
  Dataset dataset =
      open(any, {{"image", directory / "image.npy"}, {"mask", directory / "mask.npy"}});
  auto have = [](const Dataset &dataset, int64_t height) {
    return dataset.haveShapes({{"image", DType::F32, {2, 1, height, 4}, {}, true},
                               {"mask", DType::I32, {2, height, 4}, {}, false}});
  };
  EXPECT_TRUE(have(dataset, 4));
  EXPECT_FALSE(have(dataset, 5));
  // What a directory of images gives: a channel, which the label lacks.
  source("image", "NYX");
  source("mask", "NCYX");
  writeFile(directory / "channel.npy", npyBytes("|u1", "3, 1, 4, 4", std::string(48, '\1')));
  Dataset channel =
      open(any, {{"image", directory / "image.npy"}, {"mask", directory / "channel.npy"}});
  EXPECT_TRUE(have(channel, 4));
  EXPECT_FALSE(have(channel, 5));
}

TEST_F(DatasetTest, UnknownStepsAreNamed) {
  addChain({"image"}, call("sharpen"));
  EXPECT_NE(failure(unetInputs(), {}).find("'sharpen' is not known"), std::string::npos);
}

/// A sample that comes twice in an epoch is drawn twice.
TEST_F(DatasetTest, DrawsFollowFromThePositionInTheEpoch) {
  addChain({"image"}, makeCall("brightness", {floats("delta", {1})}));
  Dataset dataset = openUnet();
  auto first = [&](Position at, uint32_t epoch) {
    return dataset.sample(at, {true, 3, epoch})[0].values[0];
  };
  EXPECT_NE(first({1, 1}, 0), first({1, 5}, 0));
  EXPECT_NE(first({1, 5}, 1), first({1, 5}, 0));
  EXPECT_NEAR(first({0, 5}, 0) - 1, first({1, 5}, 0) - 17, 1e-5);
}

/// What an input takes is what the steps make of the file.
TEST_F(DatasetTest, ShapesAreCheckedBehindTheSteps) {
  addChain({"image", "mask"}, makeCall("crop", {ints("size", {2})}));
  std::vector<InputSpec> inputs = unetInputs();
  std::string image = directory / "image.npy", mask = directory / "mask.npy";
  unetFiles();
  EXPECT_NE(failure(inputs, {{"image", image}, {"mask", mask}})
                .find("image.npy' (3 x 4 x 4) gives samples of shape 1 x 4 x 4, after the data "
                      "steps 1 x 2 x 2, but the model's input image takes 1 x 4 x 4"),
            std::string::npos);
  inputs[0].shape = inputs[1].shape = {2, 1, 2, 2};
  Dataset dataset = open(inputs, {{"image", image}, {"mask", mask}});
  EXPECT_EQ(dataset.sample(0, {})[0].values, (std::vector<float>{6, 7, 10, 11}));
  pipeline.chains[0]->steps[0] = makeCall("crop", {ints("size", {5})});
  EXPECT_NE(failure(inputs, {{"image", image}, {"mask", mask}})
                .find("image.npy' (3 x 4 x 4): data step crop takes 5 x 5 of an image that is only "
                      "4 x 4"),
            std::string::npos);
}

/// Masks are inputs whose range a loss knows; images of the same chain are blended.
TEST_F(DatasetTest, MasksAreResizedToTheNearest) {
  addChain({"image", "mask"}, makeCall("resize", {ints("size", {2, 8})}),
           makeCall("brightness", {floats("delta", {1})}));
  unetFiles();
  std::vector<InputSpec> inputs = unetInputs();
  inputs[0].shape = inputs[1].shape = {2, 1, 2, 8};
  inputs[1].range = ValueRange{0, 1};
  Dataset dataset =
      open(inputs, {{"image", directory / "image.npy"}, {"mask", directory / "mask.npy"}});
  std::vector<Sample> sample = dataset.sample(0, {});
  // Rows 0 and 1 blended; row 1 is the nearest. 5 6 7 8 is a mask of 1 0 1 1.
  EXPECT_EQ(sample[0].values[0], 3);
  EXPECT_EQ(sample[0].values[1], 3.25f);
  EXPECT_EQ(std::vector<float>(sample[1].values.begin(), sample[1].values.begin() + 8),
            (std::vector<float>{1, 1, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(dataset.notices().size(), 1u); // still read as 0 and 1
  EXPECT_EQ(dataset.sample(0, {true, 1, 1})[1].values, sample[1].values);
}

TEST_F(DatasetTest, StepsNameTheSampleThatTheyCannotTake) {
  addChain({"mask"}, makeCall("one_hot", {ints("classes", {2})}));
  writeFile(directory / "mask.npy", npyBytes("|u1", "3, 1, 1", bytesOfVector<uint8_t>({0, 1, 2})));
  Dataset dataset =
      open({{"mask", DType::F32, {1, 2, 1, 1}, {}, false}}, {{"mask", directory / "mask.npy"}});
  EXPECT_EQ(dataset.sample(1, {})[0].values, (std::vector<float>{0, 1}));
  EXPECT_NE(errorOf([&] { dataset.sample(2, {}); })
                .find("mask.npy': sample 2: data step one_hot of 2 classes met the value 2: number "
                      "the classes from 0 to 1, or give one_hot more of them"),
            std::string::npos);
}

/// What normalize did to a sample is undone in an output predicted for it, whatever it measures.
TEST_F(DatasetTest, OutputsReturnToTheUnitsOfASource) {
  auto restore = [&](CallPointer normalize, int64_t index) {
    pipeline.chains.clear();
    addChain({"image"}, std::move(normalize));
    addChain({"y"}, makeCall("denormalize", {text("source", "image")}));
    Dataset dataset = open({unetInputs()[0]}, {{"image", directory / "image.npy"}});
    dataset.measureStatistics({0, 2});
    std::vector<float> values = dataset.sample(index, {})[0].values;
    dataset.restoreUnits("other", index, 1, values); // not said of this one
    EXPECT_EQ(values, dataset.sample(index, {})[0].values);
    dataset.restoreUnits("y", index, 1, values);
    return values;
  };
  unetFiles();
  for (int64_t index : {0, 2})
    for (int form = 0; form < 4; ++form) {
      CallPointer normalize = form == 0   ? call("normalize", "dataset")
                              : form == 1 ? call("normalize", "per_image")
                              : form == 2 ? normalizeBy(3, 2)
                                          : makeCall("normalize", {floats("percentile", {10, 90})});
      std::vector<float> values = restore(std::move(normalize), index);
      for (size_t i = 0; i < 16; ++i)
        EXPECT_NEAR(values[i], static_cast<float>(index * 16) + static_cast<float>(i) + 1, 1e-4);
    }
  addChain({"z"}, makeCall("denormalize", {text("source", "mask")}));
  Dataset dataset = open({unetInputs()[0]}, {{"image", directory / "image.npy"}});
  std::vector<float> values(16);
  EXPECT_NE(errorOf([&] {
              dataset.restoreUnits("z", 0, 1, values);
            }).find("undoes normalize of mask, which has none"),
            std::string::npos);
}

TEST_F(DatasetTest, ASourceMayFeedSeveralChains) {
  source("file", "NYX");
  addChain({"file"}, normalizeBy(1, 2));
  addChain({"file"});
  pipeline.chains[0]->outputs = {"image"};
  pipeline.chains[1]->outputs = {"mask"};
  unetFiles();
  std::vector<Sample> sample =
      open(unetInputs(), {{"file", directory / "image.npy"}}).sample(0, {});
  EXPECT_EQ(sample[0].values[2], 1);
  EXPECT_EQ(sample[1].values[2], 3);
}

} // namespace
} // namespace dlc::rt::test
