// How a rank waits for others: it spins first, since they are mostly microseconds away, then yields
// the core and at last sleeps, since there may be more ranks than cores.
#pragma once

#include <chrono>
#include <ctime>
#include <sched.h>

namespace dlc::rt {

class Patience {
public:
  explicit Patience(double timeoutSeconds) : timeout(timeoutSeconds) {}

  /// Called after a fruitless poll. True about every tenth of a second: time to see what became of
  /// the peers.
  bool pause() {
    if (++polls < spins)
      return false;
    auto now = Clock::now();
    if (polls == spins)
      begin = lastLook = now; // the spinning before is far below the clock's use here
    if (now - begin < std::chrono::microseconds(500)) {
      sched_yield();
    } else {
      timespec nap{0, 50'000};
      nanosleep(&nap, nullptr);
    }
    if (now - lastLook < std::chrono::milliseconds(100) && !expiredAt(now))
      return false;
    lastLook = now;
    return true;
  }
  bool expired() const { return polls >= spins && expiredAt(Clock::now()); }
  double timeoutSeconds() const { return timeout; }

private:
  using Clock = std::chrono::steady_clock;
  static constexpr unsigned spins = 200;

  bool expiredAt(Clock::time_point now) const {
    return std::chrono::duration<double>(now - begin).count() >= timeout;
  }

  double timeout;
  unsigned polls = 0;
  Clock::time_point begin;
  Clock::time_point lastLook;
};

} // namespace dlc::rt
