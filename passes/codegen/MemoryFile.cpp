#include "passes/codegen/MemoryFile.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

using namespace dlc;

MemoryFile::MemoryFile(llvm::StringRef content) : descriptor(::memfd_create("dlc", /*flags=*/0)) {
  if (!isOpen())
    return;
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/false);
  stream << content;
  stream.flush();
  written = !stream.has_error();
  stream.clear_error();
}

MemoryFile::MemoryFile(MemoryFile &&other) noexcept
    : descriptor(std::exchange(other.descriptor, -1)), written(other.written) {}

MemoryFile::~MemoryFile() {
  if (isOpen())
    ::close(descriptor);
}

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

std::string MemoryFile::content() const {
  auto buffer = llvm::MemoryBuffer::getFile(path());
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}
