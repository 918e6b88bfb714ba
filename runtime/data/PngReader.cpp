// libpng reports errors by longjmp: everything with a destructor lives outside of the function that
// sets the jump.
#include "runtime/artifact/Error.h"
#include "runtime/data/Planes.h"
#include "runtime/data/Readers.h"
#include "runtime/data/Sizes.h"

#include <bit>
#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstring>
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

void closeFile(std::FILE *file) { std::fclose(file); }
using File = std::unique_ptr<std::FILE, decltype(&closeFile)>;

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

} // namespace

Array readPng(const std::string &path) {
  File file(std::fopen(path.c_str(), "rb"), closeFile);
  if (!file)
    throw Error(ErrorCode::BadInput, "cannot open '" + path + "': " + std::strerror(errno));
  Decoded image;
  PngReader reader(file.get());
  bool ok = reader.readHeader(image);
  size_t width = image.bits == 16 ? 2 : 1;
  if (ok) {
    auto channels = static_cast<size_t>(image.channels);
    auto stored = static_cast<size_t>(image.storedBits) * static_cast<size_t>(image.storedChannels);
    requirePlausible(path, checkedProduct(path, {image.width, image.height, stored}) / 8,
                     std::filesystem::file_size(path), deflateRatio);
    size_t row = checkedProduct(path, {image.width, channels, width});
    image.pixels.resize(checkedProduct(path, {row, image.height}));
    for (uint32_t y = 0; y < image.height; ++y)
      image.rows.push_back(reinterpret_cast<png_bytep>(image.pixels.data() + row * y));
    ok = reader.readPixels(image);
  }
  if (!ok)
    throw Error(ErrorCode::BadInput, "cannot read '" + path + "': it is truncated or damaged (" +
                                         printable(reader.reason()) + ")");
  auto planes = std::make_shared<std::vector<std::byte>>();
  appendPlanes(image.pixels, static_cast<size_t>(image.channels), width, *planes);
  std::vector<int64_t> shape = {1, image.height, image.width};
  if (image.channels > 1)
    shape.insert(shape.begin() + 1, image.channels);
  ElementType type = width == 2 ? ElementType::U16 : ElementType::U8;
  return Array({path, type, std::move(shape), FileFormat::Png}, *planes, planes);
}

} // namespace dlc::rt
