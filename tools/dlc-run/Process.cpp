#include "tools/dlc-run/Process.h"

#include "runtime/artifact/Error.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dlc::run {

using rt::Error;
using rt::ErrorCode;

std::string ownPath() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

pid_t startProcess(const std::vector<std::string> &arguments, Streams streams, bool detached) {
  std::vector<char *> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  // Tells a failed exec from a program that fails: the pipe closes by itself when exec succeeds.
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0)
    throw Error(ErrorCode::Runtime, std::string("cannot make a pipe: ") + std::strerror(errno));
  pid_t parent = ::getpid();
  pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent)
      ::_exit(1);
    if (detached) {
      ::setpgid(0, 0);
      int null = ::open("/dev/null", O_RDONLY);
      ::dup2(null, STDIN_FILENO);
    }
    if (streams.output >= 0)
      ::dup2(streams.output, STDOUT_FILENO);
    if (streams.error >= 0)
      ::dup2(streams.error, STDERR_FILENO);
    ::execvp(argv[0], argv.data());
    int error = errno;
    [[maybe_unused]] ssize_t written = ::write(report[1], &error, sizeof error);
    ::_exit(127);
  }
  ::close(report[1]);
  int error = child < 0 ? errno : 0;
  if (child > 0 && ::read(report[0], &error, sizeof error) > 0)
    ::waitpid(child, nullptr, 0);
  ::close(report[0]);
  if (error)
    throw Error(ErrorCode::Runtime, "cannot start '" + arguments[0] + "': " + std::strerror(error));
  return child;
}

void readPipe(int pipe, const std::function<void(std::string_view)> &take, const Poll &poll) {
  constexpr int milliseconds = 100;
  char buffer[4096];
  for (;;) {
    poll();
    pollfd waited = {pipe, POLLIN, 0};
    if (::poll(&waited, 1, milliseconds) <= 0)
      continue;
    ssize_t got = ::read(pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return;
    take({buffer, static_cast<size_t>(got)});
  }
}

int waitForProcess(pid_t process, const Poll &poll) {
  constexpr useconds_t microseconds = 10'000;
  int status = 0;
  for (;;) {
    pid_t ended = ::waitpid(process, &status, WNOHANG);
    if (ended == process)
      return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (ended < 0 && errno != EINTR)
      throw Error(ErrorCode::Runtime,
                  std::string("cannot wait for a process: ") + std::strerror(errno));
    poll();
    ::usleep(microseconds);
  }
}

static Poll passOn(pid_t child, const rt::StopSignal &stop) {
  return [child, &stop] {
    if (stop.received())
      ::kill(child, SIGTERM);
  };
}

int runProcess(const std::vector<std::string> &arguments, const rt::StopSignal &stop) {
  int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  pid_t child = startProcess(arguments, {.output = null}, false);
  ::close(null);
  return waitForProcess(child, passOn(child, stop));
}

int captureProcess(const std::vector<std::string> &arguments, std::string &output,
                   const rt::StopSignal &stop) {
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0)
    throw Error(ErrorCode::Runtime, std::string("cannot make a pipe: ") + std::strerror(errno));
  pid_t child = startProcess(arguments, {.output = pipe[1]}, false);
  ::close(pipe[1]);
  readPipe(pipe[0], [&](std::string_view text) { output += text; }, passOn(child, stop));
  ::close(pipe[0]);
  return waitForProcess(child, passOn(child, stop));
}

} // namespace dlc::run
