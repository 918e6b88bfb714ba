// The handler cannot name a file that found no room in the table.
#include "runtime/artifact/MappedFile.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/PathTable.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlc::rt {

namespace {

PathTable<std::span<const std::byte>, 32> table;

Error systemError(const std::string &what, const std::string &path, int error) {
  return Error(ErrorCode::BadInput, "cannot " + what + " '" + path + "': " + std::strerror(error));
}

} // namespace

MappedFile::MappedFile(const std::string &path) : path(path) {
  descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe has no end
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
  if (failed || !isFile)
    ::close(descriptor);
  if (failed)
    throw systemError("read", path, failed);
  if (!isFile)
    throw Error(ErrorCode::BadInput, "cannot read '" + path + "': it is no regular file");
  if (data)
    place = table.add(path, bytes());
}

MappedFile::~MappedFile() {
  table.remove(place);
  if (data)
    ::munmap(const_cast<std::byte *>(data), size);
  ::close(descriptor);
}

void MappedFile::requireWhole() const {
  struct stat status;
  if (::fstat(descriptor, &status) != 0 || static_cast<size_t>(status.st_size) < size)
    throw Error(ErrorCode::BadInput, "'" + path +
                                         "' became shorter while it was read, or its disk failed; "
                                         "put it back as it was");
}

const char *MappedFile::pathAt(const void *address) noexcept {
  auto *at = static_cast<const std::byte *>(address);
  const char *found = nullptr;
  table.forEach([&](const char *path, std::span<const std::byte> bytes) {
    constexpr std::less<> before; // of pointers into different objects, too
    if (!before(at, bytes.data()) && before(at, bytes.data() + bytes.size()))
      found = path;
  });
  return found;
}

} // namespace dlc::rt
