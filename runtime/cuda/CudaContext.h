// What a rank has of its GPU: the libraries, streams, and the device's own description.
//
// Functions of NVIDIA's libraries are called by the one compute thread, but for those that take
// memory of the host.
#pragma once

#include "runtime/artifact/Error.h"
#include "runtime/artifact/artifact_generated.h"
#include "runtime/core/Device.h"
#include "runtime/cuda/libraries/CublasLt.h"
#include "runtime/cuda/libraries/Cudart.h"
#include "runtime/cuda/libraries/Owned.h"
#include "runtime/cuda/plans/CudnnGraph.h"

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace dlc::rt {

/// As CUDA's functions take memory of a device.
inline void *pointerTo(DeviceSpan memory) { return reinterpret_cast<void *>(memory.address); }

/// A library's functions, or an error that says what is missing.
template <typename Functions>
const Functions &requireLibrary(const Functions *(*open)(std::string &reason)) {
  std::string reason;
  if (const Functions *functions = open(reason))
    return *functions;
  throw Error(ErrorCode::Runtime, "cannot run on a GPU: " + reason);
}

class CudaContext {
public:
  /// Takes the GPU with this number of those that CUDA shows the process. Throws Error(Runtime) if
  /// there is no driver, no device or no library.
  explicit CudaContext(int device);
  ~CudaContext();
  CudaContext(const CudaContext &) = delete;
  CudaContext &operator=(const CudaContext &) = delete;

  const cudart::Functions &cuda() const { return runtime; }
  /// CUDA's number of the GPU.
  int number() const { return device; }
  /// Throws Error(Artifact) if the target is another architecture's.
  void requireOwn(const artifact::Target &target) const;
  /// What no other GPU has, or slice of one.
  const std::array<unsigned char, 16> &identity() const { return properties.uuid; }
  /// Model of the GPU and versions of the libraries that are open.
  std::string platform() const;
  /// Throws Error(Runtime) naming the GPU, as in "cannot `doing` on GPU-...: ...", if a call failed
  /// because work on the GPU did.
  void require(cudart::Status status, const std::string &doing) const;
  /// GPUs that the process may use.
  int count() const { return devices; }
  /// Compute capability, 90 for 9.0.
  int capability() const { return version; }
  cudart::Stream stream(artifact::Stream which) const {
    return streams[static_cast<size_t>(which)].get();
  }
  /// Recorded when all that uses the input arena has run.
  cudart::Event slotIsFree(unsigned slot) const { return slots[slot].get(); }

  /// Memory of the GPU. Throws Error(Runtime) that says how much is free if there is not as much.
  Owned<void *> allocate(size_t bytes) const;
  /// Page-locked memory of the host, zeroed, on the GPU's NUMA node if that has as much.
  HostBlock lock(size_t bytes) const;
  Owned<cudart::Event> makeEvent(unsigned flags) const;

  /// Opened by the first artifact that has a convolution, or a product.
  struct Convolutions {
    const cudnn::Functions &library;
    Owned<cudnn::Context> context;
    std::string properties; // of this device
    cudnn::Descriptor device;
  };
  const Convolutions &convolutions();
  struct Products {
    const cublas::Functions &library;
    Owned<cublas::Handle> handle;
  };
  const Products &products();

private:
  int device, devices = 0;
  const cudart::Functions &runtime;
  int version = 0;
  cudart::Properties properties{};
  std::optional<unsigned> hostNode; // of NUMA, if the host says so
  std::array<Owned<cudart::Stream>, 3> streams;
  std::array<Owned<cudart::Event>, 2> slots;
  std::optional<Convolutions> cudnn;
  std::optional<Products> cublas;
};

} // namespace dlc::rt
