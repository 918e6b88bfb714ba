// libpng reports errors by longjmp: everything with a destructor lives outside of the function that
// sets the jump.
#include "runtime/artifact/Error.h"
#include "runtime/data/readers/Damage.h"
#include "runtime/data/readers/InputFile.h"
#include "runtime/data/readers/Planes.h"
#include "runtime/data/readers/Readers.h"
#include "runtime/data/readers/Sizes.h"

#include <bit>
#include <csetjmp>
#include <filesystem>
#include <png.h>

namespace dlc::rt {

namespace {

struct Decoded {
  uint32_t height = 0, width = 0;
  int bits = 8, channels = 1;
  int storedBits = 8,
      storedChannels = 1;        // of a pixel in the file, palettes and packed bits as such
  std::vector<std::byte> pixels; // interleaved
  std::vector<png_bytep> rows;
};

/// Decodes header and pixels in two steps, since the buffer's size follows from the header.
class PngReader {
public:
  explicit PngReader(std::FILE *file)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, this, keepError, ignoreWarning)),
        info(png_create_info_struct(png)) {
    png_init_io(png, file);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader &) = delete;
  PngReader &operator=(const PngReader &) = delete;

  /// What libpng complained about.
  const char *reason() const { return text; }

  bool readHeader(Decoded &image) {
    if (setjmp(png_jmpbuf(png)))
      return false;
    png_read_info(png, info);
    image.storedBits = png_get_bit_depth(png, info);
    image.storedChannels = png_get_channels(png, info);
    png_set_expand(png);
    png_set_strip_alpha(png);
    if (std::endian::native == std::endian::little)
      png_set_swap(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    image.height = png_get_image_height(png, info);
    image.width = png_get_image_width(png, info);
    image.bits = png_get_bit_depth(png, info);
    image.channels = png_get_channels(png, info);
    return true;
  }

  bool readPixels(Decoded &image) {
    if (setjmp(png_jmpbuf(png)))
      return false;
    png_read_image(png, image.rows.data());
    png_read_end(png, nullptr);
    return true;
  }

private:
  static void ignoreWarning(png_structp, png_const_charp) {}
  [[noreturn]] static void keepError(png_structp png, png_const_charp message) {
    auto *reader = static_cast<PngReader *>(png_get_error_ptr(png));
    std::snprintf(reader->text, sizeof(reader->text), "%s", message);
    png_longjmp(png, 1);
  }

  char text[100] = "";
  png_structp png;
  png_infop info;
};

/// A file, its header read.
class PngFile {
public:
  explicit PngFile(const std::string &path)
      : path(path), file(openInput(path)), reader(file.get()) {
    if (!reader.readHeader(image))
      throw damaged();
    auto stored = static_cast<size_t>(image.storedBits) * static_cast<size_t>(image.storedChannels);
    requirePlausible(path, checkedProduct(path, {image.width, image.height, stored}) / 8,
                     std::filesystem::file_size(path), deflateRatio);
  }

  ArrayHeader header() const {
    ArrayHeader header{path, ElementType::U8, {1, image.height, image.width}, FileFormat::Png};
    if (image.channels > 1)
      header.shape.insert(header.shape.begin() + 1, image.channels);
    if (image.bits == 16)
      header.type = ElementType::U16;
    return header;
  }

  Array read() {
    auto channels = static_cast<size_t>(image.channels);
    size_t width = image.bits == 16 ? 2 : 1;
    size_t row = checkedProduct(path, {image.width, channels, width});
    image.pixels.resize(checkedProduct(path, {row, image.height}));
    for (uint32_t y = 0; y < image.height; ++y)
      image.rows.push_back(reinterpret_cast<png_bytep>(image.pixels.data() + row * y));
    if (!reader.readPixels(image))
      throw damaged();
    auto planes = std::make_shared<std::vector<std::byte>>();
    appendPlanes(image.pixels, channels, width, *planes);
    return Array(header(), *planes, planes);
  }

private:
  Error damaged() const { return damagedFile(path, printable(reader.reason())); }

  const std::string &path;
  InputFile file;
  PngReader reader;
  Decoded image;
};

} // namespace

Array readPng(const std::string &path) { return PngFile(path).read(); }
ArrayHeader pngHeader(const std::string &path) { return PngFile(path).header(); }

} // namespace dlc::rt
