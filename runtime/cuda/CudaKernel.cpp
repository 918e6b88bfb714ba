#include "runtime/cuda/CudaKernel.h"

#include "runtime/artifact/Align.h"
#include "runtime/artifact/Error.h"

#include <algorithm>
#include <utility>

namespace dlc::rt {
//===- Convolutions ---------------------------------------------------------------------------===//

static cudnn::Descriptor loadPlan(const CudaContext::Convolutions &convolutions,
                                  const CudaPlan &plan, const std::string &name, Math math,
                                  bool &isSame) {
  const cudnn::Functions &library = convolutions.library;
  std::string json = plan.convolutions.front();
  try {
    if (!cudnn::isOwn(library, json))
      json =
          cudnn::replan(library, convolutions.properties, json, plan.workspaceBytes, math, isSame)
              .json;
    json = cudnn::withProperties(json, convolutions.properties);
    cudnn::engineOf(library, json, math); // throws if it is none that is planned
    return cudnn::load(library, convolutions.device, json);
  } catch (const std::exception &error) { // the library's own, too, of a text that is damaged
    throw Error(ErrorCode::Artifact,
                "kernel " + name + " cannot be had as planned: " + error.what());
  }
}

ConvolutionKernel::ConvolutionKernel(const CudaContext::Convolutions &convolutions,
                                     const CudaPlan &plan, const std::string &name, Math math)
    : name(name), convolutions(&convolutions),
      plan(std::make_shared<const cudnn::Descriptor>(
          loadPlan(convolutions, plan, name, math, isSame))) {
  auto needed =
      static_cast<uint64_t>(this->plan->getOne<int64_t>(cudnn::Attribute::PlanWorkspaceSize));
  if (needed > plan.workspaceBytes)
    throw Error(ErrorCode::Artifact, "kernel " + name + " needs a workspace of " +
                                         std::to_string(needed) + " bytes here, planned were " +
                                         std::to_string(plan.workspaceBytes) +
                                         "; compile the model on this machine");
}

cudnn::Descriptor ConvolutionKernel::bind(std::span<const DeviceSpan> operands) const {
  std::vector<int64_t> ids;
  std::vector<cudnn::DataPointer> addresses;
  for (DeviceSpan operand : operands.first(operands.size() - 1)) {
    ids.push_back(static_cast<int64_t>(ids.size()) + 1);
    addresses.push_back(cudnn::DataPointer{operand.address});
  }
  cudnn::Descriptor pack(convolutions->library, cudnn::DescriptorType::VariantPack);
  pack.set(cudnn::Attribute::PackUniqueIds, ids)
      .set(cudnn::Attribute::PackDataPointers, std::span<const cudnn::DataPointer>(addresses))
      .set(cudnn::Attribute::PackWorkspace, cudnn::DataPointer{operands.back().address});
  pack.finalize();
  return pack;
}

void ConvolutionKernel::run(const cudnn::Descriptor &operands, cudart::Stream stream) const {
  const cudnn::Functions &library = convolutions->library;
  library.require(library.setStream(convolutions->context.get(), stream), "run kernel " + name);
  library.require(library.backendExecute(convolutions->context.get(), plan->get(), operands.get()),
                  "run kernel " + name);
}

//===- Products -------------------------------------------------------------------------------===//

/// cuBLASLt's matrices are column-major: a row-major product is that of its factors' transposes, in
/// the other order. Its A is our b.
struct ProductKernel::Descriptors {
  explicit Descriptors(const cublas::Functions &library) : library(library) {}
  ~Descriptors() {
    library.matmulDescDestroy(product);
    for (cublas::MatrixLayout layout : {a, b, c})
      if (layout)
        library.matrixLayoutDestroy(layout);
  }
  Descriptors(const Descriptors &) = delete;
  Descriptors &operator=(const Descriptors &) = delete;

  const cublas::Functions &library;
  cublas::ProductDescriptor product = nullptr;
  cublas::MatrixLayout a = nullptr, b = nullptr, c = nullptr;
};

static cublas::DataType typeOf(DType dtype) {
  return dtype == DType::BF16  ? cublas::DataType::BFloat16
         : dtype == DType::F16 ? cublas::DataType::Half
                               : cublas::DataType::Float;
}

/// Of a workspace, from the first multiple of 256 on that the library asks for.
static uint64_t alignedBytes(uint64_t bytes) { return bytes - std::min<uint64_t>(bytes, 255); }

ProductKernel::ProductKernel(const CudaContext::Products &products, const CudaPlan &plan,
                             const std::string &name)
    : name(name), products(&products), bias(plan.product->bias), swapped(plan.product->swapped),
      workspaceBytes(alignedBytes(plan.workspaceBytes)) {
  const cublas::Functions &library = products.library;
  const ProductPlan &given = *plan.product;
  std::string doing = "load kernel " + name;
  auto own = std::make_shared<Descriptors>(library);
  descriptors = own;
  bool isTf32 = given.factors == DType::F32 && !given.exact;
  library.require(
      library.matmulDescCreate(&own->product,
                               isTf32 ? cublas::ComputeType::Tf32 : cublas::ComputeType::Float,
                               cublas::DataType::Float),
      doing);
  auto set = [&](cublas::ProductAttribute attribute, auto value) {
    library.require(library.matmulDescSetAttribute(own->product, attribute, &value, sizeof value),
                    doing);
  };
  auto operation = [](bool isTransposed) {
    return isTransposed ? cublas::Operation::Transpose : cublas::Operation::None;
  };
  set(cublas::ProductAttribute::TransposeA, operation(given.transposeB));
  set(cublas::ProductAttribute::TransposeB, operation(given.transposeA));
  set(cublas::ProductAttribute::Epilogue, given.bias && given.relu ? cublas::Epilogue::ReluBias
                                          : given.bias             ? cublas::Epilogue::Bias
                                          : given.relu             ? cublas::Epilogue::Relu
                                                                   : cublas::Epilogue::None);
  // Rows and columns as the library has them: those of the row-major matrix, changed over.
  auto layout = [&](cublas::MatrixLayout &made, DType dtype, uint64_t rows, uint64_t columns,
                    bool isTransposed) {
    if (isTransposed)
      std::swap(rows, columns);
    library.require(library.matrixLayoutCreate(&made, typeOf(dtype), columns, rows,
                                               static_cast<int64_t>(columns)),
                    doing);
  };
  layout(own->a, given.factors, given.k, given.n, given.transposeB);
  layout(own->b, given.factors, given.m, given.k, given.transposeA);
  layout(own->c, given.result, given.m, given.n, false);

  algorithm = chooseAlgorithm();
}

/// The library's first suggestion within the workspace, whose parts are added in a fixed order.
cublas::Algorithm ProductKernel::chooseAlgorithm() const {
  const cublas::Functions &library = products->library;
  const Descriptors &own = *descriptors;
  std::string doing = "load kernel " + name;
  cublas::Preference preference = nullptr;
  library.require(library.matmulPreferenceCreate(&preference), doing);
  auto prefer = [&](cublas::PreferenceAttribute attribute, auto value) {
    return library.matmulPreferenceSetAttribute(preference, attribute, &value, sizeof value);
  };
  cublas::Found found{};
  int count = 0;
  cublas::Status status = prefer(cublas::PreferenceAttribute::WorkspaceBytes, workspaceBytes);
  if (status == cublas::success)
    status = prefer(cublas::PreferenceAttribute::ReductionSchemes, cublas::reductionInComputeType);
  for (cublas::PreferenceAttribute operand :
       {cublas::PreferenceAttribute::AlignmentA, cublas::PreferenceAttribute::AlignmentB,
        cublas::PreferenceAttribute::AlignmentC, cublas::PreferenceAttribute::AlignmentD})
    if (status == cublas::success)
      status = prefer(operand, uint32_t{16});
  if (status == cublas::success)
    status = library.matmulAlgoGetHeuristic(products->handle.get(), own.product, own.a, own.b,
                                            own.c, own.c, preference, 1, &found, &count);
  library.matmulPreferenceDestroy(preference);
  library.require(status, doing);
  if (count == 0)
    throw Error(ErrorCode::Artifact, "kernel " + name + ": cuBLASLt has no algorithm for it here");
  library.require(found.status, doing);
  return found.algorithm;
}

void ProductKernel::run(std::span<const DeviceSpan> operands, cudart::Stream stream) const {
  const cublas::Functions &library = products->library;
  if (bias) {
    void *address = pointerTo(operands[2]);
    library.require(
        library.matmulDescSetAttribute(descriptors->product, cublas::ProductAttribute::BiasPointer,
                                       static_cast<const void *>(&address), sizeof address),
        "run kernel " + name);
  }
  constexpr float one = 1, zero = 0;
  void *result = pointerTo(operands[bias ? 3 : 2]);
  DeviceSpan workspace{alignUp<uintptr_t>(operands.back().address, 256), workspaceBytes};
  DeviceSpan a = operands[swapped ? 1 : 0], b = operands[swapped ? 0 : 1];
  library.require(library.matmul(products->handle.get(), descriptors->product, &one, pointerTo(b),
                                 descriptors->a, pointerTo(a), descriptors->b, &zero, result,
                                 descriptors->c, result, descriptors->c, &algorithm,
                                 pointerTo(workspace), workspace.bytes, stream),
                  "run kernel " + name);
}

//===- Launches -------------------------------------------------------------------------------===//

CudaLaunch::CudaLaunch(const CudaContext &context, const LoadedKernel &kernel,
                       std::span<const DeviceSpan> operands)
    : context(&context), kernel(&kernel), operands(operands.begin(), operands.end()) {
  if (const auto *convolution = std::get_if<ConvolutionKernel>(&kernel))
    bound = convolution->bind(operands);
}

void CudaLaunch::run(cudart::Stream stream) const {
  if (const auto *convolution = std::get_if<ConvolutionKernel>(kernel))
    convolution->run(*bound, stream);
  else if (const auto *product = std::get_if<ProductKernel>(kernel))
    product->run(operands, stream);
  else
    launch(std::get<GeneratedKernel>(*kernel), stream);
}

void CudaLaunch::launch(const GeneratedKernel &generated, cudart::Stream stream) const {
  std::vector<uintptr_t> parameters;
  for (DeviceSpan operand : operands)
    parameters.push_back(operand.address);
  std::vector<void *> arguments;
  for (uintptr_t &parameter : parameters)
    arguments.push_back(&parameter);
  context->cuda().require(context->cuda().launchKernel(generated.code, {generated.blocks},
                                                       {generated.threads}, arguments.data(), 0,
                                                       stream),
                          "run kernel " + generated.name);
}

} // namespace dlc::rt
