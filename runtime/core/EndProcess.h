// The end of a process by a signal's handler: like an error, in one line.
#pragma once

#include <initializer_list>

namespace dlc::rt {

/// Removes the Leftovers, writes the parts and a line's end to stderr, and ends the process with
/// exit code 1. Where several threads get here, the first one does so. May be called from a
/// signal's handler.
[[noreturn]] void endProcess(std::initializer_list<const char *> line) noexcept;

} // namespace dlc::rt
