#include "runtime/data/Dataset.h"
#include "runtime/data/Png.h"
#include "runtime/data/TiffWriter.h"
#include "runtime/data/readers/Array.h"
#include "runtime/data/readers/ImageCache.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/Calls.h"
#include "test/unit/data/TestFiles.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <tiffio.h>

namespace dlc::rt::test {
namespace {

std::string readError(const std::string &path) {
  return errorOf([&] { readArray(path); });
}

/// Pages of u16 pixels that count up.
std::string writeTiff(const std::string &path, uint32_t pages, uint32_t height, uint32_t width,
                      uint16_t channels) {
  TIFF *file = TIFFOpen(path.c_str(), "w");
  uint16_t next = 0;
  for (uint32_t page = 0; page < pages; ++page) {
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, height);
    TIFFSetField(file, TIFFTAG_IMAGEWIDTH, width);
    TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 16);
    TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, channels);
    TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(file, TIFFTAG_COMPRESSION, COMPRESSION_LZW);
    for (uint32_t row = 0; row < height; ++row) {
      std::vector<uint16_t> line(size_t{width} * channels);
      for (uint16_t &value : line)
        value = next++;
      TIFFWriteScanline(file, line.data(), row, 0);
    }
    TIFFWriteDirectory(file);
  }
  TIFFClose(file);
  return path;
}

TEST(Images, ReadsTiffStacks) {
  TemporaryDirectory directory;
  Array stack = readArray(writeTiff(directory / "a.tif", 3, 2, 4, 1));
  EXPECT_EQ(stack.shape(), (std::vector<int64_t>{3, 2, 4}));
  EXPECT_EQ(stack.type(), ElementType::U16);
  EXPECT_EQ(stack.at(23), 23);
}

/// ImageJ wants channels fastest, then slices, then frames.
TEST(Images, WritesTiffStacksInImageJsOrder) {
  TemporaryDirectory directory;
  TiffStack stack{2, 3, 2, 2, 2}; // frames, channels, slices
  std::vector<float> values(48);
  std::iota(values.begin(), values.end(), 0.0f);
  std::string path = directory / "a.tif";
  rt::writeTiff(path, stack, values, TiffPixels::F32, 0, 47);
  Array written = readArray(path);
  EXPECT_EQ(written.shape(), (std::vector<int64_t>{12, 2, 2}));
  EXPECT_EQ(written.type(), ElementType::F32);
  for (int64_t frame = 0, page = 0; frame < 2; ++frame)
    for (int64_t slice = 0; slice < 2; ++slice)
      for (int64_t channel = 0; channel < 3; ++channel, ++page)
        EXPECT_EQ(written.at(4 * page), 4 * ((frame * 3 + channel) * 2 + slice));
  TIFF *file = TIFFOpen(path.c_str(), "r");
  char *text = nullptr;
  TIFFGetField(file, TIFFTAG_IMAGEDESCRIPTION, &text);
  EXPECT_STREQ(text, "ImageJ=1.54f\nimages=12\nchannels=3\nslices=2\nframes=2\nhyperstack=true\n"
                     "mode=grayscale\nloop=false\nmin=0\nmax=47\n");
  TIFFClose(file);
}

TEST(Images, IntegerTiffShowsARangeAsBlackToWhite) {
  TemporaryDirectory directory;
  std::vector<float> values = {-1, 0, 0.5f, 3};
  values[1] = NAN;
  rt::writeTiff(directory / "a.tif", {1, 1, 1, 2, 2}, values, TiffPixels::U16, -1, 2);
  Array written = readArray(directory / "a.tif");
  EXPECT_EQ(written.type(), ElementType::U16);
  EXPECT_EQ(written.at(0), 0);
  EXPECT_EQ(written.at(1), 65535); // no number: white
  EXPECT_EQ(written.at(2), 32768); // 32767.5 rounds up
  EXPECT_EQ(written.at(3), 65535); // beyond the range
}

TEST(Images, ATiffThatCannotBeWrittenNamesTheFile) {
  std::vector<float> values(4);
  std::string message = errorOf(
      [&] { rt::writeTiff("/proc/none/a.tif", {1, 1, 1, 2, 2}, values, TiffPixels::F32, 0, 1); });
  EXPECT_NE(message.find("cannot write '/proc/none/a.tif'"), std::string::npos) << message;
}

TEST(Images, ChannelsComeBeforeHeightAndWidth) {
  TemporaryDirectory directory;
  Array stack = readArray(writeTiff(directory / "a.tif", 2, 2, 4, 3));
  EXPECT_EQ(stack.shape(), (std::vector<int64_t>{2, 3, 2, 4}));
  EXPECT_EQ(stack.at(1), 3);   // second pixel of the first channel
  EXPECT_EQ(stack.at(8), 1);   // first pixel of the second channel
  EXPECT_EQ(stack.at(24), 24); // second page
}

TEST(Images, RoundTripsPng) {
  TemporaryDirectory directory;
  std::vector<uint8_t> pixels = {0, 1, 2, 253, 254, 255};
  writePng(directory / "a.png", 2, 3, pixels);
  Array image = readArray(directory / "a.png");
  EXPECT_EQ(image.shape(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(image.at(4), 254);
}

/// A data set of what a path gives input x of a shape.
Dataset openAs(const std::string &path, const std::vector<int64_t> &shape,
               const artifact::DataPipelineT &pipeline = {}) {
  return Dataset(pipeline, {{"x", artifact::DType::F32, shape, {}, true}}, {"x"}, {{"x", path}});
}

/// As volumes, of files that need not be samples.
Dataset openSlices(const std::string &path, const std::vector<int64_t> &shape) {
  artifact::DataPipelineT pipeline;
  pipeline.sources.push_back(std::make_unique<artifact::DataSourceT>());
  pipeline.sources[0]->name = "x";
  pipeline.sources[0]->axes = "ZYX";
  return openAs(path, shape, pipeline);
}

TEST(Images, ReadsDirectoriesInTheOrderOfStems) {
  TemporaryDirectory directory;
  std::vector<uint8_t> pixels = {0, 0};
  for (uint8_t value : {2, 0, 1}) {
    pixels[0] = value;
    writePng(directory / (std::string(1, static_cast<char>('a' + value)) + ".png"), 1, 2, pixels);
  }
  writeFile(directory / "notes.txt", "not an image");
  Dataset dataset = openAs(directory.path.string(), {1, 1, 1, 2});
  EXPECT_EQ(dataset.samples(), 3);
  EXPECT_EQ(dataset.sampleNames(), (std::vector<std::string>{"a", "b", "c"}));
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(dataset.sample(i, {})[0].values[0], static_cast<float>(i));
  writeTiff(directory / "e.tif", 1, 1, 2, 1);
  std::string message = errorOf([&] { openAs(directory.path.string(), {1, 1, 1, 2}); });
  EXPECT_NE(message.find("e.tif' is u16 and the first is u8"), std::string::npos) << message;
}

/// Samples of several sizes need a step that makes them alike.
TEST(Images, DirectoriesHoldASampleAFile) {
  TemporaryDirectory directory;
  writePng(directory / "a.png", 1, 2, std::vector<uint8_t>{1, 2});
  writePng(directory / "b.png", 2, 2, std::vector<uint8_t>{1, 2, 3, 4});
  std::string message = errorOf([&] { openAs(directory.path.string(), {1, 1, 2, 2}); });
  EXPECT_NE(message.find("a.png' (1 x 1 x 2) gives samples of shape 1 x 1 x 2, but the model's "
                         "input x takes 1 x 2 x 2; '" +
                         (directory / "b.png") +
                         "' gives 1 x 2 x 2: resize_pad(size) in the data block makes images of "
                         "several sizes alike"),
            std::string::npos)
      << message;
  artifact::DataPipelineT pipeline;
  pipeline.chains.push_back(std::make_unique<artifact::DataChainT>());
  pipeline.chains[0]->inputs = pipeline.chains[0]->outputs = {"x"};
  pipeline.chains[0]->steps.push_back(makeCall("resize_pad", {ints("size", {2})}));
  Dataset dataset = openAs(directory.path.string(), {1, 1, 2, 2}, pipeline);
  EXPECT_EQ(dataset.sampleNames(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(dataset.sample(0, {})[0].values, (std::vector<float>{1, 2, 0, 0}));
  EXPECT_EQ(dataset.sample(1, {})[0].values, (std::vector<float>{1, 2, 3, 4}));
}

/// Models say NYXC of arrays that end in channels; of images the reader knows better.
TEST(Images, ChannelsOfImagesAreWhereTheReaderPutsThem) {
  TemporaryDirectory directory;
  writeTiff(directory / "rgb.tif", 1, 2, 4, 3);
  writeTiff(directory / "grey.tif", 1, 2, 4, 1);
  auto second = [&](const char *name, const char *axes, int64_t channels) {
    artifact::DataPipelineT pipeline;
    pipeline.sources.push_back(std::make_unique<artifact::DataSourceT>());
    pipeline.sources[0]->name = "x";
    pipeline.sources[0]->axes = axes;
    return openAs(directory / name, {1, channels, 2, 4}, pipeline).sample(0, {})[0].values[1];
  };
  for (const char *axes : {"", "NYXC", "NCYX", "CYX", "YXC", "NYX"})
    EXPECT_EQ(second("rgb.tif", axes, 3), 3) << axes; // of the first channel
  for (const char *axes : {"", "NYXC", "NCYX", "NYX", "YX"})
    EXPECT_EQ(second("grey.tif", axes, 1), 1) << axes;
}

TEST(Images, ColoursOfADirectoryAreAlike) {
  TemporaryDirectory directory;
  writeTiff(directory / "a.tif", 1, 2, 2, 1);
  writeTiff(directory / "b.tif", 1, 2, 2, 3);
  std::string message = errorOf([&] { openAs(directory.path.string(), {1, 3, 2, 2}); });
  EXPECT_NE(message.find("a.tif' (1 x 2 x 2) gives samples of shape 1 x 2 x 2, but the model's "
                         "input x takes 3 x 2 x 2; '" +
                         (directory / "b.tif") +
                         "' gives 3 x 2 x 2: save all images as grey, or all as RGB"),
            std::string::npos)
      << message;
}

/// What each step that makes images alike leaves of 4 x 6 and 6 x 4 pixels, which count up.
TEST(Images, SizesMayDifferBeforeAStepThatMakesThemAlike) {
  TemporaryDirectory directory;
  std::vector<uint8_t> pixels(24);
  std::iota(pixels.begin(), pixels.end(), uint8_t{0});
  writePng(directory / "a.png", 4, 6, pixels);
  writePng(directory / "b.png", 6, 4, pixels);
  auto first = [&](CallPointer call) {
    artifact::DataPipelineT pipeline;
    pipeline.chains.push_back(std::make_unique<artifact::DataChainT>());
    pipeline.chains[0]->inputs = pipeline.chains[0]->outputs = {"x"};
    pipeline.chains[0]->steps.push_back(std::move(call));
    Dataset dataset = openAs(directory.path.string(), {1, 1, 2, 2}, pipeline);
    std::vector<float> values;
    for (int64_t sample : dataset.evaluationSamples()) {
      std::vector<Sample> samples = dataset.sample(sample, {});
      EXPECT_EQ(samples[0].shape, (std::vector<int64_t>{1, 2, 2}));
      values.push_back(samples[0].values[0]);
    }
    return values;
  };
  // The centre is at (1, 2) and at (2, 1); halves and thirds meet at means of four and of two.
  EXPECT_EQ(first(makeCall("crop", {ints("size", {2})})), (std::vector<float>{8, 9}));
  EXPECT_EQ(first(makeCall("random_crop", {ints("size", {2}), ints("padding", {0})})),
            (std::vector<float>{8, 9}));
  EXPECT_EQ(first(makeCall("resize", {ints("size", {2})})), (std::vector<float>{4, 4.5f}));
  EXPECT_EQ(first(makeCall("random_resized_crop", {ints("size", {2}), floats("scale", {0.5, 1}),
                                                   floats("ratio", {1, 1})})),
            (std::vector<float>{4, 4.5f}));
  // Six patches of each, 2 x 3 and 3 x 2.
  EXPECT_EQ(first(makeCall("patches", {ints("size", {2})})),
            (std::vector<float>{0, 2, 4, 12, 14, 16, 0, 2, 8, 10, 16, 18}));
  // A step that only one of them allows.
  std::string message = errorOf([&] { first(makeCall("crop", {ints("size", {5})})); });
  EXPECT_NE(message.find("a.png' (1 x 4 x 6): data step crop takes 5 x 5 of an image that is only "
                         "4 x 6: put resize_pad before it, or take less"),
            std::string::npos)
      << message;
}

/// A directory of any size within a limit: its images are decoded when they are read.
TEST(Images, DirectoriesAreNotHeldInMemory) {
  TemporaryDirectory directory;
  constexpr int64_t images = 40, side = 64, bytes = side * side;
  for (int64_t i = 0; i < images; ++i)
    writePng(directory / (std::to_string(100 + i) + ".png"), side, side,
             std::vector<uint8_t>(bytes, static_cast<uint8_t>(i)));
  artifact::DataPipelineT pipeline;
  pipeline.chains.push_back(std::make_unique<artifact::DataChainT>());
  pipeline.chains[0]->inputs = pipeline.chains[0]->outputs = {"x"};
  pipeline.chains[0]->steps.push_back(makeCall("normalize", {text("", "dataset")}));
  auto cache = std::make_shared<ImageCache>(5 * bytes + 1);
  Dataset dataset(pipeline, {{"x", artifact::DType::F32, {1, 1, side, side}, {}, true}}, {"x"},
                  {{"x", directory.path.string()}}, false, cache);
  EXPECT_EQ(cache->decoded(), 0u); // headers say all that opening asks for
  std::vector<int64_t> all(images);
  std::iota(all.begin(), all.end(), 0);
  dataset.measureStatistics(all);
  EXPECT_EQ(cache->decoded(), 40u); // one pass
  EXPECT_FLOAT_EQ(dataset.statistics().at("data.x.mean")[0], 19.5f);
  // (40^2 - 1) / 12 is the variance of 0..39.
  float deviation = dataset.statistics().at("data.x.std")[0];
  EXPECT_FLOAT_EQ(deviation, std::sqrt(1599.0f / 12));
  for (int64_t i = 0; i < images; ++i) {
    EXPECT_FLOAT_EQ(dataset.sample(i, {})[0].values[0],
                    (static_cast<float>(i) - 19.5f) / (deviation + 1e-6f));
    EXPECT_EQ(cache->bytes(), 5u * bytes);
  }
  EXPECT_EQ(cache->decoded(), 80u);
  dataset.sample(38, {}); // one of the last five
  EXPECT_EQ(cache->decoded(), 80u);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DLC_SANITIZER_OWNS_MEMORY
#endif
#endif
#ifndef DLC_SANITIZER_OWNS_MEMORY
/// 128 MiB of pixels in a process that may take 48 MiB more than it has.
TEST(Images, DirectoriesMayBeLargerThanMemory) {
  TemporaryDirectory directory;
  constexpr int64_t images = 32, side = 2048;
  writePng(directory / "000.png", side, side, std::vector<uint8_t>(side * side, 7));
  for (int64_t i = 1; i < images; ++i)
    std::filesystem::copy_file(directory / "000.png", directory / (std::to_string(i) + ".png"));
  auto visit = [&] {
    std::ifstream file("/proc/self/statm");
    rlim_t pages[6] = {};
    for (rlim_t &number : pages)
      file >> number;
    rlim_t most = pages[5] * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (48 << 20);
    rlimit limit = {most, most};
    ::setrlimit(RLIMIT_DATA, &limit);
    Dataset dataset({}, {{"x", artifact::DType::F32, {1, 1, side, side}, {}, true}}, {"x"},
                    {{"x", directory.path.string()}}, false, std::make_shared<ImageCache>(8 << 20));
    double sum = 0;
    for (int64_t i = 0; i < images; ++i)
      sum += dataset.sample(i, {})[0].values[static_cast<size_t>(i)];
    ::_exit(sum == 7.0 * images ? 0 : 1);
  };
  EXPECT_EXIT(visit(), ::testing::ExitedWithCode(0), "");
}
#endif

TEST(Images, FilesThatChangeMeanwhileAreNamed) {
  TemporaryDirectory directory;
  writePng(directory / "a.png", 1, 2, std::vector<uint8_t>{1, 2});
  Dataset dataset = openAs(directory.path.string(), {1, 1, 1, 2});
  writePng(directory / "a.png", 1, 3, std::vector<uint8_t>{1, 2, 3});
  std::string message = errorOf([&] { dataset.sample(0, {}); });
  EXPECT_NE(message.find("a.png' has changed since it was opened: start again"), std::string::npos)
      << message;
}

TEST(Images, DirectoriesOfStacksHoldAVolumeAFile) {
  TemporaryDirectory directory;
  for (const char *name : {"v.tif", "w.tif"})
    writeTiff(directory / name, 3, 2, 4, 1);
  Dataset dataset = openSlices(directory.path.string(), {1, 1, 3, 2, 4});
  EXPECT_EQ(dataset.samples(), 2);
  EXPECT_EQ(dataset.sampleNames(), (std::vector<std::string>{"v", "w"}));
  EXPECT_EQ(dataset.sample(1, {})[0].shape, (std::vector<int64_t>{1, 3, 2, 4}));
}

TEST(Images, SlicesFollowEachOtherByTheirNumbers) {
  TemporaryDirectory directory;
  for (uint8_t slice = 0; slice < 12; ++slice)
    writePng(directory / ("z" + std::to_string(slice) + ".png"), 1, 1, std::vector<uint8_t>{slice});
  Dataset dataset = openSlices(directory.path.string(), {1, 1, 12, 1, 1});
  ASSERT_EQ(dataset.samples(), 1);
  std::vector<float> values = dataset.sample(0, {})[0].values;
  EXPECT_TRUE(std::ranges::is_sorted(values));
}

TEST(Images, NumbersInNamesCountByTheirValue) {
  std::vector<std::string> names = {"b",    "a10",  "a2b1", "a2",   "a02",  "a1x",
                                    "a2b0", "a010", "a",    "a1y3", "a1y20"};
  std::ranges::sort(names, comesBefore);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "a1x", "a1y3", "a1y20", "a2", "a02", "a2b0",
                                             "a2b1", "a10", "a010", "b"}));
}

TEST(Images, DirectoriesPairByStem) {
  TemporaryDirectory directory;
  std::vector<uint8_t> pixels = {0, 1};
  for (const char *name : {"image", "mask"})
    std::filesystem::create_directory(directory / name);
  writePng(directory / "image/a.png", 1, 2, pixels);
  writePng(directory / "mask/b.png", 1, 2, pixels);
  std::string message = errorOf([&] {
    Dataset dataset({},
                    {{"image", artifact::DType::F32, {1, 1, 1, 2}, {}, true},
                     {"mask", artifact::DType::F32, {1, 1, 1, 2}, {}, false}},
                    {"image", "mask"},
                    {{"image", directory / "image"}, {"mask", directory / "mask"}});
  });
  EXPECT_NE(message.find("mask' has no image named a or a_mask for mask"), std::string::npos)
      << message;
}

/// Files of a directory need not be samples: there they are the channels of one.
TEST(Images, DirectoriesOfOtherAxesDoNotPair) {
  TemporaryDirectory directory;
  std::vector<uint8_t> pixels = {0, 1};
  for (const char *name : {"image", "mask"})
    std::filesystem::create_directory(directory / name);
  for (const char *name : {"image/r", "image/g", "image/b", "mask/a"})
    writePng(directory / (std::string(name) + ".png"), 1, 2, pixels);
  artifact::DataPipelineT pipeline;
  for (const char *name : {"image", "mask"}) {
    pipeline.sources.push_back(std::make_unique<artifact::DataSourceT>());
    pipeline.sources.back()->name = name;
    pipeline.sources.back()->axes = "CYX";
  }
  Dataset dataset(pipeline,
                  {{"image", artifact::DType::F32, {1, 3, 1, 2}, {}, true},
                   {"mask", artifact::DType::F32, {1, 1, 1, 2}, {}, false}},
                  {"image", "mask"},
                  {{"image", directory / "image"}, {"mask", directory / "mask"}});
  EXPECT_EQ(dataset.samples(), 1);
  EXPECT_TRUE(dataset.sampleNames().empty());
  EXPECT_EQ(dataset.sample(0, {})[0].values.size(), 6u);
}

/// A TIFF directory of `tags` (type, count, value); `extra` bytes lie at offset 8.
struct Tag {
  uint16_t tag, type;
  uint32_t count, value;
};
std::string tiffOf(const std::vector<Tag> &tags, const std::string &extra) {
  auto number = [](auto value) { return bytesOfVector<decltype(value)>({value}); };
  std::string bytes = "II" + number(uint16_t{42}) + number(static_cast<uint32_t>(8 + extra.size()));
  bytes += extra + number(static_cast<uint16_t>(tags.size()));
  for (const Tag &tag : tags)
    bytes += number(tag.tag) + number(tag.type) + number(tag.count) + number(tag.value);
  return bytes + number(uint32_t{0});
}

/// Half a megabyte that names one strip for each of its 2^15 planes of 2^18 x 2^31 pixels: the
/// product of its fields is 2^64.
TEST(Images, TiffFieldsWhoseProductWrapsAreRefused) {
  TemporaryDirectory directory;
  std::string pixels(1 << 18, '\0');
  std::string offsets = bytesOfVector(std::vector<uint32_t>(1 << 15, 8));
  std::string extra = pixels + offsets + bytesOfVector(std::vector<uint32_t>(1 << 15, 1 << 18));
  auto at = static_cast<uint32_t>(8 + pixels.size());
  std::string bytes = tiffOf({{256, 4, 1, 1 << 18},
                              {257, 4, 1, 1u << 31},
                              {258, 3, 1, 8},
                              {259, 3, 1, 1},
                              {262, 3, 1, 1},
                              {273, 4, 1 << 15, at},
                              {277, 3, 1, 1 << 15},
                              {279, 4, 1 << 15, at + static_cast<uint32_t>(offsets.size())},
                              {284, 3, 1, 2}},
                             extra);
  std::string message = readError(writeFile(directory / "a.tif", bytes));
  EXPECT_NE(message.find("impossible size"), std::string::npos) << message;
}

/// Sizes that fit 63 bits and no file.
TEST(Images, FilesThatPromiseMoreThanTheyHoldAreRefused) {
  TemporaryDirectory directory;
  std::string bytes = tiffOf({{256, 4, 1, 1 << 16},
                              {257, 4, 1, 1 << 16},
                              {258, 3, 1, 8},
                              {259, 3, 1, 1},
                              {262, 3, 1, 1},
                              {273, 4, 1, 8},
                              {277, 3, 1, 1},
                              {278, 4, 1, 1 << 16},
                              {279, 4, 1, 4}},
                             "abcd");
  std::string message = readError(writeFile(directory / "a.tif", bytes));
  EXPECT_NE(message.find("promises 4294967296 bytes, more than"), std::string::npos) << message;
}

TEST(Images, TiffKindsThatAreNotReadSayWhatToDo) {
  TemporaryDirectory directory;
  auto kind = [&](uint32_t bits, uint32_t format, uint32_t colours, uint32_t samples = 1) {
    return readError(writeFile(directory / "a.tif", tiffOf({{256, 4, 1, 2},
                                                            {257, 4, 1, 2},
                                                            {258, 3, 1, bits},
                                                            {259, 3, 1, 1},
                                                            {262, 3, 1, colours},
                                                            {273, 4, 1, 8},
                                                            {277, 3, 1, samples},
                                                            {278, 4, 1, 2},
                                                            {279, 4, 1, 16},
                                                            {339, 3, 1, format}},
                                                           std::string(16, '\1'))));
  };
  EXPECT_EQ(kind(8, SAMPLEFORMAT_UINT, PHOTOMETRIC_MINISBLACK), "no error");
  EXPECT_EQ(kind(16, SAMPLEFORMAT_IEEEFP, PHOTOMETRIC_MINISBLACK), "no error");
  EXPECT_NE(kind(1, SAMPLEFORMAT_UINT, PHOTOMETRIC_MINISBLACK).find("save it with 8, 16 or 32"),
            std::string::npos);
  EXPECT_NE(kind(32, SAMPLEFORMAT_COMPLEXINT, PHOTOMETRIC_MINISBLACK).find("complex numbers"),
            std::string::npos);
  std::string colours = kind(8, SAMPLEFORMAT_UINT, PHOTOMETRIC_YCBCR, 3);
  EXPECT_NE(colours.find("grey nor RGB"), std::string::npos) << colours;
}

TEST(Images, PagesThatDifferOrAreMissingAreRefused) {
  TemporaryDirectory directory;
  std::string path = writeTiff(directory / "a.tif", 1, 2, 4, 1);
  TIFF *file = TIFFOpen(path.c_str(), "a");
  TIFFSetField(file, TIFFTAG_IMAGELENGTH, 1);
  TIFFSetField(file, TIFFTAG_IMAGEWIDTH, 4);
  TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 16);
  uint64_t line = 0;
  TIFFWriteScanline(file, &line, 0, 0);
  TIFFClose(file);
  std::string message = readError(path);
  EXPECT_NE(message.find("page 1 is 1 x 1 x 4 of 16 bits, the first one 1 x 2 x 4 of 16 bits"),
            std::string::npos)
      << message;
  // The last directory is cut off: its pages do not end silently.
  path = writeTiff(directory / "b.tif", 3, 2, 4, 1);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 20);
  message = readError(path);
  EXPECT_NE(message.find("truncated or damaged"), std::string::npos) << message;
}

/// What a library says on stderr would be a second line.
TEST(Images, LibrariesAreSilent) {
  TemporaryDirectory directory;
  std::vector<uint8_t> pixels(64 * 64, 7);
  writePng(directory / "a.png", 64, 64, pixels);
  std::filesystem::resize_file(directory / "a.png", 60);
  std::string tiff = writeTiff(directory / "a.tif", 1, 20, 40, 1);
  std::filesystem::resize_file(tiff, 100);
  ::testing::internal::CaptureStderr();
  EXPECT_NE(readError(directory / "a.png"), "no error");
  EXPECT_NE(readError(tiff), "no error");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Images, DamagedFilesAreNamed) {
  TemporaryDirectory directory;
  std::string tiff = writeTiff(directory / "a.tif", 1, 20, 40, 1);
  std::filesystem::resize_file(tiff, 100);
  EXPECT_NE(readError(tiff).find("a.tif'"), std::string::npos);
  std::vector<uint8_t> pixels(64 * 64, 7);
  writePng(directory / "a.png", 64, 64, pixels);
  std::filesystem::resize_file(directory / "a.png", 60);
  EXPECT_NE(readError(directory / "a.png").find("truncated or damaged"), std::string::npos);
  std::filesystem::create_directory(directory / "empty");
  std::string message = errorOf([&] { openAs(directory / "empty", {1, 1, 1, 2}); });
  EXPECT_NE(message.find("empty' holds no PNG, TIFF or JPEG images"), std::string::npos);
}

} // namespace
} // namespace dlc::rt::test
