// The part of CUDA's runtime that dlc uses, declared here, as cuDNN's is in Cudnn.h.
//
// The library is opened on demand, and with it the driver: a machine without a GPU needs neither.
#pragma once

#include "runtime/cuda/libraries/Owned.h"

#include <array>
#include <cstddef>
#include <string>

namespace dlc::rt::cudart {

using Status = int;
constexpr Status success = 0, notReady = 600;

using Stream = struct StreamState *;
using Event = struct EventState *;
using Graph = struct GraphState *;
using GraphExec = struct GraphExecState *;
using Library = struct LibraryState *; // code, loaded
using Kernel = struct KernelState *;   // of a library

struct Extent3 {
  unsigned x = 1, y = 1, z = 1;
};

enum class CopyKind : int { HostToDevice = 1, DeviceToHost = 2, DeviceToDevice = 3 };
enum class CaptureMode : int { ThreadLocal = 1 };
enum class DeviceAttribute : int {
  MemoryBusWidth = 37,
  CacheBytes = 38,
  CapabilityMajor = 75,
  CapabilityMinor = 76
};

/// What a device is; of the rest, no more is used.
struct Properties {
  std::array<char, 256> name;
  std::array<unsigned char, 16> uuid; // of a slice, where the GPU is divided
  std::array<std::byte, 3824> rest;
};

constexpr unsigned nonBlockingStream = 1;
constexpr unsigned eventWithoutTime = 2;
constexpr unsigned externalRecord = 1; // whose event is seen outside of the graph

/// The functions that running takes, under CUDA's names without their prefix.
struct Functions {
  const char *(*getErrorString)(Status status);
  Status (*getLastError)();
  Status (*runtimeGetVersion)(int *version);
  Status (*driverGetVersion)(int *version);
  Status (*getDeviceCount)(int *count);
  Status (*setDevice)(int device);
  Status (*getDeviceProperties)(Properties *properties, int device);
  Status (*deviceGetAttribute)(int *value, DeviceAttribute attribute, int device);
  /// As text, ended by a 0: "0000:1b:00.0".
  Status (*deviceGetPciBusId)(char *id, int room, int device);
  Status (*deviceGetStreamPriorityRange)(int *least, int *greatest);
  Status (*deviceSynchronize)();
  Status (*memGetInfo)(size_t *free, size_t *total);

  Status (*malloc)(void **address, size_t bytes);
  Status (*free)(void *address);
  Status (*hostAlloc)(void **address, size_t bytes, unsigned flags);
  Status (*freeHost)(void *address);
  Status (*memcpy)(void *to, const void *from, size_t bytes, CopyKind kind);
  Status (*memcpyAsync)(void *to, const void *from, size_t bytes, CopyKind kind, Stream stream);

  Status (*streamCreateWithPriority)(Stream *stream, unsigned flags, int priority);
  Status (*streamDestroy)(Stream stream);
  Status (*streamWaitEvent)(Stream stream, Event event, unsigned flags);
  Status (*streamBeginCapture)(Stream stream, CaptureMode mode);
  Status (*streamEndCapture)(Stream stream, Graph *graph);

  Status (*eventCreateWithFlags)(Event *event, unsigned flags);
  Status (*eventDestroy)(Event event);
  Status (*eventRecord)(Event event, Stream stream);
  Status (*eventRecordWithFlags)(Event event, Stream stream, unsigned flags);
  Status (*eventQuery)(Event event);
  Status (*eventSynchronize)(Event event);
  Status (*eventElapsedTime)(float *milliseconds, Event begin, Event end);

  Status (*graphInstantiate)(GraphExec *executable, Graph graph, unsigned long long flags);
  Status (*graphLaunch)(GraphExec executable, Stream stream);
  Status (*graphDestroy)(Graph graph);
  Status (*graphExecDestroy)(GraphExec executable);

  Status (*libraryLoadData)(Library *library, const void *code, int *jitOptions, void **jitValues,
                            unsigned jitCount, int *options, void **values, unsigned count);
  Status (*libraryUnload)(Library library);
  Status (*libraryGetKernel)(Kernel *kernel, Library library, const char *name);
  Status (*launchKernel)(const void *kernel, Extent3 grid, Extent3 block, void **arguments,
                         size_t sharedBytes, Stream stream);

  /// Throws Error(Runtime), as in "cannot `doing`: out of memory", if a call failed.
  void require(Status status, const std::string &doing) const;
  /// Loads a binary or a text, which the driver assembles.
  Owned<Library> load(const std::string &code, const std::string &doing) const;
};

/// CUDA 13's runtime of this machine, found as cuDNN is; null with `reason` set if there is none.
/// It stays open.
const Functions *open(std::string &reason);

} // namespace dlc::rt::cudart
