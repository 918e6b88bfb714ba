// A panel for the losses, one for the metrics that are shares, one for each other metric with its
// validation, and one for the learning rate.
#include "runtime/record/Chart.h"
#include "runtime/record/RunLog.h"

#include <algorithm>
#include <cmath>

namespace dlc::rt {

namespace {

/// NaN is null in records that come from a file.
bool isFigure(const Record &value) { return value.is_number() || value.is_null(); }

ChartLine lineOf(const std::vector<Record> &epochs, const std::string &key) {
  ChartLine line{key, {}};
  for (size_t i = 0; i < epochs.size(); ++i) {
    if (!epochs[i].contains(key) || !isFigure(epochs[i][key]))
      continue;
    auto number = [&](const char *name, double missing) {
      auto found = epochs[i].find(name);
      return found != epochs[i].end() && found->is_number() ? found->get<double>() : missing;
    };
    line.points.push_back({number("epoch", static_cast<double>(i + 1)), number(key.c_str(), NAN)});
  }
  return line;
}

bool isShare(const ChartLine &line) {
  return std::all_of(line.points.begin(), line.points.end(), [](ChartPoint point) {
    return !std::isfinite(point.y) || (point.y >= 0 && point.y <= 1);
  });
}

/// The metrics' names without `val_`, in the order in which they appear.
std::vector<std::string> metricsOf(const std::vector<Record> &epochs) {
  std::vector<std::string> names;
  for (const Record &record : epochs)
    for (const auto &[key, value] : record.items()) {
      std::string name = key.starts_with("val_") ? key.substr(4) : key;
      bool isOther = name == "event" || name == "step" || name == "epoch" || name == "loss" ||
                     name == "lr" || name == "seconds" || name == "samples_per_s";
      if (!isOther && isFigure(value) && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  return names;
}

/// Every k-th epoch and the last, about as many as a picture has columns of pixels.
std::vector<Record> shownOf(const std::vector<Record> &epochs) {
  constexpr size_t most = 500;
  size_t stride = (epochs.size() + most - 1) / most;
  std::vector<Record> shown;
  for (size_t i = 0; i < epochs.size(); i += stride)
    shown.push_back(epochs[i]);
  if (!epochs.empty() && (epochs.size() - 1) % stride != 0)
    shown.push_back(epochs.back());
  return shown;
}

void addLine(ChartPanel &panel, ChartLine line) {
  if (!line.points.empty())
    panel.lines.push_back(std::move(line));
}

} // namespace

std::string lossPicture(const std::string &title, const std::vector<Record> &all) {
  const std::vector<Record> epochs = shownOf(all);
  Chart chart{title, "epoch", {{"loss", {}}}, {}};
  ChartPanel shares{"metrics", {}, ChartRange::Share};
  std::vector<ChartPanel> others;
  for (const char *key : {"loss", "val_loss"})
    addLine(chart.panels.front(), lineOf(epochs, key));
  for (const std::string &name : metricsOf(epochs)) {
    ChartLine training = lineOf(epochs, name), validation = lineOf(epochs, "val_" + name);
    bool fits = isShare(training) && isShare(validation);
    ChartPanel &panel = fits ? shares : others.emplace_back(ChartPanel{name, {}});
    addLine(panel, std::move(training));
    addLine(panel, std::move(validation));
  }
  if (!shares.lines.empty())
    chart.panels.push_back(std::move(shares));
  for (ChartPanel &panel : others)
    chart.panels.push_back(std::move(panel));
  ChartPanel rate{"learning rate", {lineOf(epochs, "lr")}, ChartRange::FromZero};
  if (!rate.lines.front().points.empty())
    chart.panels.push_back(std::move(rate));
  return svgOf(chart);
}

} // namespace dlc::rt
