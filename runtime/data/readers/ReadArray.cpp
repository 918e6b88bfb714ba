// Which reader a file is for, by its first bytes.

#include "runtime/artifact/Error.h"
#include "runtime/artifact/MappedFile.h"
#include "runtime/data/readers/Readers.h"

#include <algorithm>
#include <optional>

namespace dlc::rt {

/// Nothing for a file that is none of them.
static std::optional<FileFormat> formatOf(const std::string &path) {
  MappedFile file(path);
  std::span<const std::byte> bytes = file.bytes();
  std::string magic(reinterpret_cast<const char *>(bytes.data()),
                    std::min<size_t>(bytes.size(), 6));
  using namespace std::string_view_literals;
  if (magic == "\x93NUMPY"sv)
    return FileFormat::Npy;
  if (magic == "\x89PNG\r\n"sv)
    return FileFormat::Png;
  if (magic.starts_with("\xff\xd8\xff"sv))
    return FileFormat::Jpeg;
  if (magic.starts_with("II*\0"sv) || magic.starts_with("MM\0*"sv) ||
      magic.starts_with("II+\0"sv) || magic.starts_with("MM\0+"sv))
    return FileFormat::Tiff;
  if (magic.starts_with("\0\0"sv) || magic.starts_with("\x1f\x8b"sv))
    return FileFormat::Idx;
  return std::nullopt;
}

static Array readByContent(const std::string &path) {
  std::optional<FileFormat> format = formatOf(path);
  if (!format)
    throw Error(ErrorCode::BadInput,
                "'" + path +
                    "' has a format that is not known; wanted .npy, IDX, IDX.gz, PNG, TIFF, JPEG, "
                    "or a directory of images");
  switch (*format) {
  case FileFormat::Npy:
    return readNpy(path);
  case FileFormat::Idx:
    return readIdx(path);
  case FileFormat::Png:
    return readPng(path);
  case FileFormat::Tiff:
    return readTiff(path);
  case FileFormat::Jpeg:
    break;
  }
  return readJpeg(path);
}

Array readArray(const std::string &path) {
  try {
    return readByContent(path);
  } catch (const std::bad_alloc &) {
    throw Error(ErrorCode::BadInput, "'" + path + "' does not fit into memory once it is decoded");
  }
}

ArrayHeader imageHeader(const std::string &path) {
  std::optional<FileFormat> format = formatOf(path);
  if (format == FileFormat::Png)
    return pngHeader(path);
  if (format == FileFormat::Tiff)
    return tiffHeader(path);
  if (format == FileFormat::Jpeg)
    return jpegHeader(path);
  throw Error(ErrorCode::BadInput, "'" + path +
                                       "' holds no PNG, TIFF or JPEG image, whatever its "
                                       "name says: save it as one, or take it away");
}

ArrayHeader fileHeader(const std::string &path) {
  std::optional<FileFormat> format = formatOf(path);
  bool isArray = !format || format == FileFormat::Npy || format == FileFormat::Idx;
  return isArray ? readArray(path).header() : imageHeader(path);
}

} // namespace dlc::rt
