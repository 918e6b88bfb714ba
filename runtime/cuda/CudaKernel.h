// Kernels as loaded on a GPU, and bound to operands: launches, which may be captured into a graph.
#pragma once

#include "runtime/core/DeviceSpan.h"
#include "runtime/cuda/CudaContext.h"
#include "runtime/cuda/plans/CudaPlan.h"

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace dlc::rt {

/// Of a module of the artifact.
struct GeneratedKernel {
  std::string name;
  cudart::Kernel code = nullptr;
  unsigned blocks = 1, threads = 1;
};

/// A convolution by cuDNN: the stored plan, on this device.
class ConvolutionKernel {
public:
  /// A plan of another version of the library is planned again, within the same workspace. Throws
  /// Error(Artifact) naming the kernel if there is none, or the library or the device does not take
  /// it.
  ConvolutionKernel(const CudaContext::Convolutions &convolutions, const CudaPlan &plan,
                    const std::string &name, Math math);

  /// False if planning again gave another engine, or other knobs of it.
  bool isAsPlanned() const { return isSame; }

  /// Addresses of operands: tensors 1, 2, ..., then the workspace.
  cudnn::Descriptor bind(std::span<const DeviceSpan> operands) const;
  void run(const cudnn::Descriptor &operands, cudart::Stream stream) const;

  std::string name;

private:
  const CudaContext::Convolutions *convolutions;
  bool isSame = true;
  std::shared_ptr<const cudnn::Descriptor> plan;
};

/// A product by cuBLASLt, whose algorithm is chosen here, for good.
class ProductKernel {
public:
  ProductKernel(const CudaContext::Products &products, const CudaPlan &plan,
                const std::string &name);

  /// Operands a, b, in the plan's order, a bias if there is one, c, the workspace.
  void run(std::span<const DeviceSpan> operands, cudart::Stream stream) const;

  std::string name;

private:
  struct Descriptors;

  cublas::Algorithm chooseAlgorithm() const;

  const CudaContext::Products *products;
  std::shared_ptr<const Descriptors> descriptors;
  cublas::Algorithm algorithm{};
  bool bias, swapped;
  size_t workspaceBytes;
};

using LoadedKernel = std::variant<GeneratedKernel, ConvolutionKernel, ProductKernel>;

class CudaLaunch {
public:
  /// The context and the kernel outlive it.
  CudaLaunch(const CudaContext &context, const LoadedKernel &kernel,
             std::span<const DeviceSpan> operands);

  void run(cudart::Stream stream) const;

private:
  void launch(const GeneratedKernel &kernel, cudart::Stream stream) const;

  const CudaContext *context;
  const LoadedKernel *kernel;
  std::vector<DeviceSpan> operands;
  std::optional<cudnn::Descriptor> bound; // of a convolution
};

} // namespace dlc::rt
