// A step kernel by kernel: how long each took, and how far from its bound.
//
// Rows are sorted by the time over the bound, the longest first: what is worth mending stands on
// top. The time is the best of all steps there, so that other load does not choose; the mean is
// what adds up to the kinds' table. A kernel is launched by as many instructions as have use for
// it; its row is their sum.
#pragma once

#include "runtime/profile/MeasuredStep.h"
#include "runtime/profile/StepBound.h"

#include <nlohmann/json_fwd.hpp>

namespace dlc::rt {

struct KernelRow {
  std::string kernel, layer, kind, implementation; // as dlc inspect names them; of the first launch
  std::vector<size_t> instructions;
  double seconds = 0, best = 0, bytes = 0, bound = 0;
  std::map<std::string, double> levels; // bytes by level of memory
};

class KernelTable {
public:
  KernelTable(const Artifact &artifact, const artifact::Program &program, const MeasuredStep &mean,
              const MeasuredStep &best, const std::vector<InstructionBound> &bounds);

  const std::vector<KernelRow> &all() const { return rows; }
  /// The first `most` kernels, and the rest in one line.
  std::vector<std::string> lines(size_t most) const;
  /// An array of objects: profile.kernels.
  void addTo(nlohmann::ordered_json &record) const;

private:
  std::vector<KernelRow> rows;
};

} // namespace dlc::rt
