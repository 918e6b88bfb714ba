// libtiff reads page by page and scanline by scanline; pixels with several samples are taken apart
// into planes, so that channels come before height and width.
#include "runtime/core/Error.h"
#include "runtime/data/Readers.h"

#include <cstring>
#include <memory>
#include <tiffio.h>

namespace dlc::rt {

namespace {

struct Closer {
  void operator()(TIFF *file) const { TIFFClose(file); }
};

struct Page {
  uint32_t height = 0, width = 0;
  uint16_t bits = 1, channels = 1, format = SAMPLEFORMAT_UINT, planar = PLANARCONFIG_CONTIG;
  bool operator==(const Page &) const = default;
};

class TiffReader {
public:
  explicit TiffReader(const std::string &path) : path(path) {
    TIFFSetErrorHandler(nullptr); // what fails is told by the exception
    TIFFSetWarningHandler(nullptr);
    file.reset(TIFFOpen(path.c_str(), "r"));
    if (!file)
      throw damaged("it is truncated or damaged");
  }

  Array read() {
    Page first = describe();
    ElementType type = elementType(first);
    auto bytes = std::make_shared<std::vector<std::byte>>();
    int64_t pages = 0;
    do {
      if (describe() != first)
        throw damaged("page " + std::to_string(pages) + " differs in size or type from the first");
      readPage(first, bytesOf(type), *bytes);
      ++pages;
    } while (TIFFReadDirectory(file.get()));
    std::vector<int64_t> shape = {pages};
    if (first.channels > 1)
      shape.push_back(first.channels);
    shape.insert(shape.end(), {first.height, first.width});
    return Array(path, type, std::move(shape), *bytes, bytes);
  }

private:
  Error damaged(const std::string &why) const {
    return Error(ErrorCode::BadInput, "cannot read '" + path + "': " + why);
  }

  Page describe() const {
    Page page;
    TIFFGetField(file.get(), TIFFTAG_IMAGELENGTH, &page.height);
    TIFFGetField(file.get(), TIFFTAG_IMAGEWIDTH, &page.width);
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_BITSPERSAMPLE, &page.bits);
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_SAMPLESPERPIXEL, &page.channels);
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_SAMPLEFORMAT, &page.format);
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_PLANARCONFIG, &page.planar);
    if (page.height == 0 || page.width == 0 || page.channels == 0)
      throw damaged("a page has no pixels");
    if (TIFFIsTiled(file.get()))
      throw damaged("tiled TIFF files are not supported; save it in strips");
    return page;
  }

  ElementType elementType(const Page &page) const {
    bool isSigned = page.format == SAMPLEFORMAT_INT, isFloat = page.format == SAMPLEFORMAT_IEEEFP;
    if (page.bits == 8 && !isFloat)
      return isSigned ? ElementType::I8 : ElementType::U8;
    if (page.bits == 16)
      return isFloat ? ElementType::F16 : isSigned ? ElementType::I16 : ElementType::U16;
    if (page.bits == 32)
      return isFloat ? ElementType::F32 : isSigned ? ElementType::I32 : ElementType::U32;
    if (page.bits == 64 && isFloat)
      return ElementType::F64;
    throw damaged(std::to_string(page.bits) + " bits per sample are not supported");
  }

  void readPage(const Page &page, size_t width, std::vector<std::byte> &bytes) {
    bool interleaved = page.planar == PLANARCONFIG_CONTIG;
    size_t samples = interleaved ? page.channels : 1;
    size_t scanline = page.width * samples * width;
    if (static_cast<size_t>(TIFFScanlineSize(file.get())) != scanline)
      throw damaged("its scanlines have an odd size");
    size_t plane = size_t{page.height} * page.width * width, start = bytes.size();
    std::vector<std::byte> line(scanline);
    uint16_t planes = interleaved ? uint16_t{1} : page.channels;
    for (uint16_t channel = 0; channel < planes; ++channel)
      for (uint32_t row = 0; row < page.height; ++row) {
        if (TIFFReadScanline(file.get(), line.data(), row, channel) != 1)
          throw damaged("it is truncated or damaged");
        bytes.resize(start + plane * page.channels); // only once a line was read: sizes may lie
        for (size_t sample = 0; sample < samples; ++sample)
          for (size_t x = 0; x < page.width; ++x)
            std::memcpy(bytes.data() + start + plane * (channel + sample) +
                            (size_t{row} * page.width + x) * width,
                        line.data() + (x * samples + sample) * width, width);
      }
  }

  const std::string &path;
  std::unique_ptr<TIFF, Closer> file;
};

} // namespace

Array readTiff(const std::string &path) { return TiffReader(path).read(); }

} // namespace dlc::rt
