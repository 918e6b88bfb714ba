// What a process says when a file that it has mapped becomes shorter while it is read, or cannot be
// read from its disk any more: the kernel tells by SIGBUS alone.
#pragma once

namespace dlc::rt {

/// From now on a SIGBUS that a MappedFile causes ends the process with exit code 1 and a line that
/// begins with `prefix` and names the file. Any other does what it did before. Keeps the pointer.
void reportLostFiles(const char *prefix);

} // namespace dlc::rt
