#include "runtime/data/Dataset.h"
#include "runtime/data/readers/Array.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"

#include <gtest/gtest.h>
#include <tiffio.h>

namespace dlc::rt::test {
namespace {

using Shape = std::vector<int64_t>;

struct Kind {
  const char *mode = "w";
  uint32_t tile = 0; // its height and width
  uint16_t channels = 1;
  uint16_t planar = PLANARCONFIG_CONTIG;
  uint16_t compression = COMPRESSION_LZW;
  uint16_t colours = PHOTOMETRIC_MINISBLACK;
  std::string description = "";
};

void describe(TIFF *file, uint32_t height, uint32_t width, const Kind &kind) {
  TIFFSetField(file, TIFFTAG_IMAGELENGTH, height);
  TIFFSetField(file, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, kind.channels);
  TIFFSetField(file, TIFFTAG_PLANARCONFIG, kind.planar);
  TIFFSetField(file, TIFFTAG_PHOTOMETRIC, kind.colours);
  TIFFSetField(file, TIFFTAG_COMPRESSION, kind.compression);
  if (!kind.description.empty())
    TIFFSetField(file, TIFFTAG_IMAGEDESCRIPTION, kind.description.c_str());
}

/// Pixel (y, x) of a channel of a page.
uint8_t pixel(uint32_t page, uint32_t channel, uint32_t y, uint32_t x) {
  return static_cast<uint8_t>(100 * page + 50 * channel + 13 * y + x);
}

void writePage(TIFF *file, uint32_t page, uint32_t height, uint32_t width, const Kind &kind) {
  describe(file, height, width, kind);
  uint32_t high = kind.tile ? kind.tile : 1, wide = kind.tile ? kind.tile : width;
  if (kind.tile) {
    TIFFSetField(file, TIFFTAG_TILELENGTH, kind.tile);
    TIFFSetField(file, TIFFTAG_TILEWIDTH, kind.tile);
  }
  bool apart = kind.planar == PLANARCONFIG_SEPARATE;
  for (uint16_t plane = 0; plane < (apart ? kind.channels : 1); ++plane)
    for (uint32_t y = 0; y < height; y += high)
      for (uint32_t x = 0; x < width; x += wide) {
        std::vector<uint8_t> piece;
        for (uint32_t i = 0; i < high * wide; ++i)
          for (uint32_t channel = 0; channel < (apart ? 1u : kind.channels); ++channel)
            piece.push_back(pixel(page, plane + channel, y + i / wide, x + i % wide));
        if (kind.tile)
          TIFFWriteTile(file, piece.data(), x, y, 0, plane);
        else
          TIFFWriteScanline(file, piece.data(), y, plane);
      }
}

std::string writeTiff(const std::string &path, uint32_t pages, uint32_t height, uint32_t width,
                      const Kind &kind) {
  TIFF *file = TIFFOpen(path.c_str(), kind.mode);
  for (uint32_t page = 0; page < pages; ++page) {
    writePage(file, page, height, width, kind);
    TIFFWriteDirectory(file);
  }
  TIFFClose(file);
  return path;
}

/// Whether the array holds the pixels of `pages`, planes of channels apart.
::testing::AssertionResult holdsPixels(const Array &array, uint32_t pages, uint32_t channels,
                                       uint32_t height, uint32_t width) {
  int64_t at = 0;
  for (uint32_t page = 0; page < pages; ++page)
    for (uint32_t channel = 0; channel < channels; ++channel)
      for (uint32_t y = 0; y < height; ++y)
        for (uint32_t x = 0; x < width; ++x, ++at)
          if (at >= array.elements() || array.at(at) != pixel(page, channel, y, x))
            return ::testing::AssertionFailure()
                   << "page " << page << ", channel " << channel << ", (" << y << ", " << x << ")";
  return ::testing::AssertionSuccess();
}

std::string readError(const std::string &path) {
  return errorOf([&] { readArray(path); });
}

/// The last tiles of lines and columns stand over the image.
TEST(Tiff, ReadsTiles) {
  TemporaryDirectory directory;
  for (uint16_t planar : {PLANARCONFIG_CONTIG, PLANARCONFIG_SEPARATE})
    for (uint16_t channels : {1, 3}) {
      Kind kind{.tile = 16, .channels = channels, .planar = planar};
      Array array = readArray(writeTiff(directory / "a.tif", 2, 20, 37, kind));
      EXPECT_EQ(array.shape(), channels == 1 ? (Shape{2, 20, 37}) : (Shape{2, 3, 20, 37}));
      EXPECT_TRUE(holdsPixels(array, 2, channels, 20, 37)) << channels << " of " << planar;
    }
  Array one = readArray(writeTiff(directory / "small.tif", 1, 3, 5, {.tile = 16}));
  EXPECT_TRUE(holdsPixels(one, 1, 1, 3, 5));
}

TEST(Tiff, ReadsBigTiff) {
  TemporaryDirectory directory;
  std::string path = writeTiff(directory / "a.tif", 2, 20, 37, {.mode = "w8", .tile = 16});
  EXPECT_EQ(contentOf(path)[2], 43); // the version that says so
  EXPECT_TRUE(holdsPixels(readArray(path), 2, 1, 20, 37));
}

/// Copies in sub-directories, as OME-TIFF has them, and in pages that say that they are reduced.
TEST(Tiff, OfPyramidsTheFullResolutionIsRead) {
  TemporaryDirectory directory;
  Kind kind{.tile = 16};
  TIFF *file = TIFFOpen((directory / "a.tif").c_str(), "w");
  uint64_t none[1] = {0};
  TIFFSetField(file, TIFFTAG_SUBIFD, 1, none);
  writePage(file, 0, 32, 48, kind);
  TIFFWriteDirectory(file);
  for (uint32_t smaller : {2, 4}) { // the first one is the sub-directory
    TIFFSetField(file, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
    writePage(file, 1, 32 / smaller, 48 / smaller, kind);
    TIFFWriteDirectory(file);
  }
  TIFFClose(file);
  Array array = readArray(directory / "a.tif");
  EXPECT_EQ(array.shape(), (Shape{1, 32, 48}));
  EXPECT_TRUE(holdsPixels(array, 1, 1, 32, 48));

  file = TIFFOpen((directory / "b.tif").c_str(), "w");
  TIFFSetField(file, TIFFTAG_SUBFILETYPE, FILETYPE_REDUCEDIMAGE);
  writePage(file, 0, 32, 48, kind);
  TIFFClose(file);
  EXPECT_NE(
      readError(directory / "b.tif").find("b.tif': all of its pages are reduced copies; save"),
      std::string::npos);
}

/// Slides are compressed so. One colour, which JPEG keeps to a shade or two.
TEST(Tiff, JpegColoursBecomeRgb) {
  TemporaryDirectory directory;
  Kind kind{
      .tile = 16, .channels = 3, .compression = COMPRESSION_JPEG, .colours = PHOTOMETRIC_YCBCR};
  TIFF *file = TIFFOpen((directory / "a.tif").c_str(), "w");
  describe(file, 16, 16, kind);
  TIFFSetField(file, TIFFTAG_TILELENGTH, 16);
  TIFFSetField(file, TIFFTAG_TILEWIDTH, 16);
  TIFFSetField(file, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  std::vector<uint8_t> pixels;
  for (int i = 0; i < 256; ++i)
    pixels.insert(pixels.end(), {200, 40, 90});
  TIFFWriteTile(file, pixels.data(), 0, 0, 0, 0);
  TIFFClose(file);
  Array array = readArray(directory / "a.tif");
  EXPECT_EQ(array.shape(), (Shape{1, 3, 16, 16}));
  EXPECT_NEAR(array.at(0), 200, 3);
  EXPECT_NEAR(array.at(256), 40, 3);
  EXPECT_NEAR(array.at(512), 90, 3);
}

/// Tag 259 of the one directory, of which libtiff would write no other kinds.
TEST(Tiff, CompressionsThatAreNotKnownAreNamed) {
  TemporaryDirectory directory;
  std::string path = writeTiff(directory / "a.tif", 1, 4, 4, {.compression = COMPRESSION_NONE});
  std::string bytes = contentOf(path);
  size_t tag = bytes.find(std::string("\x03\x01\x03\0\x01\0\0\0\x01\0", 10));
  ASSERT_NE(tag, std::string::npos);
  bytes[tag + 8] = static_cast<char>(33005 & 255);
  bytes[tag + 9] = static_cast<char>(33005 >> 8);
  EXPECT_EQ(readError(writeFile(path, bytes)),
            "cannot read '" + path +
                "': its compression (number 33005) is not supported; save it with LZW, deflate or "
                "none");
}

//===- Axes -----------------------------------------------------------------------------------===//

/// The first pixels of the planes of sample `index`, as an input of `shape` without its batch gets
/// them.
std::vector<float> planesOf(const std::string &path, Shape shape, int64_t index,
                            const std::string &axes = "") {
  artifact::DataPipelineT pipeline;
  pipeline.sources.push_back(std::make_unique<artifact::DataSourceT>());
  pipeline.sources[0]->name = "x";
  pipeline.sources[0]->axes = axes;
  size_t plane = static_cast<size_t>(shape[shape.size() - 1] * shape[shape.size() - 2]);
  shape.insert(shape.begin(), 1);
  Dataset dataset(pipeline, {{"x", artifact::DType::F32, shape, {}, true}}, {"x"}, {{"x", path}});
  std::vector<float> firsts, values = dataset.sample(index, {})[0].values;
  for (size_t at = 0; at < values.size(); at += plane)
    firsts.push_back(values[at]);
  return firsts;
}

std::string ome(const std::string &pixels) {
  return "<?xml version=\"1.0\"?><!-- a > b --><OME xmlns=\"x\"><Image ID=\"Image:0\">" + pixels +
         "</Image></OME>";
}

std::string omeOf(const std::string &order, int z, int c, int t, const std::string &within = "") {
  return ome("<ome:Pixels ID='a > b' DimensionOrder = \"" + order + "\" SizeC=\"" +
             std::to_string(c) + "\" SizeT=\"" + std::to_string(t) + "\" SizeZ=\"" +
             std::to_string(z) + "\">" + within + "</ome:Pixels>");
}

/// Pages begin with their number times 100, modulo 256; here: 0, 100, 200, 44, 144, 244, ...
const std::vector<float> firsts = {0, 100, 200, 44, 144, 244, 88, 188, 32, 132, 232, 76};

TEST(TiffAxes, ImageJsFramesAreSamplesAndChannelsAreFastest) {
  TemporaryDirectory directory;
  std::string path =
      writeTiff(directory / "a.tif", 12, 2, 2,
                {.description = "ImageJ=1.54f\nimages=12\nchannels=3\nslices=2\nframes=2\n"
                                "hyperstack=true\n"});
  // Page (frame * 2 + slice) * 3 + channel.
  EXPECT_EQ(planesOf(path, {3, 2, 2, 2}, 0),
            (std::vector<float>{firsts[0], firsts[3], firsts[1], firsts[4], firsts[2], firsts[5]}));
  EXPECT_EQ(
      planesOf(path, {3, 2, 2, 2}, 1),
      (std::vector<float>{firsts[6], firsts[9], firsts[7], firsts[10], firsts[8], firsts[11]}));
  // What the source line says goes before it, but for the order.
  EXPECT_EQ(planesOf(path, {1, 2, 2}, 11, "NYX"), (std::vector<float>{firsts[11]}));
  for (const char *axes : {"NZYXC", "ZYXC", "CZYX"})
    EXPECT_EQ(planesOf(path, {3, 2, 2, 2}, 1, axes), planesOf(path, {3, 2, 2, 2}, 1)) << axes;
  EXPECT_NE(errorOf([&] { planesOf(path, {3, 2, 2}, 0); })
                .find("gives samples of shape 3 x 2 x 2 x 2, but the model's input x takes 3 x 2 x "
                      "2; its metadata name the axes NZCYX, unless the source line has others"),
            std::string::npos);
}

TEST(TiffAxes, SlicesOfImageJAreOneVolume) {
  TemporaryDirectory directory;
  std::string path = writeTiff(directory / "a.tif", 3, 2, 2,
                               {.description = "ImageJ=1.53c\nimages=3\nslices=3\n"});
  EXPECT_EQ(planesOf(path, {1, 3, 2, 2}, 0), (std::vector<float>{0, 100, 200}));
  // Pages that somebody has added since, and images of which ImageJ says no more: samples.
  path = writeTiff(directory / "b.tif", 4, 2, 2,
                   {.description = "ImageJ=1.53c\nimages=3\nslices=3\n"});
  EXPECT_EQ(planesOf(path, {1, 2, 2}, 3), (std::vector<float>{44}));
  path = writeTiff(directory / "c.tif", 3, 2, 2, {.description = "ImageJ=1.40\nimages=3\n"});
  EXPECT_EQ(planesOf(path, {1, 2, 2}, 2), (std::vector<float>{200}));
}

TEST(TiffAxes, OmeNamesTheOrder) {
  TemporaryDirectory directory;
  // Page z + 2 (c + 3 t), then page c + 3 (z + 2 t).
  std::string path =
      writeTiff(directory / "a.tif", 12, 2, 2, {.description = omeOf("XYZCT", 2, 3, 2)});
  EXPECT_EQ(
      planesOf(path, {3, 2, 2, 2}, 1),
      (std::vector<float>{firsts[6], firsts[7], firsts[8], firsts[9], firsts[10], firsts[11]}));
  path = writeTiff(directory / "b.tif", 12, 2, 2, {.description = omeOf("XYCZT", 2, 3, 2)});
  EXPECT_EQ(
      planesOf(path, {3, 2, 2, 2}, 1),
      (std::vector<float>{firsts[6], firsts[9], firsts[7], firsts[10], firsts[8], firsts[11]}));
  // Time is fastest: samples lie side by side. Page t + 2 z.
  path = writeTiff(directory / "c.tif", 6, 2, 2, {.description = omeOf("XYTZC", 3, 1, 2)});
  EXPECT_EQ(planesOf(path, {1, 3, 2, 2}, 1), (std::vector<float>{firsts[1], firsts[3], firsts[5]}));
  // SizeC counts the samples of a pixel, too.
  path = writeTiff(directory / "d.tif", 2, 2, 2,
                   {.channels = 3, .description = omeOf("XYCZT", 2, 3, 1)});
  EXPECT_EQ(planesOf(path, {3, 2, 2, 2}, 0), (std::vector<float>{0, 100, 50, 150, 100, 200}));
}

TEST(TiffAxes, MetadataThatContradictTheFileAreRefused) {
  TemporaryDirectory directory;
  auto refusal = [&](uint32_t pages, const std::string &description, uint16_t channels = 1) {
    return readError(writeTiff(directory / "a.tif", pages, 2, 2,
                               {.channels = channels, .description = description}));
  };
  auto holds = [](const std::string &text, const std::string &part) {
    return text.find("a.tif': " + part) != std::string::npos;
  };
  EXPECT_PRED2(holds, refusal(1, "ImageJ=1.53c\nimages=700\nslices=700\n"),
               "ImageJ has put 700 images behind its one page, as it does beyond 4 GB; save it as");
  EXPECT_PRED2(holds, refusal(2, omeOf("XYZCT", 3, 1, 1)),
               "its OME metadata promise 3 planes, but it holds 2; where several files hold them");
  EXPECT_PRED2(holds, refusal(2, omeOf("XYZZT", 2, 1, 1)), "its OME metadata have no Dimension");
  EXPECT_PRED2(holds, refusal(1, ome("<Pixels DimensionOrder=\"XYZCT\"/><Pixels/>")),
               "it holds 2 images (OME series); save the one to read in a file of its own");
  std::string there = "<TiffData FirstZ=\"1\" IFD=\"1\" PlaneCount=\"1\"/>";
  EXPECT_EQ(refusal(2, omeOf("XYZCT", 2, 1, 1, there)), "no error");
  std::string elsewhere = "<TiffData FirstZ=\"1\" IFD=\"0\" PlaneCount=\"1\"/>";
  EXPECT_PRED2(holds, refusal(2, omeOf("XYZCT", 2, 1, 1, elsewhere)),
               "its OME metadata put the planes into an order of their own; save it in the order");
  EXPECT_PRED2(holds, refusal(2, omeOf("XYZCT", 2, 1, 1, "<TiffData FirstZ=\"9\" IFD=\"9\"/>")),
               "its OME metadata put the planes");
  EXPECT_PRED2(holds, refusal(2, omeOf("XYZCT", 1, 6, 1), 3), "its channels lie in pages and");
  // Text that is not all there: what it says until then.
  EXPECT_EQ(refusal(2, "<OME><Image><Pixels DimensionOrder=\"XYZCT\" SizeZ=\"2\" SizeT"),
            "no error");
  EXPECT_EQ(refusal(2, "<OME "), "no error");
}

} // namespace
} // namespace dlc::rt::test
