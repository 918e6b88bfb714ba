#include "runtime/cuda/NcclGroup.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace dlc::rt {
namespace {

/// What may change the order in which sums are formed; of the rest, hosts may have their own.
constexpr const char *orderSettings[] = {
    "NCCL_ALGO=",     "NCCL_PROTO=",    "NCCL_MIN_",     "NCCL_MAX_",
    "NCCL_BUFFSIZE=", "NCCL_NTHREADS=", "NCCL_COLLNET_", "NCCL_NVLS_"};

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
  requireOwnGpus(control, context);
  setenv("NCCL_ALGO", "^NVLS,NVLSTree", /*overwrite=*/0);
  nccl::UniqueId id{};
  if (control.rank() == 0)
    library.require(library.getUniqueId(&id), "start NCCL");
  control.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
  library.require(library.commInitRank(&communicator, control.size(), id, control.rank()),
                  "join the ranks' GPUs");
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

NcclGroup::~NcclGroup() {
  if (communicator)
    library.commDestroy(communicator);
}

void NcclGroup::requireWire(const CollectiveOperation &operation) {
  if (operation.wire != artifact::DType::F32)
    throw Error(ErrorCode::Artifact, "the artifact's gradients travel in 16 bits, which GPUs do "
                                     "not do yet; compile it without --wire");
}

void NcclGroup::start(const CollectiveOperation &operation, cudart::Stream stream) {
  void *memory = pointerTo(operation.memory);
  library.require(library.allReduce(memory, memory, operation.memory.bytes / sizeof(float),
                                    nccl::DataType::Float32, nccl::Reduction::Sum, communicator,
                                    stream),
                  "add up gradients");
}

void NcclGroup::await(cudart::Event event, const std::string &doing) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  cudart::Status status = cuda.eventQuery(event);
  for (uint64_t tries = 1; status == cudart::notReady; ++tries) {
    std::this_thread::yield();
    if (tries % 1024 == 0) {
      requireRun();
      nccl::Status error = nccl::success;
      library.commGetAsyncError(communicator, &error);
      if (error != nccl::success)
        fail("cannot " + doing + ": NCCL says " + library.getErrorString(error));
      double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      if (seconds > control.timeout())
        fail("cannot " + doing + ": gradients were not added up within " +
             std::to_string(static_cast<int64_t>(control.timeout())) +
             " s; find out which rank is late, or raise --timeout");
    }
    status = cuda.eventQuery(event);
  }
  context.require(status, doing);
}

/// Ending the communicator waits for captured graphs to be gone, which others have, but what runs
/// hears of it before.
void NcclGroup::abandon() noexcept {
  if (nccl::Communicator lost = std::exchange(communicator, nullptr))
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

void NcclGroup::fail(const std::string &reason) {
  abandon();
  throw Error(ErrorCode::Peer, reason);
}

} // namespace dlc::rt
