// Operands of NVIDIA's libraries as the plain loops of tests have them: f32, channels innermost.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt::test {

/// A tensor in memory: extents in logical order [N, C, S...], the elements between neighbours along
/// each.
struct StoredTensor {
  artifact::DType dtype = artifact::DType::F32;
  std::vector<int64_t> extents, strides;

  int64_t elements() const;
  /// Values [N, S..., C]. Throws Error(Artifact) naming `name` if the memory is too small.
  std::vector<float> read(std::span<const std::byte> memory, const std::string &name) const;
  /// Rounds values [N, S..., C] to the nearest of the type, to even.
  void write(std::span<const float> values, std::span<std::byte> memory,
             const std::string &name) const;
};

/// Leaves 10 bits behind the point, as tensor cores do with f32 that is no result.
void roundToTf32(std::span<float> values);

} // namespace dlc::rt::test
