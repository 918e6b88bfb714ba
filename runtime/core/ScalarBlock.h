// The scalars of an artifact (learning rate, step, seed, ...), whose values are the host's: one
// block, which every run is given.
#pragma once

#include "runtime/artifact/Artifact.h"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

class ScalarBlock {
public:
  explicit ScalarBlock(const Artifact &artifact);

  /// A seed has 64 significant bits, more than a double holds. A scalar that the artifact lacks is
  /// ignored.
  void set(const std::string &name, double value);
  void set(const std::string &name, int64_t value);

  /// The bytes of a scalar; empty if the variable is none.
  std::span<std::byte> of(const artifact::Variable &variable);
  std::span<const std::byte> block() const { return values; }
  /// Offsets in the block by the scalar's variable.
  const std::map<const artifact::Variable *, size_t> &offsets() const { return places; }

private:
  artifact::DType typeOf(const artifact::Variable &variable) const;
  size_t bytesOf(const artifact::Variable &variable) const;

  const Artifact &artifact;
  std::map<const artifact::Variable *, size_t> places;
  std::vector<std::byte> values;
};

} // namespace dlc::rt
