// Semantics of the ops that move, repeat or reduce elements.

#include "test/reference/Evaluator.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;
using namespace dlc::reference;

static Tensor constant(ConstantOp op) {
  Tensor y = zerosFor(op.getResult());
  auto elements = cast<DenseElementsAttr>(op.getValue());
  if (isa<FloatType>(elements.getElementType()))
    llvm::transform(elements.getValues<APFloat>(), y.data.begin(),
                    [](const APFloat &value) { return value.convertToDouble(); });
  else
    llvm::transform(elements.getValues<APInt>(), y.data.begin(), [](const APInt &value) {
      return value.getBitWidth() == 1 ? double(value.getZExtValue()) : double(value.getSExtValue());
    });
  return y;
}

static Tensor iota(IotaOp op) {
  Tensor y = zerosFor(op.getY());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> i) { y.at(i) = double(i[op.getDim()]); });
  return y;
}

static Tensor broadcast(BroadcastOp op, const Tensor &x) {
  Tensor y = zerosFor(op.getY());
  Shape from(x.rank());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> to) {
    for (auto [i, dim] : llvm::enumerate(op.getDims()))
      from[i] = to[dim];
    y.at(to) = x.at(from);
  });
  return y;
}

template <typename Op, typename Combine>
static Tensor reduce(Op op, const Tensor &x, double start, Combine combine) {
  Tensor y(tensorType(op.getY()).getShape(), start);
  forEachIndex(x.shape, [&](ArrayRef<int64_t> from) {
    Shape to;
    for (auto [dim, i] : llvm::enumerate(from))
      if (!llvm::is_contained(op.getDims(), static_cast<int64_t>(dim)))
        to.push_back(i);
    double &sum = y.at(to);
    sum = combine(sum, x.at(from));
  });
  return y;
}

static Tensor transpose(TransposeOp op, const Tensor &x) {
  Tensor y = zerosFor(op.getY());
  Shape from(x.rank());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> to) {
    for (auto [i, dim] : llvm::enumerate(op.getPermutation()))
      from[dim] = to[i];
    y.at(to) = x.at(from);
  });
  return y;
}

/// Copies the box of `x` at `from` and of extent `size` to the box of `y` at `to`.
static void copyBox(const Tensor &x, ArrayRef<int64_t> from, Tensor &y, ArrayRef<int64_t> to,
                    ArrayRef<int64_t> size) {
  Shape source(x.rank()), target(x.rank());
  forEachIndex(size, [&](ArrayRef<int64_t> i) {
    for (size_t dim = 0; dim < i.size(); ++dim) {
      source[dim] = from[dim] + i[dim];
      target[dim] = to[dim] + i[dim];
    }
    y.at(target) = x.at(source);
  });
}

static Tensor concat(ConcatOp op, Operands inputs) {
  Tensor y = zerosFor(op.getY());
  Shape from(y.rank(), 0), to(y.rank(), 0);
  for (const Tensor *input : inputs) {
    copyBox(*input, from, y, to, input->shape);
    to[op.getDim()] += input->shape[op.getDim()];
  }
  return y;
}

static Tensor slice(SliceOp op, const Tensor &x) {
  Tensor y = zerosFor(op.getY());
  copyBox(x, op.getStart(), y, Shape(x.rank(), 0), op.getSize());
  return y;
}

/// y[i] = x[placeOf(i[d], d)] in each dimension d.
static Tensor gathered(Value result, const Tensor &x,
                       llvm::function_ref<int64_t(int64_t, size_t)> placeOf) {
  Tensor y = zerosFor(result);
  Shape from(x.rank());
  forEachIndex(y.shape, [&](ArrayRef<int64_t> i) {
    for (size_t d = 0; d < from.size(); ++d)
      from[d] = placeOf(i[d], d);
    y.at(i) = x.at(from);
  });
  return y;
}

static Tensor pad(PadOp op, const Tensor &x) {
  Tensor y(tensorType(op.getY()).getShape(), op.getValue().convertToDouble());
  copyBox(x, Shape(x.rank(), 0), y, op.getLow(), x.shape);
  return y;
}

static Tensor reshaped(Value result, const Tensor &x) {
  Tensor y = x;
  y.shape = Shape(tensorType(result).getShape());
  return y;
}

/// Of f32: what f64 holds beyond that would be infinite.
static Tensor countNonfinite(Operands x) {
  Tensor count((ArrayRef<int64_t>()));
  double scale = x.back()->data[0];
  for (const Tensor *gradient : x.drop_back())
    for (double value : gradient->data)
      count.data[0] += !(std::fabs(value * scale) <= std::numeric_limits<float>::max());
  return count;
}

Results reference::evaluateShape(Operation *op, Operands x) {
  auto one = [](Tensor y) -> Results { return std::vector<Tensor>{std::move(y)}; };
  return TypeSwitch<Operation *, Results>(op)
      .Case([&](ConstantOp op) { return one(constant(op)); })
      .Case([&](IotaOp op) { return one(iota(op)); })
      .Case([&](BroadcastOp op) { return one(broadcast(op, *x[0])); })
      .Case([&](ReduceSumOp op) {
        return one(reduce(op, *x[0], 0, [](double a, double b) { return a + b; }));
      })
      .Case([&](ReduceMaxOp op) {
        double lowest = -std::numeric_limits<double>::infinity();
        return one(
            reduce(op, *x[0], lowest, [](double a, double b) { return a >= b || a != a ? a : b; }));
      })
      .Case([&](CountNonfiniteOp) { return one(countNonfinite(x)); })
      .Case([&](ReshapeOp op) { return one(reshaped(op.getY(), *x[0])); })
      .Case([&](TransposeOp op) { return one(transpose(op, *x[0])); })
      .Case([&](ConcatOp op) { return one(concat(op, x)); })
      .Case([&](SliceOp op) { return one(slice(op, *x[0])); })
      .Case([&](SubsampleOp op) {
        return one(gathered(op.getY(), *x[0],
                            [&](int64_t i, size_t d) { return i * op.getStrides()[d]; }));
      })
      .Case([&](RepeatOp op) {
        return one(
            gathered(op.getY(), *x[0], [&](int64_t i, size_t d) { return i / op.getTimes()[d]; }));
      })
      .Case([&](PadOp op) { return one(pad(op, *x[0])); })
      .Case([&](ReorderOp) { return one(*x[0]); })
      .Default(Results());
}
