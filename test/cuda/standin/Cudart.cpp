// libcudart.so.13 of the stand-in GPU: kernels are PTX text, run on the emulator.

#include "test/cuda/standin/Gpu.h"

#include "runtime/artifact/Error.h"
#include "test/ptx/Emulator.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sstream>
#include <unistd.h>

namespace dlc::rt::cudart {

struct KernelState {
  std::shared_ptr<const ptx::Module> module;
  const ptx::Entry *entry;
};

struct LibraryState {
  std::shared_ptr<const ptx::Module> module;
  std::map<std::string, std::unique_ptr<KernelState>> kernels; // that were asked for
};

} // namespace dlc::rt::cudart

namespace {

using namespace dlc::rt::cudart; // whose types the interface has
using namespace dlc::rt::standin;
using dlc::rt::Error;
using dlc::rt::ErrorCode;
namespace ptx = dlc::ptx;

constexpr int version = 13000;

template <typename Body> Status call(Body body) { return Gpu::get().call(true, body); }
template <typename Body> Status callOutsideOfCaptures(Body body) {
  return Gpu::get().call(false, body);
}

/// Copies when the time has come; of memory of the host, what is page-locked then.
void copy(Gpu &gpu, void *to, const void *from, size_t bytes, CopyKind kind) {
  auto host = [&](const void *address) {
    if (!gpu.memory.isLocked(address, bytes))
      throw Error(ErrorCode::Runtime, "a copy of memory that was freed before it ran");
  };
  if (kind == CopyKind::DeviceToDevice) {
    std::memmove(gpu.memory.at(to, bytes).data(), gpu.memory.at(from, bytes).data(), bytes);
  } else if (kind == CopyKind::HostToDevice) {
    host(from);
    std::memcpy(gpu.memory.at(to, bytes).data(), from, bytes);
  } else {
    host(to);
    std::memcpy(to, gpu.memory.at(from, bytes).data(), bytes);
  }
}

bool isCopy(const Gpu &gpu, const void *to, const void *from, size_t bytes, CopyKind kind) {
  return gpu.memory.isDevice(to, bytes) == (kind != CopyKind::DeviceToHost) &&
         gpu.memory.isDevice(from, bytes) == (kind != CopyKind::HostToDevice);
}

/// From memory that can move: what it holds now is copied later.
std::function<void()> copyOfNow(Gpu &gpu, void *to, const void *from, size_t bytes) {
  const auto *begin = static_cast<const std::byte *>(from);
  return [&gpu, to, held = std::vector<std::byte>(begin, begin + bytes)] {
    std::memcpy(gpu.memory.at(to, held.size()).data(), held.data(), held.size());
  };
}

/// Of a list in the environment, separated by commas, the device's; empty if there is none.
std::string givenOf(const char *variable, int device) {
  const char *all = std::getenv(variable);
  std::istringstream list(all ? all : "");
  std::string own;
  for (int i = 0; i <= device; ++i)
    std::getline(list, own, ',');
  return own;
}

/// Adds a line to a file that the environment names. In one piece: ranks write to one file.
void addLine(const char *variable, const std::string &line) {
  const char *path = std::getenv(variable);
  int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  if (file < 0)
    return;
  dprintf(file, "%s\n", line.c_str());
  close(file);
}

/// When the process ends in order: $DLC_STANDIN_COUNTS of graphs, $DLC_STANDIN_WAITS of streams,
/// $DLC_STANDIN_GATHERS of inputs that are gathered from arrays.
struct CountsAtExit {
  ~CountsAtExit() {
    const Gpu::Counts &counts = Gpu::get().callCounts();
    addLine("DLC_STANDIN_COUNTS", "captures " + std::to_string(counts.captures) + " launches " +
                                      std::to_string(counts.launches));
    addLine("DLC_STANDIN_WAITS", "waits " + std::to_string(counts.waits));
    addLine("DLC_STANDIN_GATHERS", "gathers " + std::to_string(counts.gathers));
  }
};
const CountsAtExit countsAtExit;

/// An operand's region begins at a multiple of 256, so that addresses are aligned as they are.
void run(Gpu &gpu, const ptx::Module &module, ptx::Launch launch) {
  const ptx::Entry &entry = module.entries.at(launch.entry);
  ptx::Memory regions;
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    if (!entry.parameters[i].isAddress)
      continue;
    uint64_t &argument = launch.arguments[i], lead = argument % 256;
    std::span<std::byte> memory = gpu.memory.from(reinterpret_cast<void *>(argument - lead));
    argument = lead + regions.add("operand " + std::to_string(i), memory, ptx::Use::ReadWrite);
  }
  ptx::Report report = ptx::Emulator(module, regions).run(launch);
  if (!report.faults.empty())
    throw Error(ErrorCode::Runtime, report.faults.front());
}

} // namespace

extern "C" {

//===- The device -----------------------------------------------------------------------------===//

const char *cudaGetErrorString(Status status) {
  static thread_local std::string text;
  text = Gpu::get().describe(status);
  return text.c_str();
}
Status cudaGetLastError() { return Gpu::get().takeLastStatus(); }
Status cudaRuntimeGetVersion(int *runtime) {
  *runtime = version;
  return status::success;
}
Status cudaDriverGetVersion(int *driver) {
  *driver = static_cast<int>(Gpu::given("DLC_STANDIN_DRIVER", version));
  return status::success;
}
Status cudaGetDeviceCount(int *count) {
  *count = Gpu::count();
  return status::success;
}
Status cudaSetDevice(int device) {
  return call([&](Gpu &) { return Gpu::exists(device) ? status::success : status::invalidValue; });
}
Status cudaGetDeviceProperties(Properties *properties, int device) {
  return call([&](Gpu &) {
    if (!Gpu::exists(device))
      return status::invalidValue;
    *properties = {};
    std::string name = givenOf("DLC_STANDIN_NAMES", device);
    std::strcpy(properties->name.data(), name.empty() ? "stand-in" : name.c_str());
    // UUIDs' last bytes: slices of one GPU differ by them alone.
    std::string last = givenOf("DLC_STANDIN_UUIDS", device);
    properties->uuid.back() = static_cast<unsigned char>(last.empty() ? device : std::stoi(last));
    return status::success;
  });
}
Status cudaDeviceGetPCIBusId(char *id, int room, int device) {
  return call([&](Gpu &) {
    if (!Gpu::exists(device) || room < 13)
      return status::invalidValue;
    std::snprintf(id, static_cast<size_t>(room), "0000:%02x:00.0", static_cast<unsigned>(device));
    return status::success;
  });
}
Status cudaDeviceGetAttribute(int *value, DeviceAttribute attribute, int device) {
  return call([&](Gpu &) {
    if (!Gpu::exists(device))
      return status::invalidValue;
    auto capability = static_cast<int>(Gpu::given("DLC_STANDIN_CAPABILITY", 90));
    switch (attribute) {
    case DeviceAttribute::CapabilityMajor:
      *value = capability / 10;
      return status::success;
    case DeviceAttribute::CapabilityMinor:
      *value = capability % 10;
      return status::success;
    case DeviceAttribute::CacheBytes:
      *value = 4 << 20;
      return status::success;
    case DeviceAttribute::MemoryBusWidth:
      *value = 1024;
      return status::success;
    }
    return status::invalidValue;
  });
}
Status cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return status::success;
}
Status cudaDeviceSynchronize() {
  return callOutsideOfCaptures([](Gpu &gpu) { return gpu.runAll(); });
}
Status cudaMemGetInfo(size_t *free, size_t *total) {
  return call([&](Gpu &gpu) {
    size_t other = Gpu::given("DLC_STANDIN_TAKEN", 0); // by others
    *free = gpu.memory.freeBytes() - other;
    *total = Memory::capacity;
    return status::success;
  });
}

//===- Memory ---------------------------------------------------------------------------------===//

Status cudaMalloc(void **address, size_t bytes) {
  return callOutsideOfCaptures([&](Gpu &gpu) {
    *address = gpu.allocate(bytes);
    return *address ? status::success : status::outOfMemory;
  });
}
Status cudaFree(void *address) {
  return callOutsideOfCaptures([&](Gpu &gpu) {
    if (Status status = gpu.runAll(); status != status::success)
      return status;
    return !address || gpu.memory.free(address) ? status::success : status::invalidValue;
  });
}
Status cudaHostAlloc(void **address, size_t bytes, unsigned) {
  return callOutsideOfCaptures([&](Gpu &gpu) {
    *address = gpu.memory.allocateLocked(bytes);
    return *address ? status::success : status::outOfMemory;
  });
}
Status cudaFreeHost(void *address) {
  return callOutsideOfCaptures([&](Gpu &gpu) {
    if (Status status = gpu.runAll(); status != status::success)
      return status;
    return !address || gpu.memory.freeLocked(address) ? status::success : status::invalidValue;
  });
}
/// On the default stream, for which other streams do not wait, nor it for them.
Status cudaMemcpy(void *to, const void *from, size_t bytes, CopyKind kind) {
  return callOutsideOfCaptures([&](Gpu &gpu) {
    if (!isCopy(gpu, to, from, bytes, kind))
      return status::invalidValue;
    if (kind == CopyKind::HostToDevice) {
      gpu.enqueueDefault(copyOfNow(gpu, to, from, bytes));
      return status::success;
    }
    if (Status status = gpu.runDefault(); status != status::success)
      return status;
    std::span<std::byte> read = gpu.memory.at(from, bytes);
    std::memmove(kind == CopyKind::DeviceToHost ? to : gpu.memory.at(to, bytes).data(), read.data(),
                 bytes);
    return status::success;
  });
}
Status cudaMemcpyAsync(void *to, const void *from, size_t bytes, CopyKind kind, Stream stream) {
  return call([&](Gpu &gpu) {
    if (!isCopy(gpu, to, from, bytes, kind))
      return status::invalidValue;
    const void *host = kind == CopyKind::HostToDevice ? from : to;
    if (kind == CopyKind::DeviceToDevice || gpu.memory.isLocked(host, bytes)) {
      gpu.enqueue(stream, [&gpu, to, from, bytes, kind] { copy(gpu, to, from, bytes, kind); });
      return status::success;
    }
    if (stream->capture) {
      stream->capture->isValid = false;
      return status::captureUnsupported;
    }
    if (kind == CopyKind::HostToDevice) {
      gpu.enqueue(stream, copyOfNow(gpu, to, from, bytes));
      return status::success;
    }
    gpu.enqueue(stream, [&gpu, to, from, bytes] {
      std::memcpy(to, gpu.memory.at(from, bytes).data(), bytes);
    });
    return gpu.run(stream->last.front()); // into memory that can move at once
  });
}

//===- Streams and events ---------------------------------------------------------------------===//

Status cudaStreamCreateWithPriority(Stream *stream, unsigned flags, int) {
  return call([&](Gpu &gpu) {
    if (flags != nonBlockingStream) // others would wait for the default one
      return status::invalidValue;
    *stream = gpu.makeStream();
    return status::success;
  });
}
Status cudaStreamDestroy(Stream stream) {
  return call([&](Gpu &gpu) { return gpu.destroy(stream); });
}
Status cudaStreamWaitEvent(Stream stream, Event event, unsigned) {
  return call([&](Gpu &gpu) { return gpu.wait(stream, event); });
}
Status cudaStreamBeginCapture(Stream stream, CaptureMode mode) {
  return call([&](Gpu &gpu) {
    return mode == CaptureMode::ThreadLocal ? gpu.beginCapture(stream) : status::invalidValue;
  });
}
Status cudaStreamEndCapture(Stream stream, Graph *graph) {
  return call([&](Gpu &gpu) { return gpu.endCapture(stream, *graph); });
}

Status cudaEventCreateWithFlags(Event *event, unsigned flags) {
  return call([&](Gpu &) {
    *event = new EventState{flags, std::make_shared<Stamp>()};
    return status::success;
  });
}
Status cudaEventDestroy(Event event) {
  return call([&](Gpu &) {
    delete event;
    return status::success;
  });
}
Status cudaEventRecord(Event event, Stream stream) {
  return call([&](Gpu &gpu) { return gpu.record(event, stream, false); });
}
Status cudaEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  return call([&](Gpu &gpu) { return gpu.record(event, stream, flags == externalRecord); });
}
Status cudaEventQuery(Event event) { return Gpu::get().query(event); }
Status cudaEventSynchronize(Event event) {
  return callOutsideOfCaptures([&](Gpu &gpu) {
    return event->capture ? status::capturedEvent : gpu.run(event->stamp->task);
  });
}
Status cudaEventElapsedTime(float *milliseconds, Event begin, Event end) {
  return call([&](Gpu &gpu) {
    for (Event event : {begin, end}) {
      if (event->capture)
        return status::capturedEvent;
      if (event->flags & eventWithoutTime || event->stamp->task == 0)
        return status::invalidHandle;
      if (!gpu.hasRun(*event->stamp))
        return status::notReady;
    }
    std::chrono::duration<float, std::milli> elapsed = end->stamp->time - begin->stamp->time;
    *milliseconds = elapsed.count();
    return status::success;
  });
}

//===- Graphs ---------------------------------------------------------------------------------===//

Status cudaGraphInstantiate(GraphExec *executable, Graph graph, unsigned long long) {
  return call([&](Gpu &) {
    *executable = new GraphExecState{graph->nodes};
    return status::success;
  });
}
Status cudaGraphLaunch(GraphExec executable, Stream stream) {
  return call([&](Gpu &gpu) {
    if (stream->capture) // a graph in a graph
      return status::captureUnsupported;
    gpu.launch(executable->nodes, stream);
    return status::success;
  });
}
Status cudaGraphDestroy(Graph graph) {
  return call([&](Gpu &) {
    delete graph;
    return status::success;
  });
}
Status cudaGraphExecDestroy(GraphExec executable) {
  return call([&](Gpu &) {
    delete executable;
    return status::success;
  });
}

//===- Code -----------------------------------------------------------------------------------===//

Status cudaLibraryLoadData(Library *library, const void *code, int *, void **, unsigned, int *,
                           void **, unsigned) {
  return callOutsideOfCaptures([&](Gpu &gpu) {
    const char *text = static_cast<const char *>(code);
    if (std::strncmp(text, "//", 2) != 0 && std::strncmp(text, ".version", 8) != 0)
      return status::invalidImage; // a binary
    auto module = std::make_shared<ptx::Module>(ptx::parse(text, gpu.refusal));
    if (!gpu.refusal.empty())
      return status::invalidPtx;
    *library = new LibraryState{module, {}};
    return status::success;
  });
}
Status cudaLibraryUnload(Library library) {
  return callOutsideOfCaptures([&](Gpu &) {
    delete library;
    return status::success;
  });
}
Status cudaLibraryGetKernel(Kernel *kernel, Library library, const char *name) {
  return call([&](Gpu &) {
    auto entry = library->module->entries.find(name);
    if (entry == library->module->entries.end())
      return status::notFound;
    std::unique_ptr<KernelState> &known = library->kernels[name];
    if (!known)
      known = std::make_unique<KernelState>(library->module, &entry->second);
    *kernel = known.get();
    return status::success;
  });
}
/// Every parameter has 8 bytes.
Status cudaLaunchKernel(const void *function, Extent3 grid, Extent3 block, void **arguments,
                        size_t sharedBytes, Stream stream) {
  return call([&](Gpu &gpu) {
    const auto &kernel = *static_cast<const KernelState *>(function);
    bool isFlat = grid.y == 1 && grid.z == 1 && block.y == 1 && block.z == 1;
    if (!isFlat || sharedBytes > 0)
      return status::invalidValue;
    ptx::Launch launch;
    for (size_t i = 0; i < kernel.entry->parameters.size(); ++i)
      launch.arguments.push_back(*static_cast<uint64_t *>(arguments[i]));
    launch.entry = kernel.entry->name;
    launch.blocks = grid.x;
    launch.threads = block.x;
    if (launch.entry == "gather")
      gpu.countGather();
    return gpu.enqueueKernel(stream,
                             [&gpu, module = kernel.module, launch] { run(gpu, *module, launch); });
  });
}

} // extern "C"

/// The types are those by which they are called.
[[maybe_unused]] static constexpr Functions exported{
    .getErrorString = cudaGetErrorString,
    .getLastError = cudaGetLastError,
    .runtimeGetVersion = cudaRuntimeGetVersion,
    .driverGetVersion = cudaDriverGetVersion,
    .getDeviceCount = cudaGetDeviceCount,
    .setDevice = cudaSetDevice,
    .getDeviceProperties = cudaGetDeviceProperties,
    .deviceGetAttribute = cudaDeviceGetAttribute,
    .deviceGetPciBusId = cudaDeviceGetPCIBusId,
    .deviceGetStreamPriorityRange = cudaDeviceGetStreamPriorityRange,
    .deviceSynchronize = cudaDeviceSynchronize,
    .memGetInfo = cudaMemGetInfo,
    .malloc = cudaMalloc,
    .free = cudaFree,
    .hostAlloc = cudaHostAlloc,
    .freeHost = cudaFreeHost,
    .memcpy = cudaMemcpy,
    .memcpyAsync = cudaMemcpyAsync,
    .streamCreateWithPriority = cudaStreamCreateWithPriority,
    .streamDestroy = cudaStreamDestroy,
    .streamWaitEvent = cudaStreamWaitEvent,
    .streamBeginCapture = cudaStreamBeginCapture,
    .streamEndCapture = cudaStreamEndCapture,
    .eventCreateWithFlags = cudaEventCreateWithFlags,
    .eventDestroy = cudaEventDestroy,
    .eventRecord = cudaEventRecord,
    .eventRecordWithFlags = cudaEventRecordWithFlags,
    .eventQuery = cudaEventQuery,
    .eventSynchronize = cudaEventSynchronize,
    .eventElapsedTime = cudaEventElapsedTime,
    .graphInstantiate = cudaGraphInstantiate,
    .graphLaunch = cudaGraphLaunch,
    .graphDestroy = cudaGraphDestroy,
    .graphExecDestroy = cudaGraphExecDestroy,
    .libraryLoadData = cudaLibraryLoadData,
    .libraryUnload = cudaLibraryUnload,
    .libraryGetKernel = cudaLibraryGetKernel,
    .launchKernel = cudaLaunchKernel,
};
