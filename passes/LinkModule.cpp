// Links an object to a shared object with ld.lld, LLVM's own beside its tools or one on the PATH.

#include "passes/KernelEmitter.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace llvm;

static ErrorOr<std::string> findLinker() {
  const std::string versioned = "ld.lld-" + std::to_string(LLVM_VERSION_MAJOR);
  for (StringRef name : {StringRef("ld.lld"), StringRef(versioned)})
    if (auto path = sys::findProgramByName(name, {DLC_LLVM_TOOLS_DIR}))
      return path;
  if (auto path = sys::findProgramByName(versioned))
    return path;
  return sys::findProgramByName("ld.lld");
}

static std::string readFile(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

LogicalResult dlc::linkSharedObject(StringRef object, std::string &sharedObject,
                                    std::string &reason) {
  ErrorOr<std::string> linker = findLinker();
  if (!linker) {
    reason = "the linker ld.lld was not found (Debian package lld-" +
             std::to_string(LLVM_VERSION_MAJOR) + ")";
    return failure();
  }
  SmallString<128> input, output, messages;
  int descriptor = -1;
  if (sys::fs::createTemporaryFile("dlc", "o", descriptor, input) ||
      sys::fs::createTemporaryFile("dlc", "so", output) ||
      sys::fs::createTemporaryFile("dlc", "txt", messages)) {
    reason = "no temporary file can be made";
    return failure();
  }
  scope_exit cleanup([&] {
    for (StringRef path : {StringRef(input), StringRef(output), StringRef(messages)})
      sys::fs::remove(path);
  });
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << object;
  stream.close();
  // libm is the loading program's; nothing else is undefined.
  StringRef arguments[] = {*linker, "-shared", "--build-id=none", "--strip-all", "-z", "now", "-o",
                           output,  input};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(""), StringRef(messages)};
  if (stream.has_error() || sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects) != 0) {
    stream.clear_error();
    reason = *linker + " failed: " + readFile(messages);
    return failure();
  }
  sharedObject = readFile(output);
  if (sharedObject.empty())
    reason = *linker + " wrote nothing";
  return success(!sharedObject.empty());
}
