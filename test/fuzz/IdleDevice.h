// A device that executes no kernel: what is left of a session is what the runtime itself does with
// an artifact, and no code of the artifact is ever loaded.
#pragma once

#include "runtime/artifact/Error.h"
#include "runtime/core/Device.h"

#include <cstring>
#include <vector>

namespace dlc::rt::test {

class IdleDevice : public Device {
public:
  /// Of exactly the size asked for, so that AddressSanitizer sees what goes beyond. No more than
  /// `most` in all: a sound plan may be for a machine of any size.
  std::span<std::byte> allocate(size_t bytes) override {
    constexpr size_t most = size_t{1} << 28;
    if (bytes > most - taken)
      throw Error(ErrorCode::Runtime,
                  "the idle device has no memory for " + std::to_string(bytes) + " bytes");
    taken += bytes;
    auto *memory = static_cast<std::byte *>(::operator new(bytes, alignment));
    std::memset(memory, 0, bytes);
    memories.emplace_back(memory);
    return {memory, bytes};
  }
  Kernel load(const Artifact &, const artifact::Kernel &) override { return 0; }
  Binding bind(Kernel, std::span<void *const>) override { return 0; }
  void launch(Binding) override {}
  void copy(void *to, const void *from, size_t bytes) override { std::memmove(to, from, bytes); }
  void write(std::span<std::byte> memory,
             const std::function<void(std::span<std::byte>)> &author) override {
    author(memory);
  }
  void fill(void *at, uint8_t value, size_t bytes) override { std::memset(at, value, bytes); }

private:
  static constexpr std::align_val_t alignment{64};
  struct Release {
    void operator()(std::byte *memory) const { ::operator delete(memory, alignment); }
  };
  size_t taken = 0;
  std::vector<std::unique_ptr<std::byte, Release>> memories;
};

} // namespace dlc::rt::test
