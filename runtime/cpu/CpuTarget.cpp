#include "runtime/cpu/CpuTarget.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/HostFeatures.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace dlc::rt {
namespace {

struct EmbeddedTable {
  std::string_view name;
  std::string_view json;
};
constexpr EmbeddedTable embeddedTables[] = {
#include "runtime/cpu/targets.inc"
};

struct InstructionSet {
  const char *name;
  dnnl_cpu_isa_t isa;
  unsigned vectorBits;
  std::vector<std::string> added; // features beyond those of the row before
};

// Weakest first; each includes the ones before it.
const InstructionSet instructionSets[] = {
    {"avx2", dnnl_cpu_isa_avx2, 256, {"avx2", "fma", "f16c", "bmi2"}},
    {"avx512",
     dnnl_cpu_isa_avx512_core,
     512,
     {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}},
    {"avx512-bf16", dnnl_cpu_isa_avx512_core_bf16, 512, {"avx512vnni", "avx512bf16"}},
    {"amx", dnnl_cpu_isa_avx512_core_amx, 512, {"amx-tile", "amx-int8", "amx-bf16"}},
};

std::vector<std::string> featuresUpTo(const InstructionSet &set) {
  std::vector<std::string> features;
  for (const InstructionSet *row = instructionSets; row <= &set; ++row)
    features.insert(features.end(), row->added.begin(), row->added.end());
  return features;
}

std::string join(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

const InstructionSet *findSet(std::string_view name) {
  for (const InstructionSet &set : instructionSets)
    if (name == set.name)
      return &set;
  return nullptr;
}

std::string unknownTarget(const std::string &name) {
  return "unknown target '" + name +
         "'; known are cpu:native, cpu:avx2, cpu:avx512, cpu:avx512-bf16, cpu:zen4, cpu:amx and "
         "cpu:FILE.json";
}

/// The text of a table that is compiled in; null if there is none of that name.
const EmbeddedTable *findTable(std::string_view target) {
  for (const EmbeddedTable &table : embeddedTables)
    if (target == "cpu:" + std::string(table.name))
      return &table;
  return nullptr;
}

const InstructionSet &nativeSet() {
  const InstructionSet *best = nullptr;
  for (const InstructionSet &set : instructionSets)
    if (missingFeatures(featuresUpTo(set)).empty())
      best = &set;
  if (!best)
    throw Error(ErrorCode::Runtime, "this processor (" + hostProcessor() +
                                        ") lacks AVX2, the least that dlc can plan for");
  return *best;
}

nlohmann::ordered_json readFile(const std::string &path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw Error(ErrorCode::BadInput, "cannot open the target description " + path);
  return nlohmann::ordered_json::parse(file);
}

using Malformed = std::invalid_argument;

/// Peaks, bandwidths and shares beyond this are no machine's.
constexpr double mostFigure = 1e9;

double positive(const nlohmann::ordered_json &value, const std::string &what) {
  if (!value.is_number() || !(value.get<double>() > 0) || value.get<double>() > mostFigure)
    throw Malformed("\"" + what + "\": " + value.dump() + ", expected a positive number");
  return value;
}

/// Refuses what nobody would read.
void checkKeys(const nlohmann::ordered_json &object, std::initializer_list<std::string_view> known,
               const std::string &what) {
  for (const auto &[key, value] : object.items())
    if (std::ranges::find(known, key) == known.end())
      throw Malformed("unknown \"" + key + "\" in " + what);
}

/// One of some texts.
std::string choice(const nlohmann::ordered_json &value,
                   std::initializer_list<std::string_view> known, const std::string &what) {
  auto text = value.get<std::string>();
  if (std::ranges::find(known, text) != known.end())
    return text;
  std::string list;
  for (std::string_view each : known)
    list += (list.empty() ? "" : ", ") + std::string(each);
  throw Malformed("\"" + what + "\": \"" + text + "\", expected one of " + list);
}

const char *operationKey(KernelOp op) {
  switch (op) {
  case KernelOp::Conv:
    return "conv";
  case KernelOp::ConvGradData:
    return "conv_grad_data";
  case KernelOp::ConvGradFilter:
    return "conv_grad_filter";
  case KernelOp::Matmul:
    return "matmul";
  default:
    return "other";
  }
}

} // namespace

nlohmann::ordered_json embeddedTable(const std::string &name) {
  if (const EmbeddedTable *found = findTable(name))
    return nlohmann::ordered_json::parse(found->json);
  throw Error(ErrorCode::BadInput, unknownTarget(name));
}

std::string targetOf(const std::string &isa, const std::string &family) {
  for (const EmbeddedTable &embedded : embeddedTables) {
    auto table = nlohmann::ordered_json::parse(embedded.json);
    std::vector<std::string> families = table.value("processors", std::vector<std::string>());
    if (table.at("isa") == isa && std::ranges::find(families, family) != families.end())
      return "cpu:" + std::string(embedded.name);
  }
  return "cpu:" + isa;
}

/// A file's name alone is a table.
static std::string withKind(const std::string &name) {
  return name.ends_with(".json") && name.find(':') == std::string::npos ? "cpu:" + name : name;
}

CpuTarget::CpuTarget(const std::string &given, unsigned threads) : threads(std::max(threads, 1u)) {
  std::string name = withKind(given);
  if (!name.starts_with("cpu:"))
    throw Error(ErrorCode::BadInput,
                name == "native" || findTable("cpu:" + name)
                    ? "unknown target '" + name + "'; did you mean cpu:" + name + "?"
                    : unknownTarget(name));
  if (name == "cpu:native")
    name = targetOf(nativeSet().name, hostFamily());
  try {
    nlohmann::ordered_json table =
        name.ends_with(".json") ? readFile(name.substr(4)) : embeddedTable(name);
    const InstructionSet *set =
        findSet(choice(table.at("isa"), {"avx2", "avx512", "avx512-bf16", "amx"}, "isa"));
    canonicalName = std::string("cpu:") + set->name;
    if (name != canonicalName)
      tableName = name;
    requiredFeatures = featuresUpTo(*set);
    maxIsa = set->isa;
    vectorWidth = set->vectorBits;
    readTable(table);
  } catch (const nlohmann::json::exception &error) {
    throw Error(ErrorCode::BadInput, "target description of " + name + ": " + error.what());
  } catch (const Malformed &error) {
    throw Error(ErrorCode::BadInput, "target description of " + name + ": " + error.what());
  }
  if (std::vector<std::string> missing = missingFeatures(requiredFeatures); !missing.empty())
    throw Error(ErrorCode::BadInput,
                "cannot plan for " + canonicalName + " here: this processor (" + hostProcessor() +
                    ") lacks " + join(missing) + "; oneDNN plans only for what the host can run");
}

static bool multiplyBF16(const std::vector<std::string> &features) {
  return std::ranges::find(features, "avx512bf16") != features.end();
}

bool CpuTarget::multipliesBF16() const { return multiplyBF16(requiredFeatures); }

bool CpuTarget::multipliesTiles() const {
  return std::ranges::find(requiredFeatures, "amx-bf16") != requiredFeatures.end();
}

std::vector<std::string> CpuTarget::bf16Targets() {
  std::vector<std::string> names;
  for (const InstructionSet &set : instructionSets)
    if (multiplyBF16(featuresUpTo(set)))
      names.push_back(std::string("cpu:") + set.name);
  return names;
}

LoopLimits CpuTarget::loops() {
  return {
      .itemElements = 8192, // 32 KiB of f32, the first-level cache
      .leastItemElements = 512,
      .keptItemElements = 1024,
      .reducedItemElements = 65536,
      .reducedColumns = 65536, // of one thread, which takes rows as they lie
      .combinedColumns = 65536,
      .sharedRun = 0,
      .vectorLanes = 16,
      .mostPartials = 128,
      .chunkBytes = 128 * 1024,
      .mostChunks = 512,
      .manyKept = 4096,
      .rangeMultiple = 1024,
      .sums = DType::F64,
      .epilogues = false,
      // Multiples of 1, 2, 3 and 4 rows of b, whose sums are in registers, and of as many vectors.
      .products = {.mostRows = 32, .dotColumns = 48, .sumColumns = 768, .mostChunks = 128},
      .bytesPerOperation = 0.25,
      .bytesPerFunction = 5,
      .leastSavedBytes = 64 * 1024,
  };
}

void CpuTarget::readTable(const nlohmann::ordered_json &table) {
  checkKeys(table,
            {"isa", "processors", "gflops_per_core", "bandwidth_gb_per_s", "kernel_overhead_ns",
             "cache_bytes", "families", "efficiency"},
            "the table");
  gflopsF32 = positive(table.at("gflops_per_core").at("f32"), "f32");
  gflopsBF16 = positive(table.at("gflops_per_core").at("bf16"), "bf16");
  // Bandwidth by number of cores; it saturates with the last entry.
  const nlohmann::ordered_json &byCores = table.at("bandwidth_gb_per_s");
  if (!byCores.is_array() || byCores.empty())
    throw Malformed("\"bandwidth_gb_per_s\": " + byCores.dump() + ", expected a list of numbers");
  bandwidth =
      positive(byCores.at(std::min<size_t>(threads, byCores.size()) - 1), "bandwidth_gb_per_s");
  overheadNanoseconds = table.at("kernel_overhead_ns");
  if (!(overheadNanoseconds >= 0) || overheadNanoseconds > mostFigure)
    throw Malformed("\"kernel_overhead_ns\": " + table.at("kernel_overhead_ns").dump() +
                    ", expected nanoseconds of a kernel");
  if (table.contains("cache_bytes")) {
    if (!table.at("cache_bytes").is_number_unsigned())
      throw Malformed("\"cache_bytes\": " + table.at("cache_bytes").dump() + ", expected bytes");
    lastLevelBytes = table.at("cache_bytes");
  }
  layouts = readFamilies(table);
  for (const nlohmann::ordered_json &entry : table.at("efficiency"))
    rows.push_back(readRow(entry));
}

std::vector<LayoutFamily> CpuTarget::readFamilies(const nlohmann::ordered_json &table) {
  if (!table.contains("families"))
    return {LayoutFamily::Plain, LayoutFamily::ChannelsLast, LayoutFamily::Blocked};
  const nlohmann::ordered_json &wanted = table.at("families");
  std::vector<LayoutFamily> found;
  if (wanted.is_array())
    for (const auto &[family, name] : layoutFamilies)
      if (std::ranges::count(wanted, name) > 0)
        found.push_back(family);
  if (found.empty() || found.size() != wanted.size())
    throw Malformed("\"families\": " + wanted.dump() +
                    ", not some of plain, channels_last and blocked, each once");
  return found;
}

/// [channels, share], [input, output, share] or [input, output, pixels of a batch, share].
CpuTarget::Step CpuTarget::readStep(const nlohmann::ordered_json &step, const std::string &key) {
  if (!step.is_array() || step.size() < 2 || step.size() > 4)
    throw Malformed("\"" + key + "\": " + step.dump() + ", expected channels and a share");
  size_t last = step.size() - 1;
  return {step.at(0), step.at(last > 1 ? 1 : 0), last > 2 ? step.at(2).get<int64_t>() : 0,
          positive(step.at(last), key)};
}

CpuTarget::Row CpuTarget::readRow(const nlohmann::ordered_json &entry) {
  checkKeys(entry,
            {"implementation", "layout", "strided", "pointwise", "dtype", "conv", "conv_grad_data",
             "conv_grad_filter", "matmul", "other"},
            "a row of \"efficiency\"");
  Row row{entry.at("implementation"), "", {}, {}, {}, {}};
  if (entry.contains("layout"))
    row.family = choice(entry.at("layout"), {"plain", "channels_last", "blocked"}, "layout");
  if (entry.contains("strided"))
    row.strided = entry.at("strided").get<bool>();
  if (entry.contains("pointwise"))
    row.pointwise = entry.at("pointwise").get<bool>();
  if (entry.contains("dtype"))
    row.dtype =
        choice(entry.at("dtype"), {"f32", "bf16"}, "dtype") == "bf16" ? DType::BF16 : DType::F32;
  for (const auto &[key, value] : entry.items()) {
    if (key == "implementation" || key == "layout" || key == "strided" || key == "pointwise" ||
        key == "dtype")
      continue;
    std::vector<Step> steps;
    if (value.is_number())
      steps.push_back({0, 0, 0, positive(value, key)});
    else
      for (const nlohmann::ordered_json &step : value)
        steps.push_back(readStep(step, key));
    row.operations.emplace_back(key, steps);
  }
  return row;
}

bool CpuTarget::Row::fits(const KernelTraits &kernel) const {
  return kernel.implementation.find(match) != std::string::npos &&
         (family.empty() || family == kernel.family) && (!strided || *strided == kernel.strided) &&
         (!pointwise || *pointwise == kernel.pointwise) && (!dtype || *dtype == kernel.dtype);
}

double CpuTarget::efficiency(const KernelTraits &kernel) const {
  for (const Row &row : rows) {
    if (!row.fits(kernel))
      continue;
    for (const auto &[key, steps] : row.operations) {
      if (key != operationKey(kernel.op) && key != "other")
        continue;
      double found = steps.empty() ? 1.0 : steps.front().efficiency;
      for (const Step &step : steps)
        if (kernel.input >= step.input && kernel.output >= step.output &&
            kernel.pixels >= step.pixels)
          found = step.efficiency;
      return found;
    }
  }
  return 0.5;
}

Peaks CpuTarget::peaks() const {
  double products = peak(DType::F32);
  return {.f32 = products,
          .fastF32 = products,
          .bf16 = multipliesBF16() ? peak(DType::BF16) : 0,
          .elements = products,
          .bandwidth = bandwidth};
}

double CpuTarget::peak(DType dtype) const {
  return threads * (dtype == DType::BF16 ? gflopsBF16 : gflopsF32);
}

double CpuTarget::kernelCost(const KernelTraits &kernel, uint64_t flops, uint64_t bytes) const {
  // GFLOP/s is FLOP per nanosecond, GB/s byte per nanosecond.
  double compute = flops / (peak(kernel.dtype) * efficiency(kernel));
  return overheadNanoseconds + std::max(compute, bytes / bandwidth);
}

double CpuTarget::generatedCost(uint64_t bytes, uint64_t flops) const {
  return overheadNanoseconds + std::max(flops / peak(DType::F32), bytes / bandwidth);
}

} // namespace dlc::rt
