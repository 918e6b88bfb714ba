// Elements of library kernels by their definition, by hand.

#include "runtime/profile/KernelReference.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/TensorIo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

using namespace dlc::rt;
using Index = std::vector<int64_t>;

namespace {

/// A request's operands, and values for them by logical index.
class Kernel {
public:
  explicit Kernel(KernelOp op) { request.op = op; }

  /// Row-major unless a layout is named.
  Kernel &operand(Index shape, std::vector<float> values, const char *layout = nullptr,
                  DType dtype = DType::F32) {
    Layout chosen = layout ? *Layout::parse(layout) : Layout::rowMajor(shape.size());
    PhysicalType type(dtype, shape, chosen);
    memory.emplace_back(type.bytes());
    values.resize(type.logicalElements());
    writeTensor(type, values, memory.back());
    request.operands.push_back({dtype, std::move(shape), chosen});
    return *this;
  }
  Kernel &window(Index strides, Index low, Index dilations) {
    request.strides = std::move(strides);
    request.paddingLow = std::move(low);
    request.dilations = std::move(dilations);
    return *this;
  }
  double at(const Index &index) const { return sum(index).value; }
  ExactSum sum(const Index &index) const {
    return *KernelReference(request, {memory.begin(), memory.end()}).at(index);
  }

  KernelRequest request;

private:
  std::vector<std::vector<std::byte>> memory;
};

std::vector<float> counted(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

} // namespace

// x = 1 ... 6 and a window of two taps, 10 and 1.
TEST(KernelReference, ConvolvesWithStridesPaddingAndDilation) {
  Kernel kernel(KernelOp::Conv);
  kernel.operand({1, 1, 6}, counted(6)).operand({1, 1, 2}, {10, 1}).operand({1, 1, 3}, {});
  kernel.window({2}, {1}, {3}); // taps at 2 p - 1 and 2 p + 2
  EXPECT_EQ(kernel.at({0, 0, 0}), 3);
  EXPECT_EQ(kernel.at({0, 0, 1}), 20 + 5);
  EXPECT_EQ(kernel.at({0, 0, 2}), 40);
  ExactSum sum = kernel.sum({0, 0, 1});
  EXPECT_EQ(sum.terms, 2U);
  EXPECT_EQ(sum.magnitudes, 25);
  EXPECT_EQ(sum.squares, 400 + 25);
}

TEST(KernelReference, ConvolvesInGroupsWithBiasAndReLU) {
  Kernel kernel(KernelOp::Conv);
  kernel.request.groups = 2;
  kernel.request.bias = kernel.request.relu = true;
  kernel.operand({1, 4, 1, 2}, counted(8), "nhwc"); // channels 1 2, 3 4, 5 6, 7 8
  kernel.operand({4, 2, 1, 1}, {1, 10, 2, 20, 3, 30, -4, -40});
  kernel.operand({4}, {100, 200, 300, 400}).operand({1, 4, 1, 2}, {});
  kernel.window({1, 1}, {0, 0}, {1, 1});
  EXPECT_EQ(kernel.at({0, 0, 0, 0}), 1 + 30 + 100);
  EXPECT_EQ(kernel.at({0, 1, 0, 1}), 4 + 80 + 200);
  EXPECT_EQ(kernel.at({0, 2, 0, 0}), 15 + 210 + 300);
  EXPECT_EQ(kernel.at({0, 3, 0, 1}), std::max(0, -24 - 320 + 400));
  EXPECT_EQ(kernel.at({0, 3, 0, 0}), 400 - 20 - 280);
  kernel.request.bias = false; // the operand is not read
  EXPECT_EQ(kernel.at({0, 3, 0, 1}), 0);
}

// As y = x w above: what each pixel, and each tap, has been multiplied with.
TEST(KernelReference, HasBothGradientsOfAConvolution) {
  Kernel data(KernelOp::ConvGradData);
  data.operand({1, 1, 3}, {1, 100, 10000}).operand({1, 1, 2}, {10, 1}).operand({1, 1, 6}, {});
  data.window({2}, {1}, {3});
  EXPECT_EQ(data.at({0, 0, 0}), 0); // no place has a tap there
  EXPECT_EQ(data.at({0, 0, 1}), 1000);
  EXPECT_EQ(data.at({0, 0, 2}), 1);
  EXPECT_EQ(data.at({0, 0, 3}), 100000);
  EXPECT_EQ(data.at({0, 0, 4}), 100);
  Kernel filter(KernelOp::ConvGradFilter);
  filter.operand({1, 1, 6}, counted(6)).operand({1, 1, 3}, {1, 100, 10000});
  filter.operand({1, 1, 2}, {}).window({2}, {1}, {3});
  EXPECT_EQ(filter.at({0, 0, 0}), 200 + 40000);
  EXPECT_EQ(filter.at({0, 0, 1}), 3 + 500);
}

TEST(KernelReference, KeepsGroupsApartInGradients) {
  Kernel data(KernelOp::ConvGradData);
  data.request.groups = 2;
  data.operand({1, 4, 1}, {1, 10, 100, 1000}).operand({4, 1, 1}, {1, 2, 3, 4});
  data.operand({1, 2, 1}, {}).window({1}, {0}, {1});
  EXPECT_EQ(data.at({0, 0, 0}), 21);
  EXPECT_EQ(data.at({0, 1, 0}), 4300);
  Kernel filter(KernelOp::ConvGradFilter);
  filter.request.groups = 2;
  filter.operand({2, 2, 1}, {1, 10, 2, 20}).operand({2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  filter.operand({4, 1, 1}, {}).window({1}, {0}, {1});
  EXPECT_EQ(filter.at({1, 0, 0}), 1 * 2 + 2 * 6);
  EXPECT_EQ(filter.at({2, 0, 0}), 10 * 3 + 20 * 7);
}

TEST(KernelReference, MultipliesMatricesThatMayLieTransposed) {
  for (bool transposesA : {false, true})
    for (bool transposesB : {false, true}) {
      Kernel kernel(KernelOp::Matmul);
      kernel.request.transposeA = transposesA;
      kernel.request.transposeB = transposesB;
      // a = [1 2 3; 4 5 6], b = [1 10; 100 1000; 7 8].
      if (transposesA)
        kernel.operand({3, 2}, {1, 4, 2, 5, 3, 6});
      else
        kernel.operand({2, 3}, counted(6));
      if (transposesB)
        kernel.operand({2, 3}, {1, 100, 7, 10, 1000, 8});
      else
        kernel.operand({3, 2}, {1, 10, 100, 1000, 7, 8});
      kernel.operand({2, 2}, {});
      EXPECT_EQ(kernel.at({0, 0}), 1 + 200 + 21);
      EXPECT_EQ(kernel.at({1, 1}), 40 + 5000 + 48);
    }
}

TEST(KernelReference, PoolsAndMovesElements) {
  Kernel pool(KernelOp::MaxPool);
  pool.operand({1, 2, 2, 3}, {-1, -2, -3, -4, -5, -6, 1, 2, 3, 4, 5, 6}, "nChw8c", DType::BF16);
  pool.operand({1, 2, 2, 2}, {}).operand({1, 2, 2, 2}, {}, nullptr, DType::U8);
  pool.window({1, 2}, {0, 1}, {1, 1}).request.kernel = {1, 2};
  EXPECT_EQ(pool.at({0, 0, 0, 0}), -1); // padding counts as nothing, not as 0
  EXPECT_EQ(pool.at({0, 0, 0, 1}), -2);
  EXPECT_EQ(pool.at({0, 1, 1, 1}), 6);
  Kernel reorder(KernelOp::Reorder);
  reorder.operand({2, 3}, counted(6), "cn").operand({2, 3}, {});
  EXPECT_EQ(reorder.at({1, 0}), 4);
  Kernel gradient(KernelOp::MaxPoolGrad);
  gradient.operand({1, 1, 1}, {1}).operand({1, 1, 1}, {}, nullptr, DType::U8);
  gradient.operand({1, 1, 2}, {});
  EXPECT_FALSE(KernelReference(gradient.request, {{}, {}, {}}).at({0, 0, 0}));
}
