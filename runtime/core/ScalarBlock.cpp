#include "runtime/core/ScalarBlock.h"

#include "runtime/artifact/Align.h"
#include "runtime/core/TensorIo.h"

#include <cstring>

namespace dlc::rt {

ScalarBlock::ScalarBlock(const Artifact &artifact) : artifact(artifact) {
  size_t bytes = 0;
  if (artifact->variables())
    for (const artifact::Variable *variable : *artifact->variables())
      if (variable->kind() == artifact::VariableKind::Scalar) {
        places[variable] = bytes;
        bytes += alignUp(bytesOf(*variable), sizeof(int64_t));
      }
  values.resize(bytes);
}

artifact::DType ScalarBlock::typeOf(const artifact::Variable &variable) const {
  return artifact->buffers()->Get(variable.buffer())->type()->dtype();
}

size_t ScalarBlock::bytesOf(const artifact::Variable &variable) const {
  return PhysicalType(*artifact->buffers()->Get(variable.buffer())->type()).bytes();
}

std::span<std::byte> ScalarBlock::of(const artifact::Variable &variable) {
  auto place = places.find(&variable);
  if (place == places.end())
    return {};
  return std::span(values).subspan(place->second, bytesOf(variable));
}

void ScalarBlock::set(const std::string &name, double value) {
  if (const artifact::Variable *variable = artifact.variable(name))
    if (std::span<std::byte> bytes = of(*variable); !bytes.empty())
      writeScalar(typeOf(*variable), bytes.data(), value);
}

void ScalarBlock::set(const std::string &name, int64_t value) {
  const artifact::Variable *variable = artifact.variable(name);
  if (!variable)
    return;
  std::span<std::byte> bytes = of(*variable);
  if (typeOf(*variable) != artifact::DType::I64 || bytes.empty())
    return set(name, static_cast<double>(value));
  std::memcpy(bytes.data(), &value, sizeof value);
}

} // namespace dlc::rt
