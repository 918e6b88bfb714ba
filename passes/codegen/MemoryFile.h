// Files for child processes.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <string>

namespace dlc {

/// A file in memory that a child process opens by its path: nothing is left on a disk, however the
/// process ends.
class MemoryFile {
public:
  explicit MemoryFile(llvm::StringRef content = "");
  MemoryFile(MemoryFile &&other) noexcept;
  MemoryFile &operator=(MemoryFile &&) = delete;
  ~MemoryFile();

  bool isWritten() const { return written; }
  std::string path() const;
  std::string content() const;

private:
  bool isOpen() const { return descriptor >= 0; }

  int descriptor;
  bool written = false;
};

} // namespace dlc
