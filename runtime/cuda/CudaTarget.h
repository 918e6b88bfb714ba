// A GPU that kernels are planned for: what cuDNN is told of it, and what its kernels cost.
//
// The descriptions are targets/*.json, compiled in; `cuda:FILE.json` reads another. `properties` is
// what cuDNN takes for a device that is not there, as its descriptor of one writes it. Costs rank
// alternatives and feed forecasts: peaks and bandwidth times the shares of them that kernels reach.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dlc::rt {

/// What a kernel multiplies with, and how: a product of matrices, or a convolution, whose tensor
/// cores are fed whole vectors of 16 bytes of channels, or one channel after the other; without
/// tensor cores a strict convolution, or anything else.
enum class Unit { Product, Convolution, Unaligned, StrictConvolution, Simt };

class CudaTarget {
public:
  /// `given` is cuda:a100|h100|h200|b200|rtx4090|rtx5090 or cuda:FILE.json. Throws Error(BadInput)
  /// for an unknown name, a description that cannot be read or lacks a field, or a device that is
  /// too old.
  explicit CudaTarget(const std::string &given);

  /// "cuda:sm_90": what code and plans are for.
  const std::string &name() const { return canonicalName; }
  /// The description as it was given, "cuda:h200".
  const std::string &description() const { return given; }
  /// Compute capability, 90 for 9.0.
  unsigned architecture() const { return capability; }
  /// JSON, as cuDNN takes and stores it.
  const std::string &properties() const { return propertyText; }
  /// Of the device, in bytes.
  uint64_t memoryBytes() const { return globalBytes; }
  uint64_t cacheBytes() const { return secondLevelBytes; }
  /// Whether convolutions by clusters of blocks are slower there than those without.
  bool clustersLast() const { return avoidsClusters; }
  /// Between devices of one host, as `dlc compile --link` takes it.
  const std::string &link() const { return linkText; }
  Peaks peaks() const;
  /// Where the description is from.
  const std::string &source() const { return sourceText; }

  /// Nanoseconds of a kernel: FLOPs over peak, or bytes over bandwidth, whichever is more. F32 on
  /// tensor cores is TF32.
  double kernelCost(DType dtype, Unit unit, uint64_t flops, uint64_t bytes) const;

  /// The same of a convolution whose images have at least so many channels: those with fewer leave
  /// a part of what multiplies them idle.
  double convolutionCost(DType dtype, Unit unit, uint64_t flops, uint64_t bytes,
                         int64_t channels) const;

  /// How loops of generated kernels are planned.
  static LoopLimits loops();

private:
  void read(const nlohmann::ordered_json &table);

  std::string given, canonicalName, propertyText, sourceText, linkText;
  unsigned capability = 0;
  bool avoidsClusters = false;
  uint64_t globalBytes = 0, secondLevelBytes = 0;
  double bf16 = 0, f16 = 0, tf32 = 0, f32 = 0; // TFLOP/s
  double bandwidth = 0;                        // GB/s
  // Of the above.
  double bandwidthShare = 0, productShare = 0, convolutionShare = 0, unalignedShare = 0,
         strictShare = 0, simtShare = 0;
  double wholeChannels = 0;       // of convolutions, from which on nothing is idle
  double overheadNanoseconds = 0; // per kernel
};

} // namespace dlc::rt
