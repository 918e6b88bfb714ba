#include "test/cuda/Product.h"

#include "test/cuda/Tensors.h"

#include <algorithm>

namespace dlc::rt::test {
namespace {

StoredTensor matrix(DType dtype, uint64_t rows, uint64_t columns) {
  auto width = static_cast<int64_t>(columns);
  return {dtype, {static_cast<int64_t>(rows), width}, {width, 1}};
}

std::vector<float> transposed(const std::vector<float> &values, uint64_t rows, uint64_t columns) {
  std::vector<float> turned(values.size());
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < columns; ++j)
      turned[j * rows + i] = values[i * columns + j];
  return turned;
}

/// A factor, row-major as [rows, columns].
std::vector<float> factor(const ProductPlan &plan, std::span<std::byte> memory, uint64_t rows,
                          uint64_t columns, bool isTransposed, const char *name) {
  std::vector<float> values =
      isTransposed
          ? transposed(matrix(plan.factors, columns, rows).read(memory, name), columns, rows)
          : matrix(plan.factors, rows, columns).read(memory, name);
  if (plan.factors == DType::F32 && !plan.exact)
    roundToTf32(values);
  return values;
}

} // namespace

void multiply(const ProductPlan &plan, std::span<const std::span<std::byte>> operands) {
  size_t first = plan.swapped ? 1 : 0;
  std::vector<float> a = factor(plan, operands[first], plan.m, plan.k, plan.transposeA, "a");
  std::vector<float> b = factor(plan, operands[1 - first], plan.k, plan.n, plan.transposeB, "b");
  std::vector<float> c(plan.m * plan.n), bias(plan.n);
  if (plan.bias)
    bias = matrix(plan.result, 1, plan.n).read(operands[2], "bias");
  for (uint64_t i = 0; i < plan.m; ++i) {
    float *row = &c[i * plan.n];
    for (uint64_t l = 0; l < plan.k; ++l) {
      float left = a[i * plan.k + l];
      const float *right = &b[l * plan.n];
      for (uint64_t j = 0; j < plan.n; ++j)
        row[j] += left * right[j];
    }
    for (uint64_t j = 0; j < plan.n; ++j) {
      row[j] += bias[j];
      if (plan.relu && row[j] < 0)
        row[j] = 0;
    }
  }
  matrix(plan.result, plan.m, plan.n).write(c, operands[plan.bias ? 3 : 2], "c");
}

} // namespace dlc::rt::test
