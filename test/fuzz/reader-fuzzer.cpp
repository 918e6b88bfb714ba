// libFuzzer target of one reader of data files (DLC_READER): any bytes are read or refused by
// Error(BadInput) in one line; never a crash, and never memory that the file cannot account for.
#include "runtime/artifact/Error.h"
#include "runtime/data/Safetensors.h"
#include "runtime/data/readers/Readers.h"

#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

/// Readers take paths: a file in memory has one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size))
    std::abort();
  try {
    dlc::rt::DLC_READER("/proc/self/fd/" + std::to_string(file));
  } catch (const dlc::rt::Error &error) {
    if (error.code != dlc::rt::ErrorCode::BadInput ||
        std::string_view(error.what()).find('\n') != std::string_view::npos)
      std::abort();
  }
  ::close(file);
  return 0;
}
