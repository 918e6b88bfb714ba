// The part of cuBLASLt that dlc uses, declared here, as cuDNN's is in Cudnn.h.
#pragma once

#include "runtime/cuda/libraries/Cudart.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace dlc::rt::cublas {

using Status = int;
constexpr Status success = 0;

using Handle = struct HandleState *;
using ProductDescriptor = struct ProductState *;
using MatrixLayout = struct MatrixState *;
using Preference = struct PreferenceState *;

enum class DataType : int { Float = 0, Half = 2, BFloat16 = 14 };
enum class ComputeType : int { Float = 68, Tf32 = 77 };
enum class Operation : int { None = 0, Transpose = 1 };
enum class Epilogue : int { None = 1, Bias = 4, ReluBias = 6, Relu = 2 };

/// Of partial sums: in f32, in the workspace, in a fixed order.
constexpr uint32_t reductionInComputeType = 2;

enum class ProductAttribute : int {
  TransposeA = 3,
  TransposeB = 4,
  Epilogue = 7,
  BiasPointer = 8,
};

enum class PreferenceAttribute : int {
  WorkspaceBytes = 1,
  ReductionSchemes = 3,
  AlignmentA = 5,
  AlignmentB = 6,
  AlignmentC = 7,
  AlignmentD = 8,
};

struct Algorithm {
  std::array<uint64_t, 8> data;
};

/// What the library's heuristics found.
struct Found {
  Algorithm algorithm;
  size_t workspaceBytes;
  Status status;
  float waves;
  std::array<int, 4> reserved;
};

/// The functions that products take, under cuBLASLt's names without their prefix.
struct Functions {
  size_t (*getVersion)();
  const char *(*getStatusString)(Status status);
  Status (*create)(Handle *handle);
  Status (*destroy)(Handle handle);
  Status (*matmulDescCreate)(ProductDescriptor *product, ComputeType compute, DataType scale);
  Status (*matmulDescDestroy)(ProductDescriptor product);
  Status (*matmulDescSetAttribute)(ProductDescriptor product, ProductAttribute attribute,
                                   const void *value, size_t bytes);
  Status (*matrixLayoutCreate)(MatrixLayout *layout, DataType type, uint64_t rows, uint64_t columns,
                               int64_t leading);
  Status (*matrixLayoutDestroy)(MatrixLayout layout);
  Status (*matmulPreferenceCreate)(Preference *preference);
  Status (*matmulPreferenceDestroy)(Preference preference);
  Status (*matmulPreferenceSetAttribute)(Preference preference, PreferenceAttribute attribute,
                                         const void *value, size_t bytes);
  Status (*matmulAlgoGetHeuristic)(Handle handle, ProductDescriptor product, MatrixLayout a,
                                   MatrixLayout b, MatrixLayout c, MatrixLayout d,
                                   Preference preference, int wanted, Found *results, int *count);
  Status (*matmul)(Handle handle, ProductDescriptor product, const void *alpha, const void *a,
                   MatrixLayout aLayout, const void *b, MatrixLayout bLayout, const void *beta,
                   const void *c, MatrixLayout cLayout, void *d, MatrixLayout dLayout,
                   const Algorithm *algorithm, void *workspace, size_t workspaceBytes,
                   cudart::Stream stream);

  /// Throws Error(Runtime) if a call failed.
  void require(Status status, const std::string &doing) const;
};

/// cuBLASLt 13 of this machine, found as cuDNN is; null with `reason` set if there is none. It
/// stays open.
const Functions *open(std::string &reason);

} // namespace dlc::rt::cublas
