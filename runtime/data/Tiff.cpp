// libtiff reads page by page and scanline by scanline; pixels with several samples are taken apart
// into planes, so that channels come before height and width.
//
// Memory grows with what was decoded: a header that lies about sizes costs a message.
#include "runtime/artifact/Error.h"
#include "runtime/data/Readers.h"
#include "runtime/data/Sizes.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <tiffio.h>

namespace dlc::rt {

namespace {

struct Closer {
  void operator()(TIFF *file) const { TIFFClose(file); }
  void operator()(TIFFOpenOptions *options) const { TIFFOpenOptionsFree(options); }
};

struct Page {
  uint32_t height = 0, width = 0;
  uint16_t bits = 1, channels = 1, format = SAMPLEFORMAT_UINT, planar = PLANARCONFIG_CONTIG;
  uint16_t compression = COMPRESSION_NONE;
  bool operator==(const Page &) const = default;
};

/// How many times smaller a compression makes data at best, generously.
uint64_t ratioOf(uint16_t compression) {
  switch (compression) {
  case COMPRESSION_NONE:
    return 1;
  case COMPRESSION_PACKBITS:
    return 64;
  case COMPRESSION_ADOBE_DEFLATE:
  case COMPRESSION_DEFLATE:
    return deflateRatio;
  case COMPRESSION_LZW: // a code of 12 bits for at most 4096 bytes
    return 4096;
  default: // a Zstandard block of 128 KiB takes 4 bytes
    return 1 << 15;
  }
}

class TiffReader {
public:
  explicit TiffReader(const std::string &path)
      : path(path), fileBytes(std::filesystem::file_size(path)) {
    std::unique_ptr<TIFFOpenOptions, Closer> options(TIFFOpenOptionsAlloc());
    TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keepError, &reason);
    TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignoreWarning, nullptr);
    // What libtiff itself sets aside: tables and one strip.
    TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), tmsize_t{1} << 31);
    // m: not mapped, or a file that is cut meanwhile would be a signal.
    file.reset(TIFFOpenExt(path.c_str(), "rm", options.get()));
    if (!file)
      throw truncated();
  }

  Array read() {
    Page first = describe();
    ElementType type = elementType(first);
    size_t width = bytesOf(type);
    uint64_t pageBytes = checkedProduct(path, {first.height, first.width, first.channels, width});
    auto bytes = std::make_shared<std::vector<std::byte>>();
    int64_t pages = 0;
    do {
      if (Page page = describe(); page != first)
        throw damaged("page " + std::to_string(pages) + " is " + textOf(page) + ", the first one " +
                      textOf(first) +
                      "; save pages of one size and type, or each in a file of its own");
      requirePlausible(path, checkedProduct(path, {pageBytes, static_cast<uint64_t>(pages) + 1}),
                       fileBytes, ratioOf(first.compression));
      readPage(first, width, *bytes);
      ++pages;
      reason.clear();
    } while (TIFFReadDirectory(file.get()));
    if (!reason.empty() || !TIFFLastDirectory(file.get()))
      throw truncated();
    std::vector<int64_t> shape = {pages};
    if (first.channels > 1)
      shape.push_back(first.channels);
    shape.insert(shape.end(), {first.height, first.width});
    return Array(path, type, std::move(shape), *bytes, bytes);
  }

private:
  static int keepError(TIFF *, void *reason, const char *, const char *format, va_list arguments) {
    char text[200];
    std::vsnprintf(text, sizeof(text), format, arguments);
    *static_cast<std::string *>(reason) = text;
    return 1;
  }
  static int ignoreWarning(TIFF *, void *, const char *, const char *, va_list) { return 1; }

  Error damaged(const std::string &why) const {
    return Error(ErrorCode::BadInput, "cannot read '" + path + "': " + why);
  }
  Error truncated() const {
    return damaged("it is truncated or damaged" +
                   (reason.empty() ? "" : " (" + printable(reason) + ")"));
  }

  static std::string textOf(const Page &page) {
    return std::to_string(page.channels) + " x " + std::to_string(page.height) + " x " +
           std::to_string(page.width) + " of " + std::to_string(page.bits) + " bits";
  }

  Page describe() const {
    Page page;
    TIFFGetField(file.get(), TIFFTAG_IMAGELENGTH, &page.height);
    TIFFGetField(file.get(), TIFFTAG_IMAGEWIDTH, &page.width);
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_BITSPERSAMPLE, &page.bits);
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_SAMPLESPERPIXEL, &page.channels);
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_SAMPLEFORMAT, &page.format);
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_PLANARCONFIG, &page.planar);
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_COMPRESSION, &page.compression);
    if (page.height == 0 || page.width == 0 || page.channels == 0)
      throw damaged("a page has no pixels");
    if (TIFFIsTiled(file.get()))
      throw damaged("tiled TIFF files are not supported; save it in strips");
    uint16_t colours = PHOTOMETRIC_MINISBLACK;
    TIFFGetField(file.get(), TIFFTAG_PHOTOMETRIC, &colours);
    if (colours == PHOTOMETRIC_YCBCR || colours == PHOTOMETRIC_LOGL ||
        colours == PHOTOMETRIC_LOGLUV)
      throw damaged("its colours are neither grey nor RGB; save it as one of these");
    return page;
  }

  ElementType elementType(const Page &page) const {
    bool isSigned = page.format == SAMPLEFORMAT_INT, isFloat = page.format == SAMPLEFORMAT_IEEEFP;
    if (page.format == SAMPLEFORMAT_COMPLEXINT || page.format == SAMPLEFORMAT_COMPLEXIEEEFP)
      throw damaged("complex numbers are not supported; save their parts or magnitude");
    if (page.bits == 8 && !isFloat)
      return isSigned ? ElementType::I8 : ElementType::U8;
    if (page.bits == 16)
      return isFloat ? ElementType::F16 : isSigned ? ElementType::I16 : ElementType::U16;
    if (page.bits == 32)
      return isFloat ? ElementType::F32 : isSigned ? ElementType::I32 : ElementType::U32;
    if (page.bits == 64 && isFloat)
      return ElementType::F64;
    throw damaged(std::to_string(page.bits) + (isFloat ? "-bit floats" : " bits per sample") +
                  " are not supported; save it with 8, 16 or 32 bits, or as 32-bit floats");
  }

  void readPage(const Page &page, size_t width, std::vector<std::byte> &bytes) {
    bool interleaved = page.planar == PLANARCONFIG_CONTIG;
    uint16_t planes = interleaved ? uint16_t{1} : page.channels;
    size_t samples = interleaved ? page.channels : 1;
    size_t lineBytes = checkedProduct(path, {page.width, samples, width});
    if (static_cast<size_t>(TIFFScanlineSize(file.get())) != lineBytes || lineBytes >> 31)
      throw damaged("its scanlines have an odd size");
    if (!line)
      line = std::make_unique_for_overwrite<std::byte[]>(lineBytes); // touched as it is decoded
    std::vector<std::byte> &into = samples > 1 ? pixels : bytes;
    if (samples > 1)
      pixels.clear();
    for (uint16_t channel = 0; channel < planes; ++channel)
      for (uint32_t row = 0; row < page.height; ++row) {
        if (TIFFReadScanline(file.get(), line.get(), row, channel) != 1)
          throw truncated();
        into.insert(into.end(), line.get(), line.get() + lineBytes);
      }
    if (samples > 1)
      appendPlanes(samples, width, bytes);
  }

  void appendPlanes(size_t samples, size_t width, std::vector<std::byte> &bytes) const {
    size_t start = bytes.size(), count = pixels.size() / (samples * width);
    bytes.resize(start + pixels.size());
    for (size_t pixel = 0; pixel < count; ++pixel)
      for (size_t sample = 0; sample < samples; ++sample)
        std::memcpy(bytes.data() + start + (sample * count + pixel) * width,
                    pixels.data() + (pixel * samples + sample) * width, width);
  }

  const std::string &path;
  uint64_t fileBytes;
  std::string reason; // what libtiff last complained about
  std::unique_ptr<TIFF, Closer> file;
  std::unique_ptr<std::byte[]> line;
  std::vector<std::byte> pixels; // of an interleaved page
};

} // namespace

Array readTiff(const std::string &path) { return TiffReader(path).read(); }

} // namespace dlc::rt
