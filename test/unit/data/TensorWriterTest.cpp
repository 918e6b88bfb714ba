#include "runtime/data/TensorWriter.h"
#include "runtime/artifact/Error.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

namespace dlc::rt {
namespace {

/// Every layout puts each element where Layout::offsetOf says and leaves the rest zero.
TEST(TensorWriter, FollowsTheLayout) {
  std::vector<int64_t> shape = {2, 3, 4, 5};
  for (const char *text : {"nchw", "nhwc", "nChw16c", "nChw2c"}) {
    Layout layout = *Layout::parse(text);
    TensorWriter writer(artifact::DType::F32, shape, layout);
    std::vector<float> tensor(writer.tensorBytes() / 4, 0.0f);
    ASSERT_EQ(static_cast<int64_t>(tensor.size()), layout.physicalElements(shape));
    for (int64_t row = 0; row < 2; ++row) {
      std::vector<float> values(static_cast<size_t>(writer.rowElements()));
      std::iota(values.begin(), values.end(), static_cast<float>(1 + row * 60));
      writer.writeRow(row, values, std::as_writable_bytes(std::span(tensor)));
    }
    float next = 1, sum = 0;
    for (int64_t n = 0; n < 2; ++n)
      for (int64_t c = 0; c < 3; ++c)
        for (int64_t y = 0; y < 4; ++y)
          for (int64_t x = 0; x < 5; ++x, ++next)
            EXPECT_EQ(tensor[static_cast<size_t>(layout.offsetOf(shape, {n, c, y, x}))], next);
    sum = std::accumulate(tensor.begin(), tensor.end(), 0.0f);
    EXPECT_EQ(sum, 120.0f * 121 / 2) << text;
  }
}

TEST(TensorWriter, ConvertsToTheInputsType) {
  TensorWriter writer(artifact::DType::I32, {3}, Layout::rowMajor(1));
  std::vector<int32_t> tensor(3, 0);
  std::vector<float> value = {-7};
  writer.writeRow(1, value, std::as_writable_bytes(std::span(tensor)));
  EXPECT_EQ(tensor, (std::vector<int32_t>{0, -7, 0}));
  EXPECT_THROW(TensorWriter(artifact::DType::F64, {3}, Layout::rowMajor(1)), Error);
}

} // namespace
} // namespace dlc::rt
