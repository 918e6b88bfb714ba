// Pages of memory: private to the process, or a POSIX shared-memory segment that other processes of
// the host can map by its name.
//
// Memory is zeroed, page aligned and backed by real pages: a segment that does not fit into
// /dev/shm is an Error when it is created, never a SIGBUS later.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace dlc::rt {

class Mapping {
public:
  static Mapping anonymous(size_t bytes);
  /// `name` as shm_open wants it, "/..."; must not exist yet.
  static Mapping createShared(const std::string &name, size_t bytes);
  static Mapping openShared(const std::string &name, size_t bytes);
  /// Removes the name; mappings stay valid.
  static void unlinkShared(const std::string &name) noexcept;

  Mapping(Mapping &&other) noexcept;
  Mapping &operator=(Mapping &&other) noexcept;
  ~Mapping();

  std::span<std::byte> bytes() const { return {start, size}; }

private:
  Mapping(void *start, size_t size) : start(static_cast<std::byte *>(start)), size(size) {}

  std::byte *start;
  size_t size;
};

} // namespace dlc::rt
