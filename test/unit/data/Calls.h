// Calls of data steps as artifacts hold them.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace dlc::rt::test {

struct CallArgument {
  std::string name;
  std::variant<std::vector<int64_t>, std::vector<double>, std::string> value;
};

using CallPointer = std::unique_ptr<artifact::CallT>;

inline CallPointer makeCall(const std::string &name,
                            const std::vector<CallArgument> &arguments = {}) {
  auto call = std::make_unique<artifact::CallT>();
  call->name = name;
  for (const CallArgument &given : arguments) {
    auto argument = std::make_unique<artifact::ArgumentT>();
    argument->name = given.name;
    if (const auto *ints = std::get_if<std::vector<int64_t>>(&given.value))
      argument->ints = *ints;
    else if (const auto *floats = std::get_if<std::vector<double>>(&given.value))
      argument->floats = *floats;
    else
      argument->text = std::get<std::string>(given.value);
    call->arguments.push_back(std::move(argument));
  }
  return call;
}

inline CallArgument ints(const std::string &name, std::vector<int64_t> values) {
  return {name, std::move(values)};
}
inline CallArgument floats(const std::string &name, std::vector<double> values) {
  return {name, std::move(values)};
}
inline CallArgument text(const std::string &name, const std::string &value) {
  return {name, value};
}

} // namespace dlc::rt::test
