#include "runtime/data/MappedFile.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlc::rt {

static Error systemError(const std::string &what, const std::string &path, int error) {
  return Error(ErrorCode::BadInput, "cannot " + what + " '" + path + "': " + std::strerror(error));
}

MappedFile::MappedFile(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe has no end
  if (descriptor < 0)
    throw systemError("open", path, errno);
  struct stat status;
  int failed = ::fstat(descriptor, &status) != 0 ? errno : 0;
  if (!failed && S_ISDIR(status.st_mode))
    failed = EISDIR;
  bool isFile = failed || S_ISREG(status.st_mode);
  if (!failed && isFile && status.st_size > 0) {
    size = static_cast<size_t>(status.st_size);
    void *address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED)
      failed = errno;
    else
      data = static_cast<const std::byte *>(address);
  }
  ::close(descriptor);
  if (failed)
    throw systemError("read", path, failed);
  if (!isFile)
    throw Error(ErrorCode::BadInput, "cannot read '" + path + "': it is no regular file");
}

MappedFile::~MappedFile() {
  if (data)
    ::munmap(const_cast<std::byte *>(data), size);
}

} // namespace dlc::rt
