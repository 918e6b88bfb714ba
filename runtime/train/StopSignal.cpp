#include "runtime/train/StopSignal.h"

#include <iterator>

namespace dlc::rt {

// A handler can reach nothing but a global.
static volatile std::sig_atomic_t receivedSignal = 0;

static void note(int signal) {
  if (signal == SIGINT && receivedSignal == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  receivedSignal = signal;
}

StopSignal::StopSignal() {
  receivedSignal = 0;
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(caught); ++i)
    sigaction(caught[i], &action, &previous[i]);
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < std::size(caught); ++i)
    sigaction(caught[i], &previous[i], nullptr);
}

int StopSignal::received() const { return receivedSignal; }

} // namespace dlc::rt
