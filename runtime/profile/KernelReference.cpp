#include "runtime/profile/KernelReference.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/TensorIo.h"

#include <algorithm>
#include <cmath>

namespace dlc::rt {

void ExactSum::add(double term) {
  value += term;
  magnitudes += std::fabs(term);
  squares += term * term;
  ++terms;
}

size_t firstResult(const KernelRequest &request) {
  return request.operands.size() - (request.op == KernelOp::MaxPool ? 2 : 1);
}

//===- Operands -------------------------------------------------------------------------------===//

KernelReference::Positions::Positions(const OperandType &operand) : byDim(operand.shape.size()) {
  std::vector<int64_t> index(operand.shape.size(), 0);
  for (size_t dim = 0; dim < byDim.size(); index[dim++] = 0)
    for (int64_t i = 0; i < operand.shape[dim]; ++i) {
      index[dim] = i;
      byDim[dim].push_back(operand.layout->offsetOf(operand.shape, index));
    }
}

KernelReference::KernelReference(const KernelRequest &request,
                                 std::vector<std::span<const std::byte>> operands)
    : request(request), operands(std::move(operands)) {
  for (const OperandType &operand : request.operands)
    positions.emplace_back(operand);
}

double KernelReference::read(size_t operand, int64_t position) const {
  DType dtype = request.operands[operand].dtype;
  return readScalar(dtype,
                    operands[operand].data() + static_cast<size_t>(position) * sizeOf(dtype));
}

int64_t KernelReference::positionOf(const std::vector<int64_t> &index) const {
  const OperandType &result = request.operands[firstResult(request)];
  return result.layout->offsetOf(result.shape, index);
}

//===- Sums of products -----------------------------------------------------------------------===//

ExactSum KernelReference::sumOfProducts(std::span<const Pairs> dims) const {
  ExactSum sum;
  auto visit = [&](auto &self, size_t dim, int64_t a, int64_t b) -> void {
    if (dim == dims.size())
      return sum.add(read(0, a) * read(1, b));
    for (auto [nextA, nextB] : dims[dim])
      self(self, dim + 1, a + nextA, b + nextB);
  };
  visit(visit, 0, 0, 0);
  return sum;
}

/// The samples or channels that an element adds up, in its own group.
KernelReference::Pairs KernelReference::channels(const std::vector<int64_t> &index) const {
  const Positions &a = positions[0], &b = positions[1];
  const std::vector<int64_t> &weight = request.operands[*weightOperand(request.op)].shape;
  int64_t outputs = weight[0] / request.groups, inputs = weight[1];
  Pairs pairs;
  auto add = [&](int64_t n, int64_t channel, int64_t row, int64_t column) {
    pairs.emplace_back(a.of(0, n) + a.of(1, channel), b.of(0, row) + b.of(1, column));
  };
  if (request.op == KernelOp::Conv)
    for (int64_t i = 0; i < inputs; ++i)
      add(index[0], index[1] / outputs * inputs + i, index[1], i);
  else if (request.op == KernelOp::ConvGradData)
    for (int64_t o = index[1] / inputs * outputs, end = o + outputs; o < end; ++o)
      add(index[0], o, o, index[1] % inputs);
  else
    for (int64_t n = 0; n < a.extent(0); ++n)
      add(n, index[0] / outputs * inputs + index[1], n, index[0]);
  return pairs;
}

/// Along a dimension of space: `place` meets pixel place * stride - padding + tap * dilation at
/// `tap`, and an element is that of one of the three.
KernelReference::Pairs KernelReference::window(size_t space, int64_t index) const {
  size_t dim = space + 2;
  const Positions &a = positions[0], &b = positions[1];
  int64_t stride = request.strides[space], dilation = request.dilations[space];
  int64_t low = request.paddingLow[space];
  Pairs pairs;
  for (int64_t i = 0; i < b.extent(dim); ++i) {
    int64_t first = 0; // of operand a: a pixel, or a place
    if (request.op == KernelOp::ConvGradData) {
      int64_t onPlaces = index + low - i * dilation;
      first = onPlaces % stride == 0 ? onPlaces / stride : -1;
    } else {
      bool isTap = request.op == KernelOp::Conv;
      first = (isTap ? index : i) * stride - low + (isTap ? i : index) * dilation;
    }
    if (a.has(dim, first))
      pairs.emplace_back(a.of(dim, first), b.of(dim, i));
  }
  return pairs;
}

ExactSum KernelReference::convolution(const std::vector<int64_t> &index) const {
  std::vector<Pairs> dims{channels(index)};
  for (size_t space = 0; space + 2 < index.size(); ++space)
    dims.push_back(window(space, index[space + 2]));
  return sumOfProducts(dims);
}

/// Of rows of a and columns of b, which may lie transposed.
ExactSum KernelReference::matrixProduct(const std::vector<int64_t> &index) const {
  size_t row = request.transposeA ? 1 : 0, column = request.transposeB ? 0 : 1;
  const Positions &a = positions[0], &b = positions[1];
  Pairs inner;
  for (int64_t k = 0; k < a.extent(1 - row); ++k)
    inner.emplace_back(a.of(row, index[0]) + a.of(1 - row, k),
                       b.of(column, index[1]) + b.of(1 - column, k));
  return sumOfProducts({&inner, 1});
}

//===- Results --------------------------------------------------------------------------------===//

ExactSum KernelReference::largest(const std::vector<int64_t> &index) const {
  ExactSum found;
  auto visit = [&](auto &self, size_t dim, int64_t position) -> void {
    if (dim == index.size()) {
      double value = read(0, position);
      found = {found.terms == 0 ? value : std::max(found.value, value), 0, 0, 1};
      return;
    }
    size_t space = dim - 2;
    for (int64_t tap = 0; tap < request.kernel[space]; ++tap) {
      int64_t pixel = index[dim] * request.strides[space] - request.paddingLow[space] +
                      tap * request.dilations[space];
      if (positions[0].has(dim, pixel))
        self(self, dim + 1, position + positions[0].of(dim, pixel));
    }
  };
  visit(visit, 2, positions[0].of(0, index[0]) + positions[0].of(1, index[1]));
  return found;
}

std::optional<ExactSum> KernelReference::at(const std::vector<int64_t> &index) const {
  ExactSum sum;
  switch (request.op) {
  case KernelOp::Conv:
  case KernelOp::ConvGradData:
  case KernelOp::ConvGradFilter:
    sum = convolution(index);
    break;
  case KernelOp::Matmul:
    sum = matrixProduct(index);
    break;
  case KernelOp::MaxPool:
    return largest(index);
  case KernelOp::Reorder: {
    const OperandType &from = request.operands[0];
    return ExactSum{read(0, from.layout->offsetOf(from.shape, index)), 0, 0, 1};
  }
  case KernelOp::MaxPoolGrad:
    return std::nullopt;
  }
  if (request.bias)
    sum.add(read(2, positions[2].of(0, index[1])));
  if (request.relu)
    sum.value = std::max(sum.value, 0.0);
  return sum;
}

} // namespace dlc::rt
