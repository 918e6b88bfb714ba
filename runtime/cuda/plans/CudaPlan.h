// A planned kernel of NVIDIA's libraries and its bytes in the artifact (plan.fbs).
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

/// In which an artifact's kernels compute.
Math mathOf(const artifact::Target &target);

/// c [m, n] = op(a) op(b) + bias, all row-major.
struct ProductPlan {
  uint64_t m = 0, n = 0, k = 0;
  DType factors = DType::F32; // of a and b
  DType result = DType::F32;  // of c and the bias
  bool transposeA = false, transposeB = false;
  bool bias = false, relu = false;
  bool exact = false;   // f32 without tensor cores
  bool swapped = false; // the kernel's operands are b, a, ...

  bool operator==(const ProductPlan &) const = default;
};

/// Either a convolution's plans or a product.
struct CudaPlan {
  static constexpr int64_t vectorBytes = 16; // that tensor cores load at once

  std::vector<std::string> convolutions; // cuDNN's texts, the planned one first
  std::optional<ProductPlan> product;
  uint64_t workspaceBytes = 0;

  /// True if cuBLASLt has the product of a request: factors of one type, the result of theirs or
  /// f32, a bias of the result's. A convolution is one if its window is one element at each
  /// position, and all its operands are channels last without padding, in whole vectors.
  static bool isProduct(const KernelRequest &request);
  static ProductPlan productOf(const KernelRequest &request);

  /// What it computes of the kernel's operands, which are its own.
  KernelRequest request(const artifact::Kernel &kernel, Math math) const;
  /// Throws Error(Artifact) naming the kernel if its operands are others than the plan's, or the
  /// workspace behind them is smaller.
  void requireOperands(const artifact::Kernel &kernel) const;

  std::vector<uint8_t> serialize() const;
  /// Throws Error(Artifact) naming the kernel if the bytes are not a plan.
  static CudaPlan deserialize(std::span<const uint8_t> bytes, const std::string &kernel);
  /// A kernel's own. Throws Error(Artifact) naming it if it has none, or one for other operands, or
  /// a product in another math than the artifact's kernels compute in.
  static CudaPlan of(const artifact::Kernel &kernel, Math math);
};

/// A kernel of the artifact with all of its plans. Throws Error(Artifact) as CudaPlan::of does.
StoredKernel readCudaKernel(const artifact::Kernel &kernel, const artifact::Target &target);

} // namespace dlc::rt
