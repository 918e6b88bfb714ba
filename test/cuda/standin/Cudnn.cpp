// libcudnn.so.9 of the stand-in GPU: stored plans run, by plain loops from their own texts. It
// plans nothing. Convolutions of f32 are exact, which a plan does not say.

#include "test/cuda/standin/Gpu.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/libraries/Cudnn.h"
#include "test/cuda/StoredGraph.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

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

constexpr size_t version = 91900; // whose plans are taken
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

struct Description {
  DescriptorType type;
  std::map<Attribute, Value> values = {};
  bool isFinal = false;
  std::shared_ptr<const StoredGraph> graph = nullptr; // of a plan

  template <typename T> std::vector<T> get(Attribute name, AttributeType type) const {
    auto found = values.find(name);
    return found == values.end() || found->second.type != type ? std::vector<T>()
                                                               : found->second.as<T>();
  }
  std::string text(Attribute name) const {
    std::vector<char> text = get<char>(name, AttributeType::Char);
    return {text.begin(), std::ranges::find(text, '\0')};
  }
  void setText(Attribute name, const std::string &text) {
    const auto *begin = reinterpret_cast<const std::byte *>(text.c_str());
    auto count = text.size() + 1;
    values[name] = {AttributeType::Char, static_cast<int64_t>(count), {begin, begin + count}};
  }
};

Status finalizeProperties(Description &properties) {
  std::vector<int32_t> device =
      properties.get<int32_t>(Attribute::DevicePropertiesId, AttributeType::Int32);
  if (!device.empty()) {
    if (!Gpu::exists(device.front()))
      return badParameter;
    properties.setText(Attribute::DevicePropertiesJson, propertiesOfDevice());
  }
  return Json::accept(properties.text(Attribute::DevicePropertiesJson)) ? success : badParameter;
}

/// A plan is taken if it is of this version and for a device like the described one.
Status finalizePlan(Description &plan) {
  auto properties =
      plan.get<Description *>(Attribute::PlanDeviceProperties, AttributeType::Descriptor);
  std::string stored = plan.text(Attribute::PlanJson);
  if (properties.empty() || !properties.front()->isFinal || !Json::accept(stored))
    return badParameter;
  Json text = Json::parse(stored);
  Json device = Json::parse(properties.front()->text(Attribute::DevicePropertiesJson));
  if (text.at("cudnnVersion") != version)
    return notSupported;
  for (const char *part : {"deviceVer", "multiProcessorCount", "driverVer"})
    if (text.at("GPUProfile").at(part) != device.at(part))
      return notSupported;
  plan.graph = std::make_shared<const StoredGraph>(stored);
  std::vector<std::byte> none(sizeof(int64_t));
  plan.values[Attribute::PlanWorkspaceSize] = {AttributeType::Int64, 1, none};
  return success;
}

Status finalizePack(const Description &pack) {
  size_t ids = pack.get<int64_t>(Attribute::PackUniqueIds, AttributeType::Int64).size();
  size_t places = pack.get<void *>(Attribute::PackDataPointers, AttributeType::DataPointer).size();
  size_t spaces = pack.get<void *>(Attribute::PackWorkspace, AttributeType::DataPointer).size();
  return ids > 0 && ids == places && spaces == 1 ? success : badParameter;
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

void execute(Gpu &gpu, const StoredGraph &graph, const std::vector<void *> &operands) {
  constexpr uintptr_t alignment = 16; // that plans promise
  std::vector<std::span<std::byte>> memory;
  for (void *operand : operands) {
    if (reinterpret_cast<uintptr_t>(operand) % alignment != 0)
      throw Error(ErrorCode::Runtime, "cuDNN: misaligned address");
    memory.push_back(gpu.memory.from(operand));
  }
  graph.run(memory, /*isTf32=*/false);
}

} // namespace

extern "C" {

size_t cudnnGetVersion() { return version; }

const char *cudnnGetErrorString(Status status) {
  return status == success           ? "CUDNN_STATUS_SUCCESS"
         : status == badParameter    ? "CUDNN_STATUS_BAD_PARAM"
         : status == executionFailed ? "CUDNN_STATUS_EXECUTION_FAILED"
                                     : "CUDNN_STATUS_NOT_SUPPORTED";
}

Status cudnnBackendCreateDescriptor(DescriptorType type, Handle *descriptor) {
  if (type != DescriptorType::ExecutionPlan && type != DescriptorType::VariantPack &&
      type != DescriptorType::DeviceProperties)
    return notSupported;
  *descriptor = new Description{type};
  return success;
}
Status cudnnBackendDestroyDescriptor(Handle descriptor) {
  delete static_cast<Description *>(descriptor);
  return success;
}
Status cudnnBackendFinalize(Handle handle) try {
  auto &descriptor = *static_cast<Description *>(handle);
  Status status = descriptor.type == DescriptorType::DeviceProperties
                      ? finalizeProperties(descriptor)
                  : descriptor.type == DescriptorType::ExecutionPlan ? finalizePlan(descriptor)
                                                                     : finalizePack(descriptor);
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
  const auto &plan = *static_cast<Description *>(planHandle);
  const auto &pack = *static_cast<Description *>(packHandle);
  if (!plan.isFinal || !plan.graph || !pack.isFinal || !context->stream)
    return badParameter;
  return Gpu::get().call(true,
                         [&](Gpu &gpu) {
                           return gpu.enqueueKernel(context->stream, [&gpu, graph = plan.graph,
                                                                      operands = operandsOf(pack)] {
                             execute(gpu, *graph, operands);
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
