#include "tools/dlc-run/Process.h"

#include "runtime/core/Error.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dlc::run {

using rt::Error;
using rt::ErrorCode;

std::string ownPath() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

pid_t startProcess(const std::vector<std::string> &arguments, int standardError, bool detached) {
  std::vector<char *> argv;
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
    if (detached) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent)
        ::_exit(1);
      int null = ::open("/dev/null", O_RDONLY);
      ::dup2(null, STDIN_FILENO);
    }
    if (standardError >= 0)
      ::dup2(standardError, STDERR_FILENO);
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

int waitForProcess(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int runProcess(const std::vector<std::string> &arguments) {
  int code = waitForProcess(startProcess(arguments, -1, false));
  return code >= 128 ? 1 : code;
}

} // namespace dlc::run
