#include "runtime/cuda/plans/CudnnGraph.h"

#include "runtime/artifact/Error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <tuple>

namespace dlc::rt::cudnn {
namespace {

std::optional<DataType> dataTypeOf(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return DataType::Float;
  case DType::BF16:
    return DataType::BFloat16;
  case DType::F16:
    return DataType::Half;
  default:
    return std::nullopt;
  }
}

/// The attributes of one kind of convolution, in the order of the request's operands.
struct ConvolutionNode {
  DescriptorType type;
  Attribute convolution, alpha, beta;
  Attribute operands[3];
};

const ConvolutionNode &nodeOf(KernelOp op) {
  static const ConvolutionNode forward{
      DescriptorType::ConvolutionForward,
      Attribute::ForwardConvolution,
      Attribute::ForwardAlpha,
      Attribute::ForwardBeta,
      {Attribute::ForwardX, Attribute::ForwardW, Attribute::ForwardY}};
  static const ConvolutionNode data{
      DescriptorType::ConvolutionBackwardData,
      Attribute::BackwardDataConvolution,
      Attribute::BackwardDataAlpha,
      Attribute::BackwardDataBeta,
      {Attribute::BackwardDataDy, Attribute::BackwardDataW, Attribute::BackwardDataDx}};
  static const ConvolutionNode filter{
      DescriptorType::ConvolutionBackwardFilter,
      Attribute::BackwardFilterConvolution,
      Attribute::BackwardFilterAlpha,
      Attribute::BackwardFilterBeta,
      {Attribute::BackwardFilterX, Attribute::BackwardFilterDy, Attribute::BackwardFilterDw}};
  return op == KernelOp::Conv ? forward : op == KernelOp::ConvGradData ? data : filter;
}

/// Builds the descriptors of a graph, which all live as long as it.
class Builder {
public:
  Builder(const Functions &library, std::vector<Descriptor> &parts)
      : library(library), parts(parts) {}

  /// Keeps a finalized descriptor.
  Handle keep(Descriptor descriptor) {
    parts.push_back(std::move(descriptor.finalize()));
    return parts.back().get();
  }

  Handle tensor(const TensorShape &shape, DataType type, int64_t id, bool isVirtual = false) {
    Descriptor tensor(library, DescriptorType::Tensor);
    tensor.set(Attribute::TensorDataType, type)
        .set(Attribute::TensorDimensions, shape.extents)
        .set(Attribute::TensorStrides, shape.strides)
        .set(Attribute::TensorUniqueId, id)
        .set(Attribute::TensorByteAlignment, int64_t{16})
        .set(Attribute::TensorIsVirtual, isVirtual);
    return keep(std::move(tensor));
  }

  /// Along each dimension of space.
  struct Window {
    std::vector<int64_t> paddingLow, paddingHigh, strides, dilations;
  };
  Handle convolution(const Window &window) {
    Descriptor convolution(library, DescriptorType::Convolution);
    convolution.set(Attribute::ConvolutionComputeType, DataType::Float)
        .set(Attribute::ConvolutionMode, ConvolutionMode::CrossCorrelation)
        .set(Attribute::ConvolutionSpatialDims, static_cast<int64_t>(window.strides.size()))
        .set(Attribute::ConvolutionPrePaddings, window.paddingLow)
        .set(Attribute::ConvolutionPostPaddings, window.paddingHigh)
        .set(Attribute::ConvolutionFilterStrides, window.strides)
        .set(Attribute::ConvolutionDilations, window.dilations);
    return keep(std::move(convolution));
  }

  /// A convolution of x, w and y, of which one is computed.
  Handle convolve(const ConvolutionNode &kind, const Window &window, const Handle (&operands)[3]) {
    Descriptor node(library, kind.type);
    node.set(kind.convolution, convolution(window))
        .set(kind.alpha, 1.0F)
        .set(kind.beta, 0.0F)
        .set(kind.operands[0], operands[0])
        .set(kind.operands[1], operands[1])
        .set(kind.operands[2], operands[2]);
    return keep(std::move(node));
  }

  /// y = a + b, or y = relu(a) without b.
  Handle pointwise(PointwiseMode mode, Handle a, std::optional<Handle> b, Handle y) {
    Descriptor kind(library, DescriptorType::Pointwise);
    kind.set(Attribute::PointwiseMode, mode)
        .set(Attribute::PointwiseMathPrecision, DataType::Float);
    Descriptor node(library, DescriptorType::PointwiseOperation);
    node.set(Attribute::PointwiseDescriptor, keep(std::move(kind)))
        .set(Attribute::PointwiseX, a)
        .set(Attribute::PointwiseY, y);
    if (b)
      node.set(Attribute::PointwiseB, *b);
    return keep(std::move(node));
  }

private:
  const Functions &library;
  std::vector<Descriptor> &parts;
};

template <typename Note> bool contains(const std::vector<Note> &notes, Note note) {
  return std::ranges::find(notes, note) != notes.end();
}

/// What the library says of an engine.
Engine described(const Descriptor &found) {
  Engine engine;
  engine.index = found.getOne<int64_t>(Attribute::EngineGlobalIndex);
  engine.numerical = found.getAll<NumericalNote>(Attribute::EngineNumericalNotes);
  engine.behavior = found.getAll<BehaviorNote>(Attribute::EngineBehaviorNotes);
  return engine;
}

Engine describe(const Descriptor &config) {
  return described(config.getDescriptor(Attribute::ConfigEngine, DescriptorType::Engine));
}

/// A finalized plan's workspace and text.
void readPlan(const Descriptor &plan, Plan &result) {
  result.workspaceBytes = static_cast<uint64_t>(plan.getOne<int64_t>(Attribute::PlanWorkspaceSize));
  std::vector<char> text = plan.getAll<char>(Attribute::PlanJson);
  result.json.assign(text.begin(), std::ranges::find(text, '\0'));
}

} // namespace

std::optional<TensorShape> TensorShape::of(const OperandType &operand) {
  const Layout &layout = *operand.layout;
  bool isPadded = layout.blocks.size() == 1 && layout.blocks.front().dim == 1 &&
                  !layout.order.empty() && layout.order.back() == 1;
  if (!layout.blocks.empty() && !isPadded)
    return std::nullopt;
  TensorShape shape{operand.shape, std::vector<int64_t>(operand.shape.size())};
  for (size_t dim = 0; dim < operand.shape.size(); ++dim)
    shape.extents[dim] = layout.outerExtent(operand.shape, dim) * layout.blockOf(dim);
  int64_t stride = 1;
  for (size_t i = layout.order.size(); i-- > 0; stride *= shape.extents[layout.order[i]])
    shape.strides[layout.order[i]] = stride;
  if (operand.shape.size() == 3) { // two dimensions of space at least
    shape.extents.insert(shape.extents.begin() + 2, 1);
    shape.strides.insert(shape.strides.begin() + 2, shape.strides[2] * shape.extents[3]);
  }
  return shape;
}

TensorShape TensorShape::ofBias(int64_t channels, size_t rank) {
  TensorShape row{std::vector<int64_t>(rank, 1), std::vector<int64_t>(rank, channels)};
  row.extents[1] = channels;
  row.strides[1] = 1;
  return row;
}

bool Engine::has(NumericalNote note) const { return contains(numerical, note); }
bool Engine::has(BehaviorNote note) const { return contains(behavior, note); }

bool Engine::isAdmissible(DType dtype, Math math) const {
  if (has(BehaviorNote::RuntimeCompilation) || has(NumericalNote::Nondeterministic))
    return false;
  if (has(NumericalNote::ReducedPrecisionReduction))
    return false;
  bool isExact = dtype == DType::F32 && math == Math::Strict;
  if (isExact && (has(NumericalNote::TensorCore) || has(NumericalNote::DownConvertInputs)))
    return false;
  return isDirect() || math == Math::Fast;
}

bool Engine::isDirect() const {
  return !has(NumericalNote::Fft) && !has(NumericalNote::Winograd) &&
         !has(NumericalNote::WinogradTile4x4) && !has(NumericalNote::WinogradTile6x6) &&
         !has(NumericalNote::WinogradTile13x13);
}

std::string Engine::name() const { return "cudnn:" + std::to_string(index); }

std::optional<Graph> Graph::of(const Functions &library, const KernelRequest &request,
                               std::string &reason) {
  size_t factors = 2; // operands ahead of a bias and the result
  std::vector<TensorShape> shapes;
  for (const OperandType &operand : request.operands) {
    std::optional<TensorShape> shape = TensorShape::of(operand);
    if (!shape || !dataTypeOf(operand.dtype)) {
      reason = "cuDNN takes no tensors " + operand.layout->toString() + " of this type";
      return std::nullopt;
    }
    shapes.push_back(*shape);
  }
  if (request.relu && !request.bias) {
    reason = "cuDNN has no convolution with a ReLU and no bias";
    return std::nullopt;
  }
  Graph result(library);
  result.parts.reserve(16);
  Builder builder(library, result.parts);
  size_t last = shapes.size() - 1;
  auto typeOf = [&](size_t i) { return *dataTypeOf(request.operands[i].dtype); };
  // Between nodes are tensors that are never stored, in f32.
  int64_t nextId = static_cast<int64_t>(shapes.size()) + 1;
  auto between = [&] { return builder.tensor(shapes[last], DataType::Float, nextId++, true); };

  Handle given[2];
  for (size_t i = 0; i < factors; ++i)
    given[i] = builder.tensor(shapes[i], typeOf(i), static_cast<int64_t>(i) + 1);
  Handle stored = builder.tensor(shapes[last], typeOf(last), static_cast<int64_t>(last) + 1);
  Handle product = request.bias ? between() : stored;

  // A window along one dimension is one of two, the first of which has an extent of 1.
  auto spatial = [&](std::vector<int64_t> values, int64_t filler) {
    values.insert(values.begin(), shapes[0].extents.size() - 2 - values.size(), filler);
    return values;
  };
  std::vector<Handle> nodes{
      builder.convolve(nodeOf(request.op),
                       {spatial(request.paddingLow, 0), spatial(request.paddingHigh, 0),
                        spatial(request.strides, 1), spatial(request.dilations, 1)},
                       {given[0], given[1], product})};
  if (request.bias) {
    TensorShape row = TensorShape::ofBias(shapes[factors].extents[0], shapes[last].extents.size());
    Handle bias = builder.tensor(row, typeOf(factors), static_cast<int64_t>(factors) + 1);
    Handle sum = request.relu ? between() : stored;
    nodes.push_back(builder.pointwise(PointwiseMode::Add, product, bias, sum));
    if (request.relu)
      nodes.push_back(builder.pointwise(PointwiseMode::ReluForward, sum, std::nullopt, stored));
  }
  result.factors = request.operands[0].dtype;
  result.finish(nodes, reason);
  return result.graph ? std::optional(std::move(result)) : std::nullopt;
}

/// Sets `reason` where the library has no such graph.
void Graph::finish(std::span<const Handle> nodes, std::string &reason) {
  Descriptor operations(*library, DescriptorType::OperationGraph);
  operations.set(Attribute::GraphOperations, nodes);
  if (Status status = success; !operations.tryFinalize(status)) {
    reason = std::string("cuDNN refuses the operation: ") + library->getErrorString(status);
    return;
  }
  graph = std::move(operations);
  isSingleNode = nodes.size() == 1;
}

[[noreturn]] static void refusePlan(const std::string &what) {
  throw Error(ErrorCode::Artifact, "a stored plan is damaged: " + what);
}

/// Of the library's name of a type.
static DType storedType(const std::string &name) {
  for (auto [known, dtype] : {std::pair("CUDNN_DATA_FLOAT", DType::F32),
                              {"CUDNN_DATA_BFLOAT16", DType::BF16},
                              {"CUDNN_DATA_HALF", DType::F16}})
    if (name == known)
      return dtype;
  refusePlan("it has a tensor of type " + name);
}

/// What a node computes, and the names of its x, w and y in the order of a request's operands.
static std::pair<KernelOp, std::array<const char *, 3>> storedOp(const std::string &operation) {
  for (auto [name, op, operands] :
       {std::tuple("CONVOLUTION_FORWARD", KernelOp::Conv, std::array{"X", "W", "Y"}),
        {"CONVOLUTION_BACKWARD_DATA", KernelOp::ConvGradData, {"dY", "W", "dX"}},
        {"CONVOLUTION_BACKWARD_FILTER", KernelOp::ConvGradFilter, {"X", "dY", "dW"}}})
    if (operation.find(name) != std::string::npos)
      return {op, operands};
  refusePlan("it has a node " + operation);
}

Graph Graph::stored(const Functions &library, const std::string &json) try {
  nlohmann::json text = nlohmann::json::parse(json).at("operationGraph");
  Graph result(library);
  Builder builder(library, result.parts);
  std::map<std::string, Handle> tensors;
  for (const nlohmann::json &tensor : text.at("tensors")) {
    std::string name = tensor.at("name");
    DType dtype = storedType(tensor.at("dataType"));
    tensors[name] = builder.tensor({tensor.at("dim"), tensor.at("stride")}, *dataTypeOf(dtype),
                                   std::stoll(name), tensor.at("isVirtual"));
    if (name == "1")
      result.factors = dtype;
  }
  std::vector<Handle> nodes;
  for (const nlohmann::json &node : text.at("nodes")) {
    auto tensor = [&](const char *role) { return tensors.at(node.at(role)); };
    std::string operation = node.at("operation");
    if (operation.find("POINTWISE") == std::string::npos) {
      auto [op, roles] = storedOp(operation);
      // One text where both sides have the same.
      auto padding = [&](const char *side) -> std::vector<int64_t> {
        return node.contains("pad") ? node.at("pad") : node.at(side);
      };
      nodes.push_back(builder.convolve(
          nodeOf(op),
          {padding("pad_lower"), padding("pad_upper"), node.at("stride"), node.at("dilation")},
          {tensor(roles[0]), tensor(roles[1]), tensor(roles[2])}));
    } else if (node.at("pointwiseMode") == "CUDNN_POINTWISE_ADD") {
      nodes.push_back(builder.pointwise(PointwiseMode::Add, tensor("X"), tensor("B"), tensor("Y")));
    } else if (node.at("pointwiseMode") == "CUDNN_POINTWISE_RELU_FWD") {
      nodes.push_back(
          builder.pointwise(PointwiseMode::ReluForward, tensor("X"), std::nullopt, tensor("Y")));
    } else {
      refusePlan("it has a pointwise node " + node.at("pointwiseMode").dump());
    }
  }
  std::string reason;
  result.finish(nodes, reason);
  if (!result.graph)
    throw Error(ErrorCode::Runtime, reason);
  return result;
} catch (const nlohmann::json::exception &error) {
  refusePlan(error.what());
} catch (const std::logic_error &error) { // no such tensor
  refusePlan(error.what());
}

Engine Graph::engine(int64_t index, const Descriptor &device, Math math) const {
  Descriptor descriptor(*library, DescriptorType::Engine);
  descriptor.set(Attribute::EngineOperationGraph, *graph)
      .set(Attribute::EngineGlobalIndex, index)
      .set(Attribute::EngineDeviceProperties, device);
  Engine engine = described(descriptor.finalize());
  if (!engine.isAdmissible(factors, math))
    throw Error(ErrorCode::Artifact,
                "its engine, " + engine.name() +
                    ", gives other bits each time, is compiled where it runs, or multiplies "
                    "otherwise than the artifact's math says; compile the model again");
  return engine;
}

Descriptor deviceProperties(const Functions &library, const std::string &json) {
  auto device = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  auto name = device.is_object() ? device.value("deviceName", nlohmann::json()) : nlohmann::json();
  if (name.is_string() && name.get_ref<const std::string &>().size() >= nameCharacters)
    throw Error(ErrorCode::Artifact, "a device has a name of at most " +
                                         std::to_string(nameCharacters - 1) + " characters");
  Descriptor properties(library, DescriptorType::DeviceProperties);
  properties.set(Attribute::DevicePropertiesJson, std::string_view(json));
  properties.finalize();
  return properties;
}

std::string propertiesOf(const Functions &library, int device) {
  Descriptor properties(library, DescriptorType::DeviceProperties);
  properties.set(Attribute::DevicePropertiesId, static_cast<int32_t>(device));
  properties.finalize();
  std::vector<char> text = properties.getAll<char>(Attribute::DevicePropertiesJson);
  return {text.begin(), std::ranges::find(text, '\0')};
}

std::vector<Descriptor> Graph::configurations(const Descriptor &device, HeuristicMode mode,
                                              std::string &reason) const {
  Descriptor heuristics(*library, DescriptorType::EngineHeuristics);
  heuristics.set(Attribute::HeuristicsOperationGraph, *graph)
      .set(Attribute::HeuristicsMode, mode)
      .set(Attribute::HeuristicsDeviceProperties, device);
  if (Status status = success; !heuristics.tryFinalize(status)) {
    reason = std::string("cuDNN has no engine for it: ") + library->getErrorString(status);
    return {};
  }
  return heuristics.getDescriptors(Attribute::HeuristicsResults, DescriptorType::EngineConfig);
}

namespace {
/// What kind of kernels an engine has, as the knobs of its plans tell.
enum class KernelFamily : uint8_t { Specialized, Other, Clusters, NoTensorCores };
} // namespace

static KernelFamily familyOf(const Plan &plan) {
  auto has = [&](const char *knob) { return plan.json.find(knob) != std::string::npos; };
  if (!plan.engine.has(NumericalNote::TensorCore))
    return KernelFamily::NoTensorCores;
  return has("CUDNN_KNOB_TYPE_TILE_CGA_M") ? KernelFamily::Clusters
         : has("CUDNN_KNOB_TYPE_SPECFILT") ? KernelFamily::Specialized
                                           : KernelFamily::Other;
}

std::vector<Plan> Graph::plans(const std::string &properties, const Limits &limits,
                               std::string &reason) const {
  std::vector<Plan> plans;
  std::optional<Plan> least;
  Descriptor device = deviceProperties(*library, properties);
  reason = "cuDNN has no engine for it that is there already, deterministic and exact enough";
  // The plan of an engine that may be taken, and that takes the graph.
  auto planned = [&](const Descriptor &config) {
    std::optional<Plan> plan(std::in_place);
    plan->engine = describe(config);
    if (!plan->engine.isAdmissible(factors, limits.math))
      return std::optional<Plan>();
    Descriptor descriptor(*library, DescriptorType::ExecutionPlan);
    descriptor.set(Attribute::PlanEngineConfig, config)
        .set(Attribute::PlanDeviceProperties, device);
    if (Status status = success; !descriptor.tryFinalize(status))
      return std::optional<Plan>();
    readPlan(descriptor, *plan);
    return plan;
  };
  auto take = [&](std::optional<Plan> plan) {
    bool isKnown = plan && std::ranges::find(plans, plan->json, &Plan::json) != plans.end();
    if (!plan || isKnown || plans.size() == limits.most)
      return;
    if (plan->workspaceBytes <= limits.workspaceBytes)
      plans.push_back(std::move(*plan));
    else if (!least || plan->workspaceBytes < least->workspaceBytes)
      least = std::move(*plan);
  };
  std::vector<Descriptor> suggested = configurations(device, HeuristicMode::A, reason);
  if (limits.all || limits.clustersLast)
    for (Descriptor &config : configurations(device, HeuristicMode::B, reason))
      suggested.push_back(std::move(config));
  std::map<int64_t, KernelFamily> families; // by engine
  auto familyOfEngine = [&](const Descriptor &config) {
    if (!limits.clustersLast)
      return KernelFamily::Specialized;
    int64_t engine = describe(config).index;
    if (auto known = families.find(engine); known != families.end())
      return known->second;
    std::optional<Plan> plan = planned(config);
    return plan ? families[engine] = familyOf(*plan) : KernelFamily::NoTensorCores;
  };
  std::vector<KernelFamily> kinds;
  for (const Descriptor &config : suggested)
    kinds.push_back(familyOfEngine(config));
  for (KernelFamily family : {KernelFamily::Specialized, KernelFamily::Other,
                              KernelFamily::Clusters, KernelFamily::NoTensorCores})
    for (size_t i = 0; i < suggested.size() && plans.size() < limits.most; ++i)
      if (kinds[i] == family)
        take(planned(suggested[i]));
  // The library falls back on single nodes alone, and takes long to say so.
  if (isSingleNode && plans.size() < limits.most)
    for (const Descriptor &config : configurations(device, HeuristicMode::Fallback, reason))
      take(planned(config));
  if (plans.empty() && least)
    plans.push_back(std::move(*least));
  return plans;
}

/// 900 as "9.0".
static std::string capabilityText(int version) {
  return std::to_string(version / 100) + "." + std::to_string(version / 10 % 10);
}

std::string withProperties(const std::string &json, const std::string &properties) {
  try {
    auto plan = nlohmann::ordered_json::parse(json),
         device = nlohmann::ordered_json::parse(properties);
    auto planned = plan.at("GPUProfile").at("deviceVer").get<int>();
    auto found = device.at("deviceVer").get<int>();
    // The library itself would load an engine for another architecture.
    if (planned != found)
      throw Error(ErrorCode::Artifact, "planned for compute capability " + capabilityText(planned) +
                                           ", this device has " + capabilityText(found) +
                                           "; compile the model for it");
    plan.at("GPUProfile") = device;
    return plan.dump();
  } catch (const nlohmann::json::exception &error) {
    throw Error(ErrorCode::Artifact, std::string("a stored plan is damaged: ") + error.what());
  }
}

/// True if the nodes of a stored graph compute the last of so many tensors of the others, each
/// once.
static bool isChain(const nlohmann::json &nodes, size_t tensors) {
  std::string value; // of the nodes so far
  for (const nlohmann::json &node : nodes) {
    std::string operation = node.at("operation");
    if (operation.find("POINTWISE") != std::string::npos) {
      if (node.at("X") != value || node.value("B", "3") != "3" || node.value("alpha1", 1.0) != 1 ||
          node.value("alpha2", 1.0) != 1)
        return false;
      value = node.at("Y");
      continue;
    }
    auto [op, roles] = storedOp(operation);
    if (!value.empty() || node.at(roles[0]) != "1" || node.at(roles[1]) != "2" ||
        node.at("alpha") != 1 || node.at("beta") != 0)
      return false;
    value = node.at(roles[2]);
  }
  return value == std::to_string(tensors);
}

bool isOf(const std::string &json, std::span<const OperandType> operands) try {
  nlohmann::json graph = nlohmann::json::parse(json).at("operationGraph");
  std::map<std::string, nlohmann::json> stored;
  for (const nlohmann::json &tensor : graph.at("tensors"))
    if (!tensor.at("isVirtual").get<bool>())
      stored[tensor.at("name")] = tensor;
  for (size_t i = 0; i < operands.size(); ++i) {
    const nlohmann::json &tensor = stored.at(std::to_string(i + 1));
    std::optional<TensorShape> shape = TensorShape::of(operands[i]);
    if (shape && operands[i].shape.size() == 1)
      shape = TensorShape::ofBias(operands[i].shape[0], tensor.at("dim").size());
    if (!shape || storedType(tensor.at("dataType")) != operands[i].dtype ||
        tensor.at("dim") != shape->extents || tensor.at("stride") != shape->strides)
      return false;
  }
  return stored.size() == operands.size() && isChain(graph.at("nodes"), operands.size());
} catch (const std::exception &) { // of what parses texts: no plan's
  return false;
}

KernelRequest requestOf(const std::string &json, std::vector<OperandType> operands) try {
  nlohmann::json nodes = nlohmann::json::parse(json).at("operationGraph").at("nodes");
  const nlohmann::json &convolution = nodes.at(0);
  KernelRequest request;
  request.op = storedOp(convolution.at("operation")).first;
  request.operands = std::move(operands);
  size_t space = request.operands[0].shape.size() - 2;
  // Those of a graph may have one dimension more than the kernel, ahead of its own.
  auto vector = [&](const char *name, const char *other) {
    std::vector<int64_t> values = convolution.at(convolution.contains(name) ? name : other);
    if (values.size() < space)
      refusePlan(std::string("it lacks dimensions of \"") + name + '"');
    return std::vector<int64_t>(values.end() - static_cast<ptrdiff_t>(space), values.end());
  };
  request.paddingLow = vector("pad", "pad_lower");
  request.paddingHigh = vector("pad", "pad_upper");
  request.strides = vector("stride", "stride");
  request.dilations = vector("dilation", "dilation");
  size_t image = request.op == KernelOp::ConvGradData ? request.operands.size() - 1 : 0;
  request.groups =
      request.operands[image].shape[1] / request.operands[*weightOperand(request.op)].shape[1];
  for (const nlohmann::json &node : nodes) {
    request.bias |= node.contains("B");
    request.relu |= node.value("pointwiseMode", "") == "CUDNN_POINTWISE_RELU_FWD";
  }
  return request;
} catch (const nlohmann::json::exception &error) {
  refusePlan(error.what());
}

Engine engineOf(const Functions &library, const std::string &json, Math math) try {
  auto plan = nlohmann::ordered_json::parse(json);
  Descriptor device = deviceProperties(library, plan.at("GPUProfile").dump());
  return Graph::stored(library, json)
      .engine(plan.at("engine").at("engineId").get<int64_t>(), device, math);
} catch (const nlohmann::json::exception &error) {
  refusePlan(error.what());
}

bool isOwn(const Functions &library, const std::string &json) {
  auto plan = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  return plan.is_object() && plan.contains("cudnnVersion") &&
         plan["cudnnVersion"] == library.getVersion();
}

// Of another version's plans, how many are looked through for the same engine.
static constexpr size_t mostSuggestions = 64;

Plan replan(const Functions &library, const std::string &properties, const std::string &json,
            uint64_t workspaceBytes, Math math, bool &isSame) {
  Graph graph = Graph::stored(library, json);
  nlohmann::json engine = nlohmann::json::parse(json).value("engine", nlohmann::json());
  std::string reason;
  std::vector<Plan> plans = graph.plans(properties,
                                        {mostSuggestions, workspaceBytes, math, /*all=*/false,
                                         /*clustersLast=*/true},
                                        reason);
  if (plans.empty())
    throw Error(ErrorCode::Artifact, reason);
  auto same = std::ranges::find_if(plans, [&](const Plan &plan) {
    return nlohmann::json::parse(plan.json).value("engine", nlohmann::json()) == engine;
  });
  isSame = same != plans.end();
  return isSame ? *same : plans.front();
}

Descriptor load(const Functions &library, const Descriptor &properties, const std::string &json) {
  Descriptor descriptor(library, DescriptorType::ExecutionPlan);
  descriptor.set(Attribute::PlanDeviceProperties, properties)
      .set(Attribute::PlanJson, std::string_view(json));
  descriptor.finalize();
  return descriptor;
}

Plan reload(const Functions &library, const std::string &properties, const std::string &json) {
  Plan plan;
  readPlan(load(library, deviceProperties(library, properties), json), plan);
  return plan;
}

} // namespace dlc::rt::cudnn
