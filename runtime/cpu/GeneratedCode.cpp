// dlopen wants a file: an anonymous one, so that nothing touches a disk or outlives the process.

#include "runtime/cpu/GeneratedCode.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dlc::rt {

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
  handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  const char *reason = handle ? nullptr : dlerror();
  close(file);
  if (!handle)
    throw Error(ErrorCode::Artifact,
                std::string("cannot load the generated kernels: ") + (reason ? reason : "unknown"));
}

GeneratedCode::~GeneratedCode() { dlclose(handle); }

GeneratedFunction GeneratedCode::function(const std::string &symbol) const {
  void *address = dlsym(handle, symbol.c_str());
  if (!address)
    throw Error(ErrorCode::Artifact, "the generated code has no kernel '" + symbol + "'");
  return reinterpret_cast<GeneratedFunction>(address);
}

} // namespace dlc::rt
