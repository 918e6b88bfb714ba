// One walk in the order of the program, in which each op says what its result's axes are.
//
// An op that no tiling gets past is an obstacle. It is that of its result and of all values
// computed from the result.

#include "passes/nn/ReceptiveField.h"

#include "dialects/NN/Elementwise.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace {

class Walk {
public:
  explicit Walk(ProgramOp program) : program(program) {}
  std::variant<Tiling, TilingObstacle> run();
  std::variant<EvaluationTiling, TilingObstacle> runEvaluation();

private:
  bool addInputs();
  std::optional<Axes> visit(Operation *op);
  std::optional<Axes> convert(Operation *op, WindowQuery &windows);
  void note(Operation *op, ArrayRef<Axis> dims);
  bool addOutput(OutputOp output);
  void alignOverlap();
  void reach(unsigned spatial, const Axis &dim);
  bool isPooled(Operation *op) const;
  bool pool(Operation *op);
  bool addSum(ReduceSumOp sum);
  bool addPair(Operation *sink);

  ProgramOp program;
  SmallVector<int64_t> extents;      // of the input, spatial
  llvm::DenseMap<Value, Axes> known; // values without an entry have no window
  llvm::DenseMap<Value, TilingObstacle> obstacles;
  std::optional<TilingObstacle> obstacle; // of the program
  Tiling tiling;
  llvm::DenseSet<Value> pooled; // linear in sums over all pixels
  EvaluationTiling evaluation;
};

/// Images have axes of samples and channels ahead of the spatial ones. What has one axis less than
/// they have, such as labels of pixels, lacks that of channels.
bool Walk::addInputs() {
  int64_t most = 0;
  for (BlockArgument input : program.getBody().getArguments())
    most = std::max(most, tensorType(input).getRank());
  for (BlockArgument input : program.getBody().getArguments()) {
    auto type = tensorType(input);
    int64_t leading = type.getRank() == most - 1 ? 1 : 2;
    ArrayRef<int64_t> spatial = type.getShape().drop_front(std::min(leading, type.getRank()));
    if (spatial.empty() || (!extents.empty() && ArrayRef<int64_t>(extents) != spatial)) {
      std::string name = "input " + program.getInputName(input.getArgNumber()).str();
      obstacle = {input.getLoc(), name + (spatial.empty() ? " is no image"
                                                          : " has another size than other inputs")};
      return false;
    }
    extents.assign(spatial.begin(), spatial.end());
    Axes dims(type.getRank());
    for (unsigned d = 0; d < extents.size(); ++d) {
      dims[d + leading].kind = Axis::Follows;
      dims[d + leading].spatial = d;
    }
    known[input] = dims;
  }
  tiling.overlap.assign(extents.size(), 0);
  tiling.alignment.assign(extents.size(), 1);
  if (extents.empty())
    obstacle = {program.getLoc(), "prediction reads no input"};
  return !extents.empty();
}

bool follows(const Axis &axis) { return axis.follows(); }

std::optional<Axes> Walk::visit(Operation *op) {
  for (Value operand : op->getOperands())
    if (!known.contains(operand)) {
      auto found = obstacles.find(operand);
      TilingObstacle inherited = found != obstacles.end()
                                     ? found->second
                                     : TilingObstacle{op->getLoc(), "reads where maxima lie"};
      obstacles.try_emplace(op->getResult(0), inherited);
      return std::nullopt;
    }
  auto axesOf = [&](Value operand) { return ArrayRef<Axis>(known.at(operand)); };
  WindowQuery windows(axesOf);
  std::optional<Axes> axes = convert(op, windows);
  if (!axes)
    obstacles.try_emplace(op->getResult(0), TilingObstacle{op->getLoc(), windows.reason});
  return axes;
}

std::optional<Axes> Walk::convert(Operation *op, WindowQuery &windows) {
  if (op->hasTrait<nn::Elementwise>() && !fullOperands(op).empty())
    return mergeAxes(fullOperands(op), windows);
  bool depends =
      llvm::any_of(op->getOperands(), [&](Value v) { return llvm::any_of(windows(v), follows); });
  auto windowed = dyn_cast<WindowsOpInterface>(op);
  // Values that no image enters have fixed places, unless what makes or spreads them says
  // otherwise.
  if (windowed && (depends || op->getNumOperands() == 0 || isa<BroadcastOp>(op)))
    return windowed.followWindows(windows);
  return depends ? windows.refuse("reads the whole image")
                 : Axes(tensorType(op->getResult(0)).getRank());
}

/// The shift by an alignment is a whole number of elements of every value. A value that is no image
/// of the input's extents over its step blames the op that made it so.
void Walk::note(Operation *op, ArrayRef<Axis> dims) {
  Value value = op->getResult(0);
  for (Value operand : op->getOperands())
    if (auto found = obstacles.find(operand); found != obstacles.end()) {
      TilingObstacle inherited = found->second;
      obstacles.try_emplace(value, inherited);
    }
  for (auto [extent, dim] : llvm::zip(tensorType(value).getShape(), dims)) {
    if (!dim.follows())
      continue;
    tiling.alignment[dim.spatial] = std::lcm(tiling.alignment[dim.spatial], dim.step.top);
    if (Fraction whole(extents[dim.spatial]); !(dim.step * extent == whole))
      obstacles.try_emplace(
          value, TilingObstacle{op->getLoc(), "makes " + std::to_string(extent) + " elements of " +
                                                  std::to_string(extents[dim.spatial]) +
                                                  " pixels; padding could keep the size"});
  }
}

/// Raises the overlap; false if the output is no image of the input's extents over its step. There
/// may be an axis of channels ahead of the spatial ones.
bool Walk::addOutput(OutputOp output) {
  Value value = output.getValue();
  auto refuseOutput = [&](const char *text) {
    auto found = obstacles.find(value);
    obstacle = found != obstacles.end()
                   ? found->second
                   : TilingObstacle{output.getLoc(), "output " + output.getOutput().str() + text};
    return false;
  };
  auto found = known.find(value);
  if (found == known.end())
    return refuseOutput("");
  ArrayRef<Axis> dims = found->second;
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  if (dims.size() < extents.size() + 1 || dims.size() > extents.size() + 2)
    return refuseOutput(" is no image");
  size_t leading = dims.size() - extents.size();
  if (llvm::any_of(dims.take_front(leading), follows))
    return refuseOutput(" has its axes in another order than the image");
  for (unsigned d = 0; d < extents.size(); ++d) {
    const Axis &dim = dims[d + leading];
    if (!dim.follows())
      return refuseOutput(" does not follow the image");
    if (dim.spatial != d)
      return refuseOutput(" has its axes in another order than the image");
    if (!(dim.step * shape[d + leading] == Fraction(extents[d])))
      return refuseOutput(" has another size than the image");
    reach(d, dim);
  }
  return true;
}

void Walk::reach(unsigned spatial, const Axis &dim) {
  Fraction most = std::max(Fraction(0) - dim.low, dim.high);
  int64_t pixels = std::max<int64_t>(llvm::divideCeilSigned(most.top, most.bottom), 0);
  tiling.overlap[spatial] = std::max(tiling.overlap[spatial], pixels);
}

//===- Evaluation -----------------------------------------------------------------------------===//

/// True if the op's result is linear in sums over pixels, of which its operands are some.
bool Walk::isPooled(Operation *op) const {
  auto isSum = [&](Value operand) { return pooled.contains(operand); };
  if (isa<AddOp, SubOp, NegOp, ReduceSumOp, ReshapeOp, TransposeOp>(op))
    return llvm::all_of(op->getOperands(), isSum);
  if (auto cast = dyn_cast<CastOp>(op))
    return isa<FloatType>(tensorType(cast.getResult()).getElementType());
  if (isa<MulOp>(op))
    return isSum(op->getOperand(0)) != isSum(op->getOperand(1));
  return isa<DivOp>(op) && !isSum(op->getOperand(1));
}

/// What to do with an op that sums over pixels, or reads such sums; false for all others.
bool Walk::pool(Operation *op) {
  if (auto sum = dyn_cast<ReduceSumOp>(op); sum && known.contains(sum.getX()))
    for (auto [dim, axis] : llvm::enumerate(known.at(sum.getX())))
      if (axis.follows() && llvm::is_contained(sum.getDims(), static_cast<int64_t>(dim)))
        return addSum(sum);
  if (llvm::none_of(op->getOperands(), [&](Value operand) { return pooled.contains(operand); }))
    return false;
  bool isImage = llvm::any_of(op->getOperands(), [&](Value operand) {
    return !known.contains(operand) || llvm::any_of(known.at(operand), follows);
  });
  Value result = op->getResult(0);
  if (isImage || !isPooled(op)) {
    obstacles.try_emplace(result, TilingObstacle{op->getLoc(), "needs sums over the whole image"});
    return true;
  }
  pooled.insert(result);
  known[result] = Axes(tensorType(result).getRank());
  return true;
}

/// A sum over all axes of the image, which are the last ones of its operand.
bool Walk::addSum(ReduceSumOp sum) {
  Axes axes = known.at(sum.getX());
  ArrayRef<int64_t> shape = tensorType(sum.getX()).getShape();
  size_t leading = axes.size() - std::min(axes.size(), extents.size());
  bool whole = axes.size() >= extents.size() &&
               llvm::none_of(ArrayRef<Axis>(axes).take_front(leading), follows);
  for (unsigned d = 0; whole && d < extents.size(); ++d) {
    const Axis &axis = axes[d + leading];
    whole = axis.follows() && axis.spatial == d && axis.step == Fraction(1) &&
            shape[d + leading] == extents[d] &&
            llvm::is_contained(sum.getDims(), static_cast<int64_t>(d + leading));
  }
  if (!whole) {
    obstacles.try_emplace(sum.getY(),
                          TilingObstacle{sum.getLoc(), "sums a part of the image's axes"});
    return true;
  }
  for (unsigned d = 0; d < extents.size(); ++d)
    reach(d, axes[d + leading]);
  evaluation.sums.push_back(sum);
  pooled.insert(sum.getY());
  known[sum.getY()] = Axes(tensorType(sum.getY()).getRank());
  return true;
}

/// Sum and count of a loss or metric. A sum that no pixel enters is a mean of its own in each tile.
bool Walk::addPair(Operation *sink) {
  OpOperand &sum = sink->getOpOperand(0), &count = sink->getOpOperand(1);
  for (OpOperand *operand : {&sum, &count})
    if (!known.contains(operand->get()) || llvm::any_of(known.at(operand->get()), follows)) {
      auto found = obstacles.find(operand->get());
      obstacle = found != obstacles.end()
                     ? found->second
                     : TilingObstacle{sink->getLoc(), "is no sum over all pixels"};
      return false;
    }
  bool isSum = pooled.contains(sum.get()), isCount = pooled.contains(count.get());
  if (isCount && !isSum) {
    obstacle = {sink->getLoc(), "counts pixels, but sums none"};
    return false;
  }
  if (isSum && !isCount)
    evaluation.counts.push_back(&count);
  return true;
}

std::variant<EvaluationTiling, TilingObstacle> Walk::runEvaluation() {
  if (!addInputs())
    return *obstacle;
  for (Operation &op : program.getBody().front()) {
    if (isa<LossOp, MetricOp>(op) && !addPair(&op))
      return *obstacle;
    if (op.getNumResults() == 0 || pool(&op))
      continue;
    std::optional<Axes> dims = visit(&op);
    if (!dims)
      continue;
    note(&op, *dims);
    known[op.getResult(0)] = *dims;
  }
  if (evaluation.sums.empty() || extents.size() > 3) // there are scalars for three
    return TilingObstacle{program.getLoc(), "evaluation sums no pixels"};
  alignOverlap();
  evaluation.tiling = tiling;
  evaluation.extents = extents;
  return evaluation;
}

//===- Prediction -----------------------------------------------------------------------------===//

void Walk::alignOverlap() {
  for (auto [overlap, alignment] : llvm::zip(tiling.overlap, tiling.alignment))
    overlap = llvm::alignTo(overlap, alignment);
}

std::variant<Tiling, TilingObstacle> Walk::run() {
  if (!addInputs())
    return *obstacle;
  bool tileable = false;
  for (Operation &op : program.getBody().front()) {
    if (auto output = dyn_cast<OutputOp>(op)) {
      if (!addOutput(output))
        return *obstacle;
      tileable = true;
    }
    if (op.getNumResults() == 0)
      continue;
    std::optional<Axes> dims = visit(&op);
    if (!dims)
      continue;
    note(&op, *dims);
    known[op.getResult(0)] = *dims;
  }
  alignOverlap();
  if (!tileable)
    return TilingObstacle{program.getLoc(), "prediction has no output"};
  return tiling;
}

} // namespace

std::variant<Tiling, TilingObstacle> dlc::tilingOf(ProgramOp program) {
  return Walk(program).run();
}

std::variant<EvaluationTiling, TilingObstacle> dlc::evaluationTilingOf(ProgramOp program) {
  return Walk(program).runEvaluation();
}
