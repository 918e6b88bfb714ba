// A step by kind of kernel: measured, bound, forecast.
#pragma once

#include "runtime/train/StepBound.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace dlc::rt {

/// Seconds of one step and of its instructions; of the start of a collective what it held up.
struct MeasuredStep {
  double seconds = 0;
  std::vector<double> instructions;
};

struct KindRow {
  std::string kind;
  double seconds = 0, bytes = 0, flops = 0, bound = 0, forecast = 0;
};

class KindTable {
public:
  /// Takes the mean over those steps that are neither among the quickest nor the slowest quarter.
  KindTable(std::vector<MeasuredStep> steps, const std::vector<InstructionBound> &bounds,
            double forecastExposed);

  /// A table, the machine, and how far the step is from its bound.
  std::vector<std::string> lines(const MachineSpeed &speed) const;
  /// Flat: profile.KIND.FIGURE.
  void addTo(nlohmann::ordered_json &record, const MachineSpeed &speed) const;

private:
  KindRow &row(const std::string &kind);
  double bound() const { return libraryBound + memoryBound; }

  std::vector<KindRow> rows;
  double step = 0, forecast = 0; // seconds
  double libraryBound = 0, memoryBound = 0;
};

} // namespace dlc::rt
