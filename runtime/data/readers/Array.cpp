#include "runtime/data/readers/Array.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/MappedFile.h"
#include "runtime/data/readers/Damage.h"

#include <cstring>

namespace dlc::rt {

std::string printable(std::string_view text) {
  std::string result(text.substr(0, 300));
  for (char &character : result)
    if (static_cast<unsigned char>(character) < ' ' || character == 0x7f)
      character = '?';
  return result;
}

Array::Array(ArrayHeader header, std::span<const std::byte> bytes,
             std::shared_ptr<const void> owner)
    : head(std::move(header)), data(bytes), owner(std::move(owner)) {
  for (int64_t extent : head.shape)
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      throw Error(ErrorCode::BadInput, "'" + head.path + "' claims an impossible shape");
  uint64_t wanted;
  if (__builtin_mul_overflow(static_cast<uint64_t>(count), bytesOf(head.type), &wanted) ||
      wanted != data.size())
    throw damagedFile(head.path, "its header promises " + shapeText(head.shape) + " " +
                                     std::string(nameOf(head.type)) + ", it holds " +
                                     std::to_string(data.size()) + " bytes of them");
}

void Array::requireWhole() const {
  if (mapped)
    mapped->requireWhole();
}

double Array::at(int64_t position) const {
  return visitType(head.type, [&](auto zero) {
    decltype(zero) value;
    std::memcpy(&value, data.data() + static_cast<size_t>(position) * sizeof(value), sizeof(value));
    return static_cast<double>(value);
  });
}

std::vector<float> Array::values() const {
  std::vector<float> values(static_cast<size_t>(count));
  visitType(head.type, [&](auto zero) {
    for (size_t i = 0; i < values.size(); ++i) {
      decltype(zero) element; // files promise no alignment
      std::memcpy(&element, data.data() + i * sizeof(element), sizeof(element));
      values[i] = static_cast<float>(element);
    }
  });
  return values;
}

} // namespace dlc::rt
