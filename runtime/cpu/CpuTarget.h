// What the planner knows of a CPU it plans for: instruction sets and the cost table.
//
// The tables are targets/*.json, compiled in: one of each instruction set, and those of processors
// that differ from it; `cpu:FILE.json` reads one that was measured on a machine. Costs are
// estimates that rank alternatives and feed forecasts; nothing is timed. A table's efficiencies are
// shares of peak: a number, or steps [channels, share], [input channels, output channels, share] or
// [input channels, output channels, pixels of a batch, share], of matrix products [rows, share]. A
// row may be for one layout, windows that step or are one element, or one dtype only; that of
// `generated` is for the products that the compiler writes. `families` are the layouts that
// activations may lie in, all if it is absent.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <nlohmann/json_fwd.hpp>
#include <oneapi/dnnl/dnnl_types.h>

#include <optional>
#include <string>
#include <vector>

namespace dlc::rt {

/// What a library kernel's speed depends on.
struct KernelTraits {
  KernelOp op = KernelOp::Conv;
  DType dtype = DType::F32;
  std::string implementation;
  std::string family;            // of the first operand's layout: plain, channels_last or blocked
  bool strided = false;          // a window that steps
  bool pointwise = false;        // a window of one element
  int64_t input = 0, output = 0; // channels of a convolution's group; both rows of a product
  int64_t pixels = 0;            // of all images, on the larger side
};

class CpuTarget {
public:
  /// `given` is cpu:native|avx2|avx512|avx512-bf16|zen4|amx, cpu:FILE.json or FILE.json. Throws
  /// Error for an unknown name, an unreadable table, or a target whose instruction sets this
  /// machine lacks.
  CpuTarget(const std::string &given, unsigned threads);

  const std::string &name() const { return canonicalName; }
  const std::vector<std::string> &features() const { return requiredFeatures; }
  dnnl_cpu_isa_t isa() const { return maxIsa; }
  unsigned vectorBits() const { return vectorWidth; }
  /// True if there are instructions that multiply bf16. Without them oneDNN has slow code only.
  bool multipliesBF16() const;
  /// True if there are instructions that multiply tiles of bf16.
  bool multipliesTiles() const;
  /// Names of the targets that have them.
  static std::vector<std::string> bf16Targets();

  /// What loops of generated kernels are planned with, the same for all instruction sets: a vector
  /// of 16 lanes is two of AVX2.
  static LoopLimits loops();

  /// Of the team.
  Peaks peaks() const;

  /// Bytes of the last level that a team shares; 0 if the table does not say.
  uint64_t cacheBytes() const { return lastLevelBytes; }

  /// Layouts that activations may lie in, as the table says; all if it does not.
  const std::vector<LayoutFamily> &families() const { return layouts; }

  /// The target of the table if it is not the instruction set's own, as "cpu:zen4" or
  /// "cpu:FILE.json"; else empty.
  const std::string &table() const { return tableName; }

  /// Nanoseconds of a library kernel: FLOPs over peak times efficiency, or bytes over bandwidth,
  /// whichever is more.
  double kernelCost(const KernelTraits &kernel, uint64_t flops, uint64_t bytes) const;
  /// Nanoseconds of a generated kernel, which computes in f32.
  double generatedCost(uint64_t bytes, uint64_t flops) const;

private:
  /// Share of peak from these sizes on; the last one that fits counts.
  struct Step {
    int64_t input, output, pixels;
    double efficiency;
  };
  /// A row applies to implementations whose name contains `match`, and to one family of layouts and
  /// kinds of window if it names them; the first that fits counts.
  struct Row {
    std::string match, family;
    std::optional<bool> strided, pointwise;
    std::optional<DType> dtype;
    std::vector<std::pair<std::string, std::vector<Step>>> operations;

    bool fits(const KernelTraits &kernel) const;
  };

  void readTable(const nlohmann::ordered_json &table);
  static std::vector<LayoutFamily> readFamilies(const nlohmann::ordered_json &table);
  static Step readStep(const nlohmann::ordered_json &step, const std::string &key);
  static Row readRow(const nlohmann::ordered_json &entry);
  double efficiency(const KernelTraits &kernel) const;
  double peak(DType dtype) const;

  std::string canonicalName, tableName;
  std::vector<std::string> requiredFeatures;
  dnnl_cpu_isa_t maxIsa = dnnl_cpu_isa_all;
  unsigned vectorWidth = 0;
  unsigned threads;
  double gflopsF32 = 0, gflopsBF16 = 0; // per core
  double bandwidth = 0;                 // GB/s of the whole team
  uint64_t lastLevelBytes = 0;
  double overheadNanoseconds = 0; // per kernel
  std::vector<LayoutFamily> layouts;
  std::vector<Row> rows;
};

/// The table that is compiled in for a target, e.g. "cpu:avx2" or "cpu:zen4".
nlohmann::ordered_json embeddedTable(const std::string &name);

/// The target whose table is for processors of this instruction set and, as "AuthenticAMD 25", of
/// this vendor and family; the instruction set's own if there is none for them.
std::string targetOf(const std::string &isa, const std::string &family);

} // namespace dlc::rt
