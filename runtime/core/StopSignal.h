// Requests to stop: SIGUSR1, SIGTERM, SIGINT and SIGHUP.
//
// A process that has nothing to save ends at once, wherever it is. One that has notes the request,
// which its loop reads. While an object lives the signals are caught; one object at a time. A
// signal that the process was started to ignore (nohup) stays ignored.
//
// The handlers have a stack of their own in the thread that makes the object, which is the one that
// computes: oneDNN's matrix products for AVX2 use memory of the heap as their stack (inner
// dimensions above 252), and a handler's frame would lie in whatever comes before it. The other
// threads of the team take no signals (ParallelFor.h).
#pragma once

#include <csignal>
#include <cstddef>
#include <memory>
#include <string>

namespace dlc::rt {

class StopSignal {
public:
  /// Requests are noted.
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal &) = delete;
  StopSignal &operator=(const StopSignal &) = delete;

  /// From now on, and now if a request was noted, a request removes the Leftovers and ends the
  /// process with exit code 1; the last line on stderr is `before`, the signal's name, `after`.
  /// Keeps the pointers.
  void endAtOnce(const char *before, const char *after = "");
  /// From now on requests are noted; a second SIGINT ends the process.
  void note();
  /// Like note, but no number of requests ends the process.
  void noteAll();

  /// The number of the signal that came, 0 if none.
  int received() const;
  /// Its name.
  std::string name() const;
  /// True once SIGINT has come twice.
  bool insists() const;

private:
  static constexpr int caught[] = {SIGUSR1, SIGTERM, SIGINT, SIGHUP};
  struct sigaction previous[4];
  std::unique_ptr<std::byte[]> stack;
  stack_t previousStack;
};

} // namespace dlc::rt
