// The GPU that the stand-ins for NVIDIA's libraries share: memory, streams that run late, events,
// captured graphs, and the fault that ends it all.
//
// Statuses and rules are those of CUDA's runtime (CUDA Runtime API, sections 6.4 to 6.6 and 6.30).
// Functions that return one may be called from any thread.
#pragma once

#include "runtime/cuda/libraries/Cudart.h"
#include "test/cuda/standin/Memory.h"
#include "test/cuda/standin/Tasks.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace dlc::rt::standin {

namespace status {
constexpr cudart::Status success = 0, invalidValue = 1, outOfMemory = 2, invalidImage = 200,
                         invalidPtx = 218, invalidHandle = 400, notFound = 500, notReady = 600,
                         outOfResources = 701, launchFailure = 719, captureUnsupported = 900,
                         captureInvalidated = 901, captureMerge = 902, captureUnmatched = 903,
                         captureUnjoined = 904, captureIsolation = 905, capturedEvent = 907;
} // namespace status

using Time = std::chrono::steady_clock::time_point;

/// When an event's last record is to run, and has run.
struct Stamp {
  Tasks::Task task = 0; // 0: never
  Time time;
  std::atomic<bool> hasRun = true; // of no record, too
};

/// Work of a graph, behind other nodes.
struct Node {
  std::vector<size_t> after;
  std::function<void()> work;
  std::shared_ptr<Stamp> stamp = nullptr; // of a record that is seen outside
};
using Nodes = std::vector<Node>;

struct Capture {
  cudart::Stream origin = nullptr;
  std::thread::id thread;
  Nodes nodes;
  bool isValid = true;
};

} // namespace dlc::rt::standin

namespace dlc::rt::cudart {

struct StreamState {
  std::vector<standin::Tasks::Task> last; // what is next runs behind them
  std::shared_ptr<standin::Capture> capture = nullptr;
  std::vector<size_t> lastNodes = {}; // likewise, in the capture
};

struct EventState {
  unsigned flags;
  std::shared_ptr<standin::Stamp> stamp;
  /// If its last record was captured: where, and behind which nodes.
  std::shared_ptr<standin::Capture> capture = nullptr;
  std::vector<size_t> nodes = {};
};

struct GraphState {
  std::shared_ptr<const standin::Nodes> nodes;
};
struct GraphExecState {
  std::shared_ptr<const standin::Nodes> nodes;
};

} // namespace dlc::rt::cudart

namespace dlc::rt::standin {

class Gpu {
public:
  static Gpu &get();
  /// A number that the environment gives.
  static int64_t given(const char *variable, int64_t otherwise);
  /// As many as $DLC_STANDIN_GPUS says, of which the process takes one, whichever it is.
  static int count() { return static_cast<int>(given("DLC_STANDIN_GPUS", 1)); }
  static bool exists(int device) { return device >= 0 && device < count(); }

  /// Calls `body(gpu)` alone, unless the device has failed. Memory and waiting are no business of a
  /// capture: `isCapturable` says that it may be under way.
  template <typename Body> cudart::Status call(bool isCapturable, Body body) {
    std::scoped_lock<std::mutex> lock(mutex);
    if (!failure.empty())
      return lastStatus = status::launchFailure;
    if (!isCapturable && invalidateCapture())
      return lastStatus = status::captureUnsupported;
    cudart::Status result = body(*this);
    return result == status::success ? result : lastStatus = result;
  }
  cudart::Status takeLastStatus();
  std::string describe(cudart::Status status);

  Memory memory;
  std::string refusal; // of the last code that was refused

  /// Within work that waits for others: a moment in which the host may start more.
  void pause();

  // What follows is called within `call`.

  /// Adds work to a stream, or to what it captures. Exceptions of work are the device's failure.
  void enqueue(cudart::Stream stream, std::function<void()> work);
  /// Of a kernel, the library's or generated: the one of the number $DLC_STANDIN_FAULT fails, and
  /// the device with it, that of $DLC_STANDIN_HANG never ends, that of $DLC_STANDIN_REFUSE is not
  /// taken.
  cudart::Status enqueueKernel(cudart::Stream stream, std::function<void()> work);
  /// What a library's kernel has computed: the lowest bit of its first element is another one with
  /// $DLC_STANDIN_OFF = 1, every second time with 2.
  void plantError(std::span<std::byte> result);
  /// Null if there is no room: for the allocation of the number $DLC_STANDIN_FULL, and later ones.
  void *allocate(size_t bytes);
  /// On the stream that does not wait for others, at once or later.
  void enqueueDefault(std::function<void()> work);

  cudart::Status runAll();
  cudart::Status runDefault();
  cudart::Status run(const Tasks::Task &task);
  /// Whether an event's last record has run. If not, the device goes on by itself. Not to be called
  /// within `call`: it does not wait for the device.
  cudart::Status query(cudart::Event event);
  bool hasRun(const Stamp &stamp) const { return !tasks.isPending(stamp.task); }

  cudart::Stream makeStream();
  cudart::Status destroy(cudart::Stream stream);
  /// Those of the numbers $DLC_STANDIN_DROP_WAIT, separated by commas, only seem to wait.
  cudart::Status wait(cudart::Stream stream, cudart::Event event);
  cudart::Status record(cudart::Event event, cudart::Stream stream, bool isExternal);

  cudart::Status beginCapture(cudart::Stream stream);
  cudart::Status endCapture(cudart::Stream stream, cudart::Graph &graph);
  void launch(const std::shared_ptr<const Nodes> &nodes, cudart::Stream stream);

  /// Graphs captured, how often graphs were launched, waits of streams for events, inputs gathered
  /// from arrays. May be read at any time.
  struct Counts {
    std::atomic<int64_t> captures, launches, waits, gathers;
  };
  const Counts &callCounts() const { return counts; }
  void countGather() { ++counts.gathers; }

private:
  Gpu();
  bool invalidateCapture();
  cudart::Status attempt(const std::function<void()> &body);
  cudart::Status await(const std::function<void()> &body);

  std::mutex mutex;
  std::atomic<bool> goesOn = false; // by itself
  std::string failure;
  bool hangs = false;
  cudart::Status lastStatus = status::success;
  int64_t kernels = 0, results = 0, allocations = 0; // so far
  Counts counts;
  Tasks tasks;
  std::set<cudart::Stream> streams;
  cudart::StreamState defaultStream;
  std::vector<std::shared_ptr<Capture>> captures; // under way
};

} // namespace dlc::rt::standin
