#include "runtime/cpu/CpuPlan.h"

#include "runtime/artifact/Align.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/cpu/plan_generated.h"

#include <algorithm>

namespace dlc::rt {
namespace {

static_assert(static_cast<int>(cpu::Operation::MAX) == static_cast<int>(KernelOp::Reorder),
              "plan.fbs lists the operations of KernelOp");

size_t operandCount(const KernelRequest &request) {
  switch (request.op) {
  case KernelOp::Conv:
  case KernelOp::ConvGradData:
  case KernelOp::Matmul:
    return request.bias ? 4 : 3;
  case KernelOp::MaxPool:
  case KernelOp::ConvGradFilter:
  case KernelOp::MaxPoolGrad:
    return 3;
  case KernelOp::Reorder:
    return 2;
  }
  return 0;
}

} // namespace

std::vector<OperandType> CpuPlan::buffers() const {
  std::vector<OperandType> buffers = request.operands;
  if (workspaceBytes > 0)
    buffers.push_back({DType::U8, {static_cast<int64_t>(workspaceBytes)}, Layout::rowMajor(1)});
  return buffers;
}

/// How the operation uses operand `index`, in KernelOp's order; a workspace is written.
static artifact::Access accessOf(const KernelRequest &request, size_t index) {
  size_t results = request.op == KernelOp::MaxPool ? 2 : 1; // the maximum and its index
  size_t firstResult = request.operands.size() - results;
  return index < firstResult ? artifact::Access::Read : artifact::Access::Write;
}

void CpuPlan::requireOperands(const artifact::Kernel &kernel) const {
  std::vector<OperandType> wanted = buffers();
  uint32_t count = kernel.operands() ? kernel.operands()->size() : 0;
  auto refuse = [&](const std::string &what) {
    throw Error(ErrorCode::Artifact, "kernel " + kernel.name()->str() + " was planned for " + what +
                                         "; compile the model again");
  };
  if (count != wanted.size())
    refuse(std::to_string(wanted.size()) + " buffers, the artifact gives it " +
           std::to_string(count));
  for (uint32_t i = 0; i < count; ++i) {
    const artifact::TensorType &type = *kernel.operands()->Get(i);
    if (type.dtype() != wanted[i].dtype || readShape(type) != wanted[i].shape ||
        readLayout(type) != wanted[i].layout)
      refuse("another type of buffer " + std::to_string(i) + " than the artifact gives it");
    if (kernel.access()->Get(i) != accessOf(request, i))
      refuse("another access to buffer " + std::to_string(i) + " than the artifact says");
  }
}

/// True if every number is at least `least` and small enough that sums do not overflow.
static bool areBounded(const std::vector<int64_t> &values, int64_t least) {
  constexpr int64_t most = int64_t{1} << 40;
  return std::ranges::all_of(values,
                             [&](int64_t value) { return value >= least && value <= most; });
}

/// True if windows of the smaller tensor are as many as the larger one has.
static bool haveWindows(const KernelRequest &request) {
  bool isGradient = request.op == KernelOp::ConvGradData || request.op == KernelOp::MaxPoolGrad;
  const std::vector<int64_t> &first = request.operands.front().shape,
                             &last = request.operands.back().shape,
                             &second = request.operands[1].shape;
  bool isPool = request.op == KernelOp::MaxPool || request.op == KernelOp::MaxPoolGrad;
  bool isFilter = request.op == KernelOp::ConvGradFilter;
  const std::vector<int64_t> &large = isGradient ? last : first;
  const std::vector<int64_t> &small = isGradient ? first : isFilter || isPool ? second : last;
  const std::vector<int64_t> &weight = isFilter ? last : second;
  for (size_t i = 0; i < request.strides.size(); ++i) {
    int64_t window = isPool ? request.kernel[i] : weight[i + 2];
    __int128 reach = static_cast<__int128>(window - 1) * request.dilations[i] + 1;
    __int128 room = large[i + 2] + request.paddingLow[i] + request.paddingHigh[i] - reach;
    if (room < 0 || small[i + 2] != room / request.strides[i] + 1)
      return false;
  }
  return true;
}

bool CpuPlan::isConsistent(const KernelRequest &request) {
  if (request.operands.size() != operandCount(request) || request.groups < 1)
    return false;
  for (const OperandType &operand : request.operands)
    if (!areBounded(operand.shape, 1))
      return false;
  if (!areBounded(request.kernel, 1) || !areBounded(request.strides, 1) ||
      !areBounded(request.dilations, 1) || !areBounded(request.paddingLow, 0) ||
      !areBounded(request.paddingHigh, 0))
    return false;
  bool addsBias = request.op == KernelOp::Conv || request.op == KernelOp::ConvGradData ||
                  request.op == KernelOp::Matmul;
  if ((request.bias || request.relu) && !addsBias)
    return false;
  size_t rank = request.operands[0].shape.size();
  for (size_t i = 0; i < request.operands.size(); ++i) {
    bool bias = request.bias && i == 2;
    if (request.operands[i].shape.size() != (bias ? 1 : rank))
      return false;
  }
  if (request.op == KernelOp::Reorder)
    return rank >= 1 && rank <= 5;
  if (request.op == KernelOp::Matmul)
    return rank == 2;
  size_t weight = request.op == KernelOp::ConvGradFilter ? 2 : 1;
  if (request.groups > 1 && request.operands[weight].shape[0] % request.groups != 0)
    return false;
  bool pool = request.op == KernelOp::MaxPool || request.op == KernelOp::MaxPoolGrad;
  bool isComplete =
      rank >= 3 && rank <= 5 && request.strides.size() == rank - 2 &&
      request.paddingLow.size() == rank - 2 && request.paddingHigh.size() == rank - 2 &&
      request.dilations.size() == rank - 2 && (!pool || request.kernel.size() == rank - 2);
  return isComplete && haveWindows(request);
}

std::vector<uint8_t> CpuPlan::serialize() const {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<artifact::TensorType>> operands;
  operands.reserve(request.operands.size());
  for (const OperandType &operand : request.operands)
    operands.push_back(writeTensorType(builder, operand.dtype, operand.shape, *operand.layout));
  cpu::FinishPlanBuffer(
      builder,
      cpu::CreatePlan(
          builder, static_cast<cpu::Operation>(request.op), builder.CreateVector(operands),
          builder.CreateVector(request.kernel), builder.CreateVector(request.strides),
          builder.CreateVector(request.paddingLow), builder.CreateVector(request.paddingHigh),
          builder.CreateVector(request.dilations), request.groups, request.transposeA,
          request.transposeB, request.bias, request.relu, request.threads,
          builder.CreateString(implementation), workspaceBytes));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

CpuPlan CpuPlan::deserialize(std::span<const uint8_t> bytes, const std::string &kernel) {
  // The bytes lie at any address; FlatBuffers wants them aligned.
  std::vector<uint64_t> aligned((bytes.size() + 7) / 8);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t *>(aligned.data()));
  const auto *data = reinterpret_cast<const uint8_t *>(aligned.data());
  flatbuffers::Verifier verifier(data, bytes.size());
  Error malformed(ErrorCode::Artifact, "kernel " + kernel + ": its plan is not a CPU plan");
  if (bytes.size() < 16 || !cpu::VerifyPlanBuffer(verifier))
    throw malformed;
  auto numbers = [&](const flatbuffers::Vector<int64_t> *vector) {
    if (!vector || !isAligned(*vector))
      throw malformed;
    return std::vector<int64_t>(vector->begin(), vector->end());
  };
  const cpu::Plan *stored = cpu::GetPlan(data);
  CpuPlan plan;
  KernelRequest &request = plan.request;
  if (stored->operation() > cpu::Operation::MAX)
    throw malformed;
  request.op = static_cast<KernelOp>(stored->operation());
  for (const artifact::TensorType *type : *stored->operands()) {
    std::optional<Layout> layout = readLayout(*type);
    if (!layout)
      throw malformed;
    request.operands.push_back({type->dtype(), numbers(type->shape()), layout});
  }
  request.kernel = numbers(stored->kernel());
  request.strides = numbers(stored->strides());
  request.paddingLow = numbers(stored->padding_low());
  request.paddingHigh = numbers(stored->padding_high());
  request.dilations = numbers(stored->dilations());
  request.groups = stored->groups();
  request.transposeA = stored->transpose_a();
  request.transposeB = stored->transpose_b();
  request.bias = stored->bias();
  request.relu = stored->relu();
  request.threads = stored->threads();
  plan.implementation = stored->implementation()->str();
  plan.workspaceBytes = stored->workspace();
  if (!isConsistent(request))
    throw malformed;
  return plan;
}

StoredKernel readCpuKernel(const artifact::Kernel &kernel, const artifact::Target &) {
  CpuPlan plan =
      CpuPlan::deserialize({kernel.plan()->data(), kernel.plan()->size()}, kernel.name()->str());
  plan.requireOperands(kernel);
  bool isDirect = plan.implementation.find("wino") == std::string::npos;
  StoredKernel stored{std::move(plan.request), /*roundsFactors=*/false, {}};
  stored.plans.push_back({plan.serialize(), plan.implementation, isDirect});
  return stored;
}

} // namespace dlc::rt
