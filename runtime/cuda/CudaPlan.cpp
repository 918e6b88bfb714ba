#include "runtime/cuda/CudaPlan.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/plan_generated.h"

#include <algorithm>

namespace dlc::rt {
namespace {

bool isFactor(DType dtype) {
  return dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

} // namespace

bool CudaPlan::isProduct(const KernelRequest &request) {
  DType factors = request.operands[0].dtype, result = request.operands.back().dtype;
  bool isOwnBias = !request.bias || request.operands[2].dtype == result;
  return isFactor(factors) && request.operands[1].dtype == factors &&
         (result == factors || result == DType::F32) && isOwnBias;
}

ProductPlan CudaPlan::productOf(const KernelRequest &request) {
  const std::vector<OperandType> &operands = request.operands;
  auto extent = [](int64_t value) { return static_cast<uint64_t>(value); };
  ProductPlan product;
  product.m = extent(operands.back().shape[0]);
  product.n = extent(operands.back().shape[1]);
  product.k = extent(operands[0].shape[request.transposeA ? 0 : 1]);
  product.factors = operands[0].dtype;
  product.result = operands.back().dtype;
  product.transposeA = request.transposeA;
  product.transposeB = request.transposeB;
  product.bias = request.bias;
  product.relu = request.relu;
  product.exact = request.math == Math::Strict;
  return product;
}

std::vector<uint8_t> CudaPlan::serialize() const {
  flatbuffers::FlatBufferBuilder builder;
  flatbuffers::Offset<void> kernel;
  if (product)
    kernel = cuda::CreateProduct(builder, product->m, product->n, product->k, product->factors,
                                 product->result, product->transposeA, product->transposeB,
                                 product->bias, product->relu, product->exact)
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
                  product->exact()};
  if (plan.product->m < 1 || plan.product->n < 1 || plan.product->k < 1 ||
      !isFactor(plan.product->factors) || !isFactor(plan.product->result))
    refuse("states no product");
  return plan;
}

} // namespace dlc::rt
