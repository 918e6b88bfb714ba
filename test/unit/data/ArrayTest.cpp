#include "runtime/data/readers/Array.h"
#include "runtime/data/Npy.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <zlib.h>

namespace dlc::rt::test {
namespace {

std::string readError(const std::string &path) {
  return errorOf([&] { readArray(path); });
}

TEST(Array, ReadsEveryNpyType) {
  TemporaryDirectory directory;
  auto check = [&](const std::string &descr, const std::string &data, ElementType type,
                   double second) {
    Array array = readArray(writeFile(directory / "a.npy", npyBytes(descr, "2,", data)));
    EXPECT_EQ(array.type(), type) << descr;
    EXPECT_EQ(array.shape(), std::vector<int64_t>{2});
    EXPECT_EQ(array.at(1), second) << descr;
    EXPECT_EQ(array.values().at(1), static_cast<float>(second));
  };
  check("|u1", bytesOfVector<uint8_t>({1, 255}), ElementType::U8, 255);
  check("|i1", bytesOfVector<int8_t>({1, -3}), ElementType::I8, -3);
  check("<u2", bytesOfVector<uint16_t>({1, 65535}), ElementType::U16, 65535);
  check("<i2", bytesOfVector<int16_t>({1, -300}), ElementType::I16, -300);
  check("<u4", bytesOfVector<uint32_t>({1, 1u << 31}), ElementType::U32, 2147483648.0);
  check("<i4", bytesOfVector<int32_t>({1, -70000}), ElementType::I32, -70000);
  check("<i8", bytesOfVector<int64_t>({1, -70000}), ElementType::I64, -70000);
  check("<f2", bytesOfVector<uint16_t>({0, 0xC100}), ElementType::F16, -2.5);
  check("<f4", bytesOfVector<float>({1, 0.5f}), ElementType::F32, 0.5);
  check("<f8", bytesOfVector<double>({1, 0.25}), ElementType::F64, 0.25);
  check("|b1", bytesOfVector<uint8_t>({0, 1}), ElementType::Bool, 1);
}

TEST(Array, HalvesCoverSpecialValues) {
  TemporaryDirectory directory;
  Array array = readArray(
      writeFile(directory / "a.npy",
                npyBytes("<f2", "4,", bytesOfVector<uint16_t>({0x0001, 0x7BFF, 0xFC00, 0x7E00}))));
  EXPECT_EQ(array.at(0), 0x1p-24); // smallest subnormal
  EXPECT_EQ(array.at(1), 65504);
  EXPECT_EQ(array.at(2), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(array.at(3)));
}

TEST(Array, ReadsMultipleDimensionsAndScalars) {
  TemporaryDirectory directory;
  Array array = readArray(writeFile(
      directory / "a.npy", npyBytes("|u1", "2, 3", bytesOfVector<uint8_t>({0, 1, 2, 3, 4, 5}))));
  EXPECT_EQ(array.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(array.values(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(readArray(writeFile(directory / "s.npy", npyBytes("|u1", "", "x"))).rank(), 0u);
}

TEST(Array, RoundTripsNpy) {
  TemporaryDirectory directory;
  std::vector<int64_t> shape = {2, 1, 3};
  std::vector<float> values = {1, -2, 3.5f, 4, 5, 6};
  writeNpy(directory / "a.npy", shape, values);
  Array array = readArray(directory / "a.npy");
  EXPECT_EQ(array.shape(), shape);
  EXPECT_EQ(array.values(), values);
}

TEST(Array, ReadsIdxPlainAndGzipped) {
  TemporaryDirectory directory;
  std::string bytes = std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x03", 12) + "abcdef";
  Array plain = readArray(writeFile(directory / "plain", bytes));
  EXPECT_EQ(plain.shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(plain.at(4), 'e');
  std::string path = directory / "zipped.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  EXPECT_EQ(readArray(path).at(5), 'f');
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 9);
  EXPECT_NE(readError(path).find("truncated or damaged"), std::string::npos) << readError(path);
}

TEST(Array, SwapsTheBytesOfIdx) {
  TemporaryDirectory directory;
  std::string bytes = std::string("\0\0\x0B\x01\0\0\0\x02\x01\x02\xFF\xFE", 12);
  Array array = readArray(writeFile(directory / "a", bytes));
  EXPECT_EQ(array.at(0), 258);
  EXPECT_EQ(array.at(1), -2);
}

TEST(Array, NamesWhatIsWrong) {
  TemporaryDirectory directory;
  auto expect = [&](const std::string &bytes, const std::string &text) {
    std::string message = readError(writeFile(directory / "bad", bytes));
    EXPECT_NE(message.find(text), std::string::npos) << message;
    EXPECT_NE(message.find("bad'"), std::string::npos) << message;
  };
  std::string good = npyBytes("<f4", "2, 2", std::string(16, 'x'));
  expect(good.substr(0, good.size() - 1), "2 x 2 f32, it holds 15 bytes");
  expect(good + "x", "damaged");
  expect(good.substr(0, 40), "truncated");
  expect(good.substr(0, 9), "truncated");
  expect(npyBytes("<f4", "2, 2", std::string(16, 'x'), "True"), "Fortran order");
  expect(npyBytes(">f4", "4,", std::string(16, 'x')), "big-endian");
  expect(npyBytes("<c8", "2,", std::string(16, 'x')), "'<c8' is not supported");
  expect(npyBytes("<f4", "2, -2", std::string(16, 'x')), "no tuple of sizes");
  expect(npyBytes("<f4", "999999999999, 999999999999", ""), "impossible shape");
  expect("hello", "format that is not known");
  expect("", "format that is not known");
  expect(std::string("\0\0\x08\x03\0\0", 6), "header ends early");
  expect(std::string("\0\0\x08\x01\0\0\0\x05"
                     "abc",
                     11),
         "truncated");
  expect(std::string("\0\0\x07\x01\0\0\0\x01"
                     "a",
                     9),
         "unknown element type");
  EXPECT_NE(readError(directory / "none.npy").find("No such file"), std::string::npos);
}

} // namespace
} // namespace dlc::rt::test
