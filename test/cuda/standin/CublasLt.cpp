// libcublasLt.so.13 of the stand-in GPU: products by plain loops, sums in f32 in the order of the
// factors' common dimension.

#include "runtime/cuda/libraries/CublasLt.h"

#include "runtime/artifact/Error.h"
#include "test/cuda/Tensors.h"
#include "test/cuda/standin/Gpu.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace dlc::rt::cublas {

struct HandleState {};

struct ProductState {
  ComputeType compute;
  Operation a = Operation::None, b = Operation::None;
  Epilogue epilogue = Epilogue::None;
  const void *bias = nullptr;
};

/// Column-major.
struct MatrixState {
  DataType type;
  uint64_t rows, columns;
  int64_t leading;
};

struct PreferenceState {
  uint64_t workspaceBytes = 0;
  uint32_t alignment[4] = {256, 256, 256, 256}; // of a, b, c, d
};

} // namespace dlc::rt::cublas

namespace {

using namespace dlc::rt::cublas; // whose types the interface has
using dlc::rt::Error;
using dlc::rt::ErrorCode;
using dlc::rt::standin::Gpu;
using dlc::rt::test::StoredTensor;

constexpr Status invalidValue = 7, executionFailed = 13, notSupported = 15;
constexpr uint64_t workspaceAlignment = 256;

/// What the heuristics write into an algorithm, by which a call is held to what was asked.
struct Chosen {
  uint64_t rows, columns, common, workspaceBytes;
  uint32_t alignment[4];
};
static_assert(sizeof(Chosen) <= sizeof(Algorithm));

struct Shape {
  uint64_t rows = 0, columns = 0, common = 0;
  bool operator==(const Shape &) const = default;
};

/// Of op(a) op(b); not equal to d's if they do not fit.
bool shapeOf(const ProductState &product, const MatrixState &a, const MatrixState &b,
             const MatrixState &d, Shape &shape) {
  bool turnsA = product.a == Operation::Transpose, turnsB = product.b == Operation::Transpose;
  shape = {turnsA ? a.columns : a.rows, turnsB ? b.rows : b.columns, turnsA ? a.rows : a.columns};
  return (turnsB ? b.columns : b.rows) == shape.common && d.rows == shape.rows &&
         d.columns == shape.columns && a.type == b.type;
}

StoredTensor tensor(const MatrixState &matrix) {
  return {matrix.type == DataType::Float  ? dlc::artifact::DType::F32
          : matrix.type == DataType::Half ? dlc::artifact::DType::F16
                                          : dlc::artifact::DType::BF16,
          {static_cast<int64_t>(matrix.rows), static_cast<int64_t>(matrix.columns)},
          {1, matrix.leading}};
}

/// A call: what its work needs when it runs.
struct Product {
  ProductState product;
  MatrixState a, b, d;
  Shape shape;
  const void *aAddress, *bAddress;
  void *dAddress, *workspace;
  uint64_t workspaceBytes;

  void run(Gpu &gpu) const;

private:
  /// Row by row.
  std::vector<float> factor(Gpu &gpu, const MatrixState &matrix, const void *address) const {
    std::vector<float> values = tensor(matrix).read(gpu.memory.from(address), "of a product");
    if (matrix.type == DataType::Float && product.compute == ComputeType::Tf32)
      dlc::rt::test::roundToTf32(values);
    return values;
  }
  std::vector<float> bias(Gpu &gpu) const {
    std::vector<float> none(shape.rows);
    bool isGiven = product.epilogue == Epilogue::Bias || product.epilogue == Epilogue::ReluBias;
    return isGiven ? tensor({d.type, shape.rows, 1, static_cast<int64_t>(shape.rows)})
                         .read(gpu.memory.from(product.bias), "bias")
                   : none;
  }
};

void Product::run(Gpu &gpu) const {
  std::ranges::fill(gpu.memory.at(workspace, workspaceBytes), std::byte{0xff});
  std::vector<float> left = factor(gpu, a, aAddress), right = factor(gpu, b, bAddress),
                     sums(shape.rows * shape.columns), added = bias(gpu);
  bool turnsA = product.a == Operation::Transpose, turnsB = product.b == Operation::Transpose;
  bool isRelu = product.epilogue == Epilogue::Relu || product.epilogue == Epilogue::ReluBias;
  for (uint64_t l = 0; l < shape.common; ++l)
    for (uint64_t i = 0; i < shape.rows; ++i) {
      float one = left[turnsA ? l * a.columns + i : i * a.columns + l];
      for (uint64_t j = 0; j < shape.columns; ++j)
        sums[i * shape.columns + j] += one * right[turnsB ? j * b.columns + l : l * b.columns + j];
    }
  for (uint64_t i = 0; i < sums.size(); ++i) {
    sums[i] += added[i / shape.columns];
    if (isRelu && sums[i] < 0)
      sums[i] = 0;
  }
  tensor(d).write(sums, gpu.memory.from(dAddress), "of a product");
  gpu.plantError(gpu.memory.from(dAddress));
}

bool isAligned(const void *address, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

} // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130000; }

const char *cublasLtGetStatusString(Status status) {
  return status == success           ? "CUBLAS_STATUS_SUCCESS"
         : status == invalidValue    ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == executionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                     : "CUBLAS_STATUS_NOT_SUPPORTED";
}
Status cublasLtCreate(dlc::rt::cublas::Handle *handle) {
  *handle = new HandleState;
  return success;
}
Status cublasLtDestroy(dlc::rt::cublas::Handle handle) {
  delete handle;
  return success;
}

Status cublasLtMatmulDescCreate(ProductDescriptor *product, ComputeType compute, DataType scale) {
  if (scale != DataType::Float)
    return notSupported;
  *product = new ProductState{compute};
  return success;
}
Status cublasLtMatmulDescDestroy(ProductDescriptor product) {
  delete product;
  return success;
}
Status cublasLtMatmulDescSetAttribute(ProductDescriptor product, ProductAttribute attribute,
                                      const void *value, size_t bytes) {
  auto set = [&](auto &member) {
    if (bytes != sizeof member)
      return invalidValue;
    std::memcpy(static_cast<void *>(&member), value, bytes);
    return success;
  };
  switch (attribute) {
  case ProductAttribute::TransposeA:
    return set(product->a);
  case ProductAttribute::TransposeB:
    return set(product->b);
  case ProductAttribute::Epilogue:
    return set(product->epilogue);
  case ProductAttribute::BiasPointer:
    return set(product->bias);
  }
  return invalidValue;
}

Status cublasLtMatrixLayoutCreate(MatrixLayout *layout, DataType type, uint64_t rows,
                                  uint64_t columns, int64_t leading) {
  if (leading < static_cast<int64_t>(rows))
    return invalidValue;
  *layout = new MatrixState{type, rows, columns, leading};
  return success;
}
Status cublasLtMatrixLayoutDestroy(MatrixLayout layout) {
  delete layout;
  return success;
}

Status cublasLtMatmulPreferenceCreate(Preference *preference) {
  *preference = new PreferenceState;
  return success;
}
Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  delete preference;
  return success;
}
Status cublasLtMatmulPreferenceSetAttribute(Preference preference, PreferenceAttribute attribute,
                                            const void *value, size_t bytes) {
  if (attribute == PreferenceAttribute::WorkspaceBytes) {
    if (bytes != sizeof preference->workspaceBytes)
      return invalidValue;
    std::memcpy(&preference->workspaceBytes, value, bytes);
    return success;
  }
  if (bytes != sizeof(uint32_t))
    return invalidValue;
  int operand = static_cast<int>(attribute) - static_cast<int>(PreferenceAttribute::AlignmentA);
  if (operand >= 0 && operand < 4)
    std::memcpy(&preference->alignment[operand], value, bytes);
  return success;
}
Status cublasLtMatmulAlgoGetHeuristic(dlc::rt::cublas::Handle, ProductDescriptor product,
                                      MatrixLayout a, MatrixLayout b, MatrixLayout, MatrixLayout d,
                                      Preference preference, int wanted, Found *results,
                                      int *count) {
  Shape shape;
  if (wanted < 1 || !shapeOf(*product, *a, *b, *d, shape))
    return invalidValue;
  Chosen chosen{shape.rows, shape.columns, shape.common, preference->workspaceBytes, {}};
  std::ranges::copy(preference->alignment, chosen.alignment);
  *results = {};
  std::memcpy(&results->algorithm, &chosen, sizeof chosen);
  results->workspaceBytes = preference->workspaceBytes;
  *count = 1;
  return success;
}

Status cublasLtMatmul(dlc::rt::cublas::Handle, ProductDescriptor product, const void *alpha,
                      const void *a, MatrixLayout aLayout, const void *b, MatrixLayout bLayout,
                      const void *beta, const void *c, MatrixLayout, void *d, MatrixLayout dLayout,
                      const Algorithm *algorithm, void *workspace, size_t workspaceBytes,
                      dlc::rt::cudart::Stream stream) {
  Chosen chosen{};
  std::memcpy(&chosen, algorithm, sizeof chosen);
  Shape shape;
  if (!shapeOf(*product, *aLayout, *bLayout, *dLayout, shape) ||
      shape != Shape{chosen.rows, chosen.columns, chosen.common} ||
      workspaceBytes < chosen.workspaceBytes || !isAligned(workspace, workspaceAlignment))
    return invalidValue;
  const void *operands[] = {a, b, c, d};
  for (size_t i = 0; i < std::size(operands); ++i)
    if (!isAligned(operands[i], chosen.alignment[i]))
      return invalidValue;
  if (*static_cast<const float *>(alpha) != 1 || *static_cast<const float *>(beta) != 0)
    return notSupported;
  Product call{*product, *aLayout, *bLayout, *dLayout, shape, a, b, d, workspace, workspaceBytes};
  return Gpu::get().call(true,
                         [&](Gpu &gpu) {
                           return gpu.enqueueKernel(stream, [&gpu, call] { call.run(gpu); });
                         }) == success
             ? success
             : executionFailed;
}

} // extern "C"

/// The types are those by which they are called.
[[maybe_unused]] static constexpr Functions exported{
    .getVersion = cublasLtGetVersion,
    .getStatusString = cublasLtGetStatusString,
    .create = cublasLtCreate,
    .destroy = cublasLtDestroy,
    .matmulDescCreate = cublasLtMatmulDescCreate,
    .matmulDescDestroy = cublasLtMatmulDescDestroy,
    .matmulDescSetAttribute = cublasLtMatmulDescSetAttribute,
    .matrixLayoutCreate = cublasLtMatrixLayoutCreate,
    .matrixLayoutDestroy = cublasLtMatrixLayoutDestroy,
    .matmulPreferenceCreate = cublasLtMatmulPreferenceCreate,
    .matmulPreferenceDestroy = cublasLtMatmulPreferenceDestroy,
    .matmulPreferenceSetAttribute = cublasLtMatmulPreferenceSetAttribute,
    .matmulAlgoGetHeuristic = cublasLtMatmulAlgoGetHeuristic,
    .matmul = cublasLtMatmul,
};
