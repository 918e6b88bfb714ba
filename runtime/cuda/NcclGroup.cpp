#include "runtime/cuda/NcclGroup.h"

#include "runtime/artifact/Align.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dlc::rt {
namespace {

/// What may change the order in which sums are formed; of the rest, hosts may have their own.
constexpr const char *orderSettings[] = {"NCCL_ALGO=",
                                         "NCCL_PROTO=",
                                         "NCCL_MIN_",
                                         "NCCL_MAX_",
                                         "NCCL_BUFFSIZE=",
                                         "NCCL_NTHREADS=",
                                         "NCCL_COLLNET_",
                                         "NCCL_NVLS_",
                                         "NCCL_LOCAL_REGISTER=",
                                         "NCCL_GRAPH_REGISTER=",
                                         "NCCL_LEGACY_CUDA_REGISTER="};

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds pollTime{10};
/// After which the control plane knows of a rank that has died.
constexpr std::chrono::seconds newsTime{2};

Clock::time_point after(double seconds) {
  constexpr double most = 1e9; // seconds that fit
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::min(seconds, most)));
}

/// Elements of a slice that travels as bf16, equal for all ranks: lines of 128 bytes. The last ones
/// reach beyond the operand, and what they hold there is of no use.
size_t sliceElements(size_t elements, size_t ranks) {
  return alignUp(elements / ranks + 1, size_t{64});
}

/// NCCL would fail in a way of its own.
void requireOwnGpus(ControlPlane &control, const CudaContext &context) {
  std::array<unsigned char, 16> mine = context.identity();
  auto all = control.allGather(std::as_bytes(std::span(mine)), "exchange of the GPUs' identities");
  for (size_t rank = 1; rank < all.size(); ++rank) {
    auto same = std::find(all.begin(), all.begin() + static_cast<ptrdiff_t>(rank), all[rank]);
    if (same != all.begin() + static_cast<ptrdiff_t>(rank))
      throw Error(ErrorCode::Runtime,
                  "ranks " + std::to_string(same - all.begin()) + " and " + std::to_string(rank) +
                      " have the same GPU: start as many ranks on a host as it has GPUs");
  }
}

} // namespace

NcclGroup::NcclGroup(ControlPlane &control, const CudaContext &context)
    : control(control), context(context), cuda(context.cuda()),
      library(requireLibrary(nccl::open)) {
  if (std::getenv("DLC_SHARED_GPUS")) // of tests: to NCCL, ranks of one GPU are those of hosts
    setenv("NCCL_HOSTID", ("rank" + std::to_string(control.rank())).c_str(), /*overwrite=*/0);
  else
    requireOwnGpus(control, context);
  setenv("NCCL_ALGO", "^NVLS,NVLSTree", /*overwrite=*/0);
  setenv("NCCL_GRAPH_REGISTER", "0", /*overwrite=*/0);
  nccl::UniqueId id{};
  if (control.rank() == 0)
    library.require(library.getUniqueId(&id), "start NCCL");
  control.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
  communicator = join(id);
}

NcclGroup::~NcclGroup() {
  for (void *registration : registrations)
    library.commDeregister(communicator.get(), registration);
}

void NcclGroup::registerMemory(DeviceSpan memory) {
  if (memory.bytes == 0)
    return;
  void *made = nullptr;
  library.require(library.commRegister(communicator.get(), pointerTo(memory), memory.bytes, &made),
                  "register gradients' memory, which NCCL_LOCAL_REGISTER=0 does without");
  if (made) // null where NCCL's settings forbid it
    registrations.push_back(made);
}

/// Whoever waits in NCCL for a rank that does not come waits for good: that is a thread which is
/// left behind then.
Owned<nccl::Communicator> NcclGroup::join(const nccl::UniqueId &id) {
  using Joined = std::pair<nccl::Status, nccl::Communicator>;
  std::packaged_task<Joined()> joining([id, device = context.number(), &cuda = cuda,
                                        initRank = library.commInitRank, ranks = control.size(),
                                        rank = control.rank()] {
    cuda.require(cuda.setDevice(device), "use GPU " + std::to_string(device) + " in a thread");
    Joined made{nccl::success, nullptr};
    made.first = initRank(&made.second, ranks, id, rank);
    return made;
  });
  std::future<Joined> joined = joining.get_future();
  std::thread(std::move(joining)).detach();
  Clock::time_point end = after(control.timeout());
  while (joined.wait_for(pollTime) != std::future_status::ready) {
    control.check();
    if (Clock::now() > end)
      throw Error(ErrorCode::Peer, "cannot join the ranks' GPUs: not all have come within " +
                                       std::to_string(static_cast<int64_t>(control.timeout())) +
                                       " s; NCCL_DEBUG=INFO shows what NCCL waits for, such as a "
                                       "network interface that hosts cannot reach each other by "
                                       "(NCCL_SOCKET_IFNAME)");
  }
  auto [status, made] = joined.get();
  if (status != nccl::success)
    hearOfPeers();
  library.require(status, "join the ranks' GPUs");
  return {made, {library.commDestroy}};
}

std::string NcclGroup::platform() const {
  int version = 0;
  library.require(library.getVersion(&version), "ask for NCCL's version");
  std::string text = "NCCL " + cudnn::versionText(static_cast<size_t>(version));
  std::vector<std::string> settings;
  for (char **variable = environ; *variable; ++variable)
    for (const char *prefix : orderSettings)
      if (std::string_view setting = *variable; setting.starts_with(prefix))
        settings.emplace_back(setting);
  std::ranges::sort(settings);
  for (const std::string &setting : settings)
    text += ", " + setting;
  return text;
}

/// For all slices, and for all contributions to the own one.
uint64_t NcclGroup::workBytes(size_t elements, artifact::DType wire) const {
  auto ranks = static_cast<size_t>(control.size());
  return wire == artifact::DType::BF16
             ? 2 * ranks * sliceElements(elements, ranks) * sizeof(uint16_t)
             : 0;
}

void NcclGroup::workIn(DeviceSpan memory) {
  work = memory;
  registerMemory(work);
  kernels.emplace(cuda);
}

/// Slices of ranks, of which the own one becomes its sum, then all the others.
void NcclGroup::startRounded(DeviceSpan operand, cudart::Stream stream) {
  auto ranks = static_cast<size_t>(control.size()), rank = static_cast<size_t>(control.rank());
  size_t each = sliceElements(operand.bytes / sizeof(float), ranks);
  size_t bytes = each * sizeof(uint16_t);
  DeviceSpan slices = work.subspan(0, ranks * bytes);
  DeviceSpan contributions = work.subspan(ranks * bytes, ranks * bytes);
  DeviceSpan own = slices.subspan(rank * bytes, bytes);
  kernels->narrow(operand, slices, stream);
  exchange(slices, contributions, each, stream);
  kernels->add(contributions, own, stream);
  library.require(library.allGather(pointerTo(own), pointerTo(slices), each,
                                    nccl::DataType::BFloat16, communicator.get(), stream),
                  "hand out sums of gradients");
  kernels->widen(slices, operand, stream);
}

/// Slice r goes to rank r. All that is started travels at once, the own slice as well.
void NcclGroup::exchange(DeviceSpan slices, DeviceSpan contributions, size_t each,
                         cudart::Stream stream) {
  constexpr auto type = nccl::DataType::BFloat16;
  size_t bytes = each * sizeof(uint16_t);
  nccl::Status status = library.groupStart();
  for (int peer = 0; peer < control.size() && status == nccl::success; ++peer) {
    size_t offset = static_cast<size_t>(peer) * bytes;
    status = library.send(pointerTo(slices.subspan(offset, bytes)), each, type, peer,
                          communicator.get(), stream);
    if (status == nccl::success)
      status = library.recv(pointerTo(contributions.subspan(offset, bytes)), each, type, peer,
                            communicator.get(), stream);
  }
  nccl::Status ended = library.groupEnd();
  library.require(status != nccl::success ? status : ended, "exchange gradients");
}

void NcclGroup::start(const CollectiveOperation &operation, cudart::Stream stream) {
  if (operation.wire == artifact::DType::BF16)
    return startRounded(operation.memory, stream);
  void *memory = pointerTo(operation.memory);
  library.require(library.allReduce(memory, memory, operation.memory.bytes / sizeof(float),
                                    nccl::DataType::Float32, nccl::Reduction::Sum,
                                    communicator.get(), stream),
                  "add up gradients");
}

uint64_t NcclGroup::number(size_t collectives) {
  return std::exchange(numbered, numbered + collectives);
}

bool NcclGroup::await(cudart::Event event, const std::string &doing) {
  Clock::time_point end = after(control.timeout());
  cudart::Status status = cuda.eventQuery(event);
  for (uint64_t tries = 1; status == cudart::notReady; ++tries) {
    std::this_thread::yield();
    if (tries % 1024 == 0) {
      requireRun();
      nccl::Status error = nccl::success;
      library.commGetAsyncError(communicator.get(), &error);
      if (error != nccl::success) {
        hearOfPeers();
        abandon();
        throw Error(ErrorCode::Peer,
                    "cannot " + doing + ": NCCL says " + library.getErrorString(error));
      }
      if (control.hasPeerGivenUp() || Clock::now() > end)
        return false;
    }
    status = cuda.eventQuery(event);
  }
  context.require(status, doing);
  return true;
}

/// Ranks tell each other before any is told to end: what runs on the device would pass for having
/// come farther than it has.
void NcclGroup::giveUp(ControlPlane::Standing standing,
                       const std::function<std::string(uint64_t)> &nameOf) {
  try {
    control.giveUp(standing, nameOf);
  } catch (const Error &) {
    abandon();
    throw;
  }
}

/// Aborting tells what runs to end, and then waits until captured graphs are gone, which their
/// executables still have: so a thread does it.
void NcclGroup::abandon() noexcept {
  registrations.clear(); // which end with the communicator
  if (nccl::Communicator lost = communicator.release())
    std::thread([abort = library.commAbort, lost] { abort(lost); }).detach();
}

/// Peers may have given up on the host's side.
void NcclGroup::requireRun() {
  try {
    control.check();
  } catch (const Error &) {
    abandon();
    throw;
  }
}

/// Where a peer has died, NCCL may be the first to fail, but the control plane says whose end it
/// is.
void NcclGroup::hearOfPeers() {
  for (auto end = Clock::now() + newsTime; Clock::now() < end;
       std::this_thread::sleep_for(pollTime))
    requireRun();
}

} // namespace dlc::rt
