#include "runtime/core/BusError.h"

#include "runtime/artifact/MappedFile.h"
#include "runtime/core/EndProcess.h"

#include <atomic>
#include <csignal>

namespace dlc::rt {

// A handler can reach nothing but globals.
static std::atomic<const char *> linePrefix = "";
static struct sigaction previous;

static void handle(int signal, siginfo_t *info, void *) {
  // A positive code is the kernel's, whose address means something.
  if (const char *path = info->si_code > 0 ? MappedFile::pathAt(info->si_addr) : nullptr)
    endProcess({linePrefix.load(), "'", path,
                "' became shorter while it was read, or its disk failed; put it back as it was, "
                "and start again (a training run that has a checkpoint with --resume)"});
  ::sigaction(signal, &previous, nullptr);
  ::raise(signal); // comes when this handler returns
}

void reportLostFiles(const char *prefix) {
  linePrefix = prefix;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  ::sigfillset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, &previous);
}

} // namespace dlc::rt
