#include "test/unit/cpu/ReferenceKernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace dlc::rt::test {
namespace {

size_t elementsOf(const std::vector<int64_t> &shape) {
  size_t elements = 1;
  for (int64_t extent : shape)
    elements *= static_cast<size_t>(extent);
  return elements;
}

// [N, C, S...] as [N, C, D, H, W], kernels and paddings of lifted dimensions being 1 and 0.
using Shape5 = std::array<int64_t, 5>;

Shape5 lift(const std::vector<int64_t> &shape) {
  Shape5 lifted{shape[0], shape[1], 1, 1, 1};
  std::copy(shape.begin() + 2, shape.end(),
            lifted.end() - static_cast<std::ptrdiff_t>(shape.size() - 2));
  return lifted;
}

// Calls multiply(x index, w index, y index) for every product of a convolution.
template <typename Multiply>
void forEachProduct(const std::vector<int64_t> &xShape, const std::vector<int64_t> &wShape,
                    const std::vector<int64_t> &yShape, ConvShape shape, Multiply &&multiply) {
  Shape5 x = lift(xShape), w = lift(wShape), y = lift(yShape);
  size_t firstReal = 7 - xShape.size(); // lifted dimensions have neither stride nor padding
  auto source = [&](size_t dim, int64_t out, int64_t tap) {
    return dim < firstReal ? out : out * shape.stride - shape.padding + tap * shape.dilation;
  };
  auto flat = [](const Shape5 &extents, const Shape5 &index) {
    int64_t at = 0;
    for (size_t dim = 0; dim < 5; ++dim)
      at = at * extents[dim] + index[dim];
    return static_cast<size_t>(at);
  };
  int64_t perGroup = w[0] / shape.groups;
  Shape5 o{}, k{};
  for (o[0] = 0; o[0] < y[0]; ++o[0])
    for (o[1] = 0; o[1] < y[1]; ++o[1])
      for (o[2] = 0; o[2] < y[2]; ++o[2])
        for (o[3] = 0; o[3] < y[3]; ++o[3])
          for (o[4] = 0; o[4] < y[4]; ++o[4])
            for (k[1] = 0; k[1] < w[1]; ++k[1])
              for (k[2] = 0; k[2] < w[2]; ++k[2])
                for (k[3] = 0; k[3] < w[3]; ++k[3])
                  for (k[4] = 0; k[4] < w[4]; ++k[4]) {
                    Shape5 in{o[0], o[1] / perGroup * w[1] + k[1]};
                    bool inside = true;
                    for (size_t dim = 2; dim < 5; ++dim) {
                      in[dim] = source(dim, o[dim], k[dim]);
                      inside = inside && in[dim] >= 0 && in[dim] < x[dim];
                    }
                    k[0] = o[1];
                    if (inside)
                      multiply(flat(x, in), flat(w, k), flat(y, o));
                  }
}

Tensor fromDoubles(const std::vector<int64_t> &shape, const std::vector<double> &sums) {
  Tensor result(shape);
  std::ranges::transform(sums, result.values.begin(),
                         [](double sum) { return static_cast<float>(sum); });
  return result;
}

} // namespace

Tensor::Tensor(std::vector<int64_t> shape)
    : shape(std::move(shape)), values(elementsOf(this->shape), 0.0f) {}

Tensor Tensor::random(std::vector<int64_t> shape, unsigned seed) {
  Tensor tensor(std::move(shape));
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::ranges::generate(tensor.values, [&] { return uniform(generator); });
  return tensor;
}

Tensor conv(const Tensor &x, const Tensor &w, ConvShape shape) {
  std::vector<int64_t> yShape{x.shape[0], w.shape[0]};
  for (size_t dim = 2; dim < x.shape.size(); ++dim)
    yShape.push_back((x.shape[dim] + 2 * shape.padding - (w.shape[dim] - 1) * shape.dilation - 1) /
                         shape.stride +
                     1);
  std::vector<double> sums(elementsOf(yShape));
  forEachProduct(x.shape, w.shape, yShape, shape, [&](size_t xi, size_t wi, size_t yi) {
    sums[yi] += static_cast<double>(x.values[xi]) * w.values[wi];
  });
  return fromDoubles(yShape, sums);
}

Tensor convGradData(const Tensor &dy, const Tensor &w, const std::vector<int64_t> &xShape,
                    ConvShape shape) {
  std::vector<double> sums(elementsOf(xShape));
  forEachProduct(xShape, w.shape, dy.shape, shape, [&](size_t xi, size_t wi, size_t yi) {
    sums[xi] += static_cast<double>(dy.values[yi]) * w.values[wi];
  });
  return fromDoubles(xShape, sums);
}

Tensor convGradFilter(const Tensor &x, const Tensor &dy, const std::vector<int64_t> &wShape,
                      ConvShape shape) {
  std::vector<double> sums(elementsOf(wShape));
  forEachProduct(x.shape, wShape, dy.shape, shape, [&](size_t xi, size_t wi, size_t yi) {
    sums[wi] += static_cast<double>(dy.values[yi]) * x.values[xi];
  });
  return fromDoubles(wShape, sums);
}

Tensor matmul(const Tensor &a, const Tensor &b) {
  int64_t m = a.shape[0], k = a.shape[1], n = b.shape[1];
  Tensor c({m, n});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += static_cast<double>(a.values[i * k + l]) * b.values[l * n + j];
      c.values[i * n + j] = static_cast<float>(sum);
    }
  return c;
}

Tensor transposed(const Tensor &matrix) {
  int64_t m = matrix.shape[0], n = matrix.shape[1];
  Tensor result({n, m});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      result.values[j * m + i] = matrix.values[i * n + j];
  return result;
}

Tensor addBias(const Tensor &x, const Tensor &bias, bool relu) {
  Tensor y = x;
  size_t inner = elementsOf(x.shape) / static_cast<size_t>(x.shape[0] * x.shape[1]);
  for (size_t i = 0; i < y.values.size(); ++i) {
    y.values[i] += bias.values[i / inner % bias.values.size()];
    if (relu)
      y.values[i] = std::max(y.values[i], 0.0f);
  }
  return y;
}

std::pair<Tensor, std::vector<size_t>> maxPool(const Tensor &x) {
  Tensor y({x.shape[0], x.shape[1], x.shape[2] / 2, x.shape[3] / 2});
  std::vector<size_t> argmax;
  auto width = static_cast<size_t>(x.shape[3]);
  for (size_t i = 0; i < y.values.size(); ++i) {
    size_t column = i % (width / 2), row = i / (width / 2);
    size_t first = 2 * row * width + 2 * column;
    size_t best = first;
    for (size_t at : {first + 1, first + width, first + width + 1})
      if (x.values[at] > x.values[best])
        best = at;
    argmax.push_back(best);
    y.values[i] = x.values[best];
  }
  return {y, argmax};
}

Tensor maxPoolGrad(const Tensor &dy, const std::vector<size_t> &argmax,
                   const std::vector<int64_t> &xShape) {
  Tensor dx(xShape);
  for (size_t i = 0; i < argmax.size(); ++i)
    dx.values[argmax[i]] += dy.values[i];
  return dx;
}

double relativeError(const Tensor &got, const Tensor &expected) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    double delta = static_cast<double>(got.values[i]) - expected.values[i];
    difference += delta * delta;
    norm += static_cast<double>(expected.values[i]) * expected.values[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

} // namespace dlc::rt::test
