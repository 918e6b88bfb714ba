#include "tools/dlc-run/Launcher.h"

#include "runtime/core/Error.h"
#include "tools/dlc-run/Process.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <regex>
#include <unistd.h>

namespace dlc::run {

// A handler can reach nothing but globals.
static volatile pid_t launched = 0;
static volatile std::sig_atomic_t interruptions = 0;

static void forward(int signal) {
  int saved = errno;
  if (signal == SIGINT)
    interruptions = interruptions + 1;
  if (launched > 0)
    ::kill(launched, interruptions > 1 ? SIGTERM : SIGUSR1);
  errno = saved;
}

bool ErrorLines::take(const std::string &line) {
  if (line.starts_with("dlc-run: error: ")) {
    if (rankError.empty())
      rankError = line;
    return false;
  }
  if (line.starts_with("----------")) {
    inBlock = !inBlock;
    return false;
  }
  static const std::regex noticed("process rank ([0-9]+) .*exited on signal ([0-9]+) *(\\(.*\\))?");
  std::smatch match;
  if (std::regex_search(line, match, noticed))
    mpirunReason = "rank " + match[1].str() + " was ended by signal " + match[2].str() + " " +
                   match[3].str() +
                   "; the last checkpoint in the run directory is whole, continue "
                   "with --resume";
  // mpirun's own account of an end says less than the lines above.
  bool isSummary = line.starts_with("mpirun: Forwarding signal") ||
                   line.find("help message") != std::string::npos ||
                   line.find("orte_base_help_aggregate") != std::string::npos;
  return !inBlock && !isSummary && !line.empty();
}

std::string ErrorLines::verdict(int exitCode) const {
  if (!rankError.empty())
    return rankError;
  return "dlc-run: error: " + (mpirunReason.empty()
                                   ? "mpirun ended with exit code " + std::to_string(exitCode)
                                   : mpirunReason);
}

/// Shows or keeps what comes through the pipe until it closes.
static void readErrors(int pipe, ErrorLines &errors) {
  std::string pending;
  char buffer[4096];
  for (;;) {
    ssize_t got = ::read(pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      break;
    pending.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1))
      if (errors.take(pending.substr(0, end)))
        std::fprintf(stderr, "%s\n", pending.substr(0, end).c_str());
  }
  if (!pending.empty() && errors.take(pending))
    std::fprintf(stderr, "%s\n", pending.c_str());
}

int launchRanks(int ranks, const std::vector<std::string> &arguments) {
  std::vector<std::string> call = {"mpirun", "--bind-to", "none", "--oversubscribe"};
  if (::geteuid() == 0)
    call.emplace_back("--allow-run-as-root");
  call.insert(call.end(), {"-np", std::to_string(ranks), ownPath()});
  call.insert(call.end(), arguments.begin(), arguments.end());
  int errorPipe[2];
  if (::pipe2(errorPipe, O_CLOEXEC) != 0)
    throw rt::Error(rt::ErrorCode::Runtime,
                    std::string("cannot make a pipe: ") + std::strerror(errno));
  struct sigaction action = {};
  action.sa_handler = forward;
  for (int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP})
    ::sigaction(signal, &action, nullptr);
  launched = startProcess(call, {.error = errorPipe[1]}, /*detached=*/true);
  ::close(errorPipe[1]);
  ErrorLines errors;
  readErrors(errorPipe[0], errors);
  int exitCode = waitForProcess(launched);
  launched = 0;
  if (exitCode == 0)
    return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", errors.verdict(exitCode).c_str());
  return 1;
}

} // namespace dlc::run
