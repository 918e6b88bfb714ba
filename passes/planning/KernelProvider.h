// Who can run the ops that have a request: a library, generated code.
//
// Each provider says what it offers and at which price; TargetKernels makes one list of all.
#pragma once

#include "dialects/NN/NN.h"
#include "runtime/core/KernelPlanner.h"

namespace dlc {

/// The implementation of what the compiler generates, as #nn.kernel and the artifact name it.
inline constexpr llvm::StringLiteral generatedName = "generated";

class KernelProvider {
public:
  virtual ~KernelProvider() = default;

  /// Ways to run `op` with the layouts that its request fixes, cheapest first; any layouts where it
  /// fixes none. The request may differ from the op in layouts and in `bias` and `relu`: that is
  /// how a provider is asked whether it takes an epilogue. A reorder need not have an op yet.
  virtual rt::CandidateList candidates(mlir::Operation *op, const rt::KernelRequest &request) = 0;
};

/// Kernels of the target's library.
class LibraryProvider final : public KernelProvider {
public:
  explicit LibraryProvider(rt::KernelPlanner &planner) : planner(planner) {}

  rt::CandidateList candidates(mlir::Operation *, const rt::KernelRequest &request) override {
    return planner.candidates(request);
  }

private:
  rt::KernelPlanner &planner;
};

/// Kernels that the compiler writes: pooling of tiles and, for targets that want it, depthwise
/// convolutions, which become parts of clusters; products of few rows; reorders.
class CodeProvider final : public KernelProvider {
public:
  explicit CodeProvider(const rt::KernelPlanner &planner) : planner(planner) {}

  rt::CandidateList candidates(mlir::Operation *op, const rt::KernelRequest &request) override;

private:
  rt::CandidateList pooling(const rt::KernelRequest &request) const;
  rt::CandidateList depthwise(const rt::KernelRequest &request) const;
  rt::CandidateList product(nn::MatmulOp op, const rt::KernelRequest &request) const;
  rt::CandidateList reorder(const rt::KernelRequest &request) const;

  const rt::KernelPlanner &planner; // its prices
};

} // namespace dlc
