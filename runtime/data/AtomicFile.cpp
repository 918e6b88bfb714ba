#include "runtime/data/AtomicFile.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/Writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace dlc::rt {

AtomicFile::AtomicFile(const std::string &path)
    : path(path), temporary(path + ".partial"), replaces(isReplaceable(path)), leftover(temporary) {
  int access = replaces ? O_RDWR : O_WRONLY;
  descriptor =
      ::open((replaces ? temporary : path).c_str(), access | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    fail(errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0) {
    ::close(descriptor);
    if (replaces)
      ::unlink(temporary.c_str());
  }
}

void AtomicFile::fail(int error) const {
  bool keepsOld = ::access(path.c_str(), F_OK) == 0;
  throw Error(ErrorCode::Runtime, "cannot write '" + path + "': " + std::strerror(error) +
                                      (keepsOld ? "; the file that was there is kept" : ""));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail(errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

/// Makes a rename in this directory durable; some file systems cannot, which is no error.
static void syncDirectory(const std::filesystem::path &directory) {
  int descriptor = ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

void AtomicFile::commit() {
  if (replaces && ::fsync(descriptor) != 0)
    fail(errno);
  int closing = descriptor;
  descriptor = -1;
  if (!replaces) {
    if (::close(closing) != 0)
      fail(errno);
    return;
  }
  if (::close(closing) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    int error = errno;
    ::unlink(temporary.c_str());
    fail(error);
  }
  syncDirectory(std::filesystem::path(path).parent_path());
}

} // namespace dlc::rt
