// A handler can neither lock nor allocate: mappings and their paths lie in a fixed table, and what
// finds no room there has no name.
#include "runtime/artifact/MappedFile.h"

#include "runtime/artifact/Error.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlc::rt {

namespace {

enum State : int { Free, Filling, Listed };

struct Entry {
  std::atomic<int> state{Free};
  std::span<const std::byte> bytes;
  std::array<char, PATH_MAX> path;
};
static_assert(std::atomic<int>::is_always_lock_free);
std::array<Entry, 32> table;

Error systemError(const std::string &what, const std::string &path, int error) {
  return Error(ErrorCode::BadInput, "cannot " + what + " '" + path + "': " + std::strerror(error));
}

} // namespace

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
  if (data)
    list(path);
}

void MappedFile::list(const std::string &path) {
  if (path.size() >= PATH_MAX)
    return;
  for (size_t i = 0; i < table.size() && slot < 0; ++i) {
    int expected = Free;
    if (table[i].state.compare_exchange_strong(expected, Filling))
      slot = static_cast<int>(i);
  }
  if (slot < 0)
    return;
  Entry &entry = table[static_cast<size_t>(slot)];
  entry.bytes = bytes();
  entry.path[path.copy(entry.path.data(), path.size())] = '\0';
  entry.state = Listed;
}

MappedFile::~MappedFile() {
  if (slot >= 0)
    table[static_cast<size_t>(slot)].state = Free;
  if (data)
    ::munmap(const_cast<std::byte *>(data), size);
}

const char *MappedFile::pathAt(const void *address) noexcept {
  auto *at = static_cast<const std::byte *>(address);
  constexpr std::less<> before; // of pointers into different objects, too
  for (const Entry &entry : table)
    if (entry.state == Listed && !before(at, entry.bytes.data()) &&
        before(at, entry.bytes.data() + entry.bytes.size()))
      return entry.path.data();
  return nullptr;
}

} // namespace dlc::rt
