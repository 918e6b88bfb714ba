// safetensors files: named tensors and string metadata (huggingface.co/docs/safetensors).
//
// Layout: u64 little-endian header length, a JSON header, then the tensors' bytes without holes.
// Reading verifies everything before a value is used; writing is atomic: a temporary file beside
// the target, fsync, rename, so that a full disk or a crash leaves the old file. Tensors are sorted
// by name, so equal contents give equal bytes. May be used from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dlc::rt {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> values; // row-major
};

struct TensorFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Accepts F32, F16, BF16, F64, I64 and converts to f32. Throws Error(BadInput).
TensorFile readSafetensors(const std::string &path);

/// Writes F32. Throws Error(Runtime).
void writeSafetensors(const std::string &path, const TensorFile &file);

} // namespace dlc::rt
