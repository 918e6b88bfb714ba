#include "runtime/cuda/CudaTarget.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/libraries/Cudnn.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>

namespace dlc::rt {
namespace {

using Json = nlohmann::ordered_json;

struct EmbeddedDescription {
  std::string_view name;
  std::string_view json;
};
constexpr EmbeddedDescription embeddedDescriptions[] = {
#include "runtime/cuda/targets.inc"
};

constexpr unsigned leastCapability = 80;

/// Known elsewhere, and too old.
constexpr std::pair<std::string_view, unsigned> olderDevices[] = {
    {"k80", 37},       {"m40", 52},     {"m60", 52},       {"p4", 61},      {"p40", 61},
    {"p100", 60},      {"v100", 70},    {"titanv", 70},    {"t4", 75},      {"gtx1080", 61},
    {"gtx1080ti", 61}, {"rtx2080", 75}, {"rtx2080ti", 75}, {"titanrtx", 75}};

void requireRecent(std::string_view device, unsigned capability) {
  if (capability < leastCapability)
    throw Error(ErrorCode::BadInput, "cannot plan for " + std::string(device) + ": sm_" +
                                         std::to_string(capability) +
                                         " multiplies no bf16, in which cuDNN has no plans for it, "
                                         "and kernels are generated for sm_80 (A100) and newer");
}

Json readDescription(const std::string &given) {
  std::string name = given.substr(given.find(':') + 1);
  if (name.ends_with(".json")) {
    std::ifstream file(name);
    if (!file || !std::filesystem::is_regular_file(name))
      throw Error(ErrorCode::BadInput, "cannot open the target description " + name);
    return Json::parse(file);
  }
  std::string known;
  for (const EmbeddedDescription &row : embeddedDescriptions) {
    if (row.name == name)
      return Json::parse(row.json);
    known += (known.empty() ? "cuda:" : ", cuda:") + std::string(row.name);
  }
  for (auto [older, capability] : olderDevices)
    if (older == name)
      requireRecent(name, capability);
  throw Error(ErrorCode::BadInput,
              "unknown target '" + given + "'; known are " + known + " and cuda:FILE.json");
}

/// A positive number of a description. Throws std::invalid_argument as all that reads fields.
template <typename Number> Number positive(const Json &table, const char *field) {
  const Json &given = table.at(field);
  auto value = given.is_number() ? given.get<Number>() : Number();
  if (!(value > 0))
    throw std::invalid_argument(std::string("'") + field + "' must be positive");
  return value;
}

/// What part of a peak is reached.
double shareOf(const Json &table, const char *field) {
  auto share = positive<double>(table, field);
  if (share < 1e-3 || share > 1)
    throw std::invalid_argument(std::string("'") + field +
                                "' must be a share of a peak, from 0.001 to 1");
  return share;
}

} // namespace

CudaTarget::CudaTarget(const std::string &given) : given(given) {
  try {
    read(readDescription(given));
  } catch (const Error &) {
    throw;                                // of the name or the device
  } catch (const std::exception &error) { // of a field
    throw Error(ErrorCode::BadInput, "target description of " + given + ": " + error.what());
  }
}

// The library reads numbers into 32 bits.
constexpr int64_t mostNumber = std::numeric_limits<int32_t>::max();

/// Text of a name's length, or whole numbers in the same number that are positive where the model's
/// are and of 32 bits where they are, and none is negative.
static bool isSuchAs(const Json &own, const Json &model) {
  if (model.is_array())
    return own.is_array() && std::ranges::equal(own, model, isSuchAs);
  if (model.is_string())
    return own.is_string() && own.get_ref<const std::string &>().size() < cudnn::nameCharacters;
  return own.is_number_integer() && own >= (model > 0 ? 1 : 0) &&
         (own <= mostNumber || model > mostNumber);
}

void CudaTarget::read(const Json &table) {
  sourceText = table.at("source");
  linkText = table.at("link");
  const Json &peaks = table.at("tflops"), &shares = table.at("shares"),
             &properties = table.at("properties");
  bf16 = positive<double>(peaks, "bf16");
  f16 = positive<double>(peaks, "f16");
  tf32 = positive<double>(peaks, "tf32");
  f32 = positive<double>(peaks, "f32");
  bandwidth = positive<double>(table, "bandwidth_gb_per_s");
  bandwidthShare = shareOf(shares, "bandwidth");
  productShare = shareOf(shares, "product");
  convolutionShare = shareOf(shares, "convolution");
  unalignedShare = shareOf(shares, "unaligned");
  strictShare = shareOf(shares, "strict");
  simtShare = shareOf(shares, "simt");
  wholeChannels = positive<double>(table, "whole_channels");
  overheadNanoseconds = positive<double>(table, "kernel_overhead_ns");
  avoidsClusters = table.at("clusters_last").get<bool>();
  capability = positive<unsigned>(properties, "deviceVer") / 10;
  globalBytes = positive<uint64_t>(properties, "totalGlobalMem");
  secondLevelBytes = positive<uint64_t>(properties, "l2CacheSize");
  for (const char *field : {"multiProcessorCount", "maxSharedMemoryPerBlockOptin",
                            "maxThreadsPerSM", "maxRegistersPerSM"})
    positive<uint64_t>(properties, field);
  // The library takes a whole description, and does not say what one lacks.
  const Json whole = Json::parse(embeddedDescriptions[0].json);
  for (const auto &[field, value] : whole.at("properties").items())
    if (!properties.contains(field) || !isSuchAs(properties[field], value))
      throw std::invalid_argument("'" + field + "' must be such as " + value.dump());
  propertyText = properties.dump();
  canonicalName = "cuda:sm_" + std::to_string(capability);
  requireRecent(properties.at("deviceName").get<std::string>(), capability);
}

Peaks CudaTarget::peaks() const {
  return {.f32 = 1000 * f32,
          .fastF32 = 1000 * tf32,
          .bf16 = 1000 * bf16,
          .f16 = 1000 * f16,
          .elements = 1000 * f32,
          .bandwidth = bandwidth};
}

double CudaTarget::kernelCost(DType dtype, Unit unit, uint64_t flops, uint64_t bytes) const {
  double tensorPeak = dtype == DType::BF16 ? bf16 : dtype == DType::F16 ? f16 : tf32;
  auto reached = [&] {
    switch (unit) {
    case Unit::Product:
      return tensorPeak * productShare;
    case Unit::Convolution:
      return tensorPeak * convolutionShare;
    case Unit::Unaligned:
      return tensorPeak * unalignedShare;
    case Unit::StrictConvolution:
      return f32 * strictShare;
    case Unit::Simt:
      return f32 * simtShare;
    }
    return 0.0;
  };
  double peak = 1000 * reached(); // TFLOP/s is 1000 FLOP per nanosecond, GB/s byte per nanosecond
  return overheadNanoseconds + std::max(static_cast<double>(flops) / peak,
                                        static_cast<double>(bytes) / (bandwidth * bandwidthShare));
}

double CudaTarget::convolutionCost(DType dtype, Unit unit, uint64_t flops, uint64_t bytes,
                                   int64_t channels) const {
  constexpr double leastChannels = 16; // that are multiplied together
  double filled =
      std::min(1.0, std::max(leastChannels, static_cast<double>(channels)) / wholeChannels);
  return kernelCost(dtype, unit, static_cast<uint64_t>(static_cast<double>(flops) / filled), bytes);
}

LoopLimits CudaTarget::loops() {
  return {
      .itemElements = 8192,
      .leastItemElements = 512,
      .keptItemElements = 1024,
      .reducedItemElements = 1 << 20,
      .reducedColumns = 256, // a warp's vectors of 8: a block's other warps have other terms
      .combinedColumns = 16, // whole sectors of f64, for many blocks
      .sharedRun = 64,
      .vectorLanes = 16,
      .mostPartials = 528, // four blocks for each multiprocessor of an H100
      .chunkBytes = 8 * 1024,
      .mostChunks = 1 << 20,
      .manyKept = 65536,
      .rangeMultiple = 1024,
      .sums = DType::F64,
      .epilogues = true,
      .products = {.mostRows = 0, .dotColumns = 8, .sumColumns = 8, .mostChunks = 1},
      .bytesPerOperation = 0.05,
      .bytesPerFunction = 0.5,
      .leastSavedBytes = 8 * 1024 * 1024, // about the time of a launch
  };
}

} // namespace dlc::rt
