// Links objects to a shared object with ld.lld: one beside this program, LLVM's own beside its
// tools, or one on the PATH.

#include "passes/codegen/cpu/LinkModule.h"
#include "passes/codegen/MemoryFile.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace llvm;
using namespace dlc;

static ErrorOr<std::string> findLinker() {
  const std::string versioned = "ld.lld-" + std::to_string(LLVM_VERSION_MAJOR);
  const std::string own = sys::fs::getMainExecutable(nullptr, nullptr);
  for (StringRef name : {StringRef("ld.lld"), StringRef(versioned)})
    if (auto path = sys::findProgramByName(name, {sys::path::parent_path(own), DLC_LLVM_TOOLS_DIR}))
      return path;
  if (auto path = sys::findProgramByName(versioned))
    return path;
  return sys::findProgramByName("ld.lld");
}

LogicalResult dlc::linkSharedObject(const Objects &objects, std::string &sharedObject,
                                    std::string &reason) {
  ErrorOr<std::string> linker = findLinker();
  if (!linker) {
    reason = "the linker ld.lld was not found (Debian package lld-" +
             std::to_string(LLVM_VERSION_MAJOR) + ")";
    return failure();
  }
  MemoryFile output, messages;
  std::vector<MemoryFile> inputs;
  for (const auto &object : objects)
    inputs.emplace_back(StringRef(object.data(), object.size()));
  if (!output.isWritten() || !messages.isWritten() ||
      !llvm::all_of(inputs, [](const MemoryFile &file) { return file.isWritten(); })) {
    reason = "no file in memory can be written";
    return failure();
  }
  const auto paths =
      llvm::map_to_vector(inputs, [](const MemoryFile &file) { return file.path(); });
  // The loading program has libm; nothing else is undefined.
  SmallVector<StringRef> arguments{
      *linker, "-shared", "--build-id=none", "--strip-all", "-z", "now", "-o", "-"};
  arguments.append(paths.begin(), paths.end());
  const std::string outputPath = output.path(), messagesPath = messages.path();
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(outputPath),
                                          StringRef(messagesPath)};
  if (sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects) != 0) {
    reason = *linker + " failed: " + messages.content();
    return failure();
  }
  sharedObject = output.content();
  if (sharedObject.empty())
    reason = *linker + " wrote nothing";
  return success(!sharedObject.empty());
}
