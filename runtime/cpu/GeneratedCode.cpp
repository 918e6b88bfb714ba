// dlopen wants a file: an anonymous one, so that nothing touches a disk or outlives the process. It
// also takes files of one name for one object, and descriptors are reused, so that every load needs
// a name of its own.

#include "runtime/cpu/GeneratedCode.h"

#include "runtime/artifact/Error.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dlc::rt {
namespace {

// The path of a descriptor, written in a way that no other call writes: the serial number's bits
// are empty and "." components.
std::string uniquePath(int file) {
  static std::atomic<unsigned> loads{0};
  std::string path = "/proc/self/fd/";
  for (unsigned serial = ++loads; serial > 0; serial >>= 1)
    path += serial & 1 ? "./" : "/";
  return path + std::to_string(file);
}

} // namespace

GeneratedCode::GeneratedCode(std::span<const uint8_t> elf) {
  int file = memfd_create("dlc-kernels", MFD_CLOEXEC);
  if (file < 0)
    throw Error(ErrorCode::Runtime, std::string("cannot create an anonymous file for generated "
                                                "kernels: ") +
                                        std::strerror(errno));
  for (size_t done = 0; done < elf.size();) {
    ssize_t written = write(file, elf.data() + done, elf.size() - done);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      std::string reason = std::strerror(errno);
      close(file);
      throw Error(ErrorCode::Runtime, "cannot hold the generated kernels in memory: " + reason);
    }
    done += static_cast<size_t>(written);
  }
  handle = dlopen(uniquePath(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  const char *reason = handle ? nullptr : dlerror();
  close(file);
  if (!handle)
    throw Error(ErrorCode::Artifact,
                std::string("cannot load the generated kernels: ") + (reason ? reason : "unknown"));
}

GeneratedCode::~GeneratedCode() { dlclose(handle); }

const KernelRecord &GeneratedCode::kernel(const std::string &symbol) const {
  const void *address = dlsym(handle, symbol.c_str());
  if (!address)
    throw Error(ErrorCode::Artifact, "the generated code has no kernel '" + symbol + "'");
  return *static_cast<const KernelRecord *>(address);
}

} // namespace dlc::rt
