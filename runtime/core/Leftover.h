// Files that are to be gone however the process ends: by exceptions, which run destructors, or by a
// signal, whose handler calls removeAll. Only SIGKILL leaves them.
#pragma once

#include <string>

namespace dlc::rt {

class Leftover {
public:
  /// Of the file that is about to be created. The destructor takes it off the list and leaves the
  /// file alone. Any thread.
  explicit Leftover(const std::string &path);
  ~Leftover();
  Leftover(const Leftover &) = delete;
  Leftover &operator=(const Leftover &) = delete;

  /// Removes the files of all objects. May be called from a signal's handler.
  static void removeAll() noexcept;
  /// A function that removeAll calls, too; one at most.
  static void alsoRemove(void (*more)() noexcept) noexcept;

private:
  int place; // in the table that removeAll reads
};

} // namespace dlc::rt
