// A shared object of generated kernels, loaded from memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace dlc::rt {

/// What the code says of a kernel: constant data under the kernel's name. The sizes, which kernels
/// of one body differ in, follow in memory.
struct KernelRecord {
  void (*body)(void *const *buffers, int64_t begin, int64_t end, const int64_t *sizes);
  uint64_t contract; // Contract.h; 0 for code written by hand

  /// Iterations [begin, end) of the outermost dimension.
  void run(void *const *buffers, int64_t begin, int64_t end) const {
    body(buffers, begin, end, reinterpret_cast<const int64_t *>(this + 1));
  }
};

class GeneratedCode {
public:
  /// Throws Error(Artifact) if the bytes are no shared object for this machine.
  explicit GeneratedCode(std::span<const uint8_t> elf);
  ~GeneratedCode();
  GeneratedCode(const GeneratedCode &) = delete;
  GeneratedCode &operator=(const GeneratedCode &) = delete;

  /// Throws Error(Artifact) if there is no such kernel.
  const KernelRecord &kernel(const std::string &symbol) const;

private:
  void *handle = nullptr;
};

} // namespace dlc::rt
