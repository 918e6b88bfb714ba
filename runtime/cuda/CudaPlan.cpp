#include "runtime/cuda/CudaPlan.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/TensorIo.h"
#include "runtime/cuda/plan_generated.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

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

ProductPlan CudaPlan::productOf(const KernelRequest &request) {
  const std::vector<OperandType> &operands = request.operands;
  auto extent = [](int64_t value) { return static_cast<uint64_t>(value); };
  // Rows and columns of an operand: of a matrix, an image by positions and channels, a filter.
  auto columns = [&](size_t i) { return extent(operands[i].shape[1]); };
  auto rows = [&](size_t i) {
    uint64_t elements = 1;
    for (int64_t each : operands[i].shape)
      elements *= extent(each);
    return elements / columns(i);
  };
  ProductPlan product;
  product.transposeA = request.transposeA;
  product.transposeB = request.transposeB;
  if (request.op == KernelOp::Conv) { // y = x w^T
    product.transposeB = true;
  } else if (request.op == KernelOp::ConvGradFilter) { // dw = dy^T x
    product.transposeA = product.swapped = true;
  }
  size_t a = product.swapped ? 1 : 0;
  product.m = rows(operands.size() - 1);
  product.n = columns(operands.size() - 1);
  product.k = product.transposeA ? rows(a) : columns(a);
  product.factors = operands[0].dtype;
  product.result = operands.back().dtype;
  product.bias = request.bias;
  product.relu = request.relu;
  product.exact = request.math == Math::Strict;
  return product;
}

/// Bytes of a stored convolution's operands, by the ids 1, 2, ...
static std::vector<uint64_t> convolutionBytes(const std::string &plan) try {
  std::map<int64_t, uint64_t> bytes;
  nlohmann::json parsed = nlohmann::json::parse(plan);
  for (const nlohmann::json &tensor : parsed.at("operationGraph").at("tensors")) {
    if (tensor.at("isVirtual").get<bool>())
      continue;
    uint64_t last = 0;
    std::vector<uint64_t> extents = tensor.at("dim"), strides = tensor.at("stride");
    for (size_t i = 0; i < std::min(extents.size(), strides.size()); ++i)
      last += (std::max<uint64_t>(extents[i], 1) - 1) * strides[i];
    uint64_t element = tensor.at("dataType") == "CUDNN_DATA_FLOAT" ? 4 : 2;
    bytes[std::stoll(tensor.at("name").get<std::string>())] = (last + 1) * element;
  }
  std::vector<uint64_t> inOrder;
  for (const auto &[id, each] : bytes)
    if (id == static_cast<int64_t>(inOrder.size()) + 1)
      inOrder.push_back(each);
  return inOrder.size() == bytes.size() ? inOrder : std::vector<uint64_t>();
} catch (const std::exception &) { // of what parses texts: no plan's
  return {};
}

/// Bytes of a product's operands in the kernel's order.
static std::vector<uint64_t> productBytes(const ProductPlan &product) {
  uint64_t factor = sizeOf(product.factors), result = sizeOf(product.result);
  std::vector<uint64_t> bytes{product.m * product.k * factor, product.k * product.n * factor};
  if (product.swapped)
    std::swap(bytes[0], bytes[1]);
  if (product.bias)
    bytes.push_back(product.n * result);
  bytes.push_back(product.m * product.n * result);
  return bytes;
}

void CudaPlan::requireOperands(const artifact::Kernel &kernel) const {
  std::vector<uint64_t> needed =
      product ? productBytes(*product) : convolutionBytes(convolutions.front());
  bool fits = !needed.empty();
  needed.push_back(workspaceBytes); // of which the planner gives each kernel some
  fits &= kernel.operands() && kernel.operands()->size() == needed.size();
  for (unsigned i = 0; fits && i < needed.size(); ++i)
    fits = PhysicalType(*kernel.operands()->Get(i)).bytes() >= needed[i];
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

} // namespace dlc::rt
