// Reading the constant arguments of a call in the artifact (schedule entries, optimizer).
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace dlc::rt {

/// All numbers of an argument, ints or floats; empty if it is not given.
inline std::vector<double> numbersOf(const artifact::CallT &call, std::string_view name) {
  auto found = std::find_if(call.arguments.begin(), call.arguments.end(),
                            [&](const auto &argument) { return argument->name == name; });
  if (found == call.arguments.end())
    return {};
  const artifact::ArgumentT &argument = **found;
  if (!argument.floats.empty())
    return argument.floats;
  return {argument.ints.begin(), argument.ints.end()};
}

inline double numberOf(const artifact::CallT &call, std::string_view name, double otherwise) {
  std::vector<double> numbers = numbersOf(call, name);
  return numbers.empty() ? otherwise : numbers.front();
}

} // namespace dlc::rt
