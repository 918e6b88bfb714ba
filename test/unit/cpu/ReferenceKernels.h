// Plain loops over logical tensors in double: what library kernels are compared with. Spatial ranks
// 1 to 3 are lifted to 3 by leading extents of 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dlc::rt::test {

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> values; // row-major

  explicit Tensor(std::vector<int64_t> shape);
  /// Uniform in [-1, 1).
  static Tensor random(std::vector<int64_t> shape, unsigned seed);
};

struct ConvShape {
  int64_t stride, padding, dilation, groups;
};

Tensor conv(const Tensor &x, const Tensor &w, ConvShape shape);
Tensor convGradData(const Tensor &dy, const Tensor &w, const std::vector<int64_t> &xShape,
                    ConvShape shape);
Tensor convGradFilter(const Tensor &x, const Tensor &dy, const std::vector<int64_t> &wShape,
                      ConvShape shape);
Tensor matmul(const Tensor &a, const Tensor &b);
Tensor transposed(const Tensor &matrix);
/// Adds a bias along dimension 1, then applies ReLU if asked.
Tensor addBias(const Tensor &x, const Tensor &bias, bool relu);
/// 2x2 windows, stride 2; with the row-major index of each maximum in x.
std::pair<Tensor, std::vector<std::size_t>> maxPool(const Tensor &x);
Tensor maxPoolGrad(const Tensor &dy, const std::vector<std::size_t> &argmax,
                   const std::vector<int64_t> &xShape);
/// Euclidean norm of the difference over that of the expectation.
double relativeError(const Tensor &got, const Tensor &expected);

} // namespace dlc::rt::test
