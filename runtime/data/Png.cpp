#include "runtime/data/Png.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/AtomicFile.h"

#include <png.h>
#include <vector>

namespace dlc::rt {

void writePng(const std::string &path, int64_t height, int64_t width,
              std::span<const uint8_t> pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_GRAY;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> bytes(size);
  if (!png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr))
    throw Error(ErrorCode::Runtime, "cannot write '" + path + "': " + image.message);
  AtomicFile file(path);
  file.write(std::span(bytes).first(size));
  file.commit();
}

} // namespace dlc::rt
