#include "runtime/record/ProcessTime.h"

#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
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

std::string firstStepText(double seconds) {
  char text[64];
  std::snprintf(text, sizeof text, "first step after %.2f s", seconds);
  return text;
}

} // namespace dlc::rt
