#include "runtime/data/readers/Array.h"
#include "runtime/data/readers/Readers.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"

#include <cstdio> // before jpeglib.h, which needs FILE
#include <gtest/gtest.h>
#include <jpeglib.h>

namespace dlc::rt::test {
namespace {

using Shape = std::vector<int64_t>;

struct Picture {
  uint32_t height, width;
  int channels;
  std::vector<uint8_t> pixels; // interleaved
  bool isProgressive = false;
};

/// Of the best quality, all channels in full.
std::string jpegOf(const Picture &picture) {
  jpeg_compress_struct state = {};
  jpeg_error_mgr errors;
  state.err = jpeg_std_error(&errors);
  jpeg_create_compress(&state);
  unsigned char *bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&state, &bytes, &size);
  state.image_height = picture.height;
  state.image_width = picture.width;
  state.input_components = picture.channels;
  state.in_color_space = picture.channels == 1   ? JCS_GRAYSCALE
                         : picture.channels == 3 ? JCS_RGB
                                                 : JCS_CMYK;
  jpeg_set_defaults(&state);
  jpeg_set_quality(&state, 100, TRUE);
  for (int i = 0; i < picture.channels; ++i)
    state.comp_info[i].h_samp_factor = state.comp_info[i].v_samp_factor = 1;
  if (picture.isProgressive)
    jpeg_simple_progression(&state);
  jpeg_start_compress(&state, TRUE);
  size_t line = size_t{picture.width} * static_cast<size_t>(picture.channels);
  for (uint32_t y = 0; y < picture.height; ++y) {
    auto *row = const_cast<JSAMPROW>(picture.pixels.data() + y * line);
    jpeg_write_scanlines(&state, &row, 1);
  }
  jpeg_finish_compress(&state);
  std::string result(reinterpret_cast<char *>(bytes), size);
  jpeg_destroy_compress(&state);
  std::free(bytes);
  return result;
}

/// Black and white blocks of 8 x 8, which JPEG keeps exactly, side by side.
Picture blocks() {
  Picture picture{8, 16, 1, std::vector<uint8_t>(128, 0)};
  for (size_t y = 0; y < 8; ++y)
    std::fill_n(picture.pixels.begin() + static_cast<ptrdiff_t>(16 * y + 8), 8, uint8_t{255});
  return picture;
}

/// Blocks of noise, so that the data are more than their headers.
Picture noise() {
  Picture picture{24, 24, 1, {}};
  for (uint32_t i = 0; i < 24 * 24; ++i)
    picture.pixels.push_back(static_cast<uint8_t>((i * 2654435761u) >> 24));
  return picture;
}

TEST(Jpeg, ReadsGreyImages) {
  TemporaryDirectory directory;
  for (bool isProgressive : {false, true}) {
    Picture picture = blocks();
    picture.isProgressive = isProgressive;
    Array array = readArray(writeFile(directory / "a.jpg", jpegOf(picture)));
    EXPECT_EQ(array.shape(), (Shape{1, 8, 16}));
    EXPECT_EQ(array.type(), ElementType::U8);
    EXPECT_EQ(array.header().format, FileFormat::Jpeg);
    for (int64_t i = 0; i < 128; ++i)
      EXPECT_EQ(array.at(i), i % 16 < 8 ? 0 : 255) << i;
  }
}

/// (200, 40, 90) comes back within the rounding of YCbCr.
TEST(Jpeg, ReadsColoursAsPlanes) {
  TemporaryDirectory directory;
  Picture picture{16, 8, 3, {}};
  for (int i = 0; i < 128; ++i)
    picture.pixels.insert(picture.pixels.end(), {200, 40, 90});
  Array array = readArray(writeFile(directory / "a.jpg", jpegOf(picture)));
  EXPECT_EQ(array.shape(), (Shape{1, 3, 16, 8}));
  for (int64_t i = 0; i < 128; ++i) {
    EXPECT_NEAR(array.at(i), 200, 2);
    EXPECT_NEAR(array.at(128 + i), 40, 2);
    EXPECT_NEAR(array.at(256 + i), 90, 2);
  }
}

TEST(Jpeg, HeadersSayWhatFilesHold) {
  TemporaryDirectory directory;
  std::string path = writeFile(directory / "a.jpg", jpegOf(blocks()));
  ArrayHeader header = imageHeader(path);
  EXPECT_EQ(header.shape, (Shape{1, 8, 16}));
  EXPECT_EQ(header.path, path);
}

/// libjpeg would fill what is missing with grey.
TEST(Jpeg, TruncatedFilesAreNamed) {
  TemporaryDirectory directory;
  std::string whole = jpegOf(noise());
  ::testing::internal::CaptureStderr();
  for (size_t size = 3; size < whole.size(); size += 5) {
    std::string path = writeFile(directory / "cut.jpg", whole.substr(0, size));
    std::string message = errorOf([&] { readArray(path); });
    EXPECT_EQ(message.rfind("cannot read '" + path + "': it is truncated or damaged (", 0), 0u)
        << size << " of " << whole.size() << " bytes: " << message;
    EXPECT_TRUE(message.ends_with("); copy it again, or leave it out")) << message;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), ""); // would be a second line
}

/// The marker of the end amid the data: what stands behind it would be grey.
TEST(Jpeg, DataThatEndBeforeTheImageDoesAreDamage) {
  TemporaryDirectory directory;
  std::string bytes = jpegOf(noise());
  size_t middle = bytes.size() - 200;
  bytes[middle] = '\xff';
  bytes[middle + 1] = '\xd9';
  std::string path = writeFile(directory / "a.jpg", bytes);
  std::string message = errorOf([&] { readArray(path); });
  EXPECT_NE(message.find("truncated or damaged (Corrupt JPEG data: premature end"),
            std::string::npos)
      << message;
}

/// Cameras leave bytes between the data and the marker of the end.
TEST(Jpeg, HarmlessOdditiesAreRead) {
  TemporaryDirectory directory;
  std::string bytes = jpegOf(blocks());
  bytes.insert(bytes.size() - 2, std::string(5, '\x11'));
  Array array = readArray(writeFile(directory / "a.jpg", bytes));
  EXPECT_EQ(array.at(15), 255);
}

TEST(Jpeg, ColoursOfPrintersAreRefused) {
  TemporaryDirectory directory;
  Picture picture{8, 8, 4, std::vector<uint8_t>(256, 9)};
  std::string path = writeFile(directory / "a.jpg", jpegOf(picture));
  EXPECT_EQ(errorOf([&] { readArray(path); }),
            "cannot read '" + path +
                "': its colours are neither grey nor RGB; save it as one of "
                "these");
}

/// What a file is, is in its first bytes.
TEST(Jpeg, NamesOfFilesMeanNothing) {
  TemporaryDirectory directory;
  Array array = readArray(writeFile(directory / "a.png", jpegOf(blocks())));
  EXPECT_EQ(array.header().format, FileFormat::Jpeg);
  std::string path = writeFile(directory / "b.jpg", "no image");
  EXPECT_NE(errorOf([&] { imageHeader(path); }).find("b.jpg' holds no PNG, TIFF or JPEG image"),
            std::string::npos);
}

} // namespace
} // namespace dlc::rt::test
