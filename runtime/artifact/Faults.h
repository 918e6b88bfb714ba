// What the parts of the artifact verifier share: the list of faults, and what is known of a buffer
// once it has been checked.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dlc::rt {

class Faults {
public:
  void add(const std::string &where, const std::string &what) {
    if (!full())
      lines.push_back(where + ": " + what);
  }
  bool full() const { return lines.size() >= 20; }
  std::vector<std::string> take() { return std::move(lines); }

private:
  std::vector<std::string> lines;
};

/// A buffer's place and life. Those that are not `valid` have been reported and are skipped.
struct CheckedBuffer {
  bool valid = false;
  uint32_t arena = 0;
  uint64_t begin = 0, end = 0; // bytes in the arena
  uint64_t elements = 0;       // physical
  int32_t program = -1;
  int32_t aliasOf = -1;
  uint32_t liveBegin = 0, liveEnd = 0;
};

/// True if the program at `index` may use a buffer: its own, or one of all programs.
inline bool isVisibleIn(int32_t index, const std::vector<CheckedBuffer> &buffers, uint32_t buffer) {
  return buffer < buffers.size() && buffers[buffer].valid &&
         (buffers[buffer].program < 0 || buffers[buffer].program == index);
}

/// Size of a vector that may be missing.
template <typename Vector> uint32_t countOf(const Vector *vector) {
  return vector ? vector->size() : 0;
}

/// True if vectors of 8-byte numbers lie at multiples of 8 bytes.
bool numbersAreAligned(const artifact::Artifact &root);

/// True if both describe the same physical tensor.
bool sameType(const artifact::TensorType &a, const artifact::TensorType &b);

/// Checks the numbers of the blocks data and train.
void verifyConfiguration(const artifact::Artifact &root, Faults &faults);

/// Checks what the host sees of the program at `index`, whose buffers have been checked.
void verifySignature(const artifact::Artifact &root, const std::vector<CheckedBuffer> &buffers,
                     uint32_t index, Faults &faults);

/// Checks the program at `index`; every buffer, kernel and arena of `root` has been checked.
void verifyProgram(const artifact::Artifact &root, const std::vector<CheckedBuffer> &buffers,
                   uint32_t index, Faults &faults);

} // namespace dlc::rt
