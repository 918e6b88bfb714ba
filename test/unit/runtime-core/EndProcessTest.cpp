#include "runtime/core/EndProcess.h"

#include <csignal>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace dlc::rt {
namespace {

/// True once a process waits for the pipe that it writes to.
bool isBlocked(pid_t process) {
  std::string path = "/proc/" + std::to_string(process) + "/stat";
  char text[256] = "";
  FILE *file = std::fopen(path.c_str(), "r");
  bool blocked = file && std::fgets(text, sizeof text, file) &&
                 std::string(text).find(") S ") != std::string::npos;
  if (file)
    std::fclose(file);
  return blocked;
}

/// Whatever comes while a process writes its last line, the line is that of the first reason.
TEST(EndProcess, IsNotHeldUpByASecondSignal) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20); // ends it where it would hang
    ::close(ends[0]);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    std::signal(SIGTERM, [](int) { endProcess({"second"}); });
    std::vector<char> full(1 << 16, 'x'); // what a pipe holds
    if (::write(STDERR_FILENO, full.data(), full.size()) < 0)
      ::_exit(3);
    endProcess({"first ", "reason"});
  }
  ::close(ends[1]);
  for (int i = 0; i < 1000 && !isBlocked(child); ++i)
    ::usleep(10000);
  ::kill(child, SIGTERM);
  ::usleep(50000); // in which the signal is delivered
  std::string text;
  char part[4096];
  for (ssize_t count = 0; (count = ::read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(count));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_EQ(text.substr(text.find_last_of('x') + 1), "first reason\n");
}

} // namespace
} // namespace dlc::rt
