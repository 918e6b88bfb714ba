// Requests to checkpoint and leave: SIGUSR1, SIGTERM and SIGINT set a flag that the step loop
// reads.
//
// While an object lives the signals are caught; one object at a time. A second SIGINT ends the
// process at once.
#pragma once

#include <csignal>

namespace dlc::rt {

class StopSignal {
public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal &) = delete;
  StopSignal &operator=(const StopSignal &) = delete;

  /// The number of the signal that came, 0 if none.
  int received() const;

private:
  static constexpr int caught[] = {SIGUSR1, SIGTERM, SIGINT};
  struct sigaction previous[3];
};

} // namespace dlc::rt
