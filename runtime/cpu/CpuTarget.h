// What the planner knows of a CPU it plans for: instruction sets and the cost table.
//
// The tables are targets/*.json, compiled in; `cpu:FILE.json` reads one that was measured on a
// machine. Costs are estimates that rank alternatives and feed forecasts; nothing is timed.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <nlohmann/json_fwd.hpp>
#include <oneapi/dnnl/dnnl_types.h>

#include <string>
#include <vector>

namespace dlc::rt {

class CpuTarget {
public:
  /// `name` is cpu:native|avx2|avx512|avx512-bf16|amx or cpu:FILE.json. Throws Error for an unknown
  /// name, an unreadable table, or a target whose instruction sets this machine lacks.
  CpuTarget(const std::string &name, unsigned threads);

  const std::string &name() const { return canonicalName; }
  const std::vector<std::string> &features() const { return requiredFeatures; }
  dnnl_cpu_isa_t isa() const { return maxIsa; }
  unsigned vectorBits() const { return vectorWidth; }
  /// True if there are instructions that multiply bf16. Without them oneDNN has slow code only.
  bool multipliesBF16() const;

  /// Nanoseconds of a library kernel: FLOPs over peak times efficiency, or bytes over bandwidth,
  /// whichever is more. `channels` is the smaller of input and output channels.
  double kernelCost(KernelOp op, DType dtype, const std::string &implementation, int64_t channels,
                    uint64_t flops, uint64_t bytes) const;
  /// Of a generated kernel, which computes in f32.
  double generatedCost(uint64_t bytes, uint64_t flops) const;

private:
  /// Share of peak from a number of channels on.
  struct Step {
    int64_t channels;
    double efficiency;
  };
  /// A row applies to implementations whose name contains `match`; the first that fits counts.
  struct Row {
    std::string match;
    std::vector<std::pair<std::string, std::vector<Step>>> operations;
  };

  void readTable(const nlohmann::json &table);
  double efficiency(KernelOp op, const std::string &implementation, int64_t channels) const;
  double peak(DType dtype) const;

  std::string canonicalName;
  std::vector<std::string> requiredFeatures;
  dnnl_cpu_isa_t maxIsa = dnnl_cpu_isa_all;
  unsigned vectorWidth = 0;
  unsigned threads;
  double gflopsF32 = 0, gflopsBF16 = 0; // per core
  double bandwidth = 0;                 // GB/s of the whole team
  double overheadNanoseconds = 0;       // per kernel
  std::vector<Row> rows;
};

} // namespace dlc::rt
