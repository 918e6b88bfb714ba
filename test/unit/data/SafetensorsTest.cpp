#include "runtime/data/Safetensors.h"
#include "runtime/artifact/Error.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sstream>

namespace dlc::rt::test {
namespace {

std::string fileBytes(const std::string &header, const std::string &data) {
  uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  return bytes + header + data;
}

TensorFile example() {
  TensorFile file;
  file.tensors["conv.weight"] = {{2, 1, 1, 2}, {1, -2, 3.5f, 0}};
  file.tensors["bias"] = {{}, {7}};
  file.tensors["none"] = {{0, 3}, {}};
  file.metadata["run"] = "{\"step\": 3}";
  return file;
}

/// Zip archives, and pickles; but a header of 0x280 bytes begins as those do.
TEST(Safetensors, FilesOfPyTorchAreNamed) {
  TemporaryDirectory directory;
  using namespace std::string_literals;
  for (const std::string &begin : {"PK\x03\x04\0\0\0\0"s, "\x80\x02\x8a\nl\xfc\x9c\x46\xf9"s}) {
    std::string path = writeFile(directory / "w.pth", begin + "rest of it");
    std::string message = errorOf([&] { readSafetensors(path); });
    EXPECT_NE(message.find("is a file of PyTorch's; convert it in Python: import torch, "
                           "safetensors.torch; safetensors.torch.save_file(torch.load('" +
                           path + "', weights_only=True), "),
              std::string::npos)
        << message;
  }
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize(0x280, ' ');
  EXPECT_EQ(readSafetensors(writeFile(directory / "w", fileBytes(header, "1234"))).tensors.size(),
            1u);
}

TEST(Safetensors, RoundTrips) {
  TemporaryDirectory directory;
  writeSafetensors(directory / "w", example());
  TensorFile read = readSafetensors(directory / "w");
  EXPECT_EQ(read.metadata, example().metadata);
  ASSERT_EQ(read.tensors.size(), 3u);
  EXPECT_EQ(read.tensors["conv.weight"].values, example().tensors["conv.weight"].values);
  EXPECT_EQ(read.tensors["conv.weight"].shape, (std::vector<int64_t>{2, 1, 1, 2}));
  EXPECT_TRUE(read.tensors["bias"].shape.empty());
  writeSafetensors(directory / "again", read);
  EXPECT_EQ(test::contentOf(directory / "w"), test::contentOf(directory / "again"));
}

TEST(Safetensors, ConvertsOtherTypes) {
  TemporaryDirectory directory;
  auto read = [&](const std::string &type, const std::string &data) {
    std::string header = R"({"a":{"dtype":")" + type + R"(","shape":[2],"data_offsets":[0,)" +
                         std::to_string(data.size()) + "]}}";
    writeFile(directory / "w", fileBytes(header, data));
    return readSafetensors(directory / "w").tensors["a"].values;
  };
  std::vector<float> wanted = {1, -2.5f};
  EXPECT_EQ(read("F16", bytesOfVector<uint16_t>({0x3C00, 0xC100})), wanted);
  EXPECT_EQ(read("BF16", bytesOfVector<uint16_t>({0x3F80, 0xC020})), wanted);
  EXPECT_EQ(read("F64", bytesOfVector<double>({1, -2.5})), wanted);
  EXPECT_EQ(read("I64", bytesOfVector<int64_t>({1, -2})), (std::vector<float>{1, -2}));
}

TEST(Safetensors, NamesWhatIsWrong) {
  TemporaryDirectory directory;
  auto expect = [&](const std::string &bytes, const std::string &text) {
    writeFile(directory / "bad", bytes);
    std::string message = errorOf([&] { readSafetensors(directory / "bad"); });
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  auto two = [](const std::string &first, const std::string &second) {
    return R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + first +
           R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + second + "}}";
  };
  std::string data(12, 'x');
  expect("1234567", "truncated");
  expect(fileBytes("{}", "").substr(0, 9), "header ends early");
  expect(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8), "header claims");
  expect(fileBytes("[1]", ""), "no JSON object");
  expect(fileBytes("{\"a\":", ""), "no JSON object");
  expect(fileBytes(R"({"a":3})", ""), "lacks dtype");
  expect(fileBytes(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "xxxx"), "lacks");
  expect(fileBytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "xxxx"), "type U8");
  expect(fileBytes(R"({"__metadata__":{"a":1}})", ""), "metadata");
  expect(fileBytes(two("[0,8]", "[8,12]"), data.substr(1)), "truncated: tensor b");
  expect(fileBytes(two("[0,8]", "[4,8]"), data), "overlap");
  expect(fileBytes(two("[0,8]", "[8,12]"), data + "x"), "bytes follow");
  expect(fileBytes(two("[0,8]", "[9,13]"), data + "x"), "hole");
  expect(fileBytes(two("[8,0]", "[8,12]"), data), "ends before it begins");
  expect(fileBytes(two("[0,4]", "[4,8]"), data.substr(4)), "2 f32, it holds 4 bytes");
  expect(fileBytes(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})",
                   ""),
         "impossible shape");
}

TEST(Safetensors, AFailedWriteKeepsTheOldFile) {
  TemporaryDirectory directory;
  std::string path = directory / "w";
  writeSafetensors(path, example());
  std::string before = test::contentOf(path);
  TensorFile large;
  large.tensors["a"] = {{100000}, std::vector<float>(100000)};
  std::string message = errorOf([&] {
    FullDisk full(50000);
    writeSafetensors(path, large);
  });
  EXPECT_NE(message.find("cannot write '" + path), std::string::npos);
  EXPECT_NE(message.find("is kept"), std::string::npos);
  EXPECT_EQ(test::contentOf(path), before);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(Safetensors, AMissingDirectoryIsAnError) {
  EXPECT_THROW(writeSafetensors("/nonexistent/w", example()), Error);
}

} // namespace
} // namespace dlc::rt::test
