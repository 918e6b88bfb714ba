// Lays out an artifact file: FlatBuffer, data section, hash.
//
// Blobs are added while the FlatBuffer is built, since their spans go into it. Nothing here throws:
// the compiler is built without exceptions.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

/// Of the tables and of what generated code says of its kernels. Written explicitly: files of
/// version 1 hold none.
inline constexpr uint32_t artifactVersion = 4;

class ArtifactWriter {
public:
  flatbuffers::FlatBufferBuilder &builder() { return flatBuffer; }

  /// Appends bytes to the data section.
  artifact::Span addData(std::span<const uint8_t> bytes);

  /// The whole file. The writer is used up.
  std::vector<uint8_t> finish(flatbuffers::Offset<artifact::Artifact> root);

  /// Writes a finished file under a temporary name and renames it, so that `path` is whole or
  /// untouched; what isReplaceable denies is written as it is. Returns the reason if that fails,
  /// else an empty string.
  static std::string writeFile(const std::string &path, std::span<const uint8_t> file);

private:
  flatbuffers::FlatBufferBuilder flatBuffer;
  std::vector<uint8_t> data;
};

/// False for devices and pipes, which a rename would put a file in the place of.
bool isReplaceable(const std::string &path);

/// Bytes from the begin of a file to its data section, given the FlatBuffer's bytes with prefix.
constexpr uint64_t dataSectionBegin(uint64_t flatBufferBytes) {
  return (flatBufferBytes + 63) / 64 * 64;
}

/// Sets the hash at the end of a file to match its content.
void sealArtifact(std::span<uint8_t> file);

} // namespace dlc::rt
