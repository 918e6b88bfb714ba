// The seam between compiler and kernel library: planned at compile time, rebuilt exactly at run
// time.
//
// The compiler asks `candidates` for the implementations of an operation and `finalise` for the
// bytes that go into the artifact; the device rebuilds exactly that kernel from the bytes or fails.
// No method throws: the compiler is built without exceptions. All methods may be called from any
// one thread at a time.
#pragma once

#include "runtime/artifact/Layout.h"
#include "runtime/artifact/artifact_generated.h"
#include "runtime/core/LayoutFamily.h"
#include "runtime/core/LoopLimits.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dlc::rt {

using DType = artifact::DType;

/// Operand of a library kernel; no layout means the library may choose.
struct OperandType {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  std::optional<Layout> layout;
};

/// Operand order of each kind, results last. `?` = present if the flag says so.
enum class KernelOp : uint8_t {
  Conv,         // x [N,C,S...], w [O,C/groups,K...], bias? [O] -> y [N,O,S'...]; relu? applies to y
  ConvGradData, // dy, w, bias? [C] -> dx; also the forward of conv_transpose (bias, relu then apply
                // to dx)
  ConvGradFilter, // x, dy -> dw
  Matmul,      // a [M,K] (or [K,M]), b [K,N] (or [N,K]), bias? [N] -> c [M,N]; relu? applies to c
  MaxPool,     // x -> y, index (U8, shape and layout of y; opaque to all but MaxPoolGrad)
  MaxPoolGrad, // dy, index -> dx
  Reorder,     // x -> y, same shape and dtype, other layout; both layouts given
};

/// Place of a convolution's weight, or of its gradient, among the operands; nothing for others.
inline std::optional<size_t> weightOperand(KernelOp op) {
  switch (op) {
  case KernelOp::Conv:
  case KernelOp::ConvGradData:
    return 1;
  case KernelOp::ConvGradFilter:
    return 2;
  default:
    return std::nullopt;
  }
}

enum class Math : uint8_t { Strict, Fast };

/// One library kernel as the compiler wants it. Spatial vectors have one entry per spatial dim.
struct KernelRequest {
  KernelOp op = KernelOp::Conv;
  std::vector<OperandType> operands;
  std::vector<int64_t> kernel; // pooling window
  std::vector<int64_t> strides;
  std::vector<int64_t> paddingLow, paddingHigh;
  std::vector<int64_t> dilations; // 1 = dense
  int64_t groups = 1;
  bool transposeA = false, transposeB = false;
  bool bias = false;
  bool relu = false;
  Math math = Math::Fast;
  unsigned threads = 1; // the plan serves teams of 1..threads
};

/// True of a pooling whose windows share elements.
inline bool windowsOverlap(const KernelRequest &request) {
  return !std::ranges::equal(request.kernel, request.strides, std::ranges::less_equal());
}

/// A library kernel as an artifact holds it.
struct StoredKernel {
  struct Plan {
    std::vector<uint8_t> bytes; // as artifact.Kernel.plan
    std::string implementation;
    bool isDirect = true; // adds the products of the definition, no transformed ones
  };
  KernelRequest request;      // every operand with its layout
  bool roundsFactors = false; // of f32, to fewer bits than it has: TF32
  std::vector<Plan> plans;    // the one that is run first, then others within its workspace
};

struct KernelCandidate {
  std::vector<Layout>
      layouts; // one per operand; a workspace is one more buffer of the dispatch, last
  std::string implementation;  // the library's name of it
  uint64_t workspaceBytes = 0; // maximum over teams of 1..threads
  uint64_t flops = 0;
  uint64_t bytes = 0;
  double nanoseconds = 0; // from the target's table, never timed
};

/// Either a list (never empty) or the reason why there is none.
struct CandidateList {
  std::vector<KernelCandidate> candidates; // cheapest first
  std::string reason;

  /// Behind those that cost as much.
  void add(KernelCandidate candidate) {
    auto place = std::ranges::upper_bound(candidates, candidate.nanoseconds, {},
                                          &KernelCandidate::nanoseconds);
    candidates.insert(place, std::move(candidate));
  }
};

/// The most that a target can do, by its table: GFLOP/s and GB/s; 0 what is not known.
struct Peaks {
  double f32 = 0, fastF32 = 0, bf16 = 0, f16 = 0; // products; f32 in strict and in fast math
  double elements = 0;                            // of generated kernels, in f32
  double bandwidth = 0;
};

/// What an artifact that this planner serves must say about its target.
struct PlannerTarget {
  std::string name;                  // canonical, never "native": cpu:avx512-bf16
  std::vector<std::string> features; // instruction sets the code may use, in LLVM's spelling
  std::string library;               // library and version that planned
  unsigned vectorBits = 0;           // of the widest f32 vector
  std::vector<DType> dtypes;         // in which its instructions multiply
  LoopLimits loops;                  // of generated kernels
  std::string emitter;               // of generated kernels, a folder of passes/codegen/
  std::string table = "";            // "cpu:FILE.json" if costs are from there, else empty
  uint64_t cacheBytes = 0;           // of the last level that a team shares; 0 if it is not known
  /// Layouts that activations may have, the most common first, and the channels of a block.
  std::vector<LayoutFamily> families = {LayoutFamily::Plain};
  unsigned channelBlock = 1;
  /// Whether poolings of windows that overlap are generated, too, and convolutions in which each
  /// channel has a filter of its own: where libraries have none, or slow ones.
  bool generatesWindows = false;
  /// Targets of this back end that multiply bf16, for those that do not.
  std::vector<std::string> bf16Targets = {};
  /// What joins ranks where nobody says it, as `dlc compile --link` takes it.
  std::string link = "10:30";
  /// What plans may take of the device's memory, and for messages beside what; 0: no bound that is
  /// known.
  uint64_t memoryBytes = 0;
  std::string besideMemory = "";
  Peaks peaks = {};

  bool multiplies(DType dtype) const { return std::ranges::count(dtypes, dtype) > 0; }
};

class KernelPlanner {
public:
  virtual ~KernelPlanner() = default;
  virtual const PlannerTarget &target() const noexcept = 0;
  /// Implementations that fit the request's fixed layouts. Reference code is never offered for
  /// conv, pooling or norm.
  virtual CandidateList candidates(const KernelRequest &request) noexcept = 0;
  /// Bytes from which the device rebuilds exactly this kernel; empty with `reason` set if that
  /// fails.
  virtual std::vector<uint8_t> finalise(const KernelRequest &request, const KernelCandidate &choice,
                                        std::string &reason) noexcept = 0;
  /// Cost of a generated kernel that moves `bytes` and computes `flops`, in nanoseconds.
  virtual double generatedCost(uint64_t bytes, uint64_t flops) const noexcept = 0;
  /// Nanoseconds of a kernel generated for a request; infinite if the target has no table for it.
  virtual double generatedCost(const KernelRequest &request) const noexcept = 0;
};

} // namespace dlc::rt
