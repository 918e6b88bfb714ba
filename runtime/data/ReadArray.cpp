// Which reader a file is for, by its first bytes.

#include "runtime/artifact/Error.h"
#include "runtime/artifact/MappedFile.h"
#include "runtime/data/Readers.h"

#include <algorithm>

namespace dlc::rt {

static Array readByContent(const std::string &path) {
  std::string magic;
  {
    MappedFile file(path);
    std::span<const std::byte> bytes = file.bytes();
    magic.assign(reinterpret_cast<const char *>(bytes.data()), std::min<size_t>(bytes.size(), 6));
  }
  using namespace std::string_view_literals;
  if (magic == "\x93NUMPY"sv)
    return readNpy(path);
  if (magic == "\x89PNG\r\n"sv)
    return readPng(path);
  if (magic.starts_with("II*\0"sv) || magic.starts_with("MM\0*"sv) ||
      magic.starts_with("II+\0"sv) || magic.starts_with("MM\0+"sv))
    return readTiff(path);
  if (magic.starts_with("\0\0"sv) || magic.starts_with("\x1f\x8b"sv))
    return readIdx(path);
  throw Error(ErrorCode::BadInput,
              "'" + path +
                  "' has a format that is not known; wanted .npy, IDX, IDX.gz, PNG, "
                  "TIFF, or a directory of images");
}

Array readArray(const std::string &path) {
  try {
    return readByContent(path);
  } catch (const std::bad_alloc &) {
    throw Error(ErrorCode::BadInput, "'" + path + "' does not fit into memory once it is decoded");
  }
}

} // namespace dlc::rt
