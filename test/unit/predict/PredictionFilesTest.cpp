#include "runtime/predict/PredictionFiles.h"

#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"

#include <gtest/gtest.h>

#include <map>

namespace dlc::rt::test {
namespace {

std::map<std::string, std::string> filesOf(const TemporaryDirectory &directory) {
  std::map<std::string, std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(directory.path))
    files[entry.path().filename()] = contentOf(entry.path());
  return files;
}

/// One square of values that no format can compress.
Prediction square(int64_t edge) {
  Prediction prediction = {"p", {1, edge, edge}, {}, {"a"}, ""};
  uint32_t number = 1;
  for (int64_t i = 0; i < edge * edge; ++i)
    prediction.values.push_back(static_cast<float>((number = number * 1664525 + 1013904223) >> 8));
  return prediction;
}

TEST(PredictionFiles, AFullDiskKeepsTheOldFiles) {
  for (PredictionFormat format :
       {PredictionFormat::Npy, PredictionFormat::Png, PredictionFormat::Tiff,
        PredictionFormat::Tiff8, PredictionFormat::Tiff16}) {
    TemporaryDirectory directory;
    auto write = [&](int64_t edge) {
      writePrediction(square(edge), 1, {format}, directory.path.string());
    };
    write(8);
    const std::map<std::string, std::string> before = filesOf(directory);
    EXPECT_EQ(before.size(), 1u);
    std::string message = errorOf([&] {
      FullDisk full(5000);
      write(100);
    });
    EXPECT_EQ(message, "cannot write '" + (directory / before.begin()->first) +
                           "': File too large; the file that was there is kept");
    EXPECT_TRUE(filesOf(directory) == before);
  }
}

} // namespace
} // namespace dlc::rt::test
