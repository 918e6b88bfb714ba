#include "runtime/data/steps/ElementType.h"

namespace dlc::rt {

size_t bytesOf(ElementType type) {
  return visitType(type, [](auto zero) { return sizeof(zero); });
}

std::string_view nameOf(ElementType type) {
  constexpr std::string_view names[] = {"u8",  "i8",  "u16", "i16", "u32", "i32",
                                        "i64", "f16", "f32", "f64", "bool"};
  return names[static_cast<size_t>(type)];
}

int unsignedBits(ElementType type) {
  bool isByte = type == ElementType::U8 || type == ElementType::Bool;
  return isByte ? 8 : type == ElementType::U16 ? 16 : 0;
}

bool isInteger(ElementType type) {
  return type != ElementType::F16 && type != ElementType::F32 && type != ElementType::F64;
}

} // namespace dlc::rt
