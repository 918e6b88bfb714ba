// Convolution, pooling, normalisation, matrix product, losses: result types and verification.

#include "dialects/NN/NN.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

/// Window geometry of convolution and pooling along all spatial dimensions.
struct Window {
  SmallVector<int64_t> kernel, strides, low, high, dilations;

  /// Beyond it, positions in a window could overflow.
  static constexpr int64_t maxStep = 1 << 20;

  /// Extents after sliding the window; nothing if the lists do not fit or an extent is below 1.
  FailureOr<SmallVector<int64_t>> apply(ArrayRef<int64_t> spatial) const {
    size_t rank = spatial.size();
    for (size_t size : {kernel.size(), strides.size(), low.size(), high.size(), dilations.size()})
      if (size != rank)
        return failure();
    SmallVector<int64_t> result;
    for (size_t i = 0; i < rank; ++i) {
      if (std::max({strides[i], dilations[i], low[i], high[i]}) > maxStep)
        return failure();
      if (strides[i] < 1 || dilations[i] < 1 || low[i] < 0 || high[i] < 0 || kernel[i] < 1)
        return failure();
      int64_t room = spatial[i] + low[i] + high[i] - dilations[i] * (kernel[i] - 1) - 1;
      if (room < 0)
        return failure();
      result.push_back(room / strides[i] + 1);
    }
    return result;
  }
};

/// Shape of conv(x, weight); constraint numbers are those of nn.conv's description.
template <typename Adaptor>
static FailureOr<SmallVector<int64_t>> convShape(std::optional<Location> loc, Adaptor adaptor,
                                                 RankedTensorType x, RankedTensorType weight) {
  auto groups = static_cast<int64_t>(adaptor.getGroups());
  if (x.getRank() < 3 || x.getRank() > maxRank || x.getRank() != weight.getRank())
    return emitOptionalError(loc, "convolves ", x, " with ", weight,
                             ": both need the same rank of 3 to 5");
  if (groups < 1 || x.getDimSize(1) % groups != 0 ||
      x.getDimSize(1) / groups != weight.getDimSize(1)) // 1.
    return emitOptionalError(loc, "input ", x, " has ", x.getDimSize(1), " channels, weight ",
                             weight, " is for ", weight.getDimSize(1), " in each of ", groups,
                             " groups");
  if (weight.getDimSize(0) % groups != 0) // 2.
    return emitOptionalError(loc, weight.getDimSize(0), " output channels do not divide into ",
                             groups, " groups");
  Window window{
      SmallVector<int64_t>(weight.getShape().drop_front(2)),
      SmallVector<int64_t>(adaptor.getStrides()), SmallVector<int64_t>(adaptor.getPaddingLow()),
      SmallVector<int64_t>(adaptor.getPaddingHigh()), SmallVector<int64_t>(adaptor.getDilations())};
  FailureOr<SmallVector<int64_t>> spatial = window.apply(x.getShape().drop_front(2)); // 3. 4.
  if (failed(spatial))
    return emitOptionalError(loc, "the window of ", weight, " with strides [", adaptor.getStrides(),
                             "], padding [", adaptor.getPaddingLow(), "] and [",
                             adaptor.getPaddingHigh(), "] does not fit on ", x);
  SmallVector<int64_t> shape{x.getDimSize(0), weight.getDimSize(0)};
  shape.append(*spatial);
  return shape;
}

/// The factors have one element type; the product and the bias have that type or the one in which
/// it is summed.
static LogicalResult verifyProduct(Operation *op, Value bias = {}) {
  Type element = tensorType(op->getOperand(0)).getElementType();
  Type sum = sumType(tensorType(op->getOperand(0))).getElementType();
  if (tensorType(op->getOperand(1)).getElementType() != element)
    return op->emitOpError("multiplies ")
           << op->getOperand(0).getType() << " by " << op->getOperand(1).getType()
           << ": both need one element type";
  for (Value value : {Value(op->getResult(0)), bias})
    if (Type other = value ? tensorType(value).getElementType() : element;
        other != element && other != sum)
      return op->emitOpError("has factors of ")
             << element << ", but " << (value == bias ? "a bias" : "a result") << " of type "
             << value.getType() << "; convert by nn.cast";
  return success();
}

/// A result of too low a rank is left to the comparison with the inferred one, which comes later.
static LogicalResult verifyBias(Operation *op, Value bias) {
  auto y = tensorType(op->getResult(0));
  int64_t channels = y.getRank() < 2 ? 0 : y.getDimSize(1);
  if (bias && channels != 0 && tensorType(bias).getShape() != ArrayRef<int64_t>(channels))
    return op->emitOpError("bias has type ")
           << bias.getType() << ", expected " << channels << " elements";
  return verifyProduct(op, bias);
}

//===- Convolutions ---------------------------------------------------------------------------===//

LogicalResult ConvOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX());
  FailureOr<SmallVector<int64_t>> shape =
      convShape(loc, adaptor, x, tensorType(adaptor.getWeight()));
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, x.getElementType()));
  return success();
}

LogicalResult ConvOp::verify() { return verifyBias(*this, getBias()); }

/// `big` convolved with `weight` gives `small`.
template <typename Op>
static LogicalResult verifyConvRelation(Op op, RankedTensorType big, RankedTensorType weight,
                                        RankedTensorType small) {
  FailureOr<SmallVector<int64_t>> shape = convShape(op.getLoc(), op, big, weight);
  if (failed(shape))
    return failure();
  if (ArrayRef<int64_t>(*shape) != small.getShape())
    return op.emitOpError("convolving ") << big << " with " << weight << " does not give " << small;
  return verifyProduct(op);
}

LogicalResult ConvTransposeOp::verify() {
  if (failed(verifyConvRelation(*this, tensorType(getY()), tensorType(getWeight()),
                                tensorType(getX()))))
    return failure();
  return verifyBias(*this, getBias());
}

LogicalResult ConvGradDataOp::verify() {
  return verifyConvRelation(*this, tensorType(getDx()), tensorType(getWeight()),
                            tensorType(getDy()));
}

LogicalResult ConvGradFilterOp::verify() {
  return verifyConvRelation(*this, tensorType(getX()), tensorType(getDw()), tensorType(getDy()));
}

//===- Matmul ---------------------------------------------------------------------------------===//

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto a = tensorType(adaptor.getA()), b = tensorType(adaptor.getB());
  if (a.getRank() != 2 || b.getRank() != 2)
    return emitOptionalError(loc, "multiplies ", a, " by ", b, ": both need rank 2");
  bool ta = adaptor.getTransposeA(), tb = adaptor.getTransposeB();
  if (a.getDimSize(ta ? 0 : 1) != b.getDimSize(tb ? 1 : 0))
    return emitOptionalError(loc, "multiplies ", a, " by ", b, ": inner dimensions are ",
                             a.getDimSize(ta ? 0 : 1), " and ", b.getDimSize(tb ? 1 : 0));
  types.push_back(RankedTensorType::get({a.getDimSize(ta ? 1 : 0), b.getDimSize(tb ? 0 : 1)},
                                        a.getElementType()));
  return success();
}

LogicalResult MatmulOp::verify() { return verifyBias(*this, getBias()); }

//===- Pooling --------------------------------------------------------------------------------===//

template <typename Op>
static FailureOr<SmallVector<int64_t>> poolShape(std::optional<Location> loc, Op op,
                                                 RankedTensorType x) {
  Window window{SmallVector<int64_t>(op.getKernel()), SmallVector<int64_t>(op.getStrides()),
                SmallVector<int64_t>(op.getPaddingLow()), SmallVector<int64_t>(op.getPaddingHigh()),
                SmallVector<int64_t>(op.getKernel().size(), 1)};
  FailureOr<SmallVector<int64_t>> spatial = x.getRank() < 3 || x.getRank() > maxRank
                                                ? FailureOr<SmallVector<int64_t>>()
                                                : window.apply(x.getShape().drop_front(2));
  if (failed(spatial))
    return emitOptionalError(loc, "the window [", op.getKernel(), "] does not fit on ", x);
  SmallVector<int64_t> shape(x.getShape().take_front(2));
  shape.append(*spatial);
  return shape;
}

/// The position of a maximum is kept in a byte.
template <typename Op> static LogicalResult checkWindowSize(std::optional<Location> loc, Op op) {
  int64_t elements = 1;
  for (int64_t extent : op.getKernel())
    elements = extent > 127 ? 128 : elements * extent;
  if (elements > 127)
    return emitOptionalError(loc, "the window [", op.getKernel(), "] has more than 127 elements");
  return success();
}

LogicalResult MaxPoolOp::inferReturnTypes(MLIRContext *context, std::optional<Location> loc,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX());
  if (failed(checkWindowSize(loc, adaptor)))
    return failure();
  FailureOr<SmallVector<int64_t>> shape = poolShape(loc, adaptor, x);
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, x.getElementType()));
  types.push_back(RankedTensorType::get(*shape, IntegerType::get(context, 8)));
  return success();
}

LogicalResult MaxPoolOp::verify() { return success(); }

template <typename Pool> static bool tile(Pool pool, Value full) {
  auto isZero = [](int64_t padding) { return padding == 0; };
  bool isTiling = llvm::equal(pool.getKernel(), pool.getStrides()) &&
                  llvm::all_of(pool.getPaddingLow(), isZero) &&
                  llvm::all_of(pool.getPaddingHigh(), isZero);
  for (auto [i, window] : llvm::enumerate(pool.getKernel()))
    isTiling &= tensorType(full).getDimSize(i + 2) % window == 0;
  return isTiling;
}

static bool isDepthwise(uint64_t groups, Value weight) {
  ArrayRef<int64_t> shape = tensorType(weight).getShape();
  return groups > 1 && static_cast<int64_t>(groups) == shape[0] && shape[1] == 1;
}

bool dlc::nn::isDepthwise(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<ConvOp, ConvTransposeOp, ConvGradDataOp>(
          [](auto conv) { return ::isDepthwise(conv.getGroups(), conv.getWeight()); })
      .Case([](ConvGradFilterOp grad) { return ::isDepthwise(grad.getGroups(), grad.getDw()); })
      .Default(false);
}

bool dlc::nn::windowsTile(MaxPoolOp op) { return tile(op, op.getX()); }
bool dlc::nn::windowsTile(MaxPoolGradOp op) { return tile(op, op.getDx()); }

LogicalResult MaxPoolGradOp::verify() {
  auto dx = tensorType(getDx()), dy = tensorType(getDy());
  if (failed(checkWindowSize(getLoc(), *this)))
    return failure();
  FailureOr<SmallVector<int64_t>> shape = poolShape(getLoc(), *this, dx);
  if (failed(shape))
    return failure();
  if (ArrayRef<int64_t>(*shape) != dy.getShape() ||
      dy.getShape() != tensorType(getIndex()).getShape())
    return emitOpError("pooling ")
           << dx << " does not give " << dy << " and " << getIndex().getType();
  if (dx.getElementType() != dy.getElementType())
    return emitOpError("computes in one element type, but dy has type ")
           << dy << " and dx " << dx << "; convert by nn.cast";
  return success();
}

LogicalResult AvgPoolOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX());
  FailureOr<SmallVector<int64_t>> shape = poolShape(loc, adaptor, x);
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, x.getElementType()));
  return success();
}

/// Windows over padding alone have no mean where padding does not count.
template <typename Op> static LogicalResult checkPadding(Op op) {
  for (auto [low, high, kernel] :
       llvm::zip(op.getPaddingLow(), op.getPaddingHigh(), op.getKernel()))
    if (std::max(low, high) >= kernel)
      return op.emitOpError("has padding [")
             << op.getPaddingLow() << "] and [" << op.getPaddingHigh()
             << "], which must be smaller than the window [" << op.getKernel() << "]";
  return success();
}

LogicalResult AvgPoolOp::verify() { return checkPadding(*this); }

LogicalResult AvgPoolGradOp::verify() {
  auto dx = tensorType(getDx()), dy = tensorType(getDy());
  FailureOr<SmallVector<int64_t>> shape = poolShape(getLoc(), *this, dx);
  if (failed(shape))
    return failure();
  if (ArrayRef<int64_t>(*shape) != dy.getShape() || dx.getElementType() != dy.getElementType())
    return emitOpError("pooling ") << dx << " does not give " << dy;
  return checkPadding(*this);
}

//===- Upsampling -----------------------------------------------------------------------------===//

static FailureOr<SmallVector<int64_t>> upsampledShape(std::optional<Location> loc,
                                                      ArrayRef<int64_t> scale, RankedTensorType x) {
  SmallVector<int64_t> shape(x.getShape());
  bool fits = x.getRank() >= 3 && static_cast<int64_t>(scale.size()) + 2 == x.getRank();
  for (size_t d = 0; fits && d < scale.size(); ++d) {
    fits = scale[d] >= 1 && scale[d] <= maxElements / shape[d + 2];
    shape[d + 2] *= fits ? scale[d] : 1;
  }
  if (!fits)
    return emitOptionalError(loc, "cannot enlarge ", x, " by [", scale,
                             "]: one factor from 1 on for each spatial dimension is wanted");
  return shape;
}

LogicalResult UpsampleOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                           Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX());
  FailureOr<SmallVector<int64_t>> shape = upsampledShape(loc, adaptor.getScale(), x);
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, x.getElementType()));
  return success();
}

LogicalResult UpsampleOp::verify() { return success(); }

LogicalResult UpsampleGradOp::verify() {
  auto dx = tensorType(getDx()), dy = tensorType(getDy());
  FailureOr<SmallVector<int64_t>> shape = upsampledShape(getLoc(), getScale(), dx);
  if (failed(shape))
    return failure();
  if (ArrayRef<int64_t>(*shape) != dy.getShape() || dx.getElementType() != dy.getElementType())
    return emitOpError("enlarging ") << dx << " does not give " << dy;
  return success();
}

LogicalResult PixelShuffleOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                               Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX());
  SmallVector<int64_t> shape(x.getShape());
  auto factor = static_cast<int64_t>(adaptor.getFactor());
  if (shape.size() < 3 || factor < 1 || factor > maxElements)
    return emitOptionalError(loc, "shuffles the channels of an image by a factor from 1 on, got ",
                             x, " and ", factor);
  for (int64_t &extent : MutableArrayRef(shape).drop_front(2)) {
    bool divides = (adaptor.getInverse() ? extent : shape[1]) % factor == 0;
    if (!divides || (adaptor.getInverse() && shape[1] > maxElements / factor))
      return emitOptionalError(loc, "the factor ", factor, " does not divide ", x);
    shape[1] = adaptor.getInverse() ? shape[1] * factor : shape[1] / factor;
    extent = adaptor.getInverse() ? extent / factor : extent * factor;
  }
  types.push_back(RankedTensorType::get(shape, x.getElementType()));
  return success();
}

LogicalResult PixelShuffleOp::verify() { return success(); }

//===- Normalisation --------------------------------------------------------------------------===//

static bool isPerChannel(Value value, RankedTensorType x) {
  return tensorType(value).getRank() == 1 && tensorType(value).getDimSize(0) == x.getDimSize(1);
}

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX());
  if (x.getRank() < 2)
    return emitOptionalError(loc, "normalises ", x, ", which has no channels");
  for (Value value :
       {adaptor.getScale(), adaptor.getBias(), adaptor.getRunningMean(), adaptor.getRunningVar()})
    if (!isPerChannel(value, x))
      return emitOptionalError(loc, "scale, bias and statistics need ", x.getDimSize(1),
                               " elements, got ", value.getType());
  types.push_back(logicalType(x));
  types.append(2, logicalType(tensorType(adaptor.getRunningMean())));
  return success();
}

LogicalResult BatchNormOp::verify() {
  if (!(getEpsilon().convertToDouble() > 0))
    return emitOpError("epsilon must be positive");
  if (getSync() && !getTraining())
    return emitOpError("has `sync`, but ranks have statistics of their own in training alone");
  return success();
}

LogicalResult BatchNormGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX());
  auto dy = tensorType(adaptor.getDy());
  if (x.getRank() < 2 || x.getShape() != dy.getShape() || x.getElementType() != dy.getElementType())
    return emitOptionalError(loc, "dy and x differ: ", adaptor.getDy().getType(), " and ", x);
  for (Value value : {adaptor.getScale(), adaptor.getMean(), adaptor.getVar()})
    if (!isPerChannel(value, x))
      return emitOptionalError(loc, "scale and statistics need ", x.getDimSize(1),
                               " elements, got ", value.getType());
  types.push_back(logicalType(x));
  types.append(2, logicalType(tensorType(adaptor.getScale())));
  return success();
}

/// One element per channel, or the shape of a sample.
static LogicalResult checkScale(std::optional<Location> loc, Value scale, RankedTensorType x,
                                int64_t groups) {
  bool isSample = groups == 1 && tensorType(scale).getShape() == x.getShape().drop_front(); // 2.
  if (isPerChannel(scale, x) || isSample)
    return success();
  return emitOptionalError(loc, "scale and bias need ", x.getDimSize(1),
                           " elements, or with one group the shape of a sample of ", x, ", got ",
                           scale.getType());
}

LogicalResult GroupNormOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX()), scale = tensorType(adaptor.getScale());
  auto groups = static_cast<int64_t>(adaptor.getGroups());
  if (x.getRank() < 2 || groups < 1 || x.getDimSize(1) % groups != 0) // 1.
    return emitOptionalError(loc, "cannot divide the channels of ", x, " into ", groups, " groups");
  for (Value value : {adaptor.getScale(), adaptor.getBias()})
    if (failed(checkScale(loc, value, x, groups)))
      return failure();
  if (adaptor.getBias().getType() != scale)
    return emitOptionalError(loc, "scale and bias differ: ", scale, " and ",
                             adaptor.getBias().getType());
  types.push_back(logicalType(x));
  types.append(2, RankedTensorType::get({x.getDimSize(0), groups}, scale.getElementType()));
  return success();
}

LogicalResult GroupNormOp::verify() {
  if (!(getEpsilon().convertToDouble() > 0))
    return emitOpError("epsilon must be positive");
  return success();
}

LogicalResult GroupNormGradOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                                Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX()), dy = tensorType(adaptor.getDy());
  auto mean = tensorType(adaptor.getMean());
  if (x.getRank() < 2 || x.getShape() != dy.getShape() || x.getElementType() != dy.getElementType())
    return emitOptionalError(loc, "dy and x differ: ", dy, " and ", x);
  if (mean.getShape() != tensorType(adaptor.getVar()).getShape() || mean.getRank() != 2 ||
      mean.getDimSize(0) != x.getDimSize(0) || x.getDimSize(1) % mean.getDimSize(1) != 0)
    return emitOptionalError(loc, "mean and var need one element per sample and group of ", x,
                             ", got ", mean, " and ", adaptor.getVar().getType());
  if (failed(checkScale(loc, adaptor.getScale(), x, mean.getDimSize(1))))
    return failure();
  types.push_back(logicalType(x));
  types.append(2, logicalType(tensorType(adaptor.getScale())));
  return success();
}

//===- Losses ---------------------------------------------------------------------------------===//

/// Checks the operands of the loss and of its gradient.
static LogicalResult checkRows(std::optional<Location> loc, RankedTensorType logits,
                               RankedTensorType label) {
  SmallVector<int64_t> rows(logits.getShape());
  if (rows.size() >= 2)
    rows.erase(rows.begin() + 1);
  if (logits.getRank() < 2 || label.getShape() != ArrayRef<int64_t>(rows))
    return emitOptionalError(loc, "takes logits [N, C, ...] and label [N, ...], got ", logits,
                             " and ", label);
  return success();
}

static LogicalResult checkSmoothing(Operation *op, double smoothing) {
  if (!(smoothing >= 0 && smoothing < 1))
    return op->emitOpError("smoothing is ") << smoothing << ", expected 0 <= smoothing < 1";
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                                      Adaptor adaptor,
                                                      SmallVectorImpl<Type> &types) {
  auto logits = tensorType(adaptor.getLogits()), label = tensorType(adaptor.getLabel());
  if (failed(checkRows(loc, logits, label)))
    return failure();
  types.push_back(RankedTensorType::get(label.getShape(), logits.getElementType()));
  return success();
}

LogicalResult SoftmaxCrossEntropyOp::verify() {
  return checkSmoothing(*this, getSmoothing().convertToDouble());
}

LogicalResult SoftmaxCrossEntropyGradOp::inferReturnTypes(MLIRContext *,
                                                          std::optional<Location> loc,
                                                          Adaptor adaptor,
                                                          SmallVectorImpl<Type> &types) {
  auto logits = tensorType(adaptor.getLogits()), label = tensorType(adaptor.getLabel());
  auto dloss = tensorType(adaptor.getDloss());
  if (failed(checkRows(loc, logits, label)))
    return failure();
  if (dloss.getShape() != label.getShape() || dloss.getElementType() != logits.getElementType())
    return emitOptionalError(loc, "takes dloss of the shape of label ", label,
                             " and the element type of logits ", logits, ", got ", dloss);
  types.push_back(logicalType(logits));
  return success();
}

LogicalResult SoftmaxCrossEntropyGradOp::verify() {
  return checkSmoothing(*this, getSmoothing().convertToDouble());
}

//===- Rows -----------------------------------------------------------------------------------===//

using HasRows = llvm::function_ref<bool(Value)>;

/// True if the first operand has rows, and the others belong to all rows alike.
static bool hasRowsAlone(Operation *op, HasRows hasRows) {
  return hasRows(op->getOperand(0)) && llvm::none_of(op->getOperands().drop_front(), hasRows);
}

bool MatmulOp::keepsRows(HasRows hasRows) {
  return !getTransposeA() && hasRowsAlone(*this, hasRows);
}
bool ConvOp::keepsRows(HasRows hasRows) { return hasRowsAlone(*this, hasRows); }
bool ConvTransposeOp::keepsRows(HasRows hasRows) { return hasRowsAlone(*this, hasRows); }
bool MaxPoolOp::keepsRows(HasRows) { return true; }
bool AvgPoolOp::keepsRows(HasRows) { return true; }
bool UpsampleOp::keepsRows(HasRows) { return true; }
bool PixelShuffleOp::keepsRows(HasRows) { return true; }
/// Evaluation normalises by the running statistics.
bool BatchNormOp::keepsRows(HasRows hasRows) { return hasRowsAlone(*this, hasRows); }
bool GroupNormOp::keepsRows(HasRows hasRows) { return hasRowsAlone(*this, hasRows); }
bool SoftmaxCrossEntropyOp::keepsRows(HasRows) { return true; }
