#include "runtime/record/ProcessTime.h"

#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

namespace dlc::rt {

// proc(5): starttime is field 22 of stat, in clock ticks since boot; field 2, the program's name in
// brackets, may hold anything.
double secondsOfProcess() {
  std::stringstream text;
  text << std::ifstream("/proc/self/stat").rdbuf();
  std::string all = text.str();
  std::istringstream fields(all.substr(all.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field)
    fields >> skipped;
  double ticks = 0;
  fields >> ticks;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

ProcessorTime processorTime() {
  rusage own{}, children{};
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  auto seconds = [](const timeval &time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(own.ru_utime) + seconds(children.ru_utime),
          seconds(own.ru_stime) + seconds(children.ru_stime)};
}

std::string timesText(ProcessorTime processor, int ranks, double wall) {
  char text[128];
  std::string together = ranks > 1 ? " (" + std::to_string(ranks) + " ranks together)" : "";
  std::snprintf(text, sizeof text, "user %.2f s, system %.2f s%s, wall %.2f s", processor.user,
                processor.system, together.c_str(), wall);
  return text;
}

std::string firstStepText(double seconds,
                          const std::vector<std::pair<std::string, double>> &phases) {
  char text[64];
  std::snprintf(text, sizeof text, "first step after %.2f s (", seconds);
  std::string line = text;
  double rest = seconds;
  for (const auto &[name, took] : phases) {
    std::snprintf(text, sizeof text, " %.2f, ", took);
    line += name + text;
    rest -= took;
  }
  std::snprintf(text, sizeof text, "rest %.2f)", rest);
  return line + text;
}

} // namespace dlc::rt
