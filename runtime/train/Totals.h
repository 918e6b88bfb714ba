// Losses and metrics as sums and counts: exact over ranks, batches and padding.
//
// A loss or metric is sum / count of everything added; the loss is the weighted sum of its terms.
#pragma once

#include "runtime/artifact/artifact_generated.h"
#include "runtime/core/Session.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dlc::rt {

/// A result of a program that is no output.
struct ResultInfo {
  std::string name;
  bool isLoss = false;
  double weight = 1;
};

std::vector<ResultInfo> resultsOf(const artifact::Program &program);

class Totals {
public:
  explicit Totals(std::vector<ResultInfo> infos)
      : infos(std::move(infos)), pairs(this->infos.size()) {}

  void add(const std::vector<Pair> &more);
  void clear() { pairs.assign(infos.size(), {}); }
  /// Sums and counts in turn, for reductions and checkpoints.
  std::vector<double> numbers() const;
  /// Takes as many as numbers() gives.
  void setNumbers(std::span<const double> numbers);

  /// Weighted sum of sum / count over the loss terms; NaN if a term counts nothing.
  double loss() const;
  /// Metrics by name, in the program's order.
  std::vector<std::pair<std::string, double>> metrics() const;
  /// "loss" or a metric's name; NaN if there is none of it.
  double value(const std::string &name) const;
  /// False if a sum, a count or the loss is not; a metric may count nothing.
  bool isFinite() const;
  /// True if a term of the loss is a mean of nothing.
  bool countsNothing() const;
  const std::vector<ResultInfo> &results() const { return infos; }

private:
  std::vector<ResultInfo> infos;
  std::vector<Pair> pairs;
};

} // namespace dlc::rt
