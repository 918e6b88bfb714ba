#include "passes/codegen/gpu/Assemble.h"

#include "passes/codegen/MemoryFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Program.h"

#include <cstdlib>

using namespace llvm;
using namespace dlc;

std::optional<std::string> dlc::findAssembler() {
  const char *home = std::getenv("CUDA_HOME");
  std::string folder = std::string(home ? home : "/usr/local/cuda") + "/bin";
  if (auto path = sys::findProgramByName("ptxas", {folder}))
    return *path;
  if (auto path = sys::findProgramByName("ptxas"))
    return *path;
  return std::nullopt;
}

/// The number before a word: "40 registers".
static uint32_t numberBefore(StringRef line, StringRef word) {
  StringRef before = line.take_front(line.find(word)).rtrim();
  uint32_t number = 0;
  before.take_back(before.size() - before.find_last_not_of("0123456789") - 1)
      .getAsInteger(10, number);
  return number;
}

static std::string firstLine(StringRef text) { return text.split('\n').first.rtrim().str(); }

/// Reads what the assembler says of each kernel: its name, in quotes, then a line on memory and one
/// on registers.
static std::vector<std::string> readReport(StringRef report, StringMap<Launch> &launches) {
  StringRef kernel;
  std::vector<std::string> spilling;
  for (StringRef line : split(report, '\n')) {
    if (line.contains("Compiling entry function"))
      kernel = line.split('\'').second.split('\'').first;
    if (line.contains("spill stores") && (numberBefore(line, " bytes stack frame") > 0 ||
                                          numberBefore(line, " bytes spill stores") > 0))
      spilling.push_back(kernel.str());
    if (line.contains("Used") && line.contains(" registers"))
      launches[kernel].registers = numberBefore(line, " registers");
  }
  return spilling;
}

Assembled dlc::assemble(StringRef assembler, StringRef ptx, StringRef architecture,
                        StringMap<Launch> &launches) {
  MemoryFile input(ptx), output, messages;
  if (!input.isWritten() || !output.isWritten() || !messages.isWritten())
    return {"", "no file in memory can be written", {}};
  const std::string name = ("-arch=" + architecture).str(), from = input.path(), to = output.path(),
                    said = messages.path();
  // By all cores: how many there are changes no bit.
  StringRef arguments[] = {assembler, name, "--split-compile=0", "-v", "-o", to, from};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(said), StringRef(said)};
  std::string ending; // by a signal, or before it began
  int code = sys::ExecuteAndWait(assembler, arguments, std::nullopt, redirects,
                                 /*SecondsToWait=*/0, /*MemoryLimit=*/0, &ending);
  if (code != 0) {
    std::string reason = firstLine(messages.content());
    if (reason.empty())
      reason = ending.empty() ? "exit code " + std::to_string(code) : ending;
    return {"", assembler.str() + " failed: " + reason, {}};
  }
  Assembled result{output.content(), "", readReport(messages.content(), launches)};
  if (result.binary.empty())
    result.reason = assembler.str() + " wrote nothing";
  return result;
}
