#include "runtime/core/StopSignal.h"

#include "runtime/core/EndProcess.h"

#include <atomic>
#include <csignal>
#include <iterator>

namespace dlc::rt {

namespace {

enum Mode : int { EndAtOnce, Note, NoteAll };

// Above what any processor's registers take of a signal's frame (11 KiB with AMX).
constexpr size_t stackBytes = 64 << 10;

// A handler can reach nothing but globals, and runs in any thread; others set and read them.
std::atomic<int> mode = Note;
std::atomic<int> receivedSignal = 0;
std::atomic<int> interruptions = 0;
std::atomic<const char *> textBefore = "";
std::atomic<const char *> textAfter = "";
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const char *>::is_always_lock_free);

const char *nameOf(int signal) {
  switch (signal) {
  case SIGUSR1:
    return "SIGUSR1";
  case SIGTERM:
    return "SIGTERM";
  case SIGINT:
    return "SIGINT";
  default:
    return "SIGHUP";
  }
}

[[noreturn]] void end(int signal) {
  endProcess({textBefore.load(), nameOf(signal), textAfter.load()});
}

void handle(int signal) {
  if (mode == EndAtOnce)
    end(signal);
  if (signal == SIGINT)
    ++interruptions;
  if (mode == Note && interruptions > 1) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  int none = 0;
  receivedSignal.compare_exchange_strong(none, signal);
}

} // namespace

StopSignal::StopSignal() : stack(std::make_unique<std::byte[]>(stackBytes)) {
  mode = Note;
  receivedSignal = 0;
  interruptions = 0;
  stack_t own = {};
  own.ss_sp = stack.get();
  own.ss_size = stackBytes;
  ::sigaltstack(&own, &previousStack);
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  for (int signal : caught)
    ::sigaddset(&action.sa_mask, signal);
  for (size_t i = 0; i < std::size(caught); ++i) {
    ::sigaction(caught[i], nullptr, &previous[i]);
    if (previous[i].sa_handler != SIG_IGN)
      ::sigaction(caught[i], &action, nullptr);
  }
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < std::size(caught); ++i)
    ::sigaction(caught[i], &previous[i], nullptr);
  ::sigaltstack(&previousStack, nullptr);
}

void StopSignal::endAtOnce(const char *before, const char *after) {
  textBefore = before;
  textAfter = after;
  mode = EndAtOnce;
  if (receivedSignal)
    end(receivedSignal);
}

void StopSignal::note() { mode = Note; }
void StopSignal::noteAll() { mode = NoteAll; }
int StopSignal::received() const { return receivedSignal; }
std::string StopSignal::name() const { return nameOf(receivedSignal); }
bool StopSignal::insists() const { return interruptions > 1; }

} // namespace dlc::rt
