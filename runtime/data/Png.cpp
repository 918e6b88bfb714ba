#include "runtime/data/Png.h"

#include "runtime/artifact/Error.h"

#include <png.h>

namespace dlc::rt {

void writePng(const std::string &path, int64_t height, int64_t width,
              std::span<const uint8_t> pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_GRAY;
  if (!png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr))
    throw Error(ErrorCode::Runtime, "cannot write '" + path + "': " + image.message);
}

} // namespace dlc::rt
