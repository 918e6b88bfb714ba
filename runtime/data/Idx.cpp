// IDX: two zero bytes, a type code, the rank, then big-endian u32 extents and big-endian elements.
// One-byte elements of a plain file stay mapped; everything else is decoded into memory.
#include "runtime/core/Error.h"
#include "runtime/data/MappedFile.h"
#include "runtime/data/Readers.h"

#include <algorithm>
#include <cstring>
#include <zlib.h>

namespace dlc::rt {

using Bytes = std::vector<std::byte>;

static Bytes gunzip(const std::string &path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file)
    throw Error(ErrorCode::BadInput, "cannot open '" + path + "': " + std::strerror(errno));
  Bytes bytes;
  size_t size = 0;
  int got = 1;
  while (got > 0) {
    bytes.resize(std::max<size_t>(bytes.size() * 2, 1 << 16));
    auto room = static_cast<unsigned>(std::min<size_t>(bytes.size() - size, 1 << 30));
    got = gzread(file, bytes.data() + size, room);
    size += got > 0 ? static_cast<size_t>(got) : 0;
  }
  // A stream that ends early reads as end of file and is reported on closing alone.
  bool damaged = gzclose(file) != Z_OK || got < 0;
  if (damaged)
    throw Error(ErrorCode::BadInput, "'" + path + "' is truncated or damaged (gzip)");
  bytes.resize(size);
  return bytes;
}

static ElementType typeOfCode(const std::string &path, unsigned code) {
  switch (code) {
  case 0x08:
    return ElementType::U8;
  case 0x09:
    return ElementType::I8;
  case 0x0B:
    return ElementType::I16;
  case 0x0C:
    return ElementType::I32;
  case 0x0D:
    return ElementType::F32;
  case 0x0E:
    return ElementType::F64;
  default:
    throw Error(ErrorCode::BadInput,
                "'" + path + "' is no IDX file: unknown element type " + std::to_string(code));
  }
}

static Array parseIdx(const std::string &path, std::span<const std::byte> file,
                      std::shared_ptr<const void> owner) {
  auto byteAt = [&](size_t i) { return static_cast<unsigned>(file[i]); };
  if (file.size() < 4 || byteAt(0) != 0 || byteAt(1) != 0)
    throw Error(ErrorCode::BadInput, "'" + path + "' is no IDX file");
  ElementType type = typeOfCode(path, byteAt(2));
  size_t rank = byteAt(3);
  size_t start = 4 + 4 * rank;
  if (file.size() < start)
    throw Error(ErrorCode::BadInput, "'" + path + "' is truncated: its header ends early");
  std::vector<int64_t> shape;
  for (size_t i = 4; i < start; i += 4)
    shape.push_back(int64_t{byteAt(i)} << 24 | byteAt(i + 1) << 16 | byteAt(i + 2) << 8 |
                    byteAt(i + 3));
  std::span<const std::byte> elements = file.subspan(start);
  size_t width = bytesOf(type);
  if (width == 1)
    return Array(path, type, std::move(shape), elements, std::move(owner));
  auto swapped = std::make_shared<Bytes>(elements.begin(), elements.end());
  for (size_t i = 0; i + width <= swapped->size(); i += width)
    std::reverse(swapped->begin() + static_cast<ptrdiff_t>(i),
                 swapped->begin() + static_cast<ptrdiff_t>(i + width));
  return Array(path, type, std::move(shape), *swapped, swapped);
}

Array readIdx(const std::string &path) {
  auto file = std::make_shared<MappedFile>(path);
  std::span<const std::byte> bytes = file->bytes();
  bool zipped = bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
  if (!zipped)
    return parseIdx(path, bytes, file);
  auto decoded = std::make_shared<Bytes>(gunzip(path));
  return parseIdx(path, *decoded, decoded);
}

} // namespace dlc::rt
