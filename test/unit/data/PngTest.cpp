// PNG files of every kind, written by libpng and read element by element.
#include "runtime/data/readers/Array.h"
#include "runtime/data/readers/Readers.h"
#include "test/unit/data/TestFiles.h"

#include <gtest/gtest.h>
#include <png.h>

namespace dlc::rt::test {
namespace {

using Shape = std::vector<int64_t>;
using Bytes = std::vector<uint8_t>;
using Numbers = std::vector<double>;

struct Picture {
  uint32_t height, width;
  int colours, bits;
  Bytes pixels; // as the file has them: lines of packed bits, big-endian, interleaved
  std::vector<png_color> palette = {};
  Bytes alphas = {};        // of the palette's entries
  int transparentGrey = -1; // the shade that is
  double gamma = 0;
  bool isInterlaced = false;
};

void append(png_structp png, png_bytep bytes, size_t size) {
  auto *file = static_cast<std::string *>(png_get_io_ptr(png));
  file->append(reinterpret_cast<char *>(bytes), size);
}

std::string pngOf(const Picture &picture) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, append, nullptr);
  png_set_IHDR(png, info, picture.width, picture.height, picture.bits, picture.colours,
               picture.isInterlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!picture.palette.empty())
    png_set_PLTE(png, info, picture.palette.data(), static_cast<int>(picture.palette.size()));
  if (!picture.alphas.empty())
    png_set_tRNS(png, info, picture.alphas.data(), static_cast<int>(picture.alphas.size()),
                 nullptr);
  if (picture.transparentGrey >= 0) {
    png_color_16 grey = {};
    grey.gray = static_cast<png_uint_16>(picture.transparentGrey);
    png_set_tRNS(png, info, nullptr, 0, &grey);
  }
  if (picture.gamma > 0)
    png_set_gAMA(png, info, picture.gamma);
  png_write_info(png, info);
  size_t line = picture.pixels.size() / picture.height;
  std::vector<png_bytep> rows;
  for (uint32_t y = 0; y < picture.height; ++y)
    rows.push_back(const_cast<png_bytep>(picture.pixels.data() + y * line));
  png_write_image(png, rows.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

/// The elements of a picture, whose header alone promises its type and shape.
Numbers elementsOf(const Picture &picture, ElementType type, const Shape &shape) {
  TemporaryDirectory directory;
  std::string path = writeFile(directory / "a.png", pngOf(picture));
  Array array = readArray(path);
  EXPECT_EQ(array.type(), type);
  EXPECT_EQ(array.shape(), shape);
  EXPECT_EQ(pngHeader(path).type, type);
  EXPECT_EQ(pngHeader(path).shape, shape);
  Numbers elements;
  for (int64_t i = 0; i < array.elements(); ++i)
    elements.push_back(array.at(i));
  return elements;
}

TEST(Png, Grey) {
  EXPECT_EQ(elementsOf({2, 3, PNG_COLOR_TYPE_GRAY, 8, {0, 1, 2, 127, 128, 255}}, ElementType::U8,
                       {1, 2, 3}),
            (Numbers{0, 1, 2, 127, 128, 255}));
}

TEST(Png, GreyOf16Bits) {
  EXPECT_EQ(elementsOf({2, 2, PNG_COLOR_TYPE_GRAY, 16, {0, 1, 1, 0, 0x12, 0x34, 255, 254}},
                       ElementType::U16, {1, 2, 2}),
            (Numbers{1, 256, 0x1234, 65534}));
}

/// Few bits become 8, from black to white: 1, 2 or 4 of them times 255, 85 or 17.
TEST(Png, GreyOfFewBits) {
  EXPECT_EQ(elementsOf({2, 9, PNG_COLOR_TYPE_GRAY, 1, {0b10110001, 0x80, 0b01000000, 0}},
                       ElementType::U8, {1, 2, 9}),
            (Numbers{255, 0, 255, 255, 0, 0, 0, 255, 255, 0, 255, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(elementsOf({1, 5, PNG_COLOR_TYPE_GRAY, 2, {0b00011011, 0b10000000}}, ElementType::U8,
                       {1, 1, 5}),
            (Numbers{0, 85, 170, 255, 170}));
  EXPECT_EQ(elementsOf({2, 3, PNG_COLOR_TYPE_GRAY, 4, {0x01, 0x20, 0xaf, 0x70}}, ElementType::U8,
                       {1, 2, 3}),
            (Numbers{0, 17, 34, 170, 255, 119}));
}

TEST(Png, Rgb) {
  EXPECT_EQ(elementsOf({2, 2, PNG_COLOR_TYPE_RGB, 8, {1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252}},
                       ElementType::U8, {1, 3, 2, 2}),
            (Numbers{1, 4, 7, 250, 2, 5, 8, 251, 3, 6, 9, 252}));
  EXPECT_EQ(
      elementsOf({1, 2, PNG_COLOR_TYPE_RGB, 16, {0, 1, 1, 0, 1, 1, 255, 255, 2, 0, 0x12, 0x34}},
                 ElementType::U16, {1, 3, 1, 2}),
      (Numbers{1, 65535, 256, 512, 257, 0x1234}));
}

/// Without compositing: what is transparent keeps its colour.
TEST(Png, AlphaIsLeftOut) {
  EXPECT_EQ(elementsOf({1, 3, PNG_COLOR_TYPE_GRAY_ALPHA, 8, {10, 255, 20, 128, 30, 0}},
                       ElementType::U8, {1, 1, 3}),
            (Numbers{10, 20, 30}));
  EXPECT_EQ(elementsOf({1, 2, PNG_COLOR_TYPE_GRAY_ALPHA, 16, {1, 2, 0, 0, 3, 4, 255, 255}},
                       ElementType::U16, {1, 1, 2}),
            (Numbers{258, 772}));
  EXPECT_EQ(elementsOf({1, 2, PNG_COLOR_TYPE_RGB_ALPHA, 8, {1, 2, 3, 0, 4, 5, 6, 77}},
                       ElementType::U8, {1, 3, 1, 2}),
            (Numbers{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(elementsOf({1, 1, PNG_COLOR_TYPE_RGB_ALPHA, 16, {0, 1, 0, 2, 3, 0, 9, 9}},
                       ElementType::U16, {1, 3, 1, 1}),
            (Numbers{1, 2, 768}));
  // A shade that a chunk of its own declares transparent.
  EXPECT_EQ(elementsOf({1, 3, PNG_COLOR_TYPE_GRAY, 8, {10, 20, 30}, {}, {}, 20}, ElementType::U8,
                       {1, 1, 3}),
            (Numbers{10, 20, 30}));
}

const std::vector<png_color> palette = {{1, 2, 3}, {40, 50, 60}, {7, 80, 90}, {255, 0, 128}};

TEST(Png, PalettesBecomeRgb) {
  EXPECT_EQ(elementsOf({2, 2, PNG_COLOR_TYPE_PALETTE, 8, {3, 0, 1, 2}, palette}, ElementType::U8,
                       {1, 3, 2, 2}),
            (Numbers{255, 1, 40, 7, 0, 2, 50, 80, 128, 3, 60, 90}));
  // Indices of 1, 2 and 4 bits.
  EXPECT_EQ(elementsOf({1, 3, PNG_COLOR_TYPE_PALETTE, 1, {0b10100000}, {palette[0], palette[1]}},
                       ElementType::U8, {1, 3, 1, 3}),
            (Numbers{40, 1, 40, 50, 2, 50, 60, 3, 60}));
  EXPECT_EQ(elementsOf({1, 3, PNG_COLOR_TYPE_PALETTE, 2, {0b11000100}, palette}, ElementType::U8,
                       {1, 3, 1, 3}),
            (Numbers{255, 1, 40, 0, 2, 50, 128, 3, 60}));
  EXPECT_EQ(elementsOf({1, 3, PNG_COLOR_TYPE_PALETTE, 4, {0x20, 0x30}, palette}, ElementType::U8,
                       {1, 3, 1, 3}),
            (Numbers{7, 1, 255, 80, 2, 0, 90, 3, 128}));
  // Entries that are transparent.
  EXPECT_EQ(elementsOf({1, 2, PNG_COLOR_TYPE_PALETTE, 8, {0, 3}, palette, {0, 128, 9, 0}},
                       ElementType::U8, {1, 3, 1, 2}),
            (Numbers{1, 255, 2, 0, 3, 128}));
}

/// What a file says of gamma is for screens.
TEST(Png, GammaIsNotApplied) {
  EXPECT_EQ(elementsOf({1, 3, PNG_COLOR_TYPE_GRAY, 8, {10, 100, 200}, {}, {}, -1, 1.0},
                       ElementType::U8, {1, 1, 3}),
            (Numbers{10, 100, 200}));
}

/// In seven passes; 9 x 11 pixels have some in each.
TEST(Png, Interlaced) {
  struct Kind {
    int colours, bits, channels;
  };
  for (Kind kind : {Kind{PNG_COLOR_TYPE_GRAY, 8, 1}, Kind{PNG_COLOR_TYPE_GRAY, 16, 1},
                    Kind{PNG_COLOR_TYPE_RGB, 8, 3}, Kind{PNG_COLOR_TYPE_RGB_ALPHA, 16, 4}}) {
    constexpr uint32_t height = 9, width = 11;
    size_t width8 = static_cast<size_t>(kind.bits / 8);
    auto channels = static_cast<size_t>(kind.channels), colours = std::min<size_t>(channels, 3);
    Picture picture{height, width, kind.colours, kind.bits, {}};
    picture.isInterlaced = true;
    Numbers wanted(colours * height * width);
    for (size_t pixel = 0; pixel < height * width; ++pixel)
      for (size_t channel = 0; channel < channels; ++channel) {
        size_t value = 2 * pixel + 17 * channel + (kind.bits == 16 ? 0x1100 : 0);
        if (width8 == 2)
          picture.pixels.push_back(static_cast<uint8_t>(value >> 8));
        picture.pixels.push_back(static_cast<uint8_t>(value));
        if (channel < colours)
          wanted[channel * height * width + pixel] = static_cast<double>(value);
      }
    EXPECT_EQ(elementsOf(picture, width8 == 2 ? ElementType::U16 : ElementType::U8,
                         colours == 1 ? Shape{1, height, width} : Shape{1, 3, height, width}),
              wanted)
        << kind.colours << " of " << kind.bits << " bits";
  }
  // Of one bit: pixels of a pass are packed anew.
  Picture picture{2, 9, PNG_COLOR_TYPE_GRAY, 1, {0b10110001, 0x80, 0b01000000, 0}};
  picture.isInterlaced = true;
  EXPECT_EQ(elementsOf(picture, ElementType::U8, {1, 2, 9}),
            (Numbers{255, 0, 255, 255, 0, 0, 0, 255, 255, 0, 255, 0, 0, 0, 0, 0, 0, 0}));
}

} // namespace
} // namespace dlc::rt::test
