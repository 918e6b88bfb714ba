// The JSON is the one source; the text formats it.

#include "tools/dlc/InspectArtifact.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/Error.h"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace dlc;
using nlohmann::ordered_json;

namespace {
std::string text(const flatbuffers::String *string) { return string ? string->str() : ""; }

std::string typeText(const artifact::TensorType &type) {
  std::string result;
  for (int64_t extent : rt::readShape(type))
    result += std::to_string(extent) + "x";
  for (const char *c = artifact::EnumNameDType(type.dtype()); *c; ++c)
    result += static_cast<char>(std::tolower(*c));
  std::optional<rt::Layout> layout = rt::readLayout(type);
  return layout && !layout->isRowMajor() ? result + " " + layout->toString() : result;
}

ordered_json describeVariables(const artifact::Artifact &root) {
  ordered_json parameters = ordered_json::array();
  int64_t count = 0;
  for (const artifact::Variable *variable : *root.variables()) {
    if (variable->kind() != artifact::VariableKind::Parameter)
      continue;
    const artifact::TensorType &type = *root.buffers()->Get(variable->buffer())->type();
    int64_t elements = 1;
    for (int64_t extent : rt::readShape(type))
      elements *= extent;
    count += elements;
    parameters.push_back(
        {{"name", text(variable->name())}, {"type", typeText(type)}, {"elements", elements}});
  }
  return {{"parameter_count", count}, {"parameters", parameters}};
}

ordered_json describeArenas(const artifact::Artifact &root) {
  ordered_json arenas = ordered_json::array();
  uint64_t bytes = 0, bound = 0;
  for (const artifact::Arena *arena : *root.arenas()) {
    // Inputs are double-buffered.
    uint64_t instances = arena->kind() == artifact::ArenaKind::Inputs ? 2 : 1;
    bytes += instances * arena->bytes();
    bound += instances * arena->lower_bound();
    arenas.push_back({{"kind", artifact::EnumNameArenaKind(arena->kind())},
                      {"instances", instances},
                      {"bytes", arena->bytes()},
                      {"lower_bound", arena->lower_bound()}});
  }
  return {{"bytes", bytes}, {"lower_bound", bound}, {"arenas", arenas}};
}

ordered_json describeLayouts(const artifact::Target &target) {
  ordered_json layouts = ordered_json::array();
  if (target.layouts())
    for (const artifact::LayoutCost *cost : *target.layouts())
      layouts.push_back({{"family", text(cost->family())},
                         {"nanoseconds", cost->nanoseconds()},
                         {"exceptions", cost->exceptions()}});
  return layouts;
}

/// The schedule of a program as the simulator reads it. `times`: of each instruction, or empty.
