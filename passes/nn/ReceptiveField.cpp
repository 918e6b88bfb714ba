// One walk in the order of the program. Each dimension of each value is uniform, follows a spatial
// dimension of the input, or is neither. Element i of a dimension that follows depends on the input
// from step * i + low to step * i + high; steps are fractions after upsampling.
//
// Zeros that a layer pads with stand in for what a whole image would have beyond the tile. They lie
// within [low, high] of every element that they reach, since low <= 0 on the first and high >= 0 on
// the last element of every value; so the bounds say all.
//
// The first op on the way to a value that no tiling gets past is the value's obstacle, and that of
// all that is computed of it.

#include "passes/nn/ReceptiveField.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>
#include <optional>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace {

/// Exact; a network's strides keep both parts small.
struct Fraction {
  int64_t top = 0, bottom = 1;

  Fraction() = default;
  Fraction(int64_t top, int64_t bottom = 1) : top(top), bottom(bottom) {
    int64_t divisor = std::gcd(top, bottom);
    this->top /= divisor;
    this->bottom /= divisor;
  }
  Fraction operator+(Fraction o) const {
    return {top * o.bottom + o.top * bottom, bottom * o.bottom};
  }
  Fraction operator-(Fraction o) const { return *this + Fraction(-o.top, o.bottom); }
  Fraction operator*(Fraction o) const { return {top * o.top, bottom * o.bottom}; }
  Fraction operator/(int64_t divisor) const { return {top, bottom * divisor}; }
  bool operator==(const Fraction &) const = default;
  bool operator<(Fraction o) const { return top * o.bottom < o.top * bottom; }
};

struct Dim {
  enum Kind { Uniform, Follows, Other } kind = Other;
  unsigned spatial = 0; // of the input that it follows
  Fraction step = 1, low, high;
};
using Dims = SmallVector<Dim>;

class Walk {
public:
  explicit Walk(ProgramOp program) : program(program) {}
  std::variant<Tiling, TilingObstacle> run();

private:
  using Result = std::optional<Dims>; // nothing: there is no such window, `reason` says why

  bool addInputs();
  Result refuse(const Twine &text);
  Result visit(Operation *op);
  Result convert(Operation *op);
  Result merge(OperandRange operands, int64_t joined = -1);
  Result reduce(Value x, ArrayRef<int64_t> dims);
  Result reshape(ReshapeOp op);
  Result transpose(TransposeOp op) const;
  template <typename Op> Result slide(Op op, ArrayRef<int64_t> reach);
  Result spread(ConvTransposeOp op);
  Result normalize(BatchNormOp op);
  Dims broadcast(BroadcastOp op) const;
  Dims pad(PadOp op) const;
  Result slice(SliceOp op);
  void note(Operation *op, ArrayRef<Dim> dims);
  bool addOutput(OutputOp output);

  ProgramOp program;
  SmallVector<int64_t> extents;      // of the input, spatial
  llvm::DenseMap<Value, Dims> known; // values without an entry have no window
  llvm::DenseMap<Value, TilingObstacle> obstacles;
  std::optional<TilingObstacle> obstacle; // of the program
  std::string reason;
  Tiling tiling;
};

bool Walk::addInputs() {
  for (BlockArgument input : program.getBody().getArguments()) {
    auto type = tensorType(input);
    ArrayRef<int64_t> spatial = type.getShape().drop_front(std::min<size_t>(2, type.getRank()));
    if (spatial.empty() || (!extents.empty() && ArrayRef<int64_t>(extents) != spatial)) {
      std::string name = "input " + program.getInputName(input.getArgNumber()).str();
      obstacle = {input.getLoc(), name + (spatial.empty() ? " is no image"
                                                          : " has another size than other inputs")};
      return false;
    }
    extents.assign(spatial.begin(), spatial.end());
    Dims dims(type.getRank());
    for (unsigned d = 0; d < extents.size(); ++d) {
      dims[d + 2].kind = Dim::Follows;
      dims[d + 2].spatial = d;
    }
    known[input] = dims;
  }
  tiling.overlap.assign(extents.size(), 0);
  tiling.alignment.assign(extents.size(), 1);
  if (extents.empty())
    obstacle = {program.getLoc(), "prediction reads no input"};
  return !extents.empty();
}

bool follows(const Dim &dim) { return dim.kind == Dim::Follows; }

Walk::Result Walk::refuse(const Twine &text) {
  reason = text.str();
  return std::nullopt;
}

std::optional<Dim> mergeDims(const Dim &a, const Dim &b) {
  if (a.kind != Dim::Follows && b.kind != Dim::Follows)
    return a.kind == Dim::Uniform ? b : a;
  if (a.kind == Dim::Uniform)
    return b;
  if (b.kind == Dim::Uniform)
    return a;
  if (a.kind != b.kind || a.spatial != b.spatial || !(a.step == b.step))
    return std::nullopt;
  Dim hull = a;
  hull.low = std::min(a.low, b.low);
  hull.high = std::max(a.high, b.high);
  return hull;
}

/// Elementwise, except along dimension `joined`, where operands lie side by side.
Walk::Result Walk::merge(OperandRange operands, int64_t joined) {
  Dims result;
  for (Value operand : operands) {
    const Dims &dims = known.at(operand);
    if (result.empty())
      result = dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      std::optional<Dim> merged = mergeDims(result[i], dims[i]);
      if (!merged)
        return refuse("combines pixels with values that have fixed places in the image");
      result[i] = *merged;
    }
  }
  if (joined >= 0) {
    if (follows(result[joined]))
      return refuse("joins images side by side along axis " + Twine(joined));
    result[joined].kind = Dim::Other;
  }
  return result;
}

Walk::Result Walk::reduce(Value x, ArrayRef<int64_t> dims) {
  Dims result;
  for (auto [i, dim] : llvm::enumerate(known.at(x)))
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      result.push_back(dim);
    else if (follows(dim))
      return refuse("reads the whole image along axis " + Twine(i));
  return result;
}

/// Keeps dimensions that stay whole; one that follows and repeats f times becomes one of a f-th of
/// the step (upsampling by repetition). Dimensions of extent 1 come and go where they do not
/// follow.
Walk::Result Walk::reshape(ReshapeOp op) {
  ArrayRef<int64_t> from = tensorType(op.getX()).getShape(), to = tensorType(op.getY()).getShape();
  ArrayRef<Dim> dims = known.at(op.getX());
  Dims result(to.size());
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    if ((from[i] == 1) != (to[j] == 1) && (to[j] == 1 || !follows(dims[i]))) {
      ++(to[j] == 1 ? j : i);
      continue;
    }
    size_t firstFrom = i, firstTo = j;
    int64_t left = from[i++], right = to[j++];
    while (left != right)
      left < right ? left *= from[i++] : right *= to[j++];
    const Dim &first = dims[firstFrom];
    bool repeats = i == firstFrom + 2 && dims[i - 1].kind == Dim::Uniform;
    if (j == firstTo + 1 && (i == firstFrom + 1 || repeats)) {
      result[firstTo] = first;
      int64_t times = repeats ? from[i - 1] : 1;
      result[firstTo].step = first.step / times;
      result[firstTo].low = first.low - first.step * Fraction(times - 1, times);
    } else if (llvm::any_of(dims.slice(firstFrom, i - firstFrom), follows)) {
      return refuse("mixes the axes of the image with others");
    }
  }
  if (llvm::any_of(dims.drop_front(i), follows))
    return refuse("mixes the axes of the image with others");
  return result;
}

Walk::Result Walk::transpose(TransposeOp op) const {
  Dims result;
  for (int64_t from : op.getPermutation())
    result.push_back(known.at(op.getX())[from]);
  return result;
}

/// Convolution and pooling: element i reads `reach` + 1 elements from stride * i - padding on.
template <typename Op> Walk::Result Walk::slide(Op op, ArrayRef<int64_t> reach) {
  Dims dims = known.at(op.getX());
  if (isa<ConvOp>(op)) {
    if (follows(dims[1]))
      return refuse("takes an axis of the image for its channels");
    dims[1].kind = Dim::Other;
  }
  for (size_t d = 0; d < reach.size(); ++d) {
    Dim &dim = dims[d + 2];
    dim.kind = follows(dim) ? Dim::Follows : Dim::Other;
    dim.low = dim.low - dim.step * op.getPaddingLow()[d];
    dim.high = dim.high + dim.step * (reach[d] - op.getPaddingLow()[d]);
    dim.step = dim.step * op.getStrides()[d];
  }
  return dims;
}

/// Element o reads the elements (o + padding - dilation * j) / stride, j in the kernel, that exist.
Walk::Result Walk::spread(ConvTransposeOp op) {
  Dims dims = known.at(op.getX());
  if (follows(dims[1]))
    return refuse("takes an axis of the image for its channels");
  dims[1].kind = Dim::Other;
  auto kernel = tensorType(op.getWeight()).getShape().drop_front(2);
  for (size_t d = 0; d < kernel.size(); ++d) {
    Dim &dim = dims[d + 2];
    dim.kind = follows(dim) ? Dim::Follows : Dim::Other;
    int64_t padding = op.getPaddingLow()[d], reach = op.getDilations()[d] * (kernel[d] - 1);
    dim.step = dim.step / op.getStrides()[d];
    dim.low = dim.low + dim.step * (padding - reach);
    dim.high = dim.high + dim.step * padding;
  }
  return dims;
}

Walk::Result Walk::normalize(BatchNormOp op) {
  if (op.getTraining())
    return refuse("takes statistics over the whole image");
  if (follows(known.at(op.getX())[1]))
    return refuse("takes an axis of the image for its channels");
  return known.at(op.getX());
}

Dims Walk::broadcast(BroadcastOp op) const {
  Dims result(tensorType(op.getY()).getRank());
  for (Dim &dim : result)
    dim.kind = Dim::Uniform;
  for (auto [i, to] : llvm::enumerate(op.getDims()))
    result[to] = known.at(op.getX())[i];
  return result;
}

Dims Walk::pad(PadOp op) const {
  Dims dims = known.at(op.getX());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].kind == Dim::Uniform && op.getLow()[i] + op.getHigh()[i] > 0)
      dims[i].kind = Dim::Other;
    dims[i].low = dims[i].low - dims[i].step * op.getLow()[i];
    dims[i].high = dims[i].high - dims[i].step * op.getLow()[i];
  }
  return dims;
}

/// What is cut off at an edge may be read beyond the edge of a tile.
Walk::Result Walk::slice(SliceOp op) {
  const Dims &dims = known.at(op.getX());
  for (size_t i = 0; i < dims.size(); ++i)
    if (follows(dims[i]) && op.getSize()[i] != tensorType(op.getX()).getDimSize(i))
      return refuse("cuts the image along axis " + Twine(i));
  return dims;
}

/// A layer whose parameters depend on the input is no function of a window.
static bool hasFixedParameters(Operation *op, const llvm::DenseMap<Value, Dims> &known) {
  return llvm::none_of(op->getOperands().drop_front(),
                       [&](Value parameter) { return llvm::any_of(known.at(parameter), follows); });
}

Walk::Result Walk::visit(Operation *op) {
  for (Value operand : op->getOperands())
    if (!known.contains(operand)) {
      auto found = obstacles.find(operand);
      TilingObstacle inherited = found != obstacles.end()
                                     ? found->second
                                     : TilingObstacle{op->getLoc(), "reads where maxima lie"};
      obstacles.try_emplace(op->getResult(0), inherited);
      return std::nullopt;
    }
  Result dims = convert(op);
  if (!dims)
    obstacles.try_emplace(op->getResult(0), TilingObstacle{op->getLoc(), reason});
  return dims;
}

Walk::Result Walk::convert(Operation *op) {
  bool depends =
      llvm::any_of(op->getOperands(), [&](Value v) { return llvm::any_of(known.at(v), follows); });
  if (!depends && !isa<BroadcastOp, ConstantOp>(op) && !op->hasTrait<nn::Elementwise>())
    return Dims(tensorType(op->getResult(0)).getRank());
  if (isa<ConvOp, ConvTransposeOp, BatchNormOp>(op) && !hasFixedParameters(op, known))
    return refuse("has parameters that are computed of the image");
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](ConstantOp constant) -> Result {
        Dim dim;
        dim.kind = splatValue(constant.getResult()) ? Dim::Uniform : Dim::Other;
        return Dims(tensorType(constant.getResult()).getRank(), dim);
      })
      .Case([&](ConvOp conv) {
        SmallVector<int64_t> reach;
        for (auto [d, extent] :
             llvm::enumerate(tensorType(conv.getWeight()).getShape().drop_front(2)))
          reach.push_back(conv.getDilations()[d] * (extent - 1));
        return slide(conv, reach);
      })
      .Case([&](MaxPoolOp pool) {
        SmallVector<int64_t> reach;
        for (int64_t extent : pool.getKernel())
          reach.push_back(extent - 1);
        return slide(pool, reach);
      })
      .Case([&](ConvTransposeOp conv) { return spread(conv); })
      .Case([&](BatchNormOp norm) { return normalize(norm); })
      .Case([&](ConcatOp concat) { return merge(concat.getInputs(), concat.getDim()); })
      .Case<ReduceSumOp, ReduceMaxOp>(
          [&](auto reduction) { return reduce(reduction.getX(), reduction.getDims()); })
      .Case([&](BroadcastOp op) -> Result { return broadcast(op); })
      .Case([&](ReshapeOp op) { return reshape(op); })
      .Case([&](TransposeOp op) { return transpose(op); })
      .Case([&](PadOp op) -> Result { return pad(op); })
      .Case([&](SliceOp op) { return slice(op); })
      .Default([&](Operation *other) {
        return other->hasTrait<nn::Elementwise>() ? merge(other->getOperands())
                                                  : refuse("reads the whole image");
      });
}

/// The shift by an alignment is a whole number of elements of every value. A value that is no image
/// of the input's extents over its step blames the op that made it so.
void Walk::note(Operation *op, ArrayRef<Dim> dims) {
  Value value = op->getResult(0);
  for (Value operand : op->getOperands())
    if (auto found = obstacles.find(operand); found != obstacles.end()) {
      TilingObstacle inherited = found->second;
      obstacles.try_emplace(value, inherited);
    }
  for (auto [extent, dim] : llvm::zip(tensorType(value).getShape(), dims)) {
    if (!follows(dim))
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
  ArrayRef<Dim> dims = found->second;
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  if (dims.size() < extents.size() + 1 || dims.size() > extents.size() + 2)
    return refuseOutput(" is no image");
  size_t leading = dims.size() - extents.size();
  if (llvm::any_of(dims.take_front(leading), follows))
    return refuseOutput(" has its axes in another order than the image");
  for (unsigned d = 0; d < extents.size(); ++d) {
    const Dim &dim = dims[d + leading];
    if (!follows(dim))
      return refuseOutput(" does not follow the image");
    if (dim.spatial != d)
      return refuseOutput(" has its axes in another order than the image");
    if (!(dim.step * shape[d + leading] == Fraction(extents[d])))
      return refuseOutput(" has another size than the image");
    Fraction most = std::max(Fraction(0) - dim.low, dim.high);
    int64_t pixels = std::max<int64_t>(llvm::divideCeilSigned(most.top, most.bottom), 0);
    tiling.overlap[d] = std::max(tiling.overlap[d], pixels);
  }
  return true;
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
    Result dims = visit(&op);
    if (!dims)
      continue;
    note(&op, *dims);
    known[op.getResult(0)] = *dims;
  }
  for (auto [overlap, alignment] : llvm::zip(tiling.overlap, tiling.alignment))
    overlap = llvm::alignTo(overlap, alignment);
  if (!tileable)
    return TilingObstacle{program.getLoc(), "prediction has no output"};
  return tiling;
}

} // namespace

std::variant<Tiling, TilingObstacle> dlc::tilingOf(ProgramOp program) {
  return Walk(program).run();
}
