// One walk in the order of the program. Each dimension of each value is uniform, follows a spatial
// dimension of the input, or is neither. Element i of a dimension that follows depends on the input
// from step * i + low to step * i + high; steps are fractions after upsampling.
//
// Zeros that a layer pads with stand in for what a whole image would have beyond the tile. They lie
// within [low, high] of every element that they reach, since low <= 0 on the first and high >= 0 on
// the last element of every value; so the bounds say all.

#include "passes/ReceptiveField.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

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
  std::optional<Tiling> run();

private:
  bool addInputs();
  bool isImage(ArrayRef<Dim> dims) const;
  std::optional<Dims> visit(Operation *op);
  std::optional<Dims> merge(OperandRange operands, int64_t joined = -1) const;
  std::optional<Dims> reduce(Value x, ArrayRef<int64_t> dims) const;
  std::optional<Dims> reshape(ReshapeOp op) const;
  template <typename Op> Dims slide(Op op, ArrayRef<int64_t> reach) const;
  Dims spread(ConvTransposeOp op) const;
  Dims broadcast(BroadcastOp op) const;
  Dims pad(PadOp op) const;
  std::optional<Dims> slice(SliceOp op) const;
  void note(ArrayRef<Dim> dims);
  bool addOutput(OutputOp output);

  ProgramOp program;
  SmallVector<int64_t> extents;      // of the input, spatial
  llvm::DenseMap<Value, Dims> known; // values without an entry depend on the input as a whole
  Tiling tiling;
};

bool Walk::addInputs() {
  for (BlockArgument input : program.getBody().getArguments()) {
    auto type = tensorType(input);
    if (type.getRank() < 3)
      return false;
    ArrayRef<int64_t> spatial = type.getShape().drop_front(2);
    if (!extents.empty() && ArrayRef<int64_t>(extents) != spatial)
      return false;
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
  return !extents.empty();
}

/// Every spatial dimension of the input appears.
bool Walk::isImage(ArrayRef<Dim> dims) const {
  return llvm::count_if(dims, [](const Dim &dim) { return dim.kind == Dim::Follows; }) ==
         static_cast<int64_t>(extents.size());
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
std::optional<Dims> Walk::merge(OperandRange operands, int64_t joined) const {
  Dims result;
  for (Value operand : operands) {
    const Dims &dims = known.at(operand);
    if (result.empty())
      result = dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      std::optional<Dim> merged = mergeDims(result[i], dims[i]);
      if (!merged)
        return std::nullopt;
      result[i] = *merged;
    }
  }
  if (joined >= 0) {
    if (result[joined].kind == Dim::Follows)
      return std::nullopt;
    result[joined].kind = Dim::Other;
  }
  return result;
}

std::optional<Dims> Walk::reduce(Value x, ArrayRef<int64_t> dims) const {
  Dims result;
  for (auto [i, dim] : llvm::enumerate(known.at(x)))
    if (!llvm::is_contained(dims, static_cast<int64_t>(i)))
      result.push_back(dim);
    else if (dim.kind == Dim::Follows)
      return std::nullopt;
  return result;
}

/// Keeps dimensions that stay whole; one that follows and repeats f times becomes one of a f-th of
/// the step (upsampling by repetition).
std::optional<Dims> Walk::reshape(ReshapeOp op) const {
  ArrayRef<int64_t> from = tensorType(op.getX()).getShape(), to = tensorType(op.getY()).getShape();
  const Dims &dims = known.at(op.getX());
  Dims result(to.size());
  for (size_t i = 0, j = 0; i < from.size() && j < to.size();) {
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
      continue;
    }
    if (std::any_of(dims.begin() + static_cast<ptrdiff_t>(firstFrom),
                    dims.begin() + static_cast<ptrdiff_t>(i),
                    [](const Dim &dim) { return dim.kind == Dim::Follows; }))
      return std::nullopt;
  }
  return result;
}

/// Convolution and pooling: element i reads `reach` + 1 elements from stride * i - padding on.
template <typename Op> Dims Walk::slide(Op op, ArrayRef<int64_t> reach) const {
  Dims dims = known.at(op.getX());
  if (isa<ConvOp>(op))
    dims[1].kind = Dim::Other;
  for (size_t d = 0; d < reach.size(); ++d) {
    Dim &dim = dims[d + 2];
    dim.low = dim.low - dim.step * op.getPaddingLow()[d];
    dim.high = dim.high + dim.step * (reach[d] - op.getPaddingLow()[d]);
    dim.step = dim.step * op.getStrides()[d];
  }
  return dims;
}

/// Element o reads the elements (o + padding - dilation * j) / stride, j in the kernel, that exist.
Dims Walk::spread(ConvTransposeOp op) const {
  Dims dims = known.at(op.getX());
  dims[1].kind = Dim::Other;
  auto kernel = tensorType(op.getWeight()).getShape().drop_front(2);
  for (size_t d = 0; d < kernel.size(); ++d) {
    Dim &dim = dims[d + 2];
    int64_t padding = op.getPaddingLow()[d], reach = op.getDilations()[d] * (kernel[d] - 1);
    dim.step = dim.step / op.getStrides()[d];
    dim.low = dim.low + dim.step * (padding - reach);
    dim.high = dim.high + dim.step * padding;
  }
  return dims;
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
std::optional<Dims> Walk::slice(SliceOp op) const {
  const Dims &dims = known.at(op.getX());
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i].kind == Dim::Follows && op.getSize()[i] != tensorType(op.getX()).getDimSize(i))
      return std::nullopt;
  return dims;
}

/// A layer whose parameters depend on the input is no function of a window.
static bool hasFixedParameters(Operation *op, const llvm::DenseMap<Value, Dims> &known) {
  return llvm::none_of(op->getOperands().drop_front(), [&](Value parameter) {
    return llvm::any_of(known.at(parameter),
                        [](const Dim &dim) { return dim.kind == Dim::Follows; });
  });
}

std::optional<Dims> Walk::visit(Operation *op) {
  bool depends = llvm::any_of(op->getOperands(),
                              [&](Value v) { return !known.contains(v) || isImage(known.at(v)); });
  if (depends && !llvm::all_of(op->getOperands(), [&](Value v) { return known.contains(v); }))
    return std::nullopt;
  if (!depends && !isa<BroadcastOp, ConstantOp>(op) && !op->hasTrait<nn::Elementwise>())
    return Dims(tensorType(op->getResult(0)).getRank());
  if (isa<ConvOp, ConvTransposeOp, BatchNormOp>(op) && !hasFixedParameters(op, known))
    return std::nullopt;
  using Result = std::optional<Dims>;
  return TypeSwitch<Operation *, Result>(op)
      .Case([&](ConstantOp constant) -> Result {
        Dim dim;
        dim.kind = splatValue(constant.getResult()) ? Dim::Uniform : Dim::Other;
        return Dims(tensorType(constant.getResult()).getRank(), dim);
      })
      .Case([&](ConvOp conv) -> Result {
        SmallVector<int64_t> reach;
        for (auto [d, extent] :
             llvm::enumerate(tensorType(conv.getWeight()).getShape().drop_front(2)))
          reach.push_back(conv.getDilations()[d] * (extent - 1));
        return slide(conv, reach);
      })
      .Case([&](MaxPoolOp pool) -> Result {
        SmallVector<int64_t> reach;
        for (int64_t extent : pool.getKernel())
          reach.push_back(extent - 1);
        return slide(pool, reach);
      })
      .Case([&](ConvTransposeOp conv) -> Result { return spread(conv); })
      .Case([&](BatchNormOp norm) -> Result {
        return norm.getTraining() ? Result() : known.at(norm.getX());
      })
      .Case([&](ConcatOp concat) { return merge(concat.getInputs(), concat.getDim()); })
      .Case<ReduceSumOp, ReduceMaxOp>(
          [&](auto reduction) { return reduce(reduction.getX(), reduction.getDims()); })
      .Case([&](BroadcastOp op) -> Result { return broadcast(op); })
      .Case([&](ReshapeOp op) { return reshape(op); })
      .Case([&](PadOp op) -> Result { return pad(op); })
      .Case([&](SliceOp op) { return slice(op); })
      .Default([&](Operation *other) -> Result {
        return other->hasTrait<nn::Elementwise>() ? merge(other->getOperands()) : Result();
      });
}

/// The shift by an alignment is a whole number of elements of every value.
void Walk::note(ArrayRef<Dim> dims) {
  for (const Dim &dim : dims)
    if (dim.kind == Dim::Follows)
      tiling.alignment[dim.spatial] = std::lcm(tiling.alignment[dim.spatial], dim.step.top);
}

/// Raises the overlap; false if the output is no image of the input's extents over its step.
bool Walk::addOutput(OutputOp output) {
  auto found = known.find(output.getValue());
  if (found == known.end() || !isImage(found->second) || found->second.size() != extents.size() + 2)
    return false;
  ArrayRef<int64_t> shape = tensorType(output.getValue()).getShape();
  for (unsigned d = 0; d < extents.size(); ++d) {
    const Dim &dim = found->second[d + 2];
    if (dim.kind != Dim::Follows || dim.spatial != d ||
        !(dim.step * shape[d + 2] == Fraction(extents[d])))
      return false;
    Fraction most = std::max(Fraction(0) - dim.low, dim.high);
    int64_t pixels = std::max<int64_t>(llvm::divideCeilSigned(most.top, most.bottom), 0);
    tiling.overlap[d] = std::max(tiling.overlap[d], pixels);
  }
  return true;
}

std::optional<Tiling> Walk::run() {
  if (!addInputs())
    return std::nullopt;
  bool tileable = false;
  for (Operation &op : program.getBody().front()) {
    if (auto output = dyn_cast<OutputOp>(op)) {
      if (!addOutput(output))
        return std::nullopt;
      tileable = true;
    }
    if (op.getNumResults() == 0)
      continue;
    std::optional<Dims> dims = visit(&op);
    if (!dims)
      continue;
    note(*dims);
    known[op.getResult(0)] = *dims;
  }
  for (auto [overlap, alignment] : llvm::zip(tiling.overlap, tiling.alignment))
    overlap = llvm::alignTo(overlap, alignment);
  return tileable ? std::optional(tiling) : std::nullopt;
}

} // namespace

std::optional<Tiling> dlc::tilingOf(ProgramOp program) { return Walk(program).run(); }
