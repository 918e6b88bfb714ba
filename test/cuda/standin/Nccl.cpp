// libnccl.so.2 of the stand-in GPU: ranks are processes of one host, which meet in shared memory.
//
// Sums are formed in another order than that of the ranks. A message has been sent when it has been
// taken: ranks that send to each other and receive then, not in a group, wait forever. While a
// graph has a communicator's work, aborting the communicator waits, and destroying it ends the
// process. So do collectives in memory that is not registered, and freeing memory that is. With
// NCCL_LOCAL_REGISTER=0 none is registered, and none has to be.

#include "runtime/cuda/libraries/Nccl.h"
#include "runtime/artifact/Error.h"
#include "test/cuda/standin/Gpu.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace dlc::rt::nccl;
using namespace dlc::rt::standin;
using dlc::rt::Error;
using dlc::rt::ErrorCode;
using dlc::rt::cudart::Stream;

namespace {

constexpr Status systemError = 2, invalidArgument = 4, invalidUsage = 5, remoteError = 6;
constexpr size_t chunk = 1 << 18; // elements that a rank shows at a time
constexpr int mostRanks = 8;

/// A piece on its way from one rank to another.
struct Mailbox {
  std::atomic<bool> isFull;
  size_t message; // bytes of all its pieces
  std::array<std::byte, 1 << 16> bytes;
};

struct Meeting {
  std::atomic<uint32_t> opened, arrived, round;
  float shown[mostRanks][chunk];
  Mailbox boxes[mostRanks][mostRanks]; // by sender and receiver
};

/// Does nothing for a moment, unless the communicator is told to end. Within the device's work the
/// host goes on meanwhile.
void pause(const std::atomic<bool> &ends, Gpu *gpu) {
  if (gpu)
    gpu->pause();
  else
    usleep(50);
  if (ends)
    throw Error(ErrorCode::Peer, "a collective was told to end");
}

/// Until all have come.
void meet(Meeting &meeting, int ranks, const std::atomic<bool> &ends, Gpu *gpu = nullptr) {
  uint32_t round = meeting.round;
  if (meeting.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(ranks)) {
    meeting.arrived = 0;
    meeting.round.fetch_add(1);
    return;
  }
  while (meeting.round == round)
    pause(ends, gpu);
}

Meeting *openMeeting(const char *name, bool isFirst) {
  int file = shm_open(name, O_RDWR | (isFirst ? O_CREAT | O_EXCL : 0), 0600);
  if (file < 0)
    return nullptr;
  bool isSized = !isFirst || ftruncate(file, sizeof(Meeting)) == 0;
  void *memory = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return isSized && memory != MAP_FAILED ? static_cast<Meeting *>(memory) : nullptr;
}

/// RANK:COUNT of an environment's variable: the count if it is for this rank, -1 if not.
int64_t countOf(const char *variable, int rank) {
  const char *text = std::getenv(variable);
  char *end = nullptr;
  long given = text ? std::strtol(text, &end, 10) : -1;
  return text && given == rank && *end == ':' ? std::strtol(end + 1, nullptr, 10) : -1;
}

} // namespace

/// NCCL's behaves in ways that it does not define.
[[noreturn]] static void misused(const char *how) {
  std::fprintf(stderr, "stand-in for NCCL: %s\n", how);
  std::abort();
}

static bool isRegistering() {
  const char *setting = std::getenv("NCCL_LOCAL_REGISTER");
  return !setting || std::string_view(setting) != "0";
}

namespace dlc::rt::nccl {
struct CommunicatorState {
  Meeting *meeting;
  int ranks, rank;
  int64_t most = -1;  // collectives that this rank takes part in; -1: in all
  bool fails = false; // behind them
  std::atomic<bool> ends = false;
  std::atomic<int64_t> started = 0;
  /// Work in graphs, and in captures that are to be graphs, has copies.
  std::shared_ptr<const int> inGraphs = std::make_shared<int>();
  bool registers = isRegistering();
  std::vector<std::span<std::byte>> registered = {}; // empty: no more

  /// Goes on, or never, after so many.
  void takePart(Gpu &gpu) const {
    while (started == most)
      pause(ends, &gpu);
  }
  bool isInGraphs() const { return inGraphs.use_count() > 1; }
  void requireRegistered(const void *memory, size_t bytes) const {
    const auto *begin = static_cast<const std::byte *>(memory);
    bool isIn = std::ranges::any_of(registered, [&](std::span<std::byte> part) {
      return begin >= part.data() && begin + bytes <= part.data() + part.size();
    });
    if (!isIn && registers)
      misused("a collective has memory that is not registered");
  }
};
} // namespace dlc::rt::nccl

namespace {

Status enqueue(Communicator ranks, Stream stream, const std::function<void(Gpu &)> &work) {
  auto body = [&](Gpu &gpu) {
    auto held = stream->capture ? ranks->inGraphs : nullptr;
    gpu.enqueue(stream, [&gpu, ranks, work, held] {
      ranks->takePart(gpu);
      work(gpu);
      ++ranks->started;
      ranks->takePart(gpu); // what follows on the stream is not reached either
    });
    return status::success;
  };
  return Gpu::get().call(true, body) == status::success ? success : systemError;
}

//===- Messages -------------------------------------------------------------------------------===//

size_t bytesOf(DataType type) { return type == DataType::BFloat16 ? 2 : 4; }

struct Message {
  void *memory;
  size_t bytes;
  int peer;
  bool isSent;
  size_t moved = 0;
  bool isOver = false;
};

/// What is called between groupStart and groupEnd, on one stream.
struct Group {
  int depth = 0;
  Communicator communicator = nullptr;
  Stream stream = nullptr;
  std::vector<Message> messages;
};
thread_local Group group;

/// Puts a piece into its box, or takes one out of it. True if something has happened.
bool move(Gpu &gpu, CommunicatorState &ranks, Message &message) {
  int from = message.isSent ? ranks.rank : message.peer;
  int to = message.isSent ? message.peer : ranks.rank;
  Mailbox &box = ranks.meeting->boxes[from][to];
  message.isOver = message.moved == message.bytes && !(message.isSent && box.isFull);
  if (message.isOver || box.isFull == message.isSent)
    return message.isOver;
  size_t size = std::min(box.bytes.size(), message.bytes - message.moved);
  std::byte *memory = gpu.memory.at(message.memory, message.bytes).data() + message.moved;
  if (message.isSent) {
    box.message = message.bytes;
    std::memcpy(box.bytes.data(), memory, size);
  } else if (box.message == message.bytes) {
    std::memcpy(memory, box.bytes.data(), size);
  } else {
    throw Error(ErrorCode::Peer, "a message is not as large as what was to be received");
  }
  message.moved += size;
  box.isFull = message.isSent;
  return true;
}

/// All at once, but in order between two ranks.
void exchange(Gpu &gpu, CommunicatorState &ranks, std::vector<Message> messages) {
  while (!messages.empty()) {
    bool moves = false, isBusy[2][mostRanks] = {};
    for (Message &message : messages)
      if (!std::exchange(isBusy[message.isSent][message.peer], true))
        moves |= move(gpu, ranks, message);
    std::erase_if(messages, [](const Message &message) { return message.isOver; });
    if (!moves)
      pause(ranks.ends, &gpu);
  }
}

Status enqueue(Communicator communicator, Stream stream, const std::vector<Message> &messages) {
  return enqueue(communicator, stream, [=](Gpu &gpu) { exchange(gpu, *communicator, messages); });
}

/// On its stream at once, or at the group's end.
Status add(Communicator communicator, Stream stream, Message message) {
  if (message.peer < 0 || message.peer >= communicator->ranks)
    return invalidArgument;
  communicator->requireRegistered(message.memory, message.bytes);
  if (group.depth == 0)
    return enqueue(communicator, stream, {message});
  if (!group.messages.empty() && (group.communicator != communicator || group.stream != stream))
    return invalidUsage;
  group.communicator = communicator;
  group.stream = stream;
  group.messages.push_back(message);
  return success;
}

} // namespace

//===- Collectives ----------------------------------------------------------------------------===//

/// In place, chunk by chunk, beginning with the last rank.
static void addUp(Gpu &gpu, CommunicatorState &ranks, void *memory, size_t count) {
  auto *values = reinterpret_cast<float *>(gpu.memory.at(memory, count * sizeof(float)).data());
  for (size_t begin = 0; begin < count; begin += chunk) {
    size_t size = std::min(chunk, count - begin);
    std::memcpy(ranks.meeting->shown[ranks.rank], values + begin, size * sizeof(float));
    meet(*ranks.meeting, ranks.ranks, ranks.ends, &gpu);
    for (size_t i = 0; i < size; ++i) {
      float sum = ranks.meeting->shown[ranks.ranks - 1][i];
      for (int rank = ranks.ranks - 2; rank >= 0; --rank)
        sum += ranks.meeting->shown[rank][i];
      values[begin + i] = sum;
    }
    meet(*ranks.meeting, ranks.ranks, ranks.ends, &gpu);
  }
}

extern "C" {

const char *ncclGetErrorString(Status status) {
  return status == success       ? "no error"
         : status == systemError ? "no shared memory"
         : status == remoteError ? "remote process exited or there was a network error"
                                 : "misuse";
}

Status ncclGetVersion(int *version) {
  *version = static_cast<int>(Gpu::given("DLC_STANDIN_NCCL", 22803));
  return success;
}

Status ncclGetUniqueId(UniqueId *id) {
  *id = {};
  std::snprintf(id->bytes.data(), id->bytes.size(), "/dlc-standin-%d", static_cast<int>(getpid()));
  return openMeeting(id->bytes.data(), true) ? success : systemError;
}

Status ncclCommInitRank(Communicator *made, int ranks, UniqueId id, int rank) {
  if (ranks > mostRanks || rank < 0 || rank >= ranks)
    return invalidArgument;
  Meeting *meeting = openMeeting(id.bytes.data(), false);
  if (!meeting)
    return systemError;
  auto *communicator = new CommunicatorState{meeting, ranks, rank};
  if (meeting->opened.fetch_add(1) + 1 == static_cast<uint32_t>(ranks))
    shm_unlink(id.bytes.data());
  // That rank does not come, and dies after so many seconds, or never.
  if (int64_t seconds = countOf("DLC_STANDIN_ABSENT", rank); seconds >= 0) {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    std::raise(SIGKILL);
  }
  meet(*meeting, ranks, communicator->ends);
  // That rank takes part in so many collectives only: it does not come to the next one, or has lost
  // the others.
  int64_t beforeLoss = countOf("DLC_STANDIN_LOSS", rank);
  communicator->fails = beforeLoss >= 0;
  communicator->most = communicator->fails ? beforeLoss : countOf("DLC_STANDIN_STALL", rank);
  *made = communicator;
  return success;
}

Status ncclCommGetAsyncError(Communicator communicator, Status *error) {
  bool hasFailed = communicator->fails && communicator->started == communicator->most;
  *error = hasFailed ? remoteError : success;
  return success;
}

/// NCCL's never returns where this one ends the process.
Status ncclCommDestroy(Communicator communicator) {
  if (communicator->isInGraphs())
    misused("a communicator is destroyed while a graph has its work");
  for (std::span<std::byte> memory : communicator->registered)
    if (!memory.empty())
      misused("a communicator is destroyed that has memory registered");
  munmap(communicator->meeting, sizeof(Meeting));
  delete communicator;
  return success;
}

/// What is under way reads the communicator until it has ended, which is soon.
Status ncclCommAbort(Communicator communicator) {
  communicator->ends = true;
  while (communicator->isInGraphs())
    usleep(50);
  return success;
}

Status ncclCommRegister(Communicator communicator, void *memory, size_t bytes, void **made) {
  *made = nullptr;
  if (!communicator->registers)
    return success;
  communicator->registered.emplace_back(static_cast<std::byte *>(memory), bytes);
  *made = reinterpret_cast<void *>(communicator->registered.size());
  return success;
}

/// The memory must still be there.
Status ncclCommDeregister(Communicator communicator, void *registration) {
  std::span<std::byte> memory =
      std::exchange(communicator->registered.at(reinterpret_cast<uintptr_t>(registration) - 1), {});
  Gpu::get().call(true, [&](Gpu &gpu) {
    try {
      gpu.memory.at(memory.data(), memory.size());
    } catch (const Error &) {
      misused("memory is freed that is registered");
    }
    return status::success;
  });
  return success;
}

Status ncclAllReduce(const void *from, void *to, size_t count, DataType type, Reduction reduction,
                     Communicator communicator, Stream stream) {
  if (from != to || type != DataType::Float32 || reduction != Reduction::Sum)
    return invalidUsage;
  communicator->requireRegistered(to, count * sizeof(float));
  return enqueue(communicator, stream, [=](Gpu &gpu) { addUp(gpu, *communicator, to, count); });
}

Status ncclSend(const void *from, size_t count, DataType type, int peer, Communicator communicator,
                Stream stream) {
  return add(communicator, stream, {const_cast<void *>(from), count * bytesOf(type), peer, true});
}

Status ncclRecv(void *to, size_t count, DataType type, int peer, Communicator communicator,
                Stream stream) {
  return add(communicator, stream, {to, count * bytesOf(type), peer, false});
}

Status ncclAllGather(const void *from, void *to, size_t count, DataType type,
                     Communicator communicator, Stream stream) {
  if (group.depth > 0) // which nobody does
    return invalidUsage;
  size_t bytes = count * bytesOf(type);
  communicator->requireRegistered(from, bytes);
  communicator->requireRegistered(to, bytes * static_cast<size_t>(communicator->ranks));
  std::vector<Message> messages;
  for (int peer = 0; peer < communicator->ranks; ++peer) {
    messages.push_back({const_cast<void *>(from), bytes, peer, true});
    messages.push_back({static_cast<std::byte *>(to) + peer * bytes, bytes, peer, false});
  }
  return enqueue(communicator, stream, messages);
}

Status ncclGroupStart() {
  ++group.depth;
  return success;
}

Status ncclGroupEnd() {
  if (group.depth == 0)
    return invalidUsage;
  if (--group.depth > 0 || group.messages.empty())
    return success;
  return enqueue(group.communicator, group.stream, std::exchange(group.messages, {}));
}

} // extern "C"

/// The types are those by which they are called.
[[maybe_unused]] static constexpr Functions exported{
    .getErrorString = ncclGetErrorString,
    .getVersion = ncclGetVersion,
    .getUniqueId = ncclGetUniqueId,
    .commInitRank = ncclCommInitRank,
    .commGetAsyncError = ncclCommGetAsyncError,
    .commDestroy = ncclCommDestroy,
    .commAbort = ncclCommAbort,
    .commRegister = ncclCommRegister,
    .commDeregister = ncclCommDeregister,
    .allReduce = ncclAllReduce,
    .allGather = ncclAllGather,
    .send = ncclSend,
    .recv = ncclRecv,
    .groupStart = ncclGroupStart,
    .groupEnd = ncclGroupEnd,
};
