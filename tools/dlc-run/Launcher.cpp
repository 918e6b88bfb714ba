// By mpirun, where there is one, which lets ranks use what it knows of the network; else as our own
// children.
//
// mpirun forwards SIGUSR1 to the ranks it has started; a signal that comes before that is lost, and
// one that comes before it is ready ends it. So SIGUSR1 is sent once mpirun catches it, and sent
// again until the job has ended. Where it ends a rank between fork and exec, mpirun may never
// notice: without a living child, mpirun is ended in turn.
#include "tools/dlc-run/Launcher.h"

#include "runtime/artifact/Error.h"
#include "runtime/comm/Launch.h"
#include "tools/dlc-run/Process.h"
#include "tools/dlc-run/RunRank.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace dlc::run {

using Clock = std::chrono::steady_clock;

/// An mpirun that has been asked to stop and has no ranks is ended after this time.
static constexpr std::chrono::seconds patience(2);

/// True if the process has a handler for the signal.
static bool catches(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:"))
      return std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1;
  return false;
}

/// False if the kernel tells that all children of the process, if any, have ended.
static bool hasLivingChild(pid_t process) {
  std::error_code unknown;
  std::filesystem::directory_iterator thread("/proc/" + std::to_string(process) + "/task", unknown);
  for (; !unknown && thread != std::filesystem::directory_iterator(); thread.increment(unknown)) {
    std::ifstream children(thread->path() / "children");
    if (!children)
      return true;
    for (pid_t child; children >> child;) {
      std::ifstream status("/proc/" + std::to_string(child) + "/status");
      for (std::string line; std::getline(status, line);)
        if (line.starts_with("State:") && line.find('Z') == std::string::npos)
          return true;
    }
  }
  return static_cast<bool>(unknown);
}

bool ErrorLines::take(const std::string &line) {
  if (line.starts_with(errorPrefix)) {
    std::string &kept = line.starts_with(interruptedPrefix) ? interruption : rankError;
    if (kept.empty())
      kept = line;
    return false;
  }
  if (line.starts_with("----------")) {
    inBlock = !inBlock;
    return false;
  }
  static const std::regex noticed("process rank ([0-9]+) .*exited on signal ([0-9]+) *(\\(.*\\))?");
  std::smatch match;
  if (std::regex_search(line, match, noticed))
    endReason =
        "rank " + match[1].str() + " was ended by signal " + match[2].str() + " " + match[3].str();
  // mpirun's own account of an end, and of pipes that ended with it, says less than the lines
  // above.
  bool isSummary = line.starts_with("mpirun: Forwarding signal") ||
                   line.starts_with("[warn] Epoll") ||
                   line.find("help message") != std::string::npos ||
                   line.find("ORTE_ERROR_LOG") != std::string::npos ||
                   line.find("PMIX ERROR") != std::string::npos ||
                   line.find("orte_base_help_aggregate") != std::string::npos;
  return !inBlock && !isSummary && !line.empty();
}

void ErrorLines::noteSignal(int rank, int signal) {
  endReason = "rank " + std::to_string(rank) + " was ended by signal " + std::to_string(signal) +
              " (" + ::strsignal(signal) + ")";
}

std::string ErrorLines::verdict(int exitCode, const rt::StopSignal &stop) const {
  // The ranks know of SIGUSR1 alone.
  if (!interruption.empty() && stop.received())
    return std::regex_replace(interruption, std::regex("by (SIG[A-Z0-9]+|a signal)"),
                              "by " + stop.name(), std::regex_constants::format_first_only);
  // Where a rank fails, mpirun ends the others by SIGTERM: what they say of it is not the cause.
  for (const std::string &line : {rankError, interruption})
    if (!line.empty())
      return line;
  std::string kept =
      training ? "; a checkpoint in the run directory is whole, continue from it with --resume"
               : "";
  // Ranks that have begun to train say how far they came, unless they are not let.
  if (stop.received())
    return interruptedPrefix + stop.name() +
           (stop.insists() ? kept
            : training     ? interruptedEarly
                           : "");
  return errorPrefix + (endReason.empty()
                            ? "the ranks ended with exit code " + std::to_string(exitCode)
                            : endReason + kept);
}

namespace {

/// The processes of a job: what is to be done while they run, and how they end.
struct Processes {
  Poll poll;
  std::function<int()> wait; // the exit code
};

bool isInPath(const std::string &program) {
  const char *path = std::getenv("PATH");
  std::istringstream directories(path ? path : "");
  for (std::string directory; std::getline(directories, directory, ':');)
    if (::access((directory + "/" + program).c_str(), X_OK) == 0)
      return true;
  return false;
}

Processes startByMpirun(const Job &job, int errorPipe, rt::StopSignal &stop) {
  std::vector<std::string> call = {"mpirun", "--bind-to", "none", "--oversubscribe"};
  if (::geteuid() == 0)
    call.emplace_back("--allow-run-as-root");
  call.insert(call.end(), {"-np", std::to_string(job.ranks), ownPath()});
  call.insert(call.end(), job.arguments.begin(), job.arguments.end());
  // mpirun, too, would ask X displays for graphics cards (see MpiEnvironment).
  ::setenv("HWLOC_COMPONENTS", "-gl", /*overwrite=*/0);
  pid_t mpirun = startProcess(call, {.error = errorPipe}, /*detached=*/true);
  Poll poll = [mpirun, &stop, ended = false, lastAlive = Clock::now()]() mutable {
    if (!stop.received() || hasLivingChild(mpirun))
      lastAlive = Clock::now();
    else if (Clock::now() - lastAlive > patience)
      ::kill(mpirun, SIGKILL);
    if (stop.insists() && !std::exchange(ended, true)) // a second SIGTERM makes it leave its ranks
      ::kill(mpirun, SIGTERM);
    else if (stop.received() && catches(mpirun, SIGUSR1))
      ::kill(mpirun, SIGUSR1);
  };
  return {poll, [mpirun, poll] { return waitForProcess(mpirun, poll); }};
}

/// Ranks that are our own children and meet by TCP.
class OwnRanks {
public:
  OwnRanks(const Job &job, int errorPipe, rt::StopSignal &stop, ErrorLines &errors);
  void poll();
  int wait();

private:
  struct Rank {
    pid_t process;
    bool hasEnded = false;
  };
  void look(Rank &rank, int number);
  void signalAll(int signal) const;

  rt::StopSignal &stop;
  ErrorLines &errors;
  rt::Socket held = rt::Socket::hold(); // the port at which ranks meet
  std::vector<Rank> ranks;
  int exitCode = 0;
  std::optional<Clock::time_point> ending; // since a rank has failed, or we were told to insist
};

OwnRanks::OwnRanks(const Job &job, int errorPipe, rt::StopSignal &stop, ErrorLines &errors)
    : stop(stop), errors(errors) {
  uint64_t key = (uint64_t{std::random_device()()} << 32) + std::random_device()();
  for (int rank = 0; rank < job.ranks; ++rank) {
    std::vector<std::string> call = {"env"};
    for (std::string &variable : rt::launchVariables({rank, job.ranks, "", held.port(), key}))
      call.push_back(std::move(variable));
    call.push_back(ownPath());
    call.insert(call.end(), job.arguments.begin(), job.arguments.end());
    ranks.push_back({startProcess(call, {.error = errorPipe}, /*detached=*/true)});
  }
}

void OwnRanks::look(Rank &rank, int number) {
  int status = 0;
  if (rank.hasEnded || ::waitpid(rank.process, &status, WNOHANG) != rank.process)
    return;
  rank.hasEnded = true;
  int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (code == 0 || exitCode)
    return;
  exitCode = code;
  // Told to stop, ranks end as they come to it: one may have a checkpoint to write.
  if (!stop.received() && !ending)
    ending = Clock::now();
  if (WIFSIGNALED(status))
    errors.noteSignal(number, WTERMSIG(status));
}

void OwnRanks::signalAll(int signal) const {
  for (const Rank &rank : ranks)
    if (!rank.hasEnded && (signal != SIGUSR1 || catches(rank.process, signal)))
      ::kill(rank.process, signal);
}

/// Others hear of a failure by themselves, and say more of it; then they are told, then ended.
void OwnRanks::poll() {
  for (size_t i = 0; i < ranks.size(); ++i)
    look(ranks[i], static_cast<int>(i));
  if (stop.insists() && !ending)
    ending = Clock::now() - patience;
  if (ending && Clock::now() - *ending > 2 * patience)
    signalAll(SIGKILL);
  else if (ending && Clock::now() - *ending > patience)
    signalAll(SIGTERM);
  else if (stop.received())
    signalAll(SIGUSR1);
}

int OwnRanks::wait() {
  for (;;) {
    poll();
    if (std::ranges::all_of(ranks, &Rank::hasEnded))
      return exitCode;
    ::usleep(10'000);
  }
}

Processes startHere(const Job &job, int errorPipe, rt::StopSignal &stop, ErrorLines &errors) {
  auto ranks = std::make_shared<OwnRanks>(job, errorPipe, stop, errors);
  return {[ranks] { ranks->poll(); }, [ranks] { return ranks->wait(); }};
}

} // namespace

int launchRanks(const Job &job, rt::StopSignal &stop) {
  int errorPipe[2];
  if (::pipe2(errorPipe, O_CLOEXEC) != 0)
    throw rt::Error(rt::ErrorCode::Runtime,
                    std::string("cannot make a pipe: ") + std::strerror(errno));
  stop.noteAll();
  ErrorLines errors(job.trains);
  bool byMpi = isInPath("mpirun") && std::filesystem::exists(mpiModule());
  Processes ranks =
      byMpi ? startByMpirun(job, errorPipe[1], stop) : startHere(job, errorPipe[1], stop, errors);
  ::close(errorPipe[1]);
  std::string pending;
  auto show = [&](const std::string &line) {
    if (errors.take(line))
      std::fprintf(stderr, "%s\n", line.c_str());
  };
  auto take = [&](std::string_view text) {
    pending += text;
    for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1))
      show(pending.substr(0, end));
  };
  readPipe(errorPipe[0], take, ranks.poll);
  ::close(errorPipe[0]);
  if (!pending.empty())
    show(pending);
  int exitCode = ranks.wait();
  if (exitCode == 0)
    return 0;
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", errors.verdict(exitCode, stop).c_str());
  return 1;
}

} // namespace dlc::run
