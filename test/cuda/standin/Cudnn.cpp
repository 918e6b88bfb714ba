// libcudnn.so.9 of the stand-in GPU: plans run, by plain loops from their own texts. Convolutions
// of f32 are exact, which a plan does not say.
//
// A graph that is described becomes the text that a stored plan has of it. Engines compute all
// graphs alike, and differ in their numbers, in what is said of them, and in what they take.

#include "test/cuda/standin/Gpu.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/libraries/Cudnn.h"
#include "test/cuda/StoredGraph.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

namespace dlc::rt::cudnn {

struct ContextState {
  cudart::Stream stream = nullptr;
};

} // namespace dlc::rt::cudnn

namespace {

using namespace dlc::rt::cudnn; // whose types the interface has
using dlc::rt::Error;
using dlc::rt::ErrorCode;
using dlc::rt::standin::Gpu;
using dlc::rt::test::StoredGraph;
using Json = nlohmann::json;

/// Of which alone stored plans are taken.
size_t version() { return static_cast<size_t>(Gpu::given("DLC_STANDIN_CUDNN", 91900)); }

/// Best first in all modes of the heuristics, which offer the first $DLC_STANDIN_ENGINES of them.
/// Of the first two nobody may take any.
constexpr struct {
  int64_t number;
  std::optional<NumericalNote> note;
  std::optional<BehaviorNote> behavior;
  int64_t share; // the engine needs 1 / share of $DLC_STANDIN_WORKSPACE bytes
} engines[] = {{1000, NumericalNote::Nondeterministic, {}, 1},
               {1003, {}, BehaviorNote::RuntimeCompilation, 1},
               {1001, {}, {}, 1},
               {1002, {}, {}, 2}};

/// Engines of the real library need none here.
int64_t workspaceOf(int64_t engine) {
  for (const auto &each : engines)
    if (each.number == engine)
      return Gpu::given("DLC_STANDIN_WORKSPACE", 0) / each.share;
  return 0;
}

/// Beside its loops. All engines but $DLC_STANDIN_FAST wait, if that is given.
std::chrono::milliseconds delayOf(int64_t engine) {
  return std::chrono::milliseconds(Gpu::given("DLC_STANDIN_FAST", engine) == engine ? 0 : 2);
}

constexpr Status badParameter = 2000, notSupported = 3000, executionFailed = 5000;

constexpr struct {
  const char *name, *json;
} tables[] = {
#include "runtime/cuda/targets.inc"
};

/// As the library describes it.
std::string propertiesOfDevice() {
  for (const auto &[name, json] : tables)
    if (std::string(name) == "h200")
      return Json::parse(json).at("properties").dump();
  return "{}";
}

struct Value {
  AttributeType type = AttributeType::Char;
  int64_t count = 0;
  std::vector<std::byte> bytes;

  template <typename T> std::vector<T> as() const {
    std::vector<T> values(static_cast<size_t>(count));
    std::memcpy(static_cast<void *>(values.data()), bytes.data(),
                std::min(bytes.size(), values.size() * sizeof(T)));
    return values;
  }
};

size_t sizeOf(AttributeType type) {
  switch (type) {
  case AttributeType::Char:
  case AttributeType::Boolean:
    return 1;
  case AttributeType::Int64:
  case AttributeType::DataPointer:
  case AttributeType::Descriptor:
    return 8;
  default:
    return 4;
  }
}

struct Plan {
  StoredGraph graph;
  size_t workspaceBytes;
  std::chrono::milliseconds delay;
};

struct Description {
  DescriptorType type;
  std::map<Attribute, Value> values = {};
  bool isFinal = false;
  Json text = {};                     // of what is part of a plan, as stored plans have it
  Json tensors = {};                  // of a node, by name
  std::vector<Description> held = {}; // heuristics' configurations, a configuration's engine
  std::shared_ptr<const Plan> plan = nullptr;

  template <typename T> std::vector<T> get(Attribute name, AttributeType type) const {
    auto found = values.find(name);
    return found == values.end() || found->second.type != type ? std::vector<T>()
                                                               : found->second.as<T>();
  }
  /// Throws an exception if it was not given.
  template <typename T> T one(Attribute name, AttributeType type) const {
    return get<T>(name, type).at(0);
  }
  std::vector<int64_t> numbers(Attribute name) const {
    return get<int64_t>(name, AttributeType::Int64);
  }
  const Description &child(Attribute name) const {
    return finished(*one<Description *>(name, AttributeType::Descriptor));
  }
  static const Description &finished(const Description &description) {
    return description.isFinal ? description : throw std::invalid_argument("it is not finalized");
  }
  template <typename T> void set(Attribute name, AttributeType type, const std::vector<T> &given) {
    std::span<const std::byte> bytes = std::as_bytes(std::span(given));
    values[name] = {type, static_cast<int64_t>(given.size()), {bytes.begin(), bytes.end()}};
  }
  std::string string(Attribute name) const {
    std::vector<char> text = get<char>(name, AttributeType::Char);
    return {text.begin(), std::ranges::find(text, '\0')};
  }
  void setString(Attribute name, const std::string &text) {
    set(name, AttributeType::Char, std::vector<char>(text.c_str(), text.c_str() + text.size() + 1));
  }
};

Status finalizeProperties(Description &properties) {
  std::vector<int32_t> device =
      properties.get<int32_t>(Attribute::DevicePropertiesId, AttributeType::Int32);
  if (!device.empty()) {
    if (!Gpu::exists(device.front()))
      return badParameter;
    properties.setString(Attribute::DevicePropertiesJson, propertiesOfDevice());
  }
  return Json::accept(properties.string(Attribute::DevicePropertiesJson)) ? success : badParameter;
}

//===- Planning -------------------------------------------------------------------------------===//

const char *nameOf(DataType type) {
  return type == DataType::Float  ? "CUDNN_DATA_FLOAT"
         : type == DataType::Half ? "CUDNN_DATA_HALF"
                                  : "CUDNN_DATA_BFLOAT16";
}

Status finalizeTensor(Description &tensor) {
  auto id = tensor.one<int64_t>(Attribute::TensorUniqueId, AttributeType::Int64);
  auto type = tensor.one<DataType>(Attribute::TensorDataType, AttributeType::DataType);
  auto isVirtual = tensor.one<uint8_t>(Attribute::TensorIsVirtual, AttributeType::Boolean);
  tensor.text = {{"name", std::to_string(id)},
                 {"dataType", nameOf(type)},
                 {"dim", tensor.numbers(Attribute::TensorDimensions)},
                 {"stride", tensor.numbers(Attribute::TensorStrides)},
                 {"isVirtual", isVirtual != 0}};
  return success;
}

Status finalizeConvolution(Description &window) {
  std::vector<int64_t> lower = window.numbers(Attribute::ConvolutionPrePaddings),
                       upper = window.numbers(Attribute::ConvolutionPostPaddings);
  auto mode =
      window.one<ConvolutionMode>(Attribute::ConvolutionMode, AttributeType::ConvolutionMode);
  window.text = {
      {"mode", mode == ConvolutionMode::CrossCorrelation ? "CUDNN_CROSS_CORRELATION" : ""},
      {"stride", window.numbers(Attribute::ConvolutionFilterStrides)},
      {"dilation", window.numbers(Attribute::ConvolutionDilations)}};
  if (lower == upper)
    window.text["pad"] = lower;
  else
    window.text.update({{"pad_lower", lower}, {"pad_upper", upper}});
  return success;
}

Status finalizePointwise(Description &kind) {
  auto mode = kind.one<PointwiseMode>(Attribute::PointwiseMode, AttributeType::PointwiseMode);
  kind.text = {{"pointwiseMode",
                mode == PointwiseMode::Add ? "CUDNN_POINTWISE_ADD" : "CUDNN_POINTWISE_RELU_FWD"}};
  return success;
}

constexpr struct {
  DescriptorType type;
  const char *name; // in texts
  Attribute how;    // the descriptor of a convolution or a pointwise function
  std::pair<const char *, Attribute> parts[5]; // tensors and scales by their names in texts
} nodes[] = {
    {DescriptorType::ConvolutionForward,
     "CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR",
     Attribute::ForwardConvolution,
     {{"X", Attribute::ForwardX},
      {"W", Attribute::ForwardW},
      {"Y", Attribute::ForwardY},
      {"alpha", Attribute::ForwardAlpha},
      {"beta", Attribute::ForwardBeta}}},
    {DescriptorType::ConvolutionBackwardData,
     "CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR",
     Attribute::BackwardDataConvolution,
     {{"dY", Attribute::BackwardDataDy},
      {"W", Attribute::BackwardDataW},
      {"dX", Attribute::BackwardDataDx},
      {"alpha", Attribute::BackwardDataAlpha},
      {"beta", Attribute::BackwardDataBeta}}},
    {DescriptorType::ConvolutionBackwardFilter,
     "CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR",
     Attribute::BackwardFilterConvolution,
     {{"X", Attribute::BackwardFilterX},
      {"dY", Attribute::BackwardFilterDy},
      {"dW", Attribute::BackwardFilterDw},
      {"alpha", Attribute::BackwardFilterAlpha},
      {"beta", Attribute::BackwardFilterBeta}}},
    {DescriptorType::PointwiseOperation,
     "CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR",
     Attribute::PointwiseDescriptor,
     {{"X", Attribute::PointwiseX}, {"B", Attribute::PointwiseB}, {"Y", Attribute::PointwiseY}}}};

/// Of what a node lacks no plan is made: reading the graph's text fails.
Status finalizeNode(Description &node) {
  const auto *kind =
      std::ranges::find(nodes, node.type, [](const auto &each) { return each.type; });
  if (kind == std::end(nodes))
    return notSupported; // configurations, which are results
  node.text = node.child(kind->how).text;
  node.text["operation"] = kind->name;
  for (auto [name, attribute] : kind->parts) {
    auto given = node.values.find(attribute);
    if (!name || given == node.values.end())
      continue;
    if (given->second.type == AttributeType::Float) {
      node.text[name] = node.one<float>(attribute, AttributeType::Float);
      continue;
    }
    const Json &tensor = node.child(attribute).text;
    node.text[name] = tensor.at("name");
    node.tensors[tensor.at("name").get<std::string>()] = tensor;
  }
  return success;
}

Status finalizeGraph(Description &graph) {
  Json tensors = Json::object();
  for (const Description *node :
       graph.get<Description *>(Attribute::GraphOperations, AttributeType::Descriptor)) {
    tensors.update(Description::finished(*node).tensors);
    graph.text["nodes"].push_back(node->text);
  }
  for (const Json &tensor : tensors)
    graph.text["tensors"].push_back(tensor);
  return success;
}

/// Those of the real library are known by their numbers alone.
void describeEngine(Description &engine, int64_t number) {
  std::vector<NumericalNote> notes;
  std::vector<BehaviorNote> behavior;
  for (const auto &each : engines) {
    if (each.number == number && each.note)
      notes.push_back(*each.note);
    if (each.number == number && each.behavior)
      behavior.push_back(*each.behavior);
  }
  engine.set(Attribute::EngineGlobalIndex, AttributeType::Int64, std::vector{number});
  engine.set(Attribute::EngineNumericalNotes, AttributeType::NumericalNote, notes);
  engine.set(Attribute::EngineBehaviorNotes, AttributeType::BehaviorNote, behavior);
}

Status finalizeEngine(Description &engine) {
  engine.child(Attribute::EngineOperationGraph);
  engine.child(Attribute::EngineDeviceProperties);
  describeEngine(engine, engine.one<int64_t>(Attribute::EngineGlobalIndex, AttributeType::Int64));
  return success;
}

Status finalizeHeuristics(Description &heuristics) {
  heuristics.child(Attribute::HeuristicsDeviceProperties);
  heuristics.one<HeuristicMode>(Attribute::HeuristicsMode, AttributeType::HeuristicMode);
  const Json &graph = heuristics.child(Attribute::HeuristicsOperationGraph).text;
  auto offered = static_cast<size_t>(
      Gpu::given("DLC_STANDIN_ENGINES", static_cast<int64_t>(std::size(engines))));
  for (const auto &each : std::span(engines).first(offered)) {
    Description engine{.type = DescriptorType::Engine, .isFinal = true};
    describeEngine(engine, each.number);
    Json text{{"engine", {{"engineId", each.number}, {"knobChoices", Json::object()}}},
              {"operationGraph", graph}};
    heuristics.held.push_back({.type = DescriptorType::EngineConfig,
                               .isFinal = true,
                               .text = std::move(text),
                               .held = {std::move(engine)}});
  }
  return heuristics.held.empty() ? notSupported : success;
}

/// Of a configuration, or a text, which is taken if it is of this version and for a device like the
/// described one.
Status finalizePlan(Description &plan) {
  Json device = Json::parse(
      plan.child(Attribute::PlanDeviceProperties).string(Attribute::DevicePropertiesJson));
  if (plan.values.contains(Attribute::PlanEngineConfig)) {
    Json planned = plan.child(Attribute::PlanEngineConfig).text;
    planned["cudnnVersion"] = version();
    planned["GPUProfile"] = device;
    plan.setString(Attribute::PlanJson, planned.dump());
  }
  std::string stored = plan.string(Attribute::PlanJson);
  Json text = Json::parse(stored);
  if (text.at("cudnnVersion") != version())
    return notSupported;
  for (const char *part : {"deviceVer", "multiProcessorCount", "driverVer"})
    if (text.at("GPUProfile").at(part) != device.at(part))
      return notSupported;
  int64_t engine = text.at("engine").at("engineId"), workspace = workspaceOf(engine);
  plan.plan = std::make_shared<const Plan>(StoredGraph(stored), static_cast<size_t>(workspace),
                                           delayOf(engine));
  plan.set(Attribute::PlanWorkspaceSize, AttributeType::Int64, std::vector{workspace});
  return success;
}

//===- Execution ------------------------------------------------------------------------------===//

Status finalizePack(const Description &pack) {
  size_t ids = pack.get<int64_t>(Attribute::PackUniqueIds, AttributeType::Int64).size();
  size_t places = pack.get<void *>(Attribute::PackDataPointers, AttributeType::DataPointer).size();
  size_t spaces = pack.get<void *>(Attribute::PackWorkspace, AttributeType::DataPointer).size();
  return ids > 0 && ids == places && spaces == 1 ? success : badParameter;
}

Status finalize(Description &descriptor) {
  switch (descriptor.type) {
  case DescriptorType::Tensor:
    return finalizeTensor(descriptor);
  case DescriptorType::Convolution:
    return finalizeConvolution(descriptor);
  case DescriptorType::Pointwise:
    return finalizePointwise(descriptor);
  case DescriptorType::OperationGraph:
    return finalizeGraph(descriptor);
  case DescriptorType::Engine:
    return finalizeEngine(descriptor);
  case DescriptorType::EngineHeuristics:
    return finalizeHeuristics(descriptor);
  case DescriptorType::DeviceProperties:
    return finalizeProperties(descriptor);
  case DescriptorType::ExecutionPlan:
    return finalizePlan(descriptor);
  case DescriptorType::VariantPack:
    return finalizePack(descriptor);
  default:
    return finalizeNode(descriptor);
  }
}

/// Operand i of a graph is the tensor with the id i + 1.
std::vector<void *> operandsOf(const Description &pack) {
  std::vector<void *> operands;
  auto ids = pack.get<int64_t>(Attribute::PackUniqueIds, AttributeType::Int64);
  auto places = pack.get<void *>(Attribute::PackDataPointers, AttributeType::DataPointer);
  for (size_t i = 0; i < ids.size(); ++i) {
    auto place = static_cast<size_t>(ids[i]) - 1;
    operands.resize(std::max(operands.size(), place + 1));
    operands[place] = places[i];
  }
  return operands;
}

void execute(Gpu &gpu, const Plan &plan, const std::vector<void *> &operands, void *workspace) {
  constexpr uintptr_t alignment = 16; // that plans promise
  std::vector<std::span<std::byte>> memory;
  for (void *operand : operands) {
    if (reinterpret_cast<uintptr_t>(operand) % alignment != 0)
      throw Error(ErrorCode::Runtime, "cuDNN: misaligned address");
    memory.push_back(gpu.memory.from(operand));
  }
  if (plan.workspaceBytes > 0)
    std::ranges::fill(gpu.memory.at(workspace, plan.workspaceBytes), std::byte{0xff}); // NaN
  plan.graph.run(memory, /*isTf32=*/false);
  gpu.plantError(memory.back());
  std::this_thread::sleep_for(plan.delay);
}

} // namespace

extern "C" {

size_t cudnnGetVersion() { return version(); }

const char *cudnnGetErrorString(Status status) {
  return status == success           ? "CUDNN_STATUS_SUCCESS"
         : status == badParameter    ? "CUDNN_STATUS_BAD_PARAM"
         : status == executionFailed ? "CUDNN_STATUS_EXECUTION_FAILED"
                                     : "CUDNN_STATUS_NOT_SUPPORTED";
}

Status cudnnBackendCreateDescriptor(DescriptorType type, Handle *descriptor) {
  *descriptor = new Description{type};
  return success;
}
Status cudnnBackendDestroyDescriptor(Handle descriptor) {
  delete static_cast<Description *>(descriptor);
  return success;
}
Status cudnnBackendFinalize(Handle handle) try {
  auto &descriptor = *static_cast<Description *>(handle);
  Status status = finalize(descriptor);
  descriptor.isFinal = status == success;
  return status;
} catch (const std::exception &) {
  return badParameter;
}
Status cudnnBackendSetAttribute(Handle handle, Attribute name, AttributeType type, int64_t count,
                                const void *elements) {
  auto &descriptor = *static_cast<Description *>(handle);
  if (descriptor.isFinal || count < 1)
    return badParameter;
  const auto *begin = static_cast<const std::byte *>(elements);
  descriptor.values[name] = {
      type, count, {begin, begin + static_cast<size_t>(count) * sizeOf(type)}};
  return success;
}
Status cudnnBackendGetAttribute(Handle handle, Attribute name, AttributeType type, int64_t room,
                                int64_t *count, void *elements) {
  const auto &descriptor = *static_cast<Description *>(handle);
  if (descriptor.isFinal && type == AttributeType::Descriptor &&
      (name == Attribute::HeuristicsResults || name == Attribute::ConfigEngine)) {
    // They are copied into descriptors of the caller.
    *count = static_cast<int64_t>(descriptor.held.size());
    for (int64_t i = 0; elements && i < std::min(room, *count); ++i)
      *static_cast<Description *>(static_cast<Handle *>(elements)[i]) =
          descriptor.held[static_cast<size_t>(i)];
    return success;
  }
  auto found = descriptor.values.find(name);
  if (!descriptor.isFinal || found == descriptor.values.end() || found->second.type != type)
    return badParameter;
  *count = found->second.count;
  if (elements)
    std::memcpy(elements, found->second.bytes.data(),
                static_cast<size_t>(std::min(room, *count)) * sizeOf(type));
  return success;
}

Status cudnnCreate(Context *context) {
  *context = new ContextState;
  return success;
}
Status cudnnDestroy(Context context) {
  delete context;
  return success;
}
Status cudnnSetStream(Context context, dlc::rt::cudart::Stream stream) {
  context->stream = stream;
  return success;
}
Status cudnnBackendExecute(Context context, Handle planHandle, Handle packHandle) {
  std::shared_ptr<const Plan> plan = static_cast<Description *>(planHandle)->plan;
  const auto &pack = *static_cast<Description *>(packHandle);
  if (!plan || !pack.isFinal || !context->stream)
    return badParameter;
  auto *workspace = pack.one<void *>(Attribute::PackWorkspace, AttributeType::DataPointer);
  return Gpu::get().call(true,
                         [&](Gpu &gpu) {
                           return gpu.enqueueKernel(context->stream, [&gpu, plan, workspace,
                                                                      operands = operandsOf(pack)] {
                             execute(gpu, *plan, operands, workspace);
                           });
                         }) == success
             ? success
             : executionFailed;
}

} // extern "C"

/// The types are those by which they are called.
[[maybe_unused]] static constexpr Functions exported{
    .getVersion = cudnnGetVersion,
    .getErrorString = cudnnGetErrorString,
    .backendCreateDescriptor = cudnnBackendCreateDescriptor,
    .backendDestroyDescriptor = cudnnBackendDestroyDescriptor,
    .backendFinalize = cudnnBackendFinalize,
    .backendSetAttribute = cudnnBackendSetAttribute,
    .backendGetAttribute = cudnnBackendGetAttribute,
    .create = cudnnCreate,
    .destroy = cudnnDestroy,
    .setStream = cudnnSetStream,
    .backendExecute = cudnnBackendExecute,
};
