// Semantics of convolution, pooling, normalisation, matrix product and losses, and of their
// gradient ops.
//
// conv, its two gradients and conv_transpose are one sum of products over (big, weight, small),
// where big convolved with weight gives small; they differ in which of the three is the result.

#include "test/reference/Evaluator.h"

#include "llvm/ADT/TypeSwitch.h"

#include <array>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;
using namespace dlc::reference;

//===- Convolution ----------------------------------------------------------------------------===//

namespace {
/// Geometry of a convolution along depth, height, width; missing dimensions have extent 1.
struct Convolution {
  int64_t batch, groups, outChannels, inChannels; // channels per group
  std::array<int64_t, 3> big{1, 1, 1}, kernel{1, 1, 1}, small{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1}, low{0, 0, 0}, dilation{1, 1, 1};

  template <typename Op>
  Convolution(Op op, ArrayRef<int64_t> bigShape, ArrayRef<int64_t> weight,
              ArrayRef<int64_t> smallShape)
      : batch(bigShape[0]), groups(op.getGroups()), outChannels(weight[0] / groups),
        inChannels(weight[1]) {
    size_t rank = weight.size() - 2;
    for (size_t i = 0; i < rank; ++i) {
      size_t dim = 3 - rank + i;
      big[dim] = bigShape[i + 2];
      kernel[dim] = weight[i + 2];
      small[dim] = smallShape[i + 2];
      stride[dim] = op.getStrides()[i];
      low[dim] = op.getPaddingLow()[i];
      dilation[dim] = op.getDilations()[i];
    }
  }

  /// Positions [first, second) of `small` along a dimension whose tap k lies inside `big`.
  std::pair<int64_t, int64_t> range(size_t dim, int64_t k) const {
    int64_t shift = k * dilation[dim] - low[dim];
    int64_t first = shift >= 0 ? 0 : (-shift + stride[dim] - 1) / stride[dim];
    int64_t last = big[dim] - 1 - shift;
    return {first, last < 0 ? 0 : std::min(small[dim], last / stride[dim] + 1)};
  }

  /// Calls body(big row, stride in it, weight, small row, elements) for all rows that meet at a
  /// weight.
  template <typename Body>
  void forEachRow(double *bigData, double *weights, double *smallData, Body body) const {
    int64_t bigVolume = big[0] * big[1] * big[2], smallVolume = small[0] * small[1] * small[2];
    int64_t taps = kernel[0] * kernel[1] * kernel[2];
    std::vector<Row> rows = rowsOfPlanes();
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t o = 0; o < groups * outChannels; ++o)
        for (int64_t c = 0; c < inChannels; ++c) {
          int64_t channel = o / outChannels * inChannels + c;
          double *bigPlane = bigData + (n * groups * inChannels + channel) * bigVolume;
          double *kernelOfPlanes = weights + (o * inChannels + c) * taps;
          double *smallPlane = smallData + (n * groups * outChannels + o) * smallVolume;
          for (const Row &row : rows)
            body(bigPlane + row.big, stride[2], kernelOfPlanes[row.tap], smallPlane + row.small,
                 row.elements);
        }
  }

private:
  /// Where a row begins in `big` and `small`, and the tap at which these meet.
  struct Row {
    int64_t tap, big, small, elements;
  };

  std::vector<Row> rowsOfPlanes() const {
    std::vector<Row> rows;
    int64_t tap = 0;
    for (int64_t kd = 0; kd < kernel[0]; ++kd)
      for (int64_t kh = 0; kh < kernel[1]; ++kh)
        for (int64_t kw = 0; kw < kernel[2]; ++kw, ++tap) {
          auto [d0, d1] = range(0, kd);
          auto [h0, h1] = range(1, kh);
          auto [w0, w1] = range(2, kw);
          for (int64_t d = d0; d < d1; ++d)
            for (int64_t h = h0; h < h1; ++h)
              rows.push_back({tap, (at(0, d, kd) * big[1] + at(1, h, kh)) * big[2] + at(2, w0, kw),
                              (d * small[1] + h) * small[2] + w0, w1 - w0});
        }
    return rows;
  }

  int64_t at(size_t dim, int64_t position, int64_t k) const {
    return position * stride[dim] + k * dilation[dim] - low[dim];
  }
};
} // namespace

/// The sum of products that ends in `small`, `big` or `weight`, according to `body`.
template <typename Op, typename Body>
static void convolve(Op op, Tensor &big, Tensor &weight, Tensor &small, Body body) {
  Convolution(op, big.shape, weight.shape, small.shape)
      .forEachRow(big.data.data(), weight.data.data(), small.data.data(), body);
}

static void addIntoSmall(const double *big, int64_t step, double weight, double *small, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    small[i] += weight * big[i * step];
}

static void addIntoBig(double *big, int64_t step, double weight, const double *small, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    big[i * step] += weight * small[i];
}

static void addIntoWeight(const double *big, int64_t step, double &weight, const double *small,
                          int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += big[i * step] * small[i];
  weight += sum;
}

/// Adds the bias of a channel, then max(., 0), for ops that have them.
template <typename Op> static Tensor epilogue(Op op, Tensor y, const Tensor *bias) {
  int64_t channels = y.shape[1], inner = y.size() / (y.shape[0] * channels);
  for (int64_t i = 0; i < y.size(); ++i) {
    if (bias)
      y.data[i] += bias->data[i / inner % channels];
    if (op.getRelu() && y.data[i] < 0)
      y.data[i] = 0;
  }
  return y;
}

static const Tensor *biasOf(Operands operands) {
  return operands.size() > 2 ? operands[2] : nullptr;
}

static Tensor conv(ConvOp op, Operands operands) {
  Tensor x = *operands[0], weight = *operands[1], y = zerosFor(op.getY());
  convolve(op, x, weight, y, addIntoSmall);
  return epilogue(op, std::move(y), biasOf(operands));
}

static Tensor convTranspose(ConvTransposeOp op, Operands operands) {
  Tensor x = *operands[0], weight = *operands[1], y = zerosFor(op.getY());
  convolve(op, y, weight, x, addIntoBig);
  return epilogue(op, std::move(y), biasOf(operands));
}

static Tensor convGradData(ConvGradDataOp op, Operands operands) {
  Tensor dy = *operands[0], weight = *operands[1], dx = zerosFor(op.getDx());
  convolve(op, dx, weight, dy, addIntoBig);
  return dx;
}

static Tensor convGradFilter(ConvGradFilterOp op, Operands operands) {
  Tensor x = *operands[0], dy = *operands[1], dw = zerosFor(op.getDw());
  convolve(op, x, dw, dy, addIntoWeight);
  return dw;
}

static Tensor matmul(MatmulOp op, Operands operands) {
  const Tensor &a = *operands[0], &b = *operands[1];
  Tensor y = zerosFor(op.getY());
  bool ta = op.getTransposeA(), tb = op.getTransposeB();
  int64_t rows = y.shape[0], columns = y.shape[1], inner = a.shape[ta ? 0 : 1];
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t i = 0; i < b.shape[0]; ++i)
      for (int64_t j = 0; j < b.shape[1]; ++j) {
        int64_t k = tb ? j : i, n = tb ? i : j;
        y.data[m * columns + n] +=
            a.data[ta ? k * rows + m : m * inner + k] * b.data[i * b.shape[1] + j];
      }
  return epilogue(op, std::move(y), biasOf(operands));
}

//===- Pooling --------------------------------------------------------------------------------===//

/// Index in x of an element of the window that starts y[to]; nothing if it lies in the padding.
template <typename Op>
static std::optional<Shape> windowElement(Op op, ArrayRef<int64_t> to, ArrayRef<int64_t> element,
                                          ArrayRef<int64_t> xShape) {
  Shape from(to);
  for (size_t i = 0; i < element.size(); ++i) {
    from[i + 2] = to[i + 2] * op.getStrides()[i] + element[i] - op.getPaddingLow()[i];
    if (from[i + 2] < 0 || from[i + 2] >= xShape[i + 2])
      return std::nullopt;
  }
  return from;
}

static std::vector<Tensor> maxPool(MaxPoolOp op, const Tensor &x) {
  Tensor y(tensorType(op.getY()).getShape(), -std::numeric_limits<double>::infinity());
  Tensor index = zerosFor(op.getIndex());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> to) {
    double &best = y.at(to), position = 0;
    bool found = false;
    forEachIndex(op.getKernel(), [&](ArrayRef<int64_t> element) {
      if (std::optional<Shape> from = windowElement(op, to, element, x.shape)) {
        double value = x.at(*from);
        if (!found || value > best || (std::isnan(value) && !std::isnan(best))) {
          best = value;
          index.at(to) = position;
          found = true;
        }
      }
      ++position;
    });
  });
  return {std::move(y), std::move(index)};
}

static Tensor maxPoolGrad(MaxPoolGradOp op, const Tensor &dy, const Tensor &index) {
  Tensor dx = zerosFor(op.getDx());
  forEachIndex(dy.shape, [&](ArrayRef<int64_t> to) {
    double position = 0;
    forEachIndex(op.getKernel(), [&](ArrayRef<int64_t> element) {
      std::optional<Shape> from = windowElement(op, to, element, dx.shape);
      if (from && position == index.at(to))
        dx.at(*from) += dy.at(to);
      ++position;
    });
  });
  return dx;
}

/// Elements that a window's mean is over.
template <typename Op>
static double windowSize(Op op, ArrayRef<int64_t> to, ArrayRef<int64_t> xShape) {
  double size = 0;
  forEachIndex(op.getKernel(), [&](ArrayRef<int64_t> element) {
    size += op.getCountPadding() || windowElement(op, to, element, xShape);
  });
  return size;
}

static Tensor avgPool(AvgPoolOp op, const Tensor &x) {
  Tensor y = zerosFor(op.getY());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> to) {
    forEachIndex(op.getKernel(), [&](ArrayRef<int64_t> element) {
      if (std::optional<Shape> from = windowElement(op, to, element, x.shape))
        y.at(to) += x.at(*from);
    });
    y.at(to) /= windowSize(op, to, x.shape);
  });
  return y;
}

static Tensor avgPoolGrad(AvgPoolGradOp op, const Tensor &dy) {
  Tensor dx = zerosFor(op.getDx());
  forEachIndex(dy.shape, [&](ArrayRef<int64_t> to) {
    double share = dy.at(to) / windowSize(op, to, dx.shape);
    forEachIndex(op.getKernel(), [&](ArrayRef<int64_t> element) {
      if (std::optional<Shape> from = windowElement(op, to, element, dx.shape))
        dx.at(*from) += share;
    });
  });
  return dx;
}

//===- Upsampling -----------------------------------------------------------------------------===//

/// Calls body(from, share) for the elements of the small image that element `to` of the large one
/// is mixed of: up to two along each dimension, around the place of its centre.
template <typename Body>
static void forEachSource(ArrayRef<int64_t> to, ArrayRef<int64_t> scale, bool linear,
                          ArrayRef<int64_t> small, Body body) {
  for (uint64_t corner = 0; corner < uint64_t{1} << scale.size(); ++corner) {
    Shape from(to);
    double share = 1;
    for (size_t d = 0; d < scale.size(); ++d) {
      bool upper = corner >> d & 1;
      double place = (double(to[d + 2]) + 0.5) / double(scale[d]) - 0.5;
      place = std::clamp(place, 0.0, double(small[d + 2] - 1));
      if (!linear)
        place = std::floor(double(to[d + 2]) / double(scale[d]));
      double lower = std::floor(place);
      share *= upper ? place - lower : 1 - (place - lower);
      from[d + 2] = int64_t(lower) + upper;
    }
    if (share > 0)
      body(from, share);
  }
}

static Tensor upsample(UpsampleOp op, const Tensor &x) {
  Tensor y = zerosFor(op.getY());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> to) {
    forEachSource(to, op.getScale(), op.getLinear(), x.shape,
                  [&](const Shape &from, double share) { y.at(to) += share * x.at(from); });
  });
  return y;
}

static Tensor upsampleGrad(UpsampleGradOp op, const Tensor &dy) {
  Tensor dx = zerosFor(op.getDx());
  forEachIndex(dy.shape, [&](ArrayRef<int64_t> to) {
    forEachSource(to, op.getScale(), op.getLinear(), dx.shape,
                  [&](const Shape &from, double share) { dx.at(from) += share * dy.at(to); });
  });
  return dx;
}

/// Place r of pixel q along each dimension is channel c f^d + (r row-major) of the small image.
static Tensor pixelShuffle(PixelShuffleOp op, const Tensor &x) {
  Tensor y = zerosFor(op.getY());
  auto factor = int64_t(op.getFactor());
  const Tensor &large = op.getInverse() ? x : y;
  forEachIndex(large.shape, [&](ArrayRef<int64_t> place) {
    Shape small(place);
    for (size_t d = 2; d < place.size(); ++d) {
      small[1] = small[1] * factor + place[d] % factor;
      small[d] = place[d] / factor;
    }
    if (op.getInverse())
      y.at(small) = x.at(place);
    else
      y.at(place) = x.at(small);
  });
  return y;
}

//===- Normalisation --------------------------------------------------------------------------===//

/// Calls body(channel, position) for all elements.
template <typename Body> static void forEachChannelElement(const Tensor &x, Body body) {
  int64_t channels = x.shape[1], inner = x.size() / (x.shape[0] * channels);
  for (int64_t i = 0; i < x.size(); ++i)
    body(i / inner % channels, i);
}

/// Elements of a channel.
static int64_t rowsOf(const Tensor &x) { return x.size() / x.shape[1]; }

static std::vector<Tensor> batchNorm(BatchNormOp op, Operands operands) {
  const Tensor &x = *operands[0], &scale = *operands[1], &bias = *operands[2];
  Tensor mean = *operands[3], var = *operands[4], y(x.shape);
  auto count = double(rowsOf(x));
  if (op.getTraining()) {
    mean = var = Tensor(scale.shape);
    forEachChannelElement(x, [&](int64_t c, int64_t i) { mean.data[c] += x.data[i] / count; });
    forEachChannelElement(x, [&](int64_t c, int64_t i) {
      var.data[c] += (x.data[i] - mean.data[c]) * (x.data[i] - mean.data[c]) / count;
    });
  }
  double epsilon = op.getEpsilon().convertToDouble();
  forEachChannelElement(x, [&](int64_t c, int64_t i) {
    double normalised = (x.data[i] - mean.data[c]) / std::sqrt(var.data[c] + epsilon);
    y.data[i] = scale.data[c] * normalised + bias.data[c];
  });
  return {std::move(y), std::move(mean), std::move(var)};
}

static std::vector<Tensor> batchNormGrad(BatchNormGradOp op, Operands operands) {
  const Tensor &dy = *operands[0], &x = *operands[1], &scale = *operands[2];
  const Tensor &mean = *operands[3], &var = *operands[4];
  Tensor dx(x.shape), dscale(scale.shape), dbias(scale.shape);
  double epsilon = op.getEpsilon().convertToDouble(), count = double(rowsOf(x));
  auto deviation = [&](int64_t c) { return std::sqrt(var.data[c] + epsilon); };
  auto normalised = [&](int64_t c, int64_t i) { return (x.data[i] - mean.data[c]) / deviation(c); };
  forEachChannelElement(x, [&](int64_t c, int64_t i) {
    dscale.data[c] += dy.data[i] * normalised(c, i);
    dbias.data[c] += dy.data[i];
  });
  forEachChannelElement(x, [&](int64_t c, int64_t i) {
    dx.data[i] = scale.data[c] / deviation(c) *
                 (dy.data[i] - dbias.data[c] / count - normalised(c, i) * dscale.data[c] / count);
  });
  return {std::move(dx), std::move(dscale), std::move(dbias)};
}

/// Calls body(group, channel, position) for all elements; groups are those of all samples.
template <typename Body>
static void forEachGroupElement(const Tensor &x, int64_t groups, Body body) {
  int64_t perGroup = x.size() / (x.shape[0] * groups);
  forEachChannelElement(x, [&](int64_t c, int64_t i) { body(i / perGroup, c, i); });
}

/// Where scale and bias have what belongs to an element: per channel, or per element of a sample.
static int64_t placeInScale(const Tensor &x, const Tensor &scale, int64_t channel, int64_t i) {
  return scale.rank() == 1 ? channel : i % scale.size();
}

static std::vector<Tensor> groupNorm(GroupNormOp op, Operands operands) {
  const Tensor &x = *operands[0], &scale = *operands[1], &bias = *operands[2];
  auto groups = static_cast<int64_t>(op.getGroups());
  Tensor y(x.shape), mean = zerosFor(op.getMean()), var = mean;
  double count = double(x.size()) / double(mean.size()),
         epsilon = op.getEpsilon().convertToDouble();
  forEachGroupElement(x, groups,
                      [&](int64_t g, int64_t, int64_t i) { mean.data[g] += x.data[i] / count; });
  forEachGroupElement(x, groups, [&](int64_t g, int64_t, int64_t i) {
    var.data[g] += (x.data[i] - mean.data[g]) * (x.data[i] - mean.data[g]) / count;
  });
  forEachGroupElement(x, groups, [&](int64_t g, int64_t c, int64_t i) {
    int64_t place = placeInScale(x, scale, c, i);
    double normalised = (x.data[i] - mean.data[g]) / std::sqrt(var.data[g] + epsilon);
    y.data[i] = scale.data[place] * normalised + bias.data[place];
  });
  return {std::move(y), std::move(mean), std::move(var)};
}

static std::vector<Tensor> groupNormGrad(GroupNormGradOp op, Operands operands) {
  const Tensor &dy = *operands[0], &x = *operands[1], &scale = *operands[2];
  const Tensor &mean = *operands[3], &var = *operands[4];
  Tensor dx(x.shape), dscale(scale.shape), dbias(scale.shape), sum(mean.shape), product(mean.shape);
  double epsilon = op.getEpsilon().convertToDouble(),
         count = double(x.size()) / double(mean.size());
  auto deviation = [&](int64_t g) { return std::sqrt(var.data[g] + epsilon); };
  auto normalised = [&](int64_t g, int64_t i) { return (x.data[i] - mean.data[g]) / deviation(g); };
  forEachGroupElement(x, mean.shape[1], [&](int64_t g, int64_t c, int64_t i) {
    int64_t place = placeInScale(x, scale, c, i);
    dscale.data[place] += dy.data[i] * normalised(g, i);
    dbias.data[place] += dy.data[i];
    sum.data[g] += scale.data[place] * dy.data[i];
    product.data[g] += scale.data[place] * dy.data[i] * normalised(g, i);
  });
  forEachGroupElement(x, mean.shape[1], [&](int64_t g, int64_t c, int64_t i) {
    double scaled = scale.data[placeInScale(x, scale, c, i)] * dy.data[i];
    dx.data[i] =
        (scaled - sum.data[g] / count - normalised(g, i) * product.data[g] / count) / deviation(g);
  });
  return {std::move(dx), std::move(dscale), std::move(dbias)};
}

//===- Loss -----------------------------------------------------------------------------------===//

/// Elements of a row (image and pixel) are this far apart, and where the first one is.
static std::pair<int64_t, int64_t> placeOfRow(const Tensor &logits, int64_t row) {
  int64_t pixels = logits.size() / (logits.shape[0] * logits.shape[1]);
  return {pixels, row / pixels * pixels * logits.shape[1] + row % pixels};
}

/// log(softmax(logits)) of a row, and the target distribution.
template <typename Op>
static std::pair<std::vector<double>, std::vector<double>>
crossEntropyRow(Op op, const Tensor &logits, const Tensor &label, int64_t row) {
  int64_t classes = logits.shape[1];
  auto [stride, first] = placeOfRow(logits, row);
  std::vector<double> values;
  values.reserve(classes);
  for (int64_t c = 0; c < classes; ++c)
    values.push_back(logits.data[first + c * stride]);
  double largest = *llvm::max_element(values), sum = 0;
  for (double value : values)
    sum += std::exp(value - largest);
  double smoothing = op.getSmoothing().convertToDouble();
  std::vector<double> logProbability, target(classes, smoothing / double(classes));
  for (double value : values)
    logProbability.push_back(value - largest - std::log(sum));
  target[static_cast<int64_t>(label.data[row])] += 1 - smoothing;
  return {logProbability, target};
}

static Tensor crossEntropy(SoftmaxCrossEntropyOp op, const Tensor &logits, const Tensor &label) {
  Tensor loss = zerosFor(op.getLoss());
  for (int64_t row = 0; row < loss.size(); ++row) {
    auto [logProbability, target] = crossEntropyRow(op, logits, label, row);
    for (auto [p, t] : llvm::zip(logProbability, target))
      loss.data[row] -= t * p;
  }
  return loss;
}

static Tensor crossEntropyGrad(SoftmaxCrossEntropyGradOp op, const Tensor &logits,
                               const Tensor &label, const Tensor &dloss) {
  Tensor dlogits(logits.shape);
  for (int64_t row = 0; row < label.size(); ++row) {
    auto [logProbability, target] = crossEntropyRow(op, logits, label, row);
    auto [stride, first] = placeOfRow(logits, row);
    for (int64_t c = 0; c < logits.shape[1]; ++c)
      dlogits.data[first + c * stride] =
          (std::exp(logProbability[c]) - target[c]) * dloss.data[row];
  }
  return dlogits;
}

Results reference::evaluateNetwork(Operation *op, Operands x) {
  auto one = [](Tensor y) -> Results { return std::vector<Tensor>{std::move(y)}; };
  return TypeSwitch<Operation *, Results>(op)
      .Case([&](ConvOp op) { return one(conv(op, x)); })
      .Case([&](ConvTransposeOp op) { return one(convTranspose(op, x)); })
      .Case([&](ConvGradDataOp op) { return one(convGradData(op, x)); })
      .Case([&](ConvGradFilterOp op) { return one(convGradFilter(op, x)); })
      .Case([&](MatmulOp op) { return one(matmul(op, x)); })
      .Case([&](MaxPoolOp op) { return maxPool(op, *x[0]); })
      .Case([&](MaxPoolGradOp op) { return one(maxPoolGrad(op, *x[0], *x[1])); })
      .Case([&](AvgPoolOp op) { return one(avgPool(op, *x[0])); })
      .Case([&](AvgPoolGradOp op) { return one(avgPoolGrad(op, *x[0])); })
      .Case([&](UpsampleOp op) { return one(upsample(op, *x[0])); })
      .Case([&](UpsampleGradOp op) { return one(upsampleGrad(op, *x[0])); })
      .Case([&](PixelShuffleOp op) { return one(pixelShuffle(op, *x[0])); })
      .Case([&](BatchNormOp op) { return batchNorm(op, x); })
      .Case([&](BatchNormGradOp op) { return batchNormGrad(op, x); })
      .Case([&](GroupNormOp op) { return groupNorm(op, x); })
      .Case([&](GroupNormGradOp op) { return groupNormGrad(op, x); })
      .Case([&](SoftmaxCrossEntropyOp op) { return one(crossEntropy(op, *x[0], *x[1])); })
      .Case([&](SoftmaxCrossEntropyGradOp op) {
        return one(crossEntropyGrad(op, *x[0], *x[1], *x[2]));
      })
      .Default(Results());
}
