// A file mapped read-only into memory. All files that are mapped are mapped here.
//
// Invariant: bytes() stays valid and constant for the object's life, unless somebody cuts the file
// meanwhile. Then reading a page that it lacks is a SIGBUS, whose handler asks here for the file's
// name (runtime/core/BusError.h); what it lacks of its last page reads as zeros, of which
// requireWhole() tells. May be used from any thread.
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

  /// Throws Error(BadInput) if the file is shorter than it was: what was read before may be zeros.
  void requireWhole() const;

  /// The path of the file that is mapped where `address` lies, null if there is none. May be called
  /// from a signal's handler.
  static const char *pathAt(const void *address) noexcept;

private:
  std::string path;
  int descriptor = -1;
  const std::byte *data = nullptr;
  size_t size = 0;
  int place = -1; // in the table that pathAt reads
};

} // namespace dlc::rt
