// Types of the elements that files store. Inputs of a model are converted from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dlc::rt {

enum class ElementType : uint8_t { U8, I8, U16, I16, U32, I32, I64, F16, F32, F64, Bool };

size_t bytesOf(ElementType type);
std::string_view nameOf(ElementType type); // "u8", "f32", ...
bool isInteger(ElementType type);          // Bool counts as one
/// 8 or 16 of unsigned integers of that many, Bool among them; 0 of all others.
int unsignedBits(ElementType type);

/// Calls `body` with a value of the C++ type of `type`.
template <typename Body> decltype(auto) visitType(ElementType type, Body &&body) {
  switch (type) {
  case ElementType::I8:
    return body(int8_t{});
  case ElementType::U16:
    return body(uint16_t{});
  case ElementType::I16:
    return body(int16_t{});
  case ElementType::U32:
    return body(uint32_t{});
  case ElementType::I32:
    return body(int32_t{});
  case ElementType::I64:
    return body(int64_t{});
  case ElementType::F16:
    return body(_Float16{});
  case ElementType::F32:
    return body(float{});
  case ElementType::F64:
    return body(double{});
  case ElementType::U8:
  case ElementType::Bool:
    break;
  }
  return body(uint8_t{});
}

} // namespace dlc::rt
