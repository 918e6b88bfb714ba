// One call of an operator while it is emitted: its checked arguments, the graph to build in and the
// variables of its layer. Emitters report wrong operands themselves; ops they build are valid.
#pragma once

#include "frontend/operators/Graph.h"
#include "frontend/operators/Operators.h"
#include "frontend/syntax/Diagnostics.h"

namespace dlc::fe {

/// More than any layer has.
inline constexpr int64_t maxChannels = 1 << 24;
/// From what a layer's random numbers are drawn: i64 scalars and the layer's stream.
struct RandomDraw {
  mlir::Value seed, step, firstRow;
  int64_t stream = 0;
};

class Emission {
public:
  Emission(Graph &graph, Diagnostics &diags, const CallSpec &spec,
           llvm::ArrayRef<BoundArgument> arguments, llvm::StringRef path, Graph::Site site,
           llvm::SMLoc call)
      : graph(graph), path(path), diags(diags), spec(spec), arguments(arguments), site(site),
        call(call) {}

  Graph &graph;
  const llvm::StringRef path; // "down.0.conv.1"

  //===- Arguments ----------------------------------------------------------------------------===//

  const Value &operator[](llvm::StringRef argument) const { return bound(argument).value; }
  int64_t integer(llvm::StringRef argument) const { return (*this)[argument].asInt(); }
  double real(llvm::StringRef argument) const { return (*this)[argument].asDouble(); }
  bool flag(llvm::StringRef argument) const { return (*this)[argument].asBool(); }
  /// An int within bounds.
  mlir::FailureOr<int64_t> integer(llvm::StringRef argument, int64_t low, int64_t high) const;
  /// A number with low <= value < high.
  mlir::FailureOr<double> real(llvm::StringRef argument, double low, double high) const;
  /// An int for all axes or a list with one per axis.
  mlir::FailureOr<llvm::SmallVector<int64_t>> perAxis(llvm::StringRef argument, size_t axes,
                                                      int64_t low) const;
  /// A tensor as f32; means are reduced.
  mlir::Value tensor(llvm::StringRef argument) const { return graph.toFloat((*this)[argument]); }
  /// A tensor [N, C, spatial...] with one to three spatial axes.
  mlir::FailureOr<mlir::Value> image(llvm::StringRef argument) const;
  /// Axes of a tensor, negative from the end, increasing and without repetition.
  mlir::FailureOr<llvm::SmallVector<int64_t>> axes(llvm::StringRef argument, size_t rank) const;

  //===- Variables ----------------------------------------------------------------------------===//

  /// Named by the path, then the leaf; of an empty leaf by the path alone.
  mlir::FailureOr<mlir::Value> parameter(llvm::StringRef leaf, llvm::ArrayRef<int64_t> shape,
                                         nn::InitializerAttr init) const;
  mlir::FailureOr<mlir::Value> state(llvm::StringRef leaf, llvm::ArrayRef<int64_t> shape,
                                     double init) const;
  void assign(llvm::StringRef leaf, mlir::Value value) const;
  nn::InitializerAttr constantInit(double value) const;
  /// What the ops of a layer that draws random numbers take; refuses tensors without rows.
  mlir::FailureOr<RandomDraw> draw(llvm::StringRef argument, llvm::ArrayRef<int64_t> shape) const;
  /// The initialiser that argument `init` names, for a weight [out, in, k...].
  mlir::FailureOr<nn::InitializerAttr> weightInit(llvm::ArrayRef<int64_t> shape) const;

  //===- Results ------------------------------------------------------------------------------===//

  /// Reports an error at the argument, or at the call for the empty name or a default.
  llvm::LogicalResult error(llvm::StringRef argument, const llvm::Twine &message) const;
  /// Refuses result shapes that no tensor may have.
  llvm::LogicalResult checkShape(llvm::ArrayRef<int64_t> shape) const;
  /// Refuses tensors of different shapes.
  llvm::LogicalResult checkSameShape(llvm::StringRef a, llvm::StringRef b) const;
  /// Argument `b` as f32 in the shape of the tensor `a`; a number is repeated.
  mlir::FailureOr<mlir::Value> sameShape(llvm::StringRef a, llvm::StringRef b) const;
  /// Refuses anything but logits [N, C, spatial...] and label i32[N, spatial...]; `alternative` is
  /// what else the label may be.
  llvm::LogicalResult checkClassification(llvm::StringRef alternative = "") const;
  /// The shape that two values have in common when axes of size 1 repeat.
  mlir::FailureOr<llvm::SmallVector<int64_t>> commonShape(llvm::StringRef argument, mlir::Type a,
                                                          mlir::Type b) const;
  /// The result of a loss or metric: one term.
  Mean mean(mlir::Value numerator, mlir::Value denominator = {}) const;
  mlir::Location loc() const { return graph.loc; }
  llvm::StringRef name() const { return spec.name; }

private:
  const BoundArgument &bound(llvm::StringRef argument) const;
  std::string variableName(llvm::StringRef leaf) const {
    return (path + (path.empty() || leaf.empty() ? "" : ".") + leaf).str();
  }

  Diagnostics &diags;
  const CallSpec &spec;
  llvm::ArrayRef<BoundArgument> arguments;
  Graph::Site site;
  llvm::SMLoc call;
};

using Result = mlir::FailureOr<Value>;

// EmitLayers.cpp
Result emitConv(Emission &call);
Result emitConvTranspose(Emission &call);
Result emitDense(Emission &call);
Result emitMaxPool(Emission &call);
Result emitAvgPool(Emission &call);
Result emitUpsample(Emission &call);
// EmitNorms.cpp
Result emitBatchNorm(Emission &call);
Result emitGroupNorm(Emission &call);
Result emitInstanceNorm(Emission &call);
Result emitLayerNorm(Emission &call);
// EmitTensors.cpp
Result emitDropout(Emission &call);
Result emitUniform(Emission &call);
Result emitNormal(Emission &call);
Result emitBernoulli(Emission &call);
Result emitParameter(Emission &call);
// EmitPointwise.cpp
Result emitRelu(Emission &call);
Result emitSigmoid(Emission &call);
Result emitExp(Emission &call);
Result emitLog(Emission &call);
Result emitAbs(Emission &call);
Result emitSqrt(Emission &call);
Result emitTanh(Emission &call);
Result emitSilu(Emission &call);
Result emitGelu(Emission &call);
Result emitLeakyRelu(Emission &call);
Result emitElu(Emission &call);
Result emitSoftplus(Emission &call);
Result emitHardswish(Emission &call);
Result emitLog10(Emission &call);
Result emitWhere(Emission &call);
Result emitClamp(Emission &call);
Result emitStopGradient(Emission &call);
Result emitSoftmax(Emission &call);
Result emitLogSoftmax(Emission &call);
Result emitMax(Emission &call);
Result emitMin(Emission &call);
// EmitShapes.cpp
Result emitConcat(Emission &call);
Result emitFlatten(Emission &call);
Result emitReshape(Emission &call);
Result emitSum(Emission &call);
Result emitMean(Emission &call);
Result emitAmax(Emission &call);
Result emitVar(Emission &call);
Result emitArgmax(Emission &call);
Result emitLen(Emission &call);
Result emitEnumerate(Emission &call);
Result emitReversed(Emission &call);
// EmitMoves.cpp
Result emitSlice(Emission &call);
Result emitTranspose(Emission &call);
Result emitPad(Emission &call);
Result emitPixelShuffle(Emission &call);
Result emitBroadcast(Emission &call);
// EmitResampling.cpp
Result emitAdaptiveAvgPool(Emission &call);
Result emitResize(Emission &call);
Result emitBlurPool(Emission &call);
// EmitNumbers.cpp
Result emitInt(Emission &call);
Result emitRound(Emission &call);
Result emitFloor(Emission &call);
// EmitLosses.cpp
Result emitSoftmaxCrossEntropy(Emission &call);
Result emitBceWithLogits(Emission &call);
Result emitFocalWithLogits(Emission &call);
Result emitDiceLoss(Emission &call);
Result emitMse(Emission &call);
Result emitMae(Emission &call);
Result emitHuber(Emission &call);
// EmitMetrics.cpp
Result emitAccuracy(Emission &call);
Result emitIou(Emission &call);
Result emitDice(Emission &call);
Result emitPsnr(Emission &call);

} // namespace dlc::fe
