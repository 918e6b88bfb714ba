// Library kernels run on one thread and are timed by that thread's own clock, so that other load on
// the machine counts little; teams are taken to scale. Every implementation that the planner would
// consider is run at each size, in blocked and in channels-last layouts.

#include "runtime/cpu/Calibrate.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/CpuMemory.h"
#include "runtime/cpu/CpuPlanner.h"
#include "runtime/cpu/MeasureMachine.h"
#include "runtime/cpu/OneDnnKernel.h"
#include "runtime/cpu/kernels/OwnKernel.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <set>
#include <time.h>

namespace dlc::rt {
namespace {

using Json = nlohmann::ordered_json;

/// A convolution as networks have them; `image` is the extent on the side with more pixels.
struct Size {
  int64_t input, output, image, window, stride;
};

std::vector<Size> sizes() {
  std::vector<Size> result;
  for (auto [image, least, most] :
       {std::array{14, 64, 512}, std::array{56, 32, 256}, std::array{224, 16, 64}})
    for (int64_t channels = least; channels <= most; channels *= 2) {
      result.push_back({channels, channels, image, 3, 1});
      if (channels > least) {
        result.push_back({channels / 2, channels, image, 3, 1});
        result.push_back({channels, channels / 2, image, 3, 1});
        result.push_back({channels / 2, channels, image, 2, 2}); // a transposed one's, too
        result.push_back({channels, channels, image, 1, 1});
      }
    }
  for (int64_t input : {1, 3})
    for (int64_t output : {16, 64})
      result.push_back({input, output, 224, 3, 1});
  return result;
}

KernelRequest requestOf(KernelOp op, const Size &size, DType dtype) {
  int64_t batch = size.image < 50 ? 4 : 1, out = size.image / size.stride;
  OperandType x{dtype, {batch, size.input, size.image, size.image}, std::nullopt};
  OperandType y{dtype, {batch, size.output, out, out}, std::nullopt};
  OperandType w{op == KernelOp::ConvGradFilter ? DType::F32 : dtype,
                {size.output, size.input, size.window, size.window},
                std::nullopt};
  KernelRequest request;
  request.op = op;
  request.operands = op == KernelOp::Conv           ? std::vector{x, w, y}
                     : op == KernelOp::ConvGradData ? std::vector{y, w, x}
                                                    : std::vector{x, y, w};
  int64_t padding = size.stride > 1 ? 0 : size.window / 2;
  request.strides = {size.stride, size.stride};
  request.paddingLow = request.paddingHigh = {padding, padding};
  request.dilations = {1, 1};
  return request;
}

KernelRequest productOf(int64_t rows, int64_t inner, int64_t columns, DType dtype) {
  KernelRequest request;
  request.op = KernelOp::Matmul;
  for (const std::vector<int64_t> &shape :
       {std::vector{rows, inner}, std::vector{inner, columns}, std::vector{rows, columns}})
    request.operands.push_back({dtype, shape, std::nullopt});
  return request;
}

double threadNanoseconds() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Nanoseconds of a candidate on the calling thread: the best of a few runs after a first.
double timeOf(const KernelRequest &request, const KernelCandidate &candidate,
              std::span<std::byte> memory) {
  CpuPlan plan{request, candidate.implementation, candidate.workspaceBytes};
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  std::vector<void *> buffers;
  size_t at = 0;
  auto place = [&](size_t bytes) {
    buffers.push_back(memory.data() + at);
    at += (bytes + 4095) / 4096 * 4096;
  };
  for (size_t i = 0; i < request.operands.size(); ++i) {
    plan.request.operands[i].layout = candidate.layouts[i];
    place(
        physicalBytes(request.operands[i].dtype, request.operands[i].shape, candidate.layouts[i]));
  }
  if (candidate.workspaceBytes > 0)
    place(candidate.workspaceBytes);
  if (at > memory.size())
    return 0;
  std::shared_ptr<const OwnKernel> own;
  std::optional<OneDnnKernel> kernel;
  std::optional<OneDnnKernel::Binding> binding;
  if (isOwnKernel(candidate.implementation))
    own = makeOwnKernel(candidate.implementation, plan.request);
  else
    binding.emplace(kernel.emplace(engine, candidate.implementation, plan), engine, buffers);
  double best = 0, spent = 0;
  for (int run = 0; run < 2 || (run < 5 && spent < 60e6); ++run) {
    double begin = threadNanoseconds();
    own ? own->run(buffers) : binding->launch(stream);
    double took = threadNanoseconds() - begin;
    spent += took;
    best = run > 1 ? std::min(best, took) : took; // the first one warms up
  }
  return best;
}

class Calibration {
public:
  explicit Calibration(const std::function<void(const std::string &)> &progress)
      : progress(progress), planner("cpu:native", 1),
        table(embeddedTable(planner.target().table.empty() ? planner.target().name
                                                           : planner.target().table)),
        memory(size_t{256} << 20) {}

  std::string run();

private:
  /// Implementation, dtype, and the family of the first operand's layout; windows that step or
  /// are one element apart.
  struct Key {
    std::string implementation;
    DType dtype;
    std::string family;
    bool strided, pointwise;
    auto operator<=>(const Key &) const = default;
  };

  void measureMemory();
  void measureOverhead();
  void measureConvolutions(DType dtype);
  void measureProducts(DType dtype);
  void add(const KernelRequest &request);
  void writeEfficiencies();
  bool late() const { return std::chrono::steady_clock::now() > deadline; }

  const std::function<void(const std::string &)> &progress;
  CpuPlanner planner;
  Json table;
  CpuMemory memory;
  double peakF32 = 0, peakBF16 = 0; // GFLOP/s of a core
  struct Found {
    KernelTraits traits;
    double gigaflops;
  };
  std::map<Key, std::vector<Found>> found;
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(150);
};

unsigned usableCores() {
  cpu_set_t mask;
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<unsigned>(CPU_COUNT(&mask))
                                                       : 1;
}

const char *nameOf(DType dtype) { return dtype == DType::BF16 ? "bf16" : "f32"; }

double rounded(double value) { return std::round(value * 100) / 100; }

/// Teams of 1, 2, 4, ... cores; between them, and the table has one entry a core, as it comes.
void Calibration::measureMemory() {
  unsigned cores = std::min(usableCores(), 64u);
  std::vector<double> byCores;
  for (unsigned team = 1; byCores.size() < cores; team = std::min(2 * team, cores)) {
    progress("memory and arithmetic on " + std::to_string(team) + " of " + std::to_string(cores) +
             " cores");
    setTeamSize(team);
    MachineSpeed speed = measureMachine();
    const MemoryRates &dram = speed.memory.back().rates;
    if (team == 1)
      peakF32 = speed.gigaflops;
    table["cache_bytes"] = speed.memory[1].bytes;
    // Counts bytes that a kernel names: the third that a copy moves for its stores is not there.
    double rate = 2 / (1 / dram.read + 1.5 / dram.copy);
    double from = byCores.empty() ? 0 : byCores.back();
    for (size_t next = byCores.size() + 1, first = byCores.size(); next <= team; ++next)
      byCores.push_back(rounded(from + (rate - from) * static_cast<double>(next - first) /
                                           static_cast<double>(team - first)));
  }
  setTeamSize(1);
  table["gflops_per_core"]["f32"] = rounded(peakF32);
  table["bandwidth_gb_per_s"] = byCores;
}

void Calibration::measureOverhead() {
  setTeamSize(std::min(usableCores(), 8u));
  double best = 1e9;
  for (int run = 0; run < 1000; ++run) {
    auto begin = std::chrono::steady_clock::now();
    runOnTeam([](void *, unsigned) {}, nullptr);
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count());
  }
  setTeamSize(1);
  table["kernel_overhead_ns"] = std::round(best);
}

/// Times what the library has for a request: one candidate of each implementation and family.
void Calibration::add(const KernelRequest &request) {
  std::set<Key> seen;
  for (const KernelCandidate &candidate : planner.candidates(request).candidates) {
    KernelTraits traits = kernelTraits(request, candidate.layouts, candidate.implementation);
    Key key{traits.implementation, traits.dtype, traits.family, traits.strided, traits.pointwise};
    // GEMM's convolutions are too slow to be taken; plain activations are for images alone.
    bool isProduct = request.op == KernelOp::Matmul;
    bool isTaken = candidate.implementation.find("gemm") == std::string::npos &&
                   (traits.family != "plain" || traits.input < 16);
    // Our Winograd computes in f32 whatever it reads; it has been measured then.
    bool isKnown = traits.dtype != request.operands[0].dtype;
    if (late() || isKnown || (!isProduct && !isTaken) || !seen.insert(key).second)
      continue;
    if (double nanoseconds = timeOf(request, candidate, memory.bytes()))
      found[key].push_back(
          {traits, static_cast<double>(pricedFlops(request, candidate)) / nanoseconds});
  }
}

void Calibration::measureConvolutions(DType dtype) {
  std::vector<Size> all = sizes();
  for (size_t i = 0; i < all.size() && !late(); ++i) {
    if (i % 8 == 0)
      progress(std::string(nameOf(dtype)) + " convolutions: " + std::to_string(i) + " of " +
               std::to_string(all.size()) + " sizes");
    for (KernelOp op : {KernelOp::Conv, KernelOp::ConvGradData, KernelOp::ConvGradFilter})
      // Nobody wants the gradient of an image.
      if (op != KernelOp::ConvGradData || all[i].input > 3)
        add(requestOf(op, all[i], dtype));
  }
}

/// Few rows are bound by reading the second operand, which leaves most caches.
void Calibration::measureProducts(DType dtype) {
  progress("matrix products");
  for (int64_t rows : {1, 2, 4, 8, 16, 32, 64})
    add(productOf(rows, 4096, 4096, dtype));
  add(productOf(512, 512, 512, dtype));
}

const char *operationName(KernelOp op) {
  return op == KernelOp::Conv             ? "conv"
         : op == KernelOp::ConvGradData   ? "conv_grad_data"
         : op == KernelOp::ConvGradFilter ? "conv_grad_filter"
                                          : "other";
}

/// Rows for what was measured before those that were there: the first that fits counts, so of two
/// names the longer one comes first.
void Calibration::writeEfficiencies() {
  std::vector<std::pair<Key, std::vector<Found>>> sorted(found.begin(), found.end());
  std::ranges::sort(sorted, [](const auto &a, const auto &b) {
    return a.first.implementation.size() > b.first.implementation.size();
  });
  Json rows = Json::array();
  for (auto &[key, samples] : sorted) {
    Json row = {{"implementation", key.implementation}, {"dtype", nameOf(key.dtype)}};
    bool product = samples.front().traits.op == KernelOp::Matmul;
    if (!product) {
      row["layout"] = key.family;
      row["strided"] = key.strided;
      row["pointwise"] = key.pointwise;
    }
    std::ranges::sort(samples, {}, [](const Found &sample) {
      const KernelTraits &traits = sample.traits;
      return std::tuple(traits.pixels, traits.input, traits.output);
    });
    for (const Found &sample : samples) {
      const KernelTraits &traits = sample.traits;
      double share = rounded(sample.gigaflops / (traits.dtype == DType::BF16 ? peakBF16 : peakF32));
      if (product)
        row["matmul"].push_back({traits.input, std::max(share, 0.01)});
      else
        row[operationName(traits.op)].push_back(
            {traits.input, traits.output, traits.pixels, std::max(share, 0.01)});
    }
    rows.push_back(std::move(row));
  }
  for (const Json &row : table["efficiency"])
    rows.push_back(row);
  table["efficiency"] = rows;
}

/// One row of a list a line, as the tables are written by hand.
std::string textOf(const Json &table) {
  std::string text = "{\n";
  for (const auto &[key, value] : table.items()) {
    if (key == "efficiency")
      continue;
    text += "  " + Json(key).dump() + ": " + value.dump() + ",\n";
  }
  text += "  \"efficiency\": [\n";
  const Json &rows = table["efficiency"];
  for (size_t i = 0; i < rows.size(); ++i)
    text += "    " + rows[i].dump() + (i + 1 < rows.size() ? ",\n" : "\n");
  return text + "  ]\n}\n";
}

std::string Calibration::run() {
  measureMemory();
  measureOverhead();
  measureConvolutions(DType::F32);
  measureProducts(DType::F32);
  const std::vector<std::string> &features = planner.target().features;
  if (std::ranges::find(features, "avx512bf16") != features.end()) {
    measureConvolutions(DType::BF16);
    measureProducts(DType::BF16);
  }
  for (const auto &[key, samples] : found)
    for (const Found &sample : samples)
      if (sample.traits.dtype == DType::BF16)
        peakBF16 = std::max(peakBF16, sample.gigaflops);
  if (peakBF16 > 0)
    table["gflops_per_core"]["bf16"] = rounded(peakBF16);
  if (late())
    progress("out of time: the sizes left are as in the table that is compiled in");
  writeEfficiencies();
  return textOf(table);
}

} // namespace

std::string calibrate(const std::function<void(const std::string &)> &progress) {
  return Calibration(progress).run();
}

} // namespace dlc::rt
