// A lock that one process at a time holds, by a file: until it is given back, or the process ends,
// however it ends.
//
// Advisory (flock). Where the file system knows no locks, everyone gets them. One thread at a time.
#pragma once

#include <string>

namespace dlc::rt {

class FileLock {
public:
  FileLock() = default;
  ~FileLock();
  FileLock(const FileLock &) = delete;
  FileLock &operator=(const FileLock &) = delete;

  /// Makes the file where there is none, and leaves it behind: whoever removed it could take the
  /// lock from the next one. `path` may be a directory, too; NFS has no locks of those. False if
  /// another object holds the lock. Throws Error(BadInput) if the file cannot be made.
  bool take(const std::string &path);

private:
  int descriptor = -1;
};

} // namespace dlc::rt
