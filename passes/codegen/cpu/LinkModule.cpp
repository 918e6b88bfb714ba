// Links objects to a shared object with ld.lld, LLVM's own beside its tools or one on the PATH.

#include "passes/codegen/KernelEmitter.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Signals.h"

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

/// Writes a temporary file.
static bool addFile(std::vector<std::string> &files, StringRef suffix, StringRef content = "") {
  SmallString<128> path;
  int descriptor = -1;
  if (sys::fs::createTemporaryFile("dlc", suffix, descriptor, path))
    return false;
  files.push_back(path.str().str());
  sys::RemoveFileOnSignal(path);
  raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << content;
  stream.close();
  bool written = !stream.has_error();
  stream.clear_error();
  return written;
}

LogicalResult dlc::linkSharedObject(const Objects &objects, std::string &sharedObject,
                                    std::string &reason) {
  ErrorOr<std::string> linker = findLinker();
  if (!linker) {
    reason = "the linker ld.lld was not found (Debian package lld-" +
             std::to_string(LLVM_VERSION_MAJOR) + ")";
    return failure();
  }
  // What comes out and what the linker says, then what goes in.
  std::vector<std::string> files;
  scope_exit cleanup([&] {
    for (StringRef path : files) {
      (void)sys::fs::remove(path);
      sys::DontRemoveFileOnSignal(path);
    }
  });
  if (!addFile(files, "so") || !addFile(files, "txt") ||
      !llvm::all_of(objects, [&](const auto &object) {
        return addFile(files, "o", {object.data(), object.size()});
      })) {
    reason = "no temporary file can be written";
    return failure();
  }
  // libm is the loading program's; nothing else is undefined.
  const std::string &output = files[0], &messages = files[1];
  SmallVector<StringRef> arguments{
      *linker, "-shared", "--build-id=none", "--strip-all", "-z", "now", "-o", output};
  arguments.append(files.begin() + 2, files.end());
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(""), StringRef(messages)};
  if (sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects) != 0) {
    reason = *linker + " failed: " + readFile(messages);
    return failure();
  }
  sharedObject = readFile(output);
  if (sharedObject.empty())
    reason = *linker + " wrote nothing";
  return success(!sharedObject.empty());
}
