#include "runtime/cuda/CudaContext.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/BytesText.h"
#include "runtime/core/HostNode.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace dlc::rt {
namespace {

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version / 10 % 100);
}

constexpr int leastCapability = 80;

std::string nameOf(const cudart::Properties &properties) {
  return {properties.name.data(), strnlen(properties.name.data(), properties.name.size())};
}

/// Devices that the process may use.
int countDevices(const cudart::Functions &cuda) {
  int driver = 0, own = 0, count = 0;
  cuda.driverGetVersion(&driver);
  cuda.runtimeGetVersion(&own);
  if (driver == 0)
    throw Error(ErrorCode::Runtime, "cannot run on a GPU: this machine has no NVIDIA driver");
  if (driver / 1000 < own / 1000)
    throw Error(ErrorCode::Runtime, "cannot run on a GPU: the driver is for CUDA " +
                                        versionText(driver) + ", older than CUDA " +
                                        versionText(own) + " of libcudart; install a newer driver");
  cudart::Status status = cuda.getDeviceCount(&count);
  if (status != cudart::success || count == 0)
    throw Error(ErrorCode::Runtime,
                std::string("cannot run on a GPU: ") + (count == 0 && status == cudart::success
                                                            ? "there is none"
                                                            : cuda.getErrorString(status)));
  return count;
}

} // namespace

CudaContext::CudaContext(int number) : device(number), runtime(requireLibrary(cudart::open)) {
  devices = countDevices(runtime);
  device %= devices;
  runtime.require(runtime.setDevice(device), "use GPU " + std::to_string(device));
  int major = 0, minor = 0, least = 0, greatest = 0;
  auto ask = [&](int &value, cudart::DeviceAttribute attribute) {
    runtime.require(runtime.deviceGetAttribute(&value, attribute, device), "ask the GPU");
  };
  ask(major, cudart::DeviceAttribute::CapabilityMajor);
  ask(minor, cudart::DeviceAttribute::CapabilityMinor);
  version = 10 * major + minor;
  runtime.require(runtime.getDeviceProperties(&properties, device), "ask the GPU");
  if (version < leastCapability)
    throw Error(ErrorCode::Runtime, "cannot run on a GPU: " + nameOf(properties) + " is sm_" +
                                        std::to_string(version) + ", older than sm_" +
                                        std::to_string(leastCapability) +
                                        " (Ampere), the first with 16-bit floats as artifacts use "
                                        "them; take a newer one, or compile for a CPU");
  std::array<char, 32> busId{};
  runtime.require(runtime.deviceGetPciBusId(busId.data(), busId.size(), device), "ask the GPU");
  hostNode = nodeOfPciDevice(busId.data());
  runtime.require(runtime.deviceGetStreamPriorityRange(&least, &greatest), "ask the GPU");
  for (size_t i = 0; i < streams.size(); ++i) {
    // Transfers are short and what waits for them is not.
    bool computes = i == static_cast<size_t>(artifact::Stream::Compute);
    cudart::Stream stream = nullptr;
    runtime.require(runtime.streamCreateWithPriority(&stream, cudart::nonBlockingStream,
                                                     computes ? least : greatest),
                    "make a stream");
    streams[i] = {stream, {runtime.streamDestroy}};
  }
  for (Owned<cudart::Event> &event : slots)
    event = makeEvent(cudart::eventWithoutTime);
}

Owned<void *> CudaContext::allocate(size_t bytes) const {
  void *address = nullptr;
  cudart::Status status = runtime.malloc(&address, bytes);
  if (status == cudart::success)
    return {address, {runtime.free}};
  size_t free = 0, total = 0;
  runtime.getLastError();
  runtime.memGetInfo(&free, &total);
  throw Error(ErrorCode::Runtime, "cannot allocate " + bytesText(bytes) + " on the GPU, of whose " +
                                      bytesText(total) + " " + bytesText(free) +
                                      " are free: " + runtime.getErrorString(status));
}

HostBlock CudaContext::lock(size_t bytes) const {
  PreferNode nearest(hostNode);
  void *address = nullptr;
  runtime.require(runtime.hostAlloc(&address, std::max<size_t>(bytes, 1), 0),
                  "lock " + bytesText(bytes) + " of memory");
  std::memset(address, 0, bytes);
  return {{static_cast<std::byte *>(address), bytes}, {address, runtime.freeHost}};
}

Owned<cudart::Event> CudaContext::makeEvent(unsigned flags) const {
  cudart::Event event = nullptr;
  runtime.require(runtime.eventCreateWithFlags(&event, flags), "make an event");
  return {event, {runtime.eventDestroy}};
}

void CudaContext::requireOwn(const artifact::Target &target) const {
  std::string own = "sm_" + std::to_string(version), planned = target.name()->str();
  bool isOwn = target.features() && target.features()->size() > 0;
  if (isOwn)
    for (const flatbuffers::String *feature : *target.features()) {
      isOwn &= feature->string_view() == own;
      planned += ", " + feature->str();
    }
  if (!isOwn)
    throw Error(ErrorCode::Artifact, "the artifact is for " + planned + ", this GPU is " + own +
                                         "; compile the model for it");
}

/// As nvidia-smi has it: GPU-8b6f5a2e-....
static std::string text(const std::array<unsigned char, 16> &uuid) {
  std::string text = "GPU";
  for (size_t i = 0; i < uuid.size(); ++i) {
    constexpr std::string_view digits = "0123456789abcdef";
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10)
      text += '-';
    text += digits[uuid[i] / 16];
    text += digits[uuid[i] % 16];
  }
  return text;
}

void CudaContext::require(cudart::Status status, const std::string &doing) const {
  if (status != cudart::success)
    runtime.require(status, doing + " on " + text(identity()));
}

std::string CudaContext::platform() const {
  int own = 0;
  runtime.runtimeGetVersion(&own);
  std::string text =
      nameOf(properties) + " (sm_" + std::to_string(version) + "), CUDA " + versionText(own);
  if (cudnn)
    text += ", " + cudnn::nameOf(cudnn->library);
  if (cublas)
    text += ", cuBLASLt " + cudnn::versionText(cublas->library.getVersion());
  return text;
}

CudaContext::~CudaContext() { runtime.deviceSynchronize(); }

const CudaContext::Convolutions &CudaContext::convolutions() {
  if (cudnn)
    return *cudnn;
  const cudnn::Functions &library = requireLibrary(cudnn::open);
  std::string properties = cudnn::propertiesOf(library, device);
  cudnn::Context context = nullptr;
  library.require(library.create(&context), "start cuDNN");
  cudnn.emplace(library, Owned<cudnn::Context>(context, {library.destroy}), properties,
                cudnn::deviceProperties(library, properties));
  return *cudnn;
}

const CudaContext::Products &CudaContext::products() {
  if (cublas)
    return *cublas;
  const cublas::Functions &library = requireLibrary(cublas::open);
  cublas::Handle handle = nullptr;
  library.require(library.create(&handle), "start cuBLASLt");
  cublas.emplace(library, Owned<cublas::Handle>(handle, {library.destroy}));
  return *cublas;
}

} // namespace dlc::rt
