// Free operands are tried in a few combinations: what the library picks, plain, channels last, and
// blocked for activations; what the library picks and plain for weights. Each combination gives the
// library's first implementation that is not reference code, and the Winograd one where allowed.

#include "runtime/cpu/CpuPlanner.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuPlan.h"
#include "runtime/cpu/KnownDefects.h"
#include "runtime/cpu/OneDnnOperation.h"
#include "runtime/cpu/kernels/OwnKernel.h"
#include "runtime/cpu/kernels/TileConvolution.h"
#include "runtime/cpu/kernels/TileFilterGradient.h"
#include "runtime/cpu/kernels/Tiles.h"
#include "runtime/cpu/kernels/WeightPacking.h"
#include "runtime/cpu/kernels/WinogradConv.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>

namespace dlc::rt {
namespace {

enum class Role { Activation, Weight, Bias };

Role roleOf(const KernelRequest &request, size_t operand) {
  if (weightOperand(request.op) == operand || (request.op == KernelOp::Matmul && operand == 1))
    return Role::Weight;
  return request.bias && operand == 2 ? Role::Bias : Role::Activation;
}

bool isFloat(const OperandType &operand) {
  return operand.dtype == DType::F32 || operand.dtype == DType::BF16 || operand.dtype == DType::F16;
}

bool isConvolution(KernelOp op) { return weightOperand(op).has_value(); }

/// Winograd's transforms share the products of overlapping windows, one element apart. Where there
/// are none, the library goes through all its implementations to say so.
bool canBeWinograd(const KernelRequest &request) {
  if (!isConvolution(request.op))
    return false;
  const std::vector<int64_t> &weight = request.operands[*weightOperand(request.op)].shape;
  return std::ranges::all_of(request.strides, [](int64_t stride) { return stride == 1; }) &&
         std::all_of(weight.begin() + 2, weight.end(), [](int64_t extent) { return extent > 1; });
}

/// What an operand may be asked for: a family, or what the library likes.
using Wish = std::optional<LayoutFamily>;

std::vector<LayoutChoice> layoutChoices(const KernelRequest &request, unsigned channelBlock) {
  // Pooling takes any layout but wants to be told.
  std::vector<Wish> activations;
  for (const auto &[family, name] : std::views::reverse(layoutFamilies))
    activations.emplace_back(family);
  if (request.op == KernelOp::Matmul || request.op == KernelOp::Reorder)
    activations = {LayoutFamily::Plain};
  else if (isConvolution(request.op))
    activations.insert(activations.begin(), Wish());
  std::vector<LayoutChoice> choices;
  for (Wish activation : activations)
    for (Wish weight : {Wish(), Wish(LayoutFamily::Plain)}) {
      LayoutChoice choice;
      for (size_t i = 0; i < request.operands.size(); ++i) {
        const OperandType &operand = request.operands[i];
        Role role = roleOf(request, i);
        Wish wish = role == Role::Weight ? weight
                    : role == Role::Bias ? LayoutFamily::Plain
                                         : activation;
        choice.push_back(operand.layout);
        if (!operand.layout && wish)
          choice.back() = layoutIn(*wish, operand.shape.size(), channelBlock);
      }
      if (std::ranges::find(choices, choice) == choices.end())
        choices.push_back(choice);
    }
  return choices;
}

LayoutChoice fixedLayouts(const std::vector<Layout> &layouts) {
  return {layouts.begin(), layouts.end()};
}

int64_t product(const std::vector<int64_t> &values, size_t from = 0) {
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(from), values.end(),
                         int64_t{1}, std::multiplies<>());
}

uint64_t flopsOf(const KernelRequest &request) {
  const std::vector<OperandType> &operands = request.operands;
  switch (request.op) {
  case KernelOp::Conv:
    return 2 * product(operands.back().shape) * product(operands[1].shape, 1);
  case KernelOp::ConvGradData:
    return 2 * product(operands[0].shape) * product(operands[1].shape, 1);
  case KernelOp::ConvGradFilter:
    return 2 * product(operands[1].shape) * product(operands[2].shape, 1);
  case KernelOp::Matmul:
    return 2 * product(operands.back().shape) * operands[0].shape[request.transposeA ? 0 : 1];
  case KernelOp::MaxPool:
    return product(operands[1].shape) * product(request.kernel);
  case KernelOp::MaxPoolGrad:
    return product(operands[0].shape) * product(request.kernel);
  case KernelOp::Reorder:
    return 0;
  }
  return 0;
}

// FLOPs grow with padded channels: a one-channel output in nChw16c is computed 16-fold.
double paddingFactor(const KernelRequest &request, const std::vector<Layout> &layouts) {
  if (!isConvolution(request.op))
    return 1;
  double factor = 1;
  for (size_t i = 0; i < layouts.size(); ++i)
    if (roleOf(request, i) == Role::Weight)
      factor = static_cast<double>(layouts[i].physicalElements(request.operands[i].shape)) /
               product(request.operands[i].shape);
  return factor;
}

/// Restores the calling thread's team when it goes.
class TeamScope {
public:
  TeamScope() : size(teamSize()) {}
  ~TeamScope() { setTeamSize(size); }
  TeamScope(const TeamScope &) = delete;
  TeamScope &operator=(const TeamScope &) = delete;

private:
  unsigned size;
};

KernelRequest settled(KernelRequest request, const std::vector<Layout> &layouts) {
  for (size_t i = 0; i < layouts.size(); ++i)
    request.operands[i].layout = layouts[i];
  return request;
}

// The workspace of the named implementation, as the maximum over teams; nothing if a team lacks it.
std::optional<uint64_t> workspaceOf(const dnnl::engine &engine, const KernelRequest &request,
                                    const std::vector<Layout> &layouts, const std::string &name) {
  if (isOwnKernel(name)) {
    auto kernel = makeOwnKernel(name, settled(request, layouts));
    return kernel ? std::optional<uint64_t>(kernel->workspaceBytes()) : std::nullopt;
  }
  TeamScope scope;
  uint64_t bytes = 0;
  LayoutChoice fixed = fixedLayouts(layouts);
  for (unsigned threads = 1; threads <= std::max(request.threads, 1u); ++threads) {
    setTeamSize(threads);
    OneDnnOperation operation(engine, request, fixed, algorithmOf(name));
    bool found = operation.anyOf([&](const OneDnnImplementation &implementation) {
      if (implementation.name != name)
        return false;
      bytes = std::max(bytes, implementation.workspaceBytes);
      return true;
    });
    if (!found)
      return std::nullopt;
  }
  return bytes;
}

// Everything that a candidate's workspace and cost derive from is in these two.
bool sameKernel(const KernelCandidate &a, const KernelCandidate &b) {
  return a.layouts == b.layouts && a.implementation == b.implementation;
}

} // namespace

KernelTraits kernelTraits(const KernelRequest &request, const std::vector<Layout> &layouts,
                          const std::string &implementation) {
  const std::vector<OperandType> &operands = request.operands;
  KernelTraits traits{request.op, operands[0].dtype, implementation,
                      nameInTables(familyOf(layouts[0]))};
  if (WinogradConv::isName(implementation))
    traits.dtype = DType::F32; // of its products, whatever they are read from
  if (request.op == KernelOp::Matmul)
    traits.input = traits.output = operands.back().shape[0];
  if (!isConvolution(request.op))
    return traits;
  const std::vector<int64_t> &weight = operands[*weightOperand(request.op)].shape;
  traits.input = weight[1];
  traits.output = weight[0] / request.groups;
  for (size_t i = 0; i < operands.size(); ++i)
    if (roleOf(request, i) == Role::Activation)
      traits.pixels = std::max(traits.pixels, operands[i].shape[0] * product(operands[i].shape, 2));
  traits.strided = std::ranges::any_of(request.strides, [](int64_t stride) { return stride > 1; });
  traits.pointwise = product(weight, 2) == 1;
  return traits;
}

uint64_t pricedFlops(const KernelRequest &request, const KernelCandidate &candidate) {
  if (!isOwnKernel(candidate.implementation))
    return candidate.flops;
  return makeOwnKernel(candidate.implementation, settled(request, candidate.layouts))->flops();
}

void limitInstructionSets(const CpuTarget &target) {
  dnnl_set_max_cpu_isa(target.isa());
  if (dnnl_get_effective_cpu_isa() != target.isa())
    throw Error(ErrorCode::BadInput,
                "cannot plan for " + target.name() +
                    ": this process has used oneDNN for other instruction sets already");
}

CpuPlanner::CpuPlanner(const std::string &targetName, unsigned threads)
    : costs(targetName, threads) {
  limitInstructionSets(costs);
  engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  const dnnl_version_t *version = dnnl_version();
  description = {.name = costs.name(),
                 .features = costs.features(),
                 .library = "oneDNN " + std::to_string(version->major) + "." +
                            std::to_string(version->minor) + "." + std::to_string(version->patch),
                 .vectorBits = costs.vectorBits(),
                 .dtypes = {DType::F32},
                 .loops = CpuTarget::loops(),
                 .emitter = "cpu",
                 .table = costs.table(),
                 .cacheBytes = costs.cacheBytes(),
                 .families = costs.families(),
                 .channelBlock = costs.vectorBits() / 32,
                 .bf16Targets = CpuTarget::bf16Targets(),
                 .peaks = costs.peaks()};
  if (costs.multipliesBF16())
    description.dtypes.push_back(DType::BF16);
}

void CpuPlanner::addOwn(const KernelRequest &request, const char *implementation,
                        const std::optional<std::vector<Layout>> &layouts,
                        CandidateList &list) const {
  if (!layouts)
    return;
  auto kernel = makeOwnKernel(implementation, settled(request, *layouts));
  KernelCandidate candidate{*layouts, implementation, kernel->workspaceBytes(), flopsOf(request)};
  for (size_t i = 0; i < layouts->size(); ++i)
    candidate.bytes +=
        physicalBytes(request.operands[i].dtype, request.operands[i].shape, (*layouts)[i]);
  candidate.nanoseconds = costs.kernelCost(kernelTraits(request, *layouts, implementation),
                                           kernel->flops(), candidate.bytes);
  list.add(std::move(candidate));
}

void CpuPlanner::addOwn(const KernelRequest &request, CandidateList &list) const {
  const char *winograd = WinogradConv::nameFor(description.vectorBits);
  for (const auto &[family, name] : layoutFamilies) {
    if (winograd && request.math == Math::Fast)
      addOwn(request, winograd, WinogradConv::layouts(winograd, request, family), list);
    for (bool inRows : {false, true})
      if (costs.multipliesTiles())
        addOwn(request, tiles::name, TileFilterGradient::layouts(request, family, inRows), list);
  }
  if (costs.multipliesTiles())
    addOwn(request, tiles::name, TileConvolution::layouts(request), list);
}

CandidateList CpuPlanner::search(const KernelRequest &request) {
  CandidateList list;
  if (request.op != KernelOp::Reorder && request.operands[0].dtype == DType::BF16 &&
      !description.multiplies(DType::BF16))
    return {{}, costs.name() + " has no bf16 instructions"};
  if (request.op == KernelOp::Reorder && !std::ranges::all_of(request.operands, isFloat))
    return {{}, "oneDNN reorders f32, bf16 and f16 alone"};
  // Ahead of the library's, which costs the same by the tables and more in truth.
  DType last = request.operands.back().dtype;
  bool canPack = last == DType::BF16 ? costs.multipliesBF16() : description.vectorBits >= 512;
  if (canPack && WeightPacking::of(request)) {
    KernelCandidate packing{{}, WeightPacking::nameFor(last)};
    for (const OperandType &operand : request.operands) {
      packing.layouts.push_back(*operand.layout);
      packing.bytes += physicalBytes(operand.dtype, operand.shape, *operand.layout);
    }
    packing.nanoseconds = costs.generatedCost(packing.bytes, 0);
    list.add(std::move(packing));
  }
  addOwn(request, list);
  std::string skipped;
  std::vector<Algorithm> algorithms{Algorithm::Direct};
  if (request.math == Math::Fast && canBeWinograd(request))
    algorithms.push_back(Algorithm::Winograd);
  if (request.op == KernelOp::ConvGradFilter)
    algorithms.push_back(Algorithm::Product);
  bool acceptReference = request.op == KernelOp::Reorder || request.op == KernelOp::Matmul;
  for (const LayoutChoice &choice : layoutChoices(request, description.channelBlock))
    for (Algorithm algorithm : algorithms) {
      OneDnnOperation operation(engine, request, choice, algorithm);
      operation.anyOf([&](const OneDnnImplementation &found) {
        if (isReferenceCode(found.name) && !acceptReference) {
          skipped = found.name;
          return false;
        }
        if (isDefective(request, found.layouts, found.name))
          return false;
        KernelCandidate candidate{found.layouts, found.name};
        if (std::ranges::any_of(list.candidates, [&](const KernelCandidate &other) {
              return sameKernel(candidate, other);
            }))
          return true;
        std::optional<uint64_t> workspace = workspaceOf(engine, request, found.layouts, found.name);
        if (!workspace)
          return false;
        candidate.workspaceBytes = *workspace;
        candidate.flops = flopsOf(request);
        for (size_t i = 0; i < request.operands.size(); ++i)
          candidate.bytes +=
              physicalBytes(request.operands[i].dtype, request.operands[i].shape, found.layouts[i]);
        // A transposed convolution adds a bias, and then a ReLU too, in a second pass over its
        // result, element by element in generic code.
        constexpr uint64_t genericPassCost = 10;
        uint64_t pass = request.op == KernelOp::ConvGradData
                            ? genericPassCost * dnnl_memory_desc_get_size(&found.operands.back())
                            : 0;
        if (request.bias)
          candidate.bytes += pass;
        candidate.nanoseconds =
            costs.kernelCost(kernelTraits(request, found.layouts, found.name),
                             static_cast<uint64_t>(static_cast<double>(candidate.flops) *
                                                   paddingFactor(request, found.layouts)),
                             candidate.bytes);
        if (request.relu && !request.bias)
          candidate.nanoseconds += costs.generatedCost(pass, 0) - costs.generatedCost(0, 0);
        list.add(std::move(candidate));
        return true;
      });
    }
  if (list.candidates.empty())
    list.reason = skipped.empty()
                      ? "oneDNN has no implementation for these operands"
                      : "oneDNN has only reference code (" + skipped + ") for these operands";
  return list;
}

CandidateList CpuPlanner::candidates(const KernelRequest &request) noexcept {
  try {
    if (!CpuPlan::isConsistent(request))
      return {{}, "the request's operands do not fit its operation"};
    return search(request);
  } catch (const std::exception &error) {
    return {{}, error.what()};
  }
}

std::vector<uint8_t> CpuPlanner::finalise(const KernelRequest &request,
                                          const KernelCandidate &choice,
                                          std::string &reason) noexcept {
  try {
    CpuPlan plan{request, choice.implementation, choice.workspaceBytes};
    for (size_t i = 0; i < request.operands.size(); ++i)
      plan.request.operands[i].layout = choice.layouts.at(i);
    std::optional<uint64_t> workspace =
        workspaceOf(engine, plan.request, choice.layouts, choice.implementation);
    if (workspace == choice.workspaceBytes)
      return plan.serialize();
    reason = "oneDNN no longer offers " + choice.implementation + " as planned";
  } catch (const std::exception &error) {
    reason = error.what();
  }
  return {};
}

double CpuPlanner::generatedCost(uint64_t bytes, uint64_t flops) const noexcept {
  return costs.generatedCost(bytes, flops);
}

double CpuPlanner::generatedCost(const KernelRequest &request) const noexcept {
  if (request.op != KernelOp::Matmul)
    return std::numeric_limits<double>::infinity();
  std::vector<Layout> layouts;
  uint64_t bytes = 0;
  for (const OperandType &operand : request.operands) {
    layouts.push_back(Layout::rowMajor(operand.shape.size()));
    bytes += physicalBytes(operand.dtype, operand.shape, layouts.back());
  }
  return costs.kernelCost(kernelTraits(request, layouts, "generated"), flopsOf(request), bytes);
}

std::unique_ptr<KernelPlanner> makeCpuPlanner(const std::string &targetName, unsigned threads,
                                              std::string &reason) noexcept {
  try {
    return std::make_unique<CpuPlanner>(targetName, threads);
  } catch (const std::exception &error) {
    reason = error.what();
    return nullptr;
  }
}

} // namespace dlc::rt
