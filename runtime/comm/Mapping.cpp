#include "runtime/comm/Mapping.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/Pages.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace dlc::rt {
namespace {

[[noreturn]] void fail(const std::string &doing, int error) {
  throw Error(ErrorCode::Runtime, doing + ": " + std::generic_category().message(error));
}

class Descriptor {
public:
  Descriptor(const std::string &name, int flags)
      : descriptor(shm_open(name.c_str(), flags, S_IRUSR | S_IWUSR)) {
    if (descriptor < 0)
      fail("opening shared memory " + name, errno);
  }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() { close(descriptor); }
  int get() const { return descriptor; }

private:
  int descriptor;
};

/// The system refuses empty mappings; arenas may well be empty.
size_t atLeastOne(size_t bytes) { return std::max<size_t>(bytes, 1); }

/// The pages exist already, so that populating the page table touches none of them.
void *mapShared(const Descriptor &segment, size_t bytes) {
  void *start = mmap(nullptr, atLeastOne(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                     segment.get(), 0);
  if (start == MAP_FAILED)
    fail("mapping " + std::to_string(bytes) + " bytes of shared memory", errno);
  return start;
}

} // namespace

Mapping Mapping::anonymous(size_t bytes) {
  std::byte *start = mapPages(bytes);
  if (!start)
    fail("allocating " + std::to_string(bytes) + " bytes", errno);
  return {start, bytes};
}

Mapping Mapping::createShared(const std::string &name, size_t bytes) {
  Descriptor segment(name, O_CREAT | O_EXCL | O_RDWR);
  try {
    if (int error = posix_fallocate(segment.get(), 0, static_cast<off_t>(atLeastOne(bytes))))
      fail("allocating " + std::to_string(bytes) + " bytes in /dev/shm", error);
    return {mapShared(segment, bytes), bytes};
  } catch (...) {
    unlinkShared(name);
    throw;
  }
}

Mapping Mapping::openShared(const std::string &name, size_t bytes) {
  return {mapShared(Descriptor(name, O_RDWR), bytes), bytes};
}

void Mapping::unlinkShared(const std::string &name) noexcept { shm_unlink(name.c_str()); }

Mapping::Mapping(Mapping &&other) noexcept
    : start(std::exchange(other.start, nullptr)), size(other.size) {}

Mapping &Mapping::operator=(Mapping &&other) noexcept {
  std::swap(start, other.start);
  std::swap(size, other.size);
  return *this;
}

Mapping::~Mapping() {
  if (start)
    munmap(start, atLeastOne(size));
}

} // namespace dlc::rt
