// IDX: two zero bytes, a type code, the rank, then big-endian u32 extents and big-endian elements.
// One-byte elements of a plain file stay mapped; everything else is decoded into memory.
#include "runtime/artifact/Error.h"
#include "runtime/artifact/MappedFile.h"
#include "runtime/data/readers/Damage.h"
#include "runtime/data/readers/Readers.h"
#include "runtime/data/readers/Sizes.h"

#include <algorithm>
#include <cstring>
#include <zlib.h>

namespace dlc::rt {

using Bytes = std::vector<std::byte>;

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

namespace {

struct Header {
  ElementType type = ElementType::U8;
  std::vector<int64_t> shape;
  size_t bytes = 0; // of the header
};

} // namespace

static Header parseHeader(const std::string &path, std::span<const std::byte> file) {
  auto byteAt = [&](size_t i) { return static_cast<uint32_t>(file[i]); };
  if (file.size() < 4 || byteAt(0) != 0 || byteAt(1) != 0)
    throw Error(ErrorCode::BadInput, "'" + path +
                                         "' is no IDX file; wanted .npy, IDX, IDX.gz, "
                                         "PNG, TIFF, JPEG, or a directory of images");
  Header header;
  header.type = typeOfCode(path, byteAt(2));
  header.bytes = 4 + 4 * size_t{byteAt(3)};
  if (file.size() < header.bytes)
    throw damagedFile(path, "its header ends early");
  for (size_t i = 4; i < header.bytes; i += 4)
    header.shape.push_back(byteAt(i) << 24 | byteAt(i + 1) << 16 | byteAt(i + 2) << 8 |
                           byteAt(i + 3));
  return header;
}

namespace {

class Gunzip {
public:
  explicit Gunzip(const std::string &path) : path(path), file(gzopen(path.c_str(), "rb")) {
    if (!file)
      throw Error(ErrorCode::BadInput, "cannot open '" + path + "': " + std::strerror(errno));
  }
  ~Gunzip() { gzclose(file); }
  Gunzip(const Gunzip &) = delete;
  Gunzip &operator=(const Gunzip &) = delete;

  /// The next bytes, fewer at the end of the file.
  Bytes read(uint64_t wanted) {
    Bytes bytes;
    size_t size = 0;
    while (size < wanted) {
      bytes.resize(std::min<size_t>(wanted, std::max<size_t>(2 * size, 1 << 16)));
      auto room = static_cast<unsigned>(std::min<size_t>(bytes.size() - size, 1 << 30));
      int got = gzread(file, bytes.data() + size, room);
      int error = Z_OK;
      gzerror(file, &error); // of a stream that ends early, too
      if (got < 0 || error != Z_OK)
        throw damagedFile(path, "gzip");
      size += static_cast<size_t>(got);
      if (got == 0)
        break;
    }
    bytes.resize(size);
    return bytes;
  }

private:
  const std::string &path;
  gzFile file;
};

} // namespace

static Array makeArray(const std::string &path, Header header, std::span<const std::byte> elements,
                       std::shared_ptr<const void> owner) {
  size_t width = bytesOf(header.type);
  if (width == 1)
    return Array({path, header.type, std::move(header.shape), FileFormat::Idx}, elements,
                 std::move(owner));
  auto swapped = std::make_shared<Bytes>(elements.begin(), elements.end());
  for (size_t i = 0; i + width <= swapped->size(); i += width)
    std::reverse(swapped->begin() + static_cast<ptrdiff_t>(i),
                 swapped->begin() + static_cast<ptrdiff_t>(i + width));
  return Array({path, header.type, std::move(header.shape), FileFormat::Idx}, *swapped, swapped);
}

/// Decodes what the header promises and one byte, so that a longer file is noticed; a stream that
/// would fill the disk does not get that far.
static Array readZipped(const std::string &path, uint64_t compressed) {
  Gunzip stream(path);
  Bytes start = stream.read(4);
  Bytes extents = stream.read(start.size() == 4 ? 4 * static_cast<uint64_t>(start[3]) : 0);
  start.insert(start.end(), extents.begin(), extents.end());
  Header header = parseHeader(path, start);
  uint64_t promised = bytesOf(header.type);
  for (int64_t extent : header.shape)
    promised = checkedProduct(path, {promised, static_cast<uint64_t>(extent)});
  requirePlausible(path, promised, compressed, deflateRatio);
  auto elements = std::make_shared<Bytes>(stream.read(promised + 1));
  return makeArray(path, std::move(header), *elements, elements);
}

Array readIdx(const std::string &path) {
  auto file = std::make_shared<MappedFile>(path);
  std::span<const std::byte> bytes = file->bytes();
  bool zipped = bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
  if (zipped)
    return readZipped(path, bytes.size());
  Header header = parseHeader(path, bytes);
  size_t start = header.bytes;
  Array array = makeArray(path, std::move(header), bytes.subspan(start), file);
  array.mapped = std::move(file);
  return array;
}

} // namespace dlc::rt
