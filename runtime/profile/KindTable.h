// A step by kind of kernel: measured, bound, forecast.
#pragma once

#include "runtime/profile/MeasuredStep.h"
#include "runtime/profile/StepBound.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace dlc::rt {

struct KindRow {
  std::string kind;
  double seconds = 0, bytes = 0, flops = 0, bound = 0, forecast = 0;
};

class KindTable {
public:
  KindTable(const MeasuredStep &step, const std::vector<InstructionBound> &bounds,
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
