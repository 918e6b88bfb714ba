// The header is a Python dict literal in ASCII. Only the three keys that the format defines are
// looked up, each value by its own syntax; anything else is refused.
#include "runtime/artifact/Error.h"
#include "runtime/artifact/MappedFile.h"
#include "runtime/data/readers/Damage.h"
#include "runtime/data/readers/Readers.h"

#include <charconv>
#include <optional>

namespace dlc::rt {

namespace {

class NpyHeader {
public:
  NpyHeader(const std::string &path, std::string_view text) : path(path), text(text) {}

  ElementType type() const {
    std::string_view descr = valueOf("descr");
    if (descr.size() < 2 || (descr.front() != '\'' && descr.front() != '"'))
      throw damaged("structured element types are not supported; save one field");
    descr = descr.substr(1, descr.find(descr.front(), 1) - 1);
    if (descr.starts_with('>'))
      throw damaged("big-endian elements (" + printable(descr) +
                    ") are not supported; save little-endian ones");
    constexpr std::pair<std::string_view, ElementType> types[] = {
        {"u1", ElementType::U8},  {"i1", ElementType::I8},  {"u2", ElementType::U16},
        {"i2", ElementType::I16}, {"u4", ElementType::U32}, {"i4", ElementType::I32},
        {"i8", ElementType::I64}, {"f2", ElementType::F16}, {"f4", ElementType::F32},
        {"f8", ElementType::F64}, {"b1", ElementType::Bool}};
    for (auto [name, type] : types)
      if (!descr.empty() && descr.substr(1) == name)
        return type;
    throw damaged("element type '" + printable(descr) +
                  "' is not supported; save it as one of u1 i1 u2 i2 u4 i4 i8 f2 f4 f8 b1, for "
                  "instance with .astype('f4')");
  }

  bool isFortranOrder() const {
    std::string_view value = valueOf("fortran_order");
    if (value.starts_with("True"))
      return true;
    if (!value.starts_with("False"))
      throw damaged("fortran_order is neither True nor False");
    return false;
  }

  std::vector<int64_t> shape() const {
    std::string_view value = valueOf("shape");
    size_t close = value.find(')');
    if (!value.starts_with('(') || close == std::string_view::npos)
      throw damaged("its shape is no tuple");
    std::vector<int64_t> shape;
    for (size_t i = 1; i < close;) {
      if (value[i] == ',' || value[i] == ' ' || value[i] == 'L') {
        ++i;
        continue;
      }
      int64_t extent = 0;
      auto [end, error] = std::from_chars(value.data() + i, value.data() + close, extent);
      if (error != std::errc() || extent < 0)
        throw damaged("its shape is no tuple of sizes");
      shape.push_back(extent);
      i = static_cast<size_t>(end - value.data());
    }
    return shape;
  }

  Error damaged(const std::string &why) const {
    return Error(ErrorCode::BadInput, "cannot read '" + path + "': " + why);
  }

private:
  std::string_view valueOf(std::string_view key) const {
    size_t at = text.find("'" + std::string(key) + "'");
    if (at != std::string_view::npos)
      at = text.find(':', at + key.size() + 2);
    if (at != std::string_view::npos)
      at = text.find_first_not_of(' ', at + 1);
    if (at == std::string_view::npos)
      throw damaged("its header lacks '" + std::string(key) + "'");
    return text.substr(at);
  }

  const std::string &path;
  std::string_view text;
};

} // namespace

Array readNpy(const std::string &path) {
  auto file = std::make_shared<MappedFile>(path);
  std::span<const std::byte> bytes = file->bytes();
  auto byteAt = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  size_t lengthBytes = bytes.size() > 6 && byteAt(6) >= 2 ? 4 : 2;
  size_t start = 8 + lengthBytes;
  if (bytes.size() < start || byteAt(6) < 1 || byteAt(6) > 3)
    throw damagedFile(path, "it has no whole .npy header");
  size_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i)
    length |= byteAt(8 + i) << (8 * i);
  if (length > bytes.size() - start)
    throw damagedFile(path, "its header ends early");
  NpyHeader header(path, {reinterpret_cast<const char *>(bytes.data()) + start, length});
  std::vector<int64_t> shape = header.shape();
  if (header.isFortranOrder() && shape.size() > 1)
    throw header.damaged("it is in Fortran order; save it with numpy.ascontiguousarray");
  ElementType type = header.type();
  Array array({path, type, std::move(shape)}, bytes.subspan(start + length), file);
  array.mapped = std::move(file);
  return array;
}

} // namespace dlc::rt
