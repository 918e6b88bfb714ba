// Losses and metrics as sums and counts: exact over ranks, batches and padding.
//
// A loss or metric is sum / count of everything added; the loss is the weighted sum of its terms,
// and some metrics are functions of others.
#pragma once

#include "runtime/artifact/Formula.h"
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

/// A metric that is a function of others, by their place among the results.
struct DerivedMetric {
  std::string name;
  std::vector<size_t> means;
  Formula formula;
};

class Totals {
public:
  explicit Totals(std::vector<ResultInfo> infos, std::vector<DerivedMetric> derived = {})
      : infos(std::move(infos)), derived(std::move(derived)), pairs(this->infos.size()) {}
  explicit Totals(const artifact::Program &program);

  void add(const std::vector<Pair> &more);
  void clear() { pairs.assign(infos.size(), {}); }
  /// Sums and counts in turn, for reductions and checkpoints.
  std::vector<double> numbers() const;
  /// Takes as many as numbers() gives.
  void setNumbers(std::span<const double> numbers);

  /// Weighted sum of sum / count over the loss terms; NaN if a term counts nothing.
  double loss() const;
  /// Metrics by name, in the program's order; those that are functions of others ahead of them.
  std::vector<std::pair<std::string, double>> metrics() const;
  /// "loss" or a metric's name; NaN if there is none of it.
  double value(const std::string &name) const;
  /// False if a sum, a count or the loss is not; a metric may count nothing.
  bool isFinite() const;
  /// True if a term of the loss is a mean of nothing.
  bool countsNothing() const;

private:
  double value(const DerivedMetric &metric) const;

  std::vector<ResultInfo> infos;
  std::vector<DerivedMetric> derived;
  std::vector<Pair> pairs;
};

} // namespace dlc::rt
