#include "tools/dlc-run/Binding.h"

#include <algorithm>
#include <sched.h>
#include <unistd.h>

namespace dlc::run {

static std::vector<int> inheritedCores() {
  cpu_set_t mask;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &mask))
        cores.push_back(core);
  return cores;
}

unsigned usableCores() { return std::max(1u, static_cast<unsigned>(inheritedCores().size())); }

unsigned onlineCores() {
  return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

void bindRank(Bind bind, int localRank, int localSize, unsigned threads) {
  std::vector<int> cores = inheritedCores();
  auto rank = static_cast<size_t>(localRank), size = static_cast<size_t>(localSize);
  if (bind == Bind::None || size * threads > cores.size())
    return;
  size_t first = bind == Bind::Compact ? rank * threads : rank * (cores.size() / size);
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (size_t i = first; i < first + threads; ++i)
    CPU_SET(cores[i], &mask);
  ::sched_setaffinity(0, sizeof mask, &mask); // a convenience: without it the run is only slower
}

} // namespace dlc::run
