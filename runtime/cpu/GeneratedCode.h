// A shared object of generated kernels, loaded from memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace dlc::rt {

/// The ABI of generated kernels: iterations [begin, end) of the outermost dimension.
using GeneratedFunction = void (*)(void *const *buffers, int64_t begin, int64_t end);

class GeneratedCode {
public:
  /// Throws Error(Artifact) if the bytes are no shared object for this machine.
  explicit GeneratedCode(std::span<const uint8_t> elf);
  ~GeneratedCode();
  GeneratedCode(const GeneratedCode &) = delete;
  GeneratedCode &operator=(const GeneratedCode &) = delete;

  /// Throws Error(Artifact) if there is no such function.
  GeneratedFunction function(const std::string &symbol) const;
  /// What the function may be called for (Contract.h); nothing if the code does not say.
  std::optional<uint64_t> contract(const std::string &symbol) const;

private:
  void *handle = nullptr;
};

} // namespace dlc::rt
