// libtiff reads page by page, by scanlines or by rows of tiles; pixels with several samples are
// taken apart into planes, so that channels come before height and width. Smaller copies of an
// image, as pyramids have, are passed over: libtiff does not visit sub-directories, and pages say
// that they are reduced.
//
// Memory grows with what was decoded: a header that lies about sizes costs a message.
#include "runtime/artifact/Error.h"
#include "runtime/data/readers/Damage.h"
#include "runtime/data/readers/Planes.h"
#include "runtime/data/readers/Readers.h"
#include "runtime/data/readers/Sizes.h"
#include "runtime/data/readers/TiffAxes.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
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
  bool isTiled = false;
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

  ArrayHeader header() {
    return visitPages([](const Page &, size_t) {});
  }

  Array read() {
    auto bytes = std::make_shared<std::vector<std::byte>>();
    ArrayHeader header =
        visitPages([&](const Page &page, size_t width) { readPage(page, width, *bytes); });
    return Array(std::move(header), *bytes, bytes);
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
  Error truncated() const { return damagedFile(path, printable(reason)); }

  /// Calls `visit` with each page of full resolution and the bytes of a sample.
  template <typename Visit> ArrayHeader visitPages(Visit visit) {
    std::optional<Page> first;
    ElementType type = ElementType::U8;
    std::string description;
    uint64_t pageBytes = 0, pages = 0;
    do {
      if (isReduced())
        continue;
      Page page = describe();
      if (!first) {
        first = page;
        type = elementType(page);
        pageBytes = checkedProduct(path, {page.height, page.width, page.channels, bytesOf(type)});
        const char *text = nullptr;
        if (TIFFGetField(file.get(), TIFFTAG_IMAGEDESCRIPTION, &text) == 1)
          description = text;
      } else if (page != *first) {
        throw damaged("page " + std::to_string(pages) + " is " + textOf(page) + ", the first one " +
                      textOf(*first) +
                      "; save pages of one size and type, or each in a file of its own");
      }
      requirePlausible(path, checkedProduct(path, {pageBytes, ++pages}), fileBytes,
                       ratioOf(page.compression));
      visit(page, bytesOf(type));
      reason.clear();
    } while (TIFFReadDirectory(file.get()));
    if (!reason.empty() || !TIFFLastDirectory(file.get()))
      throw truncated();
    if (!first)
      throw damaged("all of its pages are reduced copies; save the image itself");
    return headerOf(*first, type, static_cast<int64_t>(pages), description);
  }

  ArrayHeader headerOf(const Page &page, ElementType type, int64_t pages,
                       const std::string &description) const {
    std::vector<int64_t> image = {page.height, page.width};
    if (page.channels > 1)
      image.insert(image.begin(), page.channels);
    ArrayHeader header{path, type, {pages}, FileFormat::Tiff};
    header.shape.insert(header.shape.end(), image.begin(), image.end());
    PageAxes axes = pageAxes(path, description, pages, page.channels);
    if (!axes.letters.empty()) {
      header.axes = axes.letters + (page.channels > 1 ? "CYX" : "YX");
      header.axesShape = axes.extents;
      header.axesShape.insert(header.axesShape.end(), image.begin(), image.end());
    }
    return header;
  }

  /// A smaller copy of another page, or a mask of its transparency.
  bool isReduced() const {
    uint32_t kind = 0;
    TIFFGetFieldDefaulted(file.get(), TIFFTAG_SUBFILETYPE, &kind);
    return kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK);
  }

  static std::string textOf(const Page &page) {
    return std::to_string(page.channels) + " x " + std::to_string(page.height) + " x " +
           std::to_string(page.width) + " of " + std::to_string(page.bits) + " bits";
  }

  void checkCompression(uint16_t compression) const {
    if (TIFFIsCODECConfigured(compression))
      return;
    const TIFFCodec *codec = TIFFFindCODEC(compression);
    throw damaged("its compression (" +
                  (codec ? codec->name : "number " + std::to_string(compression)) +
                  ") is not supported; save it with LZW, deflate or none");
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
    checkCompression(page.compression);
    page.isTiled = TIFFIsTiled(file.get());
    uint16_t colours = PHOTOMETRIC_MINISBLACK;
    TIFFGetField(file.get(), TIFFTAG_PHOTOMETRIC, &colours);
    if (page.compression == COMPRESSION_JPEG && colours == PHOTOMETRIC_YCBCR &&
        page.planar == PLANARCONFIG_CONTIG) // libjpeg makes RGB of it
      TIFFSetField(file.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    else if (colours == PHOTOMETRIC_YCBCR || colours == PHOTOMETRIC_LOGL ||
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
    std::vector<std::byte> &into = samples > 1 ? pixels : bytes;
    if (samples > 1)
      pixels.clear();
    for (uint16_t plane = 0; plane < planes; ++plane)
      if (page.isTiled)
        readTiles(page, plane, samples * width, into);
      else
        readLines(page, plane, samples * width, into);
    if (samples > 1)
      appendPlanes(pixels, samples, width, bytes);
  }

  /// A piece of memory that is touched as it is decoded.
  std::byte *touchedLater(std::unique_ptr<std::byte[]> &memory, size_t &size, uint64_t wanted) {
    if (wanted >> 31)
      throw damaged("its lines or tiles have an odd size");
    if (size < wanted) {
      memory = std::make_unique_for_overwrite<std::byte[]>(wanted);
      size = wanted;
    }
    return memory.get();
  }

  void readLines(const Page &page, uint16_t plane, size_t pixelBytes,
                 std::vector<std::byte> &into) {
    uint64_t bytes = checkedProduct(path, {page.width, pixelBytes});
    if (static_cast<uint64_t>(TIFFScanlineSize64(file.get())) != bytes)
      throw damaged("its scanlines have an odd size");
    std::byte *line = touchedLater(band, bandBytes, bytes);
    for (uint32_t row = 0; row < page.height; ++row) {
      if (TIFFReadScanline(file.get(), line, row, plane) != 1)
        throw truncated();
      into.insert(into.end(), line, line + bytes);
    }
  }

  /// Tiles side by side make a band of lines; the last ones stand over the image.
  void readTiles(const Page &page, uint16_t plane, size_t pixelBytes,
                 std::vector<std::byte> &into) {
    uint32_t tileWidth = 0, tileHeight = 0;
    TIFFGetField(file.get(), TIFFTAG_TILEWIDTH, &tileWidth);
    TIFFGetField(file.get(), TIFFTAG_TILELENGTH, &tileHeight);
    uint64_t lineBytes = checkedProduct(path, {page.width, pixelBytes});
    uint64_t tileLine = checkedProduct(path, {tileWidth, pixelBytes});
    uint64_t bytes = checkedProduct(path, {tileLine, tileHeight});
    if (bytes == 0 || static_cast<uint64_t>(TIFFTileSize64(file.get())) != bytes)
      throw damaged("its tiles have an odd size");
    std::byte *decoded = touchedLater(tile, tileBytes, bytes);
    for (uint32_t y = 0; y < page.height; y += std::min(tileHeight, page.height - y)) {
      uint32_t rows = std::min(tileHeight, page.height - y);
      std::byte *lines = touchedLater(band, bandBytes, checkedProduct(path, {lineBytes, rows}));
      for (uint32_t x = 0; x < page.width; x += std::min(tileWidth, page.width - x)) {
        if (TIFFReadTile(file.get(), decoded, x, y, 0, plane) < 0)
          throw truncated();
        size_t copied = std::min(tileWidth, page.width - x) * pixelBytes;
        for (uint32_t row = 0; row < rows; ++row)
          std::memcpy(lines + row * lineBytes + x * pixelBytes, decoded + row * tileLine, copied);
      }
      into.insert(into.end(), lines, lines + rows * lineBytes);
    }
  }

  const std::string &path;
  uint64_t fileBytes;
  std::string reason; // what libtiff last complained about
  std::unique_ptr<TIFF, Closer> file;
  std::unique_ptr<std::byte[]> band, tile;
  size_t bandBytes = 0, tileBytes = 0;
  std::vector<std::byte> pixels; // of an interleaved page
};

} // namespace

Array readTiff(const std::string &path) { return TiffReader(path).read(); }
ArrayHeader tiffHeader(const std::string &path) { return TiffReader(path).header(); }

} // namespace dlc::rt
