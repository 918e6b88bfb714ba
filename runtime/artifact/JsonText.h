// JSON as text.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace dlc::rt {

/// One line, or lines indented by so many spaces. What is not UTF-8, as a file's name need not be,
/// is replaced.
template <typename Json> std::string jsonText(const Json &json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

} // namespace dlc::rt
