// Builds the nodes of one stage: follows the values of a cluster from its results back to its
// operands, as elements at a point of the iteration space.
#pragma once

#include "passes/codegen/ClusterPlan.h"
#include "passes/codegen/WindowPlaces.h"

#include <map>

namespace dlc {

/// Adds nodes and writes to a stage, which has one loop per loop of the space.
class StageBuilder {
public:
  StageBuilder(StagePlan &stage, const LoopSpace &space) : stage(stage), extents(space.extents) {
    for (int64_t extent : space.extents)
      stage.loops.push_back({extent});
  }

  /// The value's element at coordinates, or failure with a diagnostic.
  mlir::FailureOr<unsigned> evaluate(mlir::Value value, const Coordinates &at);
  /// What an element of dy adds to a tap of its channel's filter, in the gradient of a depthwise
  /// convolution's weight.
  mlir::FailureOr<unsigned> evaluateTerm(nn::ConvGradFilterOp op, const Coordinates &tap,
                                         const Coordinates &at);
  unsigned read(unsigned buffer, mlir::RankedTensorType type, const Coordinates &at);
  void write(unsigned buffer, mlir::Type element, unsigned node, LinearForm address,
             llvm::ArrayRef<Bound> valid, mlir::Operation *reduction = nullptr,
             mlir::Type accumulator = {}) {
    stage.writes.push_back({.node = node,
                            .buffer = buffer,
                            .address = std::move(address),
                            .element = element,
                            .reduction = reduction,
                            .accumulator = accumulator,
                            .valid = llvm::SmallVector<Bound>(valid)});
  }
  /// What is evaluated from now on follows the reductions that have been written, whose results
  /// it knows at the coordinates that they keep.
  void beginEpilogue(const Coordinates &kept);

  llvm::ArrayRef<int64_t> loopExtents() const { return extents; }

  StagePlan &stage;

private:
  unsigned add(ClusterNode node);
  unsigned inside(mlir::MLIRContext *context, llvm::SmallVector<Bound> bounds);
  unsigned compare(ClusterNode::Kind kind, unsigned a, unsigned b);
  unsigned coordinate(mlir::Type element, LinearForm form,
                      llvm::SmallVector<Quotient> quotients = {});
  unsigned select(unsigned condition, unsigned a, unsigned b);
  ClusterNode elementOf(mlir::RankedTensorType type, const Coordinates &at) const;
  mlir::FailureOr<unsigned> evaluateNew(mlir::Value value, const Coordinates &at);
  mlir::FailureOr<unsigned> evaluatePad(nn::PadOp op, const Coordinates &at);
  mlir::FailureOr<unsigned> evaluatePool(nn::MaxPoolOp op, bool index, const Coordinates &at);
  Coordinates elementOfWindow(nn::MaxPoolOp op, int64_t element, const Coordinates &at,
                              llvm::SmallVector<Bound> &bounds) const;
  mlir::FailureOr<unsigned> evaluatePoolGrad(nn::MaxPoolGradOp op, const Coordinates &at);
  mlir::FailureOr<unsigned> evaluateTile(nn::MaxPoolGradOp op, const Coordinates &at);
  mlir::FailureOr<unsigned> gatherWindows(nn::MaxPoolGradOp op, const Coordinates &at);
  unsigned gather(mlir::Value operand, const GatheredPlaces &places, const Coordinates &at);
  template <typename Conv>
  mlir::FailureOr<unsigned> evaluateDepthwise(Conv op, const Coordinates &at);
  unsigned gradientOf(unsigned index, unsigned dy, LinearForm position,
                      llvm::SmallVector<Quotient> quotients = {});
  mlir::FailureOr<unsigned> evaluateConcat(nn::ConcatOp op, const Coordinates &at);
  mlir::FailureOr<unsigned> evaluateElementwise(mlir::Operation *op, const Coordinates &at);

  llvm::DenseMap<mlir::Value, std::map<Coordinates, unsigned>> known; // nodes
  llvm::SmallVector<int64_t> extents;
};

} // namespace dlc
