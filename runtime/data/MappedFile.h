// A file mapped read-only into memory.
//
// Invariant: bytes() stays valid and constant for the object's life. May be used from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace dlc::rt {

class MappedFile {
public:
  /// Throws Error(BadInput) if the file cannot be opened or is no regular file.
  explicit MappedFile(const std::string &path);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::span<const std::byte> bytes() const { return {data, size}; }

private:
  const std::byte *data = nullptr;
  size_t size = 0;
};

} // namespace dlc::rt
