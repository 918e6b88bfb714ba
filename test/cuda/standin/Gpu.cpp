#include "test/cuda/standin/Gpu.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace dlc::rt::standin {
namespace {

/// Thrown by what never ends.
struct Hang {};

uint64_t seed() {
  const char *given = std::getenv("DLC_STANDIN_SEED");
  return given ? std::strtoull(given, nullptr, 10) : 0;
}

/// Of numbers in the environment, separated by commas.
bool isListed(const char *variable, int64_t number) {
  const char *all = std::getenv(variable);
  std::istringstream list(all ? all : "");
  for (std::string each; std::getline(list, each, ',');)
    if (each == std::to_string(number))
      return true;
  return false;
}

template <typename T> void addAll(std::vector<T> &to, const std::vector<T> &more) {
  for (const T &each : more)
    if (std::ranges::find(to, each) == to.end())
      to.push_back(each);
}

/// True if every node is among these or before one of them.
bool areJoined(const Nodes &nodes, std::vector<size_t> last) {
  std::vector<bool> isReached(nodes.size());
  while (!last.empty()) {
    size_t node = last.back();
    last.pop_back();
    if (isReached[node])
      continue;
    isReached[node] = true;
    last.insert(last.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return std::ranges::all_of(isReached, [](bool reached) { return reached; });
}

} // namespace

Gpu::Gpu() : tasks(seed()) {}

int64_t Gpu::given(const char *variable, int64_t otherwise) {
  const char *text = std::getenv(variable);
  return text && *text ? std::strtoll(text, nullptr, 10) : otherwise;
}

Gpu &Gpu::get() {
  static auto *gpu = new Gpu; // outlives whatever uses it at the process's end
  return *gpu;
}

//===- Statuses -------------------------------------------------------------------------------===//

cudart::Status Gpu::takeLastStatus() {
  std::scoped_lock<std::mutex> lock(mutex);
  return std::exchange(lastStatus, failure.empty() ? status::success : status::launchFailure);
}

std::string Gpu::describe(cudart::Status status) {
  std::scoped_lock<std::mutex> lock(mutex);
  switch (status) {
  case status::success:
    return "no error";
  case status::invalidValue:
    return "invalid argument";
  case status::outOfMemory:
    return "out of memory";
  case status::invalidImage:
    return "device kernel image is invalid";
  case status::invalidPtx:
    return "a PTX JIT compilation failed: " + refusal;
  case status::invalidHandle:
    return "invalid resource handle";
  case status::notFound:
    return "named symbol not found";
  case status::notReady:
    return "device not ready";
  case status::outOfResources:
    return "too many resources requested for launch";
  case status::launchFailure:
    return failure;
  case status::captureUnsupported:
    return "operation not permitted when stream is capturing";
  case status::captureInvalidated:
    return "operation failed due to a previous error during capture";
  case status::captureMerge:
    return "operation would result in a merge of separate capture sequences";
  case status::captureUnmatched:
    return "capture was not ended in the same stream as it began";
  case status::captureUnjoined:
    return "capturing stream has unjoined work";
  case status::captureIsolation:
    return "dependency created on uncaptured work in another stream";
  case status::capturedEvent:
    return "operation not permitted on an event last recorded in a capturing stream";
  default:
    return "unrecognized error code";
  }
}

/// True if this thread captures: that capture is of no use any more.
bool Gpu::invalidateCapture() {
  auto own = std::ranges::find(captures, std::this_thread::get_id(), &Capture::thread);
  if (own == captures.end())
    return false;
  (*own)->isValid = false;
  return true;
}

cudart::Status Gpu::attempt(const std::function<void()> &body) {
  try {
    body();
    return status::success;
  } catch (const Hang &) {
    hangs = true;
    return status::success;
  } catch (const std::exception &error) {
    failure = error.what();
    return status::launchFailure;
  }
}

//===- Work -----------------------------------------------------------------------------------===//

cudart::Status Gpu::enqueueKernel(cudart::Stream stream, std::function<void()> work) {
  int64_t number = kernels++;
  if (number == given("DLC_STANDIN_REFUSE", -1))
    return status::outOfResources;
  if (number == given("DLC_STANDIN_HANG", -1))
    work = [] { throw Hang(); };
  if (number == given("DLC_STANDIN_FAULT", -1))
    work = [] { throw Error(ErrorCode::Runtime, "an uncorrectable ECC error was found"); };
  enqueue(stream, std::move(work));
  return status::success;
}

void Gpu::plantError(std::span<std::byte> result) {
  int64_t every = given("DLC_STANDIN_OFF", 0);
  if (every > 0 && results++ % every == 0)
    result.front() ^= std::byte{1};
}

void *Gpu::allocate(size_t bytes) {
  int64_t number = allocations++, full = given("DLC_STANDIN_FULL", -1);
  return full >= 0 && number >= full ? nullptr : memory.allocate(bytes);
}

void Gpu::enqueue(cudart::Stream stream, std::function<void()> work) {
  if (Capture *capture = stream->capture.get()) {
    capture->nodes.push_back({stream->lastNodes, std::move(work)});
    stream->lastNodes = {capture->nodes.size() - 1};
  } else {
    stream->last = {tasks.add(stream->last, std::move(work))};
  }
}

void Gpu::enqueueDefault(std::function<void()> work) { enqueue(&defaultStream, std::move(work)); }

void Gpu::pause() {
  mutex.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  mutex.lock();
}

cudart::Status Gpu::await(const std::function<void()> &body) {
  while (goesOn && !hangs)
    pause();
  cudart::Status status = attempt(body);
  while (hangs)
    std::this_thread::sleep_for(std::chrono::hours(1));
  return status;
}

cudart::Status Gpu::runAll() {
  return await([&] { tasks.runAll(); });
}

cudart::Status Gpu::runDefault() {
  return await([&] { tasks.run(defaultStream.last); });
}

cudart::Status Gpu::query(cudart::Event event) {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock || goesOn) // at work
    return !event->capture && event->stamp->hasRun ? status::success : status::notReady;
  if (!failure.empty())
    return lastStatus = status::launchFailure;
  if (event->capture || invalidateCapture())
    return lastStatus = status::capturedEvent;
  if (hasRun(*event->stamp))
    return status::success;
  goesOn = true;
  std::thread([this, task = event->stamp->task] {
    std::scoped_lock<std::mutex> alone(mutex);
    attempt([&] { tasks.run({task}); });
    goesOn = hangs;
  }).detach();
  return status::notReady;
}

cudart::Status Gpu::run(const Tasks::Task &task) {
  return await([&] { tasks.run({task}); });
}

//===- Streams and events ---------------------------------------------------------------------===//

cudart::Stream Gpu::makeStream() { return *streams.insert(new cudart::StreamState).first; }

cudart::Status Gpu::destroy(cudart::Stream stream) {
  if (streams.erase(stream) == 0)
    return status::invalidHandle;
  delete stream;
  return status::success;
}

cudart::Status Gpu::wait(cudart::Stream stream, cudart::Event event) {
  if (isListed("DLC_STANDIN_DROP_WAIT", counts.waits++))
    return status::success;
  Capture *own = stream->capture.get();
  if (!event->capture) {
    if (own) {
      own->isValid = false;
      return status::captureIsolation;
    }
    if (event->stamp->task != 0)
      addAll(stream->last, {event->stamp->task});
    return status::success;
  }
  if (std::ranges::find(captures, event->capture) == captures.end())
    return status::capturedEvent; // of a capture that has ended
  if (own && own != event->capture.get()) {
    own->isValid = false;
    return status::captureMerge;
  }
  if (!own) { // joins it
    stream->capture = event->capture;
    stream->lastNodes.clear();
  }
  addAll(stream->lastNodes, event->nodes);
  return status::success;
}

cudart::Status Gpu::record(cudart::Event event, cudart::Stream stream, bool isExternal) {
  auto work = [stamp = event->stamp] {
    stamp->time = std::chrono::steady_clock::now();
    stamp->hasRun = true;
  };
  if (Capture *capture = stream->capture.get()) {
    if (isExternal) {
      enqueue(stream, work);
      capture->nodes.back().stamp = event->stamp;
    } else {
      event->capture = stream->capture;
      event->nodes = stream->lastNodes;
    }
    return status::success;
  }
  if (isExternal)
    return status::invalidValue;
  enqueue(stream, work);
  event->stamp->task = stream->last.front();
  event->stamp->hasRun = false;
  event->capture = nullptr;
  return status::success;
}

//===- Graphs ---------------------------------------------------------------------------------===//

cudart::Status Gpu::beginCapture(cudart::Stream stream) {
  if (stream->capture)
    return status::invalidValue;
  stream->capture = captures.emplace_back(std::make_shared<Capture>());
  stream->capture->origin = stream;
  stream->capture->thread = std::this_thread::get_id();
  stream->lastNodes.clear();
  return status::success;
}

cudart::Status Gpu::endCapture(cudart::Stream stream, cudart::Graph &graph) {
  graph = nullptr;
  std::shared_ptr<Capture> capture = stream->capture;
  if (!capture)
    return status::invalidValue;
  if (capture->origin != stream)
    return status::captureUnmatched;
  bool isJoined = areJoined(capture->nodes, stream->lastNodes);
  for (cudart::Stream each : streams)
    if (each->capture == capture)
      each->capture = nullptr;
  std::erase(captures, capture);
  if (!capture->isValid)
    return status::captureInvalidated;
  if (!isJoined)
    return status::captureUnjoined;
  ++counts.captures;
  graph = new cudart::GraphState{std::make_shared<const Nodes>(std::move(capture->nodes))};
  return status::success;
}

void Gpu::launch(const std::shared_ptr<const Nodes> &nodes, cudart::Stream stream) {
  ++counts.launches;
  std::vector<Tasks::Task> made;
  for (const Node &node : *nodes) {
    std::vector<Tasks::Task> after;
    for (size_t other : node.after)
      after.push_back(made[other]);
    if (after.empty())
      after = stream->last;
    made.push_back(tasks.add(std::move(after), [nodes, &node] { node.work(); }));
    if (node.stamp) {
      node.stamp->task = made.back();
      node.stamp->hasRun = false;
    }
  }
  addAll(made, stream->last); // of a graph without nodes
  stream->last = {tasks.add(std::move(made), [] {})};
}

} // namespace dlc::rt::standin
