// Every way to change one field of a FlatBuffer, found by its schema.
//
// Numbers become 0, 1, one more, 512 times as much, the largest, and negative, whatever they mean
// (enumerators and indices too); vectors become empty, shorter and longer. The buffer keeps its
// size: a change overwrites bytes in place. Absent fields stay absent, so that a buffer should have
// been built with defaults forced.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt::test {

struct FieldMutation {
  std::string path; // "kernels[3].operands[0].shape[1] = 0"
  size_t at;        // byte in the buffer
  std::vector<uint8_t> bytes;
};

/// The bytes of a binary schema (flatc --binary --schema).
using Schema = std::vector<uint8_t>;

/// All mutations of the buffer whose root table begins at `root`.
std::vector<FieldMutation> fieldMutations(const Schema &schema, std::span<const uint8_t> buffer,
                                          size_t root);

} // namespace dlc::rt::test
