#include "runtime/cuda/plans/CudaPlan.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/TensorIo.h"
#include "runtime/cuda/plans/CudnnGraph.h"
#include "runtime/cuda/plans/plan_generated.h"

#include <algorithm>

namespace dlc::rt {
namespace {

bool isFactor(DType dtype) {
  return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

} // namespace

Math mathOf(const artifact::Target &target) {
  return target.math() && target.math()->string_view() == "strict" ? Math::Strict : Math::Fast;
}

/// True of a window of one element that lies at every position, and of images whose channels are
/// next to each other, whole vectors of them.
static bool isPointwise(const KernelRequest &request) {
  auto are = [](const std::vector<int64_t> &values, int64_t value) {
    return std::ranges::all_of(values, [&](int64_t each) { return each == value; });
  };
  const std::vector<int64_t> &weight = request.operands[*weightOperand(request.op)].shape;
  int64_t lanes = CudaPlan::vectorBytes / static_cast<int64_t>(sizeOf(request.operands[0].dtype));
  return request.groups == 1 && weight[0] % lanes == 0 && weight[1] % lanes == 0 &&
         are({weight.begin() + 2, weight.end()}, 1) && are(request.strides, 1) &&
         are(request.paddingLow, 0) && are(request.paddingHigh, 0) &&
         std::ranges::all_of(request.operands, [](const OperandType &operand) {
           return !operand.layout ||
                  *operand.layout == layoutIn(LayoutFamily::ChannelsLast, operand.shape.size(), 1);
         });
}

bool CudaPlan::isProduct(const KernelRequest &request) {
  DType factors = request.operands[0].dtype, result = request.operands.back().dtype;
  bool isOwnBias = !request.bias || request.operands[2].dtype == result;
  return isFactor(factors) && request.operands[1].dtype == factors &&
         (result == factors || result == DType::F32) && isOwnBias &&
         (request.op == KernelOp::Matmul || isPointwise(request));
}

namespace {
/// Rows and columns of an operand: a matrix, an image by positions and channels, a filter.
struct Extents {
  uint64_t rows = 1, columns = 1;

  static Extents of(const OperandType &operand) {
    Extents extents;
    for (size_t i = 0; i < operand.shape.size(); ++i)
      (i == 1 ? extents.columns : extents.rows) *= static_cast<uint64_t>(operand.shape[i]);
    return extents;
  }
  bool operator==(const Extents &) const = default;
};
} // namespace

ProductPlan CudaPlan::productOf(const KernelRequest &request) {
  const std::vector<OperandType> &operands = request.operands;
  ProductPlan product;
  product.transposeA = request.transposeA;
  product.transposeB = request.transposeB;
  if (request.op == KernelOp::Conv) { // y = x w^T
    product.transposeB = true;
  } else if (request.op == KernelOp::ConvGradFilter) { // dw = dy^T x
    product.transposeA = product.swapped = true;
  }
  Extents a = Extents::of(operands[product.swapped ? 1 : 0]), c = Extents::of(operands.back());
  product.m = c.rows;
  product.n = c.columns;
  product.k = product.transposeA ? a.rows : a.columns;
  product.factors = operands[0].dtype;
  product.result = operands.back().dtype;
  product.bias = request.bias;
  product.relu = request.relu;
  product.exact = request.math == Math::Strict;
  return product;
}

/// True if a kernel's operands are a product's matrices.
static bool isOf(const ProductPlan &product, std::span<const OperandType> operands) {
  if (operands.size() != (product.bias ? 4 : 3))
    return false;
  auto is = [&](size_t i, DType dtype, uint64_t rows, uint64_t columns, bool isTransposed) {
    return operands[i].dtype == dtype &&
           Extents::of(operands[i]) ==
               (isTransposed ? Extents{columns, rows} : Extents{rows, columns});
  };
  size_t a = product.swapped ? 1 : 0, last = operands.size() - 1;
  return is(a, product.factors, product.m, product.k, product.transposeA) &&
         is(1 - a, product.factors, product.k, product.n, product.transposeB) &&
         (!product.bias || is(2, product.result, product.n, 1, false)) &&
         is(last, product.result, product.m, product.n, false);
}

/// A kernel's operands, its workspace the last.
static std::vector<OperandType> operandsOf(const artifact::Kernel &kernel) {
  std::vector<OperandType> operands;
  for (uint32_t i = 0; kernel.operands() && i < kernel.operands()->size(); ++i) {
    PhysicalType type(*kernel.operands()->Get(i));
    operands.push_back({type.dtype, type.shape, type.layout});
  }
  return operands;
}

/// A product's operands as matrices, in the order that they have there: of transposes where a
/// kernel has the second factor first.
static KernelRequest requestOf(const ProductPlan &product, std::vector<OperandType> operands) {
  KernelRequest request;
  request.op = KernelOp::Matmul;
  request.operands = std::move(operands);
  request.transposeA = product.swapped ? !product.transposeB : product.transposeA;
  request.transposeB = product.swapped ? !product.transposeA : product.transposeB;
  request.bias = product.bias;
  request.relu = product.relu;
  auto setMatrix = [&](size_t i, uint64_t rows, uint64_t columns, bool isTransposed) {
    if (isTransposed)
      std::swap(rows, columns);
    request.operands[i].shape = {static_cast<int64_t>(rows), static_cast<int64_t>(columns)};
    request.operands[i].layout = Layout::rowMajor(2);
  };
  size_t a = product.swapped ? 1 : 0, last = request.operands.size() - 1;
  setMatrix(a, product.m, product.k, product.transposeA);
  setMatrix(1 - a, product.k, product.n, product.transposeB);
  setMatrix(last, product.m, product.n, false);
  if (product.swapped) { // c transposed, as it lies
    std::swap(request.operands[last].shape[0], request.operands[last].shape[1]);
    request.operands[last].layout->order = {1, 0};
  }
  return request;
}

KernelRequest CudaPlan::request(const artifact::Kernel &kernel, Math math) const {
  std::vector<OperandType> operands = operandsOf(kernel);
  operands.pop_back();
  KernelRequest request = product ? requestOf(*product, std::move(operands))
                                  : cudnn::requestOf(convolutions.front(), std::move(operands));
  request.math = math;
  return request;
}

void CudaPlan::requireOperands(const artifact::Kernel &kernel) const {
  std::vector<OperandType> operands = operandsOf(kernel);
  bool fits = !operands.empty();
  if (fits) { // of the workspace the planner gives some more
    const OperandType &last = operands.back();
    fits = PhysicalType(last.dtype, last.shape, *last.layout).bytes() >= workspaceBytes;
    operands.pop_back();
  }
  if (fits)
    fits = product ? isOf(*product, operands) : cudnn::isOf(convolutions.front(), operands);
  if (!fits)
    throw Error(ErrorCode::Artifact, "the plan of kernel " + kernel.name()->str() +
                                         " is for other operands than the artifact says; compile "
                                         "the model again");
}

std::vector<uint8_t> CudaPlan::serialize() const {
  flatbuffers::FlatBufferBuilder builder;
  flatbuffers::Offset<void> kernel;
  if (product)
    kernel = cuda::CreateProduct(builder, product->m, product->n, product->k, product->factors,
                                 product->result, product->transposeA, product->transposeB,
                                 product->bias, product->relu, product->exact, product->swapped)
                 .Union();
  else
    kernel = cuda::CreateConvolution(builder, builder.CreateVectorOfStrings(convolutions)).Union();
  cuda::FinishPlanBuffer(
      builder,
      cuda::CreatePlan(builder, product ? cuda::Kernel::Product : cuda::Kernel::Convolution, kernel,
                       workspaceBytes));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

CudaPlan CudaPlan::deserialize(std::span<const uint8_t> bytes, const std::string &kernel) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  auto refuse = [&](const std::string &what) {
    throw Error(ErrorCode::Artifact, "the plan of kernel " + kernel + " " + what);
  };
  if (bytes.empty() || !cuda::VerifyPlanBuffer(verifier))
    refuse("is damaged");
  const cuda::Plan &stored = *cuda::GetPlan(bytes.data());
  CudaPlan plan;
  plan.workspaceBytes = stored.workspace();
  if (const cuda::Convolution *convolution = stored.kernel_as_Convolution()) {
    for (const flatbuffers::String *text : *convolution->plans())
      plan.convolutions.push_back(text->str());
    if (plan.convolutions.empty())
      refuse("has no engine");
    return plan;
  }
  const cuda::Product *product = stored.kernel_as_Product();
  if (!product)
    refuse("is of a kind that this version does not know");
  plan.product = {product->m(),           product->n(),      product->k(),
                  product->factors(),     product->result(), product->transpose_a(),
                  product->transpose_b(), product->bias(),   product->relu(),
                  product->exact(),       product->swapped()};
  constexpr uint64_t most = uint64_t{1} << 31;
  auto isExtent = [](uint64_t value) { return value >= 1 && value <= most; };
  if (!isExtent(plan.product->m) || !isExtent(plan.product->n) || !isExtent(plan.product->k) ||
      !isFactor(plan.product->factors) || !isFactor(plan.product->result))
    refuse("states no product");
  return plan;
}

CudaPlan CudaPlan::of(const artifact::Kernel &kernel, Math math) {
  std::string name = kernel.name()->str();
  CudaPlan plan = deserialize({kernel.plan()->data(), kernel.plan()->size()}, name);
  plan.requireOperands(kernel);
  if (plan.product && plan.product->exact != (math == Math::Strict))
    throw Error(ErrorCode::Artifact, "the plan of kernel " + name +
                                         " is for other math than the artifact's; compile the "
                                         "model again");
  return plan;
}

StoredKernel readCudaKernel(const artifact::Kernel &kernel, const artifact::Target &target) {
  Math math = mathOf(target);
  CudaPlan plan = CudaPlan::of(kernel, math);
  StoredKernel stored;
  stored.request = plan.request(kernel, math);
  stored.roundsFactors = math == Math::Fast;
  if (plan.product)
    stored.plans.push_back({plan.serialize(), kernel.implementation()->str()});
  std::string reason;
  const cudnn::Functions *library = plan.product ? nullptr : cudnn::open(reason);
  if (!plan.product && !library)
    throw Error(ErrorCode::Runtime, reason);
  for (const std::string &text : plan.convolutions) {
    CudaPlan one;
    one.convolutions = {text};
    one.workspaceBytes = plan.workspaceBytes;
    // Of engines that this version does not have, others are chosen when they are loaded.
    bool isOwn = cudnn::isOwn(*library, text);
    cudnn::Engine engine = isOwn ? cudnn::engineOf(*library, text, math) : cudnn::Engine{};
    stored.plans.push_back(
        {one.serialize(), isOwn ? engine.name() : "of another cuDNN", isOwn && engine.isDirect()});
  }
  return stored;
}

} // namespace dlc::rt
