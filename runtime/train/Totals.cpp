#include "runtime/train/Totals.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dlc::rt {

Totals::Totals(const artifact::Program &program) {
  if (program.results())
    for (const artifact::Result *result : *program.results())
      if (result->kind() != artifact::ResultKind::Output)
        infos.push_back({result->name()->str(), result->kind() == artifact::ResultKind::Loss,
                         result->weight()});
  pairs.resize(infos.size());
  if (!program.formulas())
    return;
  for (const artifact::Formula *formula : *program.formulas()) {
    std::string name = formula->name()->str();
    std::vector<size_t> means;
    for (uint32_t i = 0; i < formula->means(); ++i) {
      auto found = std::ranges::find(infos, name + "." + std::to_string(i), &ResultInfo::name);
      means.push_back(static_cast<size_t>(found - infos.begin()));
    }
    derived.push_back(
        {name, means, *Formula::parse(formula->expression()->string_view(), means.size())});
  }
}

void Totals::add(const std::vector<Pair> &more) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    pairs[i].sum += more[i].sum;
    pairs[i].count += more[i].count;
  }
}

std::vector<double> Totals::numbers() const {
  std::vector<double> numbers;
  for (const Pair &pair : pairs) {
    numbers.push_back(pair.sum);
    numbers.push_back(pair.count);
  }
  return numbers;
}

void Totals::setNumbers(std::span<const double> numbers) {
  for (size_t i = 0; i < pairs.size(); ++i)
    pairs[i] = {numbers[2 * i], numbers[2 * i + 1]};
}

double Totals::loss() const {
  double loss = 0;
  for (size_t i = 0; i < pairs.size(); ++i)
    if (infos[i].isLoss)
      loss += infos[i].weight * pairs[i].sum / pairs[i].count;
  return loss;
}

std::vector<std::pair<std::string, double>> Totals::metrics() const {
  std::vector<std::pair<std::string, double>> metrics;
  for (size_t i = 0; i < pairs.size(); ++i) {
    for (const DerivedMetric &metric : derived)
      if (metric.means.front() == i)
        metrics.emplace_back(metric.name, value(metric));
    if (!infos[i].isLoss)
      metrics.emplace_back(infos[i].name, pairs[i].sum / pairs[i].count);
  }
  return metrics;
}

double Totals::value(const DerivedMetric &metric) const {
  std::vector<Pair> means;
  means.reserve(metric.means.size());
  for (size_t i : metric.means)
    means.push_back(pairs[i]);
  return metric.formula.evaluate(means);
}

double Totals::value(const std::string &name) const {
  for (const auto &[metric, value] : metrics())
    if (metric == name)
      return value;
  return name == "loss" ? loss() : std::numeric_limits<double>::quiet_NaN();
}

bool Totals::isFinite() const {
  for (const Pair &pair : pairs)
    if (!std::isfinite(pair.sum) || !std::isfinite(pair.count))
      return false;
  return std::isfinite(loss());
}

bool Totals::countsNothing() const {
  for (size_t i = 0; i < pairs.size(); ++i)
    if (infos[i].isLoss && pairs[i].count == 0)
      return true;
  return false;
}

} // namespace dlc::rt
