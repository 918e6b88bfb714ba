// Physical tensors to logical f32 and back.

#include "runtime/core/TensorIo.h"
#include "runtime/core/ParallelFor.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace dlc::rt;
namespace artifact = dlc::artifact;

TEST(TensorIo, EveryLayoutReadsBackWhatWasWritten) {
  setTeamSize(2);
  std::vector<int64_t> shape{70, 19, 4, 5}; // several parts for the threads
  std::vector<float> values(70 * 19 * 4 * 5), read(values.size());
  std::iota(values.begin(), values.end(), 1.0f);
  for (const char *text : {"nchw", "nhwc", "nChw16c", "NChw8c2n", "cwhn"}) {
    PhysicalType type(artifact::DType::F32, shape, *Layout::parse(text));
    std::vector<std::byte> physical(type.bytes(), std::byte{0x55});
    writeTensor(type, values, physical);
    readTensor(type, physical, read);
    EXPECT_EQ(read, values) << text;
    // What is no value is zero padding: the sums agree.
    const auto *raw = reinterpret_cast<const float *>(physical.data());
    EXPECT_EQ(std::accumulate(raw, raw + physical.size() / 4, 0.0),
              std::accumulate(values.begin(), values.end(), 0.0))
        << text;
  }
}

TEST(TensorIo, PlacesElementsWhereTheLayoutSays) {
  PhysicalType type(artifact::DType::F32, {2, 3}, *Layout::parse("cn"));
  std::vector<float> physical(6);
  writeTensor(type, std::vector<float>{0, 1, 2, 3, 4, 5},
              std::as_writable_bytes(std::span(physical)));
  EXPECT_EQ(physical, (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

TEST(TensorIo, ConvertsTypes) {
  std::byte bytes[8];
  for (artifact::DType dtype : artifact::EnumValuesDType()) {
    writeScalar(dtype, bytes, 1);
    EXPECT_EQ(readScalar(dtype, bytes), 1) << artifact::EnumNameDType(dtype);
  }
  // bf16 rounds to nearest even: 1 + 2^-8 lies between 1 and 1 + 2^-7.
  writeScalar(artifact::DType::BF16, bytes, 1.00390625);
  EXPECT_EQ(readScalar(artifact::DType::BF16, bytes), 1);
  writeScalar(artifact::DType::BF16, bytes, 1.01171875);
  EXPECT_EQ(readScalar(artifact::DType::BF16, bytes), 1.015625);
  writeScalar(artifact::DType::I64, bytes, -5);
  EXPECT_EQ(readScalar(artifact::DType::I64, bytes), -5);
}

TEST(TensorIo, ScalarsHaveRankZero) {
  PhysicalType type(artifact::DType::F32, {}, Layout::rowMajor(0));
  EXPECT_EQ(type.bytes(), 4u);
  std::vector<std::byte> physical(4);
  writeTensor(type, std::vector<float>{7}, physical);
  std::vector<float> read(1);
  readTensor(type, physical, read);
  EXPECT_EQ(read[0], 7);
}
