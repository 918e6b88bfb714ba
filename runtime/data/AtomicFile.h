// A file that appears whole or not at all.
//
// Bytes go to a temporary file in the target's directory; commit() makes them durable and renames.
// Without commit the temporary file is removed and the old target stays, also where a signal ends
// the process. Devices and pipes are written as they are. One thread at a time.
#pragma once

#include "runtime/core/Leftover.h"

#include <cstddef>
#include <span>
#include <string>

namespace dlc::rt {

class AtomicFile {
public:
  /// All throw Error(Runtime) naming the target.
  explicit AtomicFile(const std::string &path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  void write(std::span<const std::byte> bytes);
  /// A descriptor for libraries that write, and read again, by themselves.
  int handle() const { return descriptor; }
  void commit();
  /// Throws for a library that could not write; `error` as of errno.
  [[noreturn]] void fail(int error) const;

private:
  std::string path, temporary;
  bool replaces; // the target by the temporary file
  Leftover leftover;
  int descriptor = -1;
};

} // namespace dlc::rt
