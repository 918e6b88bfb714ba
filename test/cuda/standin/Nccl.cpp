// libnccl.so.2 of the stand-in GPU: ranks are processes of one host, which meet in shared memory.
//
// Sums are formed in another order than that of the ranks.

#include "runtime/cuda/libraries/Nccl.h"
#include "runtime/artifact/Error.h"
#include "test/cuda/standin/Gpu.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace dlc::rt::nccl;
using namespace dlc::rt::standin;
using dlc::rt::Error;
using dlc::rt::ErrorCode;

namespace {

constexpr Status systemError = 2, invalidArgument = 4, invalidUsage = 5;
constexpr size_t chunk = 1 << 18; // elements that a rank shows at a time
constexpr int mostRanks = 8;

struct Meeting {
  std::atomic<uint32_t> opened, arrived, round;
  float shown[mostRanks][chunk];
};

/// Does nothing until a condition holds, or the communicator is told to end.
template <typename Condition> void pause(const std::atomic<bool> &ends, Condition isOver) {
  while (!isOver()) {
    usleep(50);
    if (ends)
      throw Error(ErrorCode::Peer, "a collective was told to end");
  }
}

/// Until all have come.
void meet(Meeting &meeting, int ranks, const std::atomic<bool> &ends) {
  uint32_t round = meeting.round;
  if (meeting.arrived.fetch_add(1) + 1 == static_cast<uint32_t>(ranks)) {
    meeting.arrived = 0;
    meeting.round.fetch_add(1);
    return;
  }
  pause(ends, [&] { return meeting.round != round; });
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

namespace dlc::rt::nccl {
struct CommunicatorState {
  Meeting *meeting;
  int ranks, rank;
  int64_t most = -1; // collectives that this rank takes part in; -1: in all
  std::atomic<bool> ends = false;
  int64_t started = 0;
};
} // namespace dlc::rt::nccl

/// In place, chunk by chunk, beginning with the last rank.
static void addUp(Gpu &gpu, CommunicatorState &ranks, void *memory, size_t count) {
  auto takePart = [&] {
    if (ranks.started == ranks.most)
      pause(ranks.ends, [] { return false; });
  };
  takePart();
  auto *values = reinterpret_cast<float *>(gpu.memory.at(memory, count * sizeof(float)).data());
  for (size_t begin = 0; begin < count; begin += chunk) {
    size_t size = std::min(chunk, count - begin);
    std::memcpy(ranks.meeting->shown[ranks.rank], values + begin, size * sizeof(float));
    meet(*ranks.meeting, ranks.ranks, ranks.ends);
    for (size_t i = 0; i < size; ++i) {
      float sum = ranks.meeting->shown[ranks.ranks - 1][i];
      for (int rank = ranks.ranks - 2; rank >= 0; --rank)
        sum += ranks.meeting->shown[rank][i];
      values[begin + i] = sum;
    }
    meet(*ranks.meeting, ranks.ranks, ranks.ends);
  }
  ++ranks.started;
  takePart(); // what follows on the stream is not reached either
}

extern "C" {

const char *ncclGetErrorString(Status status) {
  return status == success ? "no error" : status == systemError ? "no shared memory" : "misuse";
}

Status ncclGetVersion(int *version) {
  *version = 22803;
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
  // That rank takes part in so many collectives only.
  communicator->most = countOf("DLC_STANDIN_STALL", rank);
  *made = communicator;
  return success;
}

Status ncclCommGetAsyncError(Communicator, Status *error) {
  *error = success;
  return success;
}

Status ncclCommDestroy(Communicator communicator) {
  munmap(communicator->meeting, sizeof(Meeting));
  delete communicator;
  return success;
}

/// What is under way reads the communicator until it has ended, which is soon.
Status ncclCommAbort(Communicator communicator) {
  communicator->ends = true;
  return success;
}

Status ncclAllReduce(const void *from, void *to, size_t count, DataType type, Reduction reduction,
                     Communicator communicator, dlc::rt::cudart::Stream stream) {
  if (from != to || type != DataType::Float32 || reduction != Reduction::Sum)
    return invalidUsage;
  return Gpu::get().call(true,
                         [&](Gpu &gpu) {
                           gpu.enqueue(stream, [&gpu, communicator, to, count] {
                             addUp(gpu, *communicator, to, count);
                           });
                           return status::success;
                         }) == status::success
             ? success
             : systemError;
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
    .allReduce = ncclAllReduce,
};
