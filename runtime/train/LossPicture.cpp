// A hand-drawn chart: two polylines over the epochs in a fixed frame, with the extremes as labels.
#include "runtime/train/RunLog.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace dlc::rt {

namespace {

constexpr double width = 640, height = 360, margin = 56;

struct Curve {
  const char *key, *color;
};

struct Scale {
  double low, high;
  double y(double value) const {
    double share = high > low ? (value - low) / (high - low) : 0.5;
    return height - margin - share * (height - 2 * margin);
  }
};

bool hasFigure(const Record &record, const char *key) {
  return record.contains(key) && record[key].is_number() &&
         std::isfinite(record[key].get<double>());
}

} // namespace

std::string lossPicture(const std::vector<Record> &epochs) {
  constexpr Curve curves[] = {{"loss", "#1f77b4"}, {"val_loss", "#d62728"}};
  Scale scale{INFINITY, -INFINITY};
  for (const Record &record : epochs)
    for (Curve curve : curves)
      if (hasFigure(record, curve.key)) {
        scale.low = std::min(scale.low, record[curve.key].get<double>());
        scale.high = std::max(scale.high, record[curve.key].get<double>());
      }
  std::ostringstream svg;
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
      << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<path d=\"M" << margin << ' '
      << margin << "V" << height - margin << "H" << width - margin
      << "\" fill=\"none\" stroke=\"black\"/>\n";
  if (scale.low <= scale.high)
    for (double value : {scale.low, scale.high})
      svg << "<text x=\"4\" y=\"" << scale.y(value) + 4 << "\">" << value << "</text>\n";
  svg << "<text x=\"" << width - margin << "\" y=\"" << height - margin + 18
      << "\" text-anchor=\"end\">epoch " << epochs.size() << "</text>\n";
  double label = margin - 20;
  for (Curve curve : curves) {
    std::ostringstream points;
    for (size_t i = 0; i < epochs.size(); ++i)
      if (hasFigure(epochs[i], curve.key))
        points << margin + (width - 2 * margin) * static_cast<double>(i + 1) /
                               static_cast<double>(epochs.size())
               << ',' << scale.y(epochs[i][curve.key].get<double>()) << ' ';
    if (points.str().empty())
      continue;
    svg << "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" << curve.color << "\" points=\""
        << points.str() << "\"/>\n<text x=\"" << width - margin << "\" y=\"" << (label += 16)
        << "\" text-anchor=\"end\" fill=\"" << curve.color << "\">" << curve.key << "</text>\n";
  }
  svg << "</svg>\n";
  return svg.str();
}

} // namespace dlc::rt
