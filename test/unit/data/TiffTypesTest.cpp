// TIFF files of every type of numbers, in both byte orders, read element by element.
#include "runtime/data/readers/Array.h"
#include "runtime/data/readers/Readers.h"
#include "test/unit/data/TestFiles.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <limits>
#include <tiffio.h>

namespace dlc::rt::test {
namespace {

using Shape = std::vector<int64_t>;
using Numbers = std::vector<double>;

Numbers elementsOf(const Array &array) {
  Numbers elements;
  for (int64_t i = 0; i < array.elements(); ++i)
    elements.push_back(array.at(i));
  return elements;
}

struct Kind {
  const char *mode = "wl"; // l, b: byte order; 8: BigTIFF
  uint32_t tile = 0;       // its height and width
  uint16_t channels = 1;
  uint16_t compression = COMPRESSION_NONE;
  uint16_t predictor = PREDICTOR_NONE;
  uint16_t colours = PHOTOMETRIC_MINISBLACK;
};

template <typename T> constexpr uint16_t formatOf() {
  if (std::is_integral_v<T>)
    return std::is_signed_v<T> ? SAMPLEFORMAT_INT : SAMPLEFORMAT_UINT;
  return SAMPLEFORMAT_IEEEFP;
}

/// Pages of 2 x 3 pixels, interleaved, in strips of a line or in tiles.
template <typename T>
std::string writeTiff(const std::string &path, const std::vector<T> &values, const Kind &kind) {
  constexpr uint32_t height = 2, width = 3;
  TIFF *file = TIFFOpen(path.c_str(), kind.mode);
  size_t line = size_t{width} * kind.channels;
  for (size_t page = 0; page < values.size(); page += height * line) {
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, height);
    TIFFSetField(file, TIFFTAG_IMAGEWIDTH, width);
    TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, static_cast<uint16_t>(8 * sizeof(T)));
    TIFFSetField(file, TIFFTAG_SAMPLEFORMAT, formatOf<T>());
    TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, kind.channels);
    TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(file, TIFFTAG_PHOTOMETRIC, kind.colours);
    TIFFSetField(file, TIFFTAG_COMPRESSION, kind.compression);
    if (kind.predictor != PREDICTOR_NONE)
      TIFFSetField(file, TIFFTAG_PREDICTOR, kind.predictor);
    if (kind.colours == PHOTOMETRIC_PALETTE) {
      std::vector<uint16_t> shades(size_t{1} << std::min<size_t>(16, 8 * sizeof(T)), 0x1234);
      TIFFSetField(file, TIFFTAG_COLORMAP, shades.data(), shades.data(), shades.data());
    }
    if (kind.tile) {
      TIFFSetField(file, TIFFTAG_TILELENGTH, kind.tile);
      TIFFSetField(file, TIFFTAG_TILEWIDTH, kind.tile);
      std::vector<T> tile(size_t{kind.tile} * kind.tile * kind.channels, T{9});
      for (size_t y = 0; y < height; ++y)
        std::copy_n(values.begin() + static_cast<ptrdiff_t>(page + y * line), line,
                    tile.begin() + static_cast<ptrdiff_t>(y * kind.tile * kind.channels));
      TIFFWriteTile(file, tile.data(), 0, 0, 0, 0);
    } else {
      TIFFSetField(file, TIFFTAG_ROWSPERSTRIP, 1);
      for (uint32_t y = 0; y < height; ++y) {
        std::vector<T> row(values.begin() + static_cast<ptrdiff_t>(page + y * line),
                           values.begin() + static_cast<ptrdiff_t>(page + (y + 1) * line));
        TIFFWriteScanline(file, row.data(), y, 0);
      }
    }
    TIFFWriteDirectory(file);
  }
  TIFFClose(file);
  return path;
}

/// Two pages of these numbers, in strips and in tiles, classic and BigTIFF, in either byte order.
template <typename T> void expectReadAs(ElementType type, std::vector<T> values) {
  std::vector<T> back(values.rbegin(), values.rend());
  values.insert(values.end(), back.begin(), back.end());
  Numbers wanted(values.begin(), values.end());
  for (const char *mode : {"wl", "wb", "w8l", "w8b"})
    for (uint32_t tile : {0, 16}) {
      TemporaryDirectory directory;
      std::string path = writeTiff(directory / "a.tif", values, {.mode = mode, .tile = tile});
      bool isBig = std::string(mode).back() == 'b';
      EXPECT_EQ(contentOf(path).substr(0, 2), isBig ? "MM" : "II");
      EXPECT_EQ(contentOf(path)[isBig ? 3 : 2], mode[1] == '8' ? 43 : 42);
      Array array = readArray(path);
      EXPECT_EQ(array.type(), type) << mode;
      EXPECT_EQ(array.shape(), (Shape{2, 2, 3})) << mode;
      EXPECT_EQ(elementsOf(array), wanted) << mode << ", tiles of " << tile;
      EXPECT_EQ(tiffHeader(path).type, type);
      EXPECT_EQ(tiffHeader(path).shape, (Shape{2, 2, 3}));
    }
}

TEST(TiffTypes, IntegersOf8Bits) {
  expectReadAs<uint8_t>(ElementType::U8, {0, 1, 2, 127, 128, 255});
  expectReadAs<int8_t>(ElementType::I8, {0, 1, -1, -128, 127, -2});
}

TEST(TiffTypes, IntegersOf16Bits) {
  expectReadAs<uint16_t>(ElementType::U16, {0, 1, 256, 0x1234, 0x8000, 65535});
  expectReadAs<int16_t>(ElementType::I16, {0, 1, -1, -32768, 32767, 0x1234});
}

TEST(TiffTypes, IntegersOf32Bits) {
  expectReadAs<uint32_t>(ElementType::U32, {0, 1, 0x12345678, 0x80000000, 0xffffffff, 65536});
  expectReadAs<int32_t>(ElementType::I32, {0, -1, 0x12345678, std::numeric_limits<int32_t>::min(),
                                           std::numeric_limits<int32_t>::max(), -65536});
}

/// The largest half is 65504, the smallest 2^-24.
TEST(TiffTypes, Floats) {
  expectReadAs<_Float16>(ElementType::F16,
                         {_Float16(0.5f), _Float16(-1.25f), _Float16(65504.0f), _Float16(-65504.0f),
                          _Float16(0x1p-24f), _Float16(3.0f)});
  expectReadAs<float>(ElementType::F32, {0.1f, -1.5f, 3.0e38f, -1e-40f, 16777216.0f, 7.0f});
  expectReadAs<double>(ElementType::F64, {0.1, -1.5, 1e300, -1e-310, 9007199254740993.0, 7.0});
}

/// Bytes by the letter of the format, to whose order no writer of this machine sees.
TEST(TiffTypes, BytesInEitherOrder) {
  auto file = [](bool isBig, uint16_t format, const std::string &pixels) {
    auto number = [&](uint32_t value, int bytes) {
      std::string text;
      for (int i = 0; i < bytes; ++i)
        text += static_cast<char>(value >> 8 * (isBig ? bytes - 1 - i : i));
      return text;
    };
    std::string bytes = (isBig ? "MM" : "II") + number(42, 2) + number(8, 4) + number(9, 2);
    auto bits = static_cast<uint32_t>(4 * pixels.size()); // of two pixels
    const uint32_t tags[][2] = {{256, 2}, {257, 1}, {258, bits},
                                {259, 1}, {262, 1}, {273, 8 + 2 + 9 * 12 + 4},
                                {277, 1}, {278, 1}, {339, format}};
    for (auto [tag, value] : tags) // a value of 16 bits stands in the first two bytes
      bytes += number(tag, 2) + number(3, 2) + number(1, 4) + number(value, 2) + number(0, 2);
    return bytes + number(0, 4) + pixels;
  };
  TemporaryDirectory directory;
  auto read = [&](bool isBig, uint16_t format, const std::string &pixels) {
    return elementsOf(readArray(writeFile(directory / "a.tif", file(isBig, format, pixels))));
  };
  EXPECT_EQ(read(false, SAMPLEFORMAT_INT, {'\x34', '\x12', '\xfe', '\xff'}), (Numbers{0x1234, -2}));
  EXPECT_EQ(read(true, SAMPLEFORMAT_INT, {'\x12', '\x34', '\xff', '\xfe'}), (Numbers{0x1234, -2}));
  // 1.5 is 0x3e00, -2 is 0xc000.
  EXPECT_EQ(read(false, SAMPLEFORMAT_IEEEFP, {'\0', '\x3e', '\0', '\xc0'}), (Numbers{1.5, -2}));
  EXPECT_EQ(read(true, SAMPLEFORMAT_IEEEFP, {'\x3e', '\0', '\xc0', '\0'}), (Numbers{1.5, -2}));
  // 0x3fc00000 and 0xc0000000 in 32 bits.
  EXPECT_EQ(read(true, SAMPLEFORMAT_IEEEFP, {'\x3f', '\xc0', '\0', '\0', '\xc0', '\0', '\0', '\0'}),
            (Numbers{1.5, -2}));
  EXPECT_EQ(read(true, SAMPLEFORMAT_UINT, {'\xff', '\0', '\0', '\1', '\0', '\0', '\1', '\0'}),
            (Numbers{4278190081.0, 256}));
}

/// Differences between neighbours, which the library adds up again.
TEST(TiffTypes, Predictors) {
  TemporaryDirectory directory;
  for (const char *mode : {"wl", "wb"})
    for (uint16_t compression : {COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE}) {
      Kind kind{.mode = mode, .compression = compression, .predictor = PREDICTOR_HORIZONTAL};
      std::vector<uint16_t> counts = {0, 1, 256, 0x1234, 0x8000, 65535};
      EXPECT_EQ(elementsOf(readArray(writeTiff(directory / "a.tif", counts, kind))),
                Numbers(counts.begin(), counts.end()));
      if (kind.mode[1] == 'b') // libtiff 4.5 writes wrong differences of floats in this order
        continue;
      kind.predictor = PREDICTOR_FLOATINGPOINT;
      std::vector<float> values = {0.1f, -1.5f, 3e38f, 16777216.0f, 7, 8};
      EXPECT_EQ(elementsOf(readArray(writeTiff(directory / "a.tif", values, kind))),
                Numbers(values.begin(), values.end()));
    }
}

TEST(TiffTypes, RgbComesByPlanes) {
  TemporaryDirectory directory;
  std::vector<uint16_t> pixels = {1,   1001, 2001, 2,   1002, 2002, 3,   1003, 2003,
                                  258, 1258, 2258, 259, 1259, 2259, 260, 1260, 2260};
  for (const char *mode : {"wl", "wb"})
    for (uint32_t tile : {0, 16}) {
      Array array = readArray(
          writeTiff(directory / "a.tif", pixels,
                    {.mode = mode, .tile = tile, .channels = 3, .colours = PHOTOMETRIC_RGB}));
      EXPECT_EQ(array.shape(), (Shape{1, 3, 2, 3}));
      EXPECT_EQ(elementsOf(array), (Numbers{1, 2, 3, 258, 259, 260, 1001, 1002, 1003, 1258, 1259,
                                            1260, 2001, 2002, 2003, 2258, 2259, 2260}));
    }
}

/// A palette's indices, whatever its colours.
TEST(TiffTypes, PalettesComeAsIndices) {
  TemporaryDirectory directory;
  Array array = readArray(writeTiff<uint8_t>(directory / "a.tif", {3, 0, 255, 1, 7, 2},
                                             {.colours = PHOTOMETRIC_PALETTE}));
  EXPECT_EQ(array.type(), ElementType::U8);
  EXPECT_EQ(array.shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(elementsOf(array), (Numbers{3, 0, 255, 1, 7, 2}));
  array = readArray(writeTiff<uint16_t>(directory / "b.tif", {3, 0, 65535, 1, 7, 256},
                                        {.mode = "wb", .colours = PHOTOMETRIC_PALETTE}));
  EXPECT_EQ(elementsOf(array), (Numbers{3, 0, 65535, 1, 7, 256}));
}

} // namespace
} // namespace dlc::rt::test
