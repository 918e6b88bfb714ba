// A document is a title, the panels from top to bottom, and the horizontal axis below the last one.
// Each panel maps values to heights by its own scale, and keeps the names beside its lines apart.
#include "runtime/record/Chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <utility>

namespace dlc::rt {

namespace {

constexpr double plotWidth = 520, tallPanel = 210, shortPanel = 110, gap = 46, charWidth = 6.7,
                 nameDistance = 16;
constexpr size_t longestName = 28, colours = 6, dashes = 3;

/// Okabe and Ito's colours, which the colour-blind tell apart; lighter ones on dark ground.
constexpr const char *style =
    "<style>\n"
    "text{font:11px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#57606a}\n"
    ".title{font-size:14px;font-weight:600;fill:#1f2328}\n"
    ".label{font-size:12px;font-weight:600;fill:#1f2328}\n"
    ".name{font-size:12px;fill:#1f2328}\n"
    ".ground{fill:#fff}.grid{stroke:#e4e7eb}.axis{stroke:#8c959f}\n"
    ".line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}\n"
    ".halo{stroke:#fff}.cross{stroke-width:1.5}\n"
    ".again1{stroke-dasharray:7 4}.again2{stroke-dasharray:1 4}\n"
    ".reference{stroke:#8c959f;stroke-dasharray:5 4}.dot-reference{fill:#8c959f}\n"
    ".s0{stroke:#0072b2}.s1{stroke:#d55e00}.s2{stroke:#009e73}.s3{stroke:#b3599a}"
    ".s4{stroke:#b8860b}.s5{stroke:#56779b}\n"
    ".d0{fill:#0072b2}.d1{fill:#d55e00}.d2{fill:#009e73}.d3{fill:#b3599a}"
    ".d4{fill:#b8860b}.d5{fill:#56779b}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#9198a1}.title,.label,.name{fill:#f0f6fc}\n"
    ".ground{fill:#0d1117}.grid{stroke:#262c36}.axis{stroke:#656c76}.halo{stroke:#0d1117}\n"
    ".s0{stroke:#58a6ff}.s1{stroke:#ff9248}.s2{stroke:#3fc79a}.s3{stroke:#e39bc8}"
    ".s4{stroke:#f0c04c}.s5{stroke:#a5bdd6}\n"
    ".d0{fill:#58a6ff}.d1{fill:#ff9248}.d2{fill:#3fc79a}.d3{fill:#e39bc8}"
    ".d4{fill:#f0c04c}.d5{fill:#a5bdd6}\n"
    "}\n</style>\n";

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text)
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    case '"':
      result += "&quot;";
      break;
    default:
      result += c;
    }
  return result;
}

/// 0.1 pixels are enough.
std::string pixels(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  std::string number = text;
  return number.ends_with(".0") ? number.substr(0, number.size() - 2) : number;
}

/// 20000 -> 20k, 1e-05 -> 1e-5. The unit is that of `most`, if that is larger: 5000 of 20000 -> 5k.
std::string numberText(double value, int digits = 4, double most = 0) {
  const char *unit = "";
  if (double size = std::max(std::fabs(value), most); size >= 9999.5 && size < 1e12 && value != 0) {
    int thousands = size >= 1e9 ? 3 : size >= 1e6 ? 2 : 1;
    value /= std::pow(1000.0, thousands);
    unit = thousands == 3 ? "G" : thousands == 2 ? "M" : "k";
  }
  char text[32];
  bool isWhole = std::fabs(value) >= std::pow(10.0, digits) && std::fabs(value) < 1e6;
  if (isWhole)
    std::snprintf(text, sizeof text, "%.0f", value);
  else
    std::snprintf(text, sizeof text, "%.*g", digits, value);
  std::string number = text;
  if (size_t sign = number.find('e'); sign != std::string::npos) {
    size_t zeros = number.find_first_not_of("+0", sign + 1), minus = number.find('-', sign);
    if (minus != std::string::npos)
      zeros = number.find_first_not_of('0', minus + 1);
    number =
        number.substr(0, sign + 1) + (minus != std::string::npos ? "-" : "") + number.substr(zeros);
  }
  return number + unit;
}

//===- Scales ---------------------------------------------------------------------------------===//

/// Maps [low, high] to [0, 1].
struct Scale {
  double low = 0, high = 1;
  bool isLogarithmic = false;

  double share(double value) const {
    return isLogarithmic ? std::log(value / low) / std::log(high / low)
                         : (value - low) / (high - low);
  }
};

/// 1, 10, 100..., with 2 and 5 or 3 between them where that leaves few enough.
std::vector<double> logarithmicTicks(double low, double high, double height) {
  double room = height / std::log10(high / low); // of a decade
  std::vector<double> ticks;
  int first = static_cast<int>(std::floor(std::log10(low)));
  int last = static_cast<int>(std::ceil(std::log10(high)));
  int stride = std::max(1, (last - first) / 6);
  for (int power = first; power <= last; power += stride)
    for (int factor : {1, 2, 3, 5}) {
      double tick = factor * std::pow(10.0, power);
      bool isKept = factor == 1 || (factor == 3) == (room >= 60 && room < 120);
      isKept &= factor == 1 || room >= 60;
      if (isKept && tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9))
        ticks.push_back(tick);
    }
  return ticks;
}

/// All finite values of a panel.
std::vector<double> valuesOf(const ChartPanel &panel) {
  std::vector<double> values;
  for (const ChartLine &line : panel.lines)
    for (ChartPoint point : line.points)
      if (std::isfinite(point.y))
        values.push_back(point.y);
  return values;
}

Scale verticalScale(const ChartPanel &panel) {
  std::vector<double> values = valuesOf(panel);
  if (values.empty())
    return {};
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  Scale scale{*least, *most};
  if (panel.range == ChartRange::Share)
    return {0, std::max(1.0, scale.high * 1.02)};
  if (panel.range == ChartRange::FromZero)
    return {std::min(0.0, scale.low), scale.high > 0 ? scale.high * 1.05 : 1};
  scale.isLogarithmic = scale.low > 0 && scale.high > 20 * scale.low;
  if (scale.isLogarithmic)
    return {scale.low / 1.15, scale.high * 1.15, true};
  double margin = 0.06 * (scale.high - scale.low);
  if (margin <= 1e-9 * std::fabs(scale.high))
    margin = scale.high != 0 ? 0.1 * std::fabs(scale.high) : 1;
  double low = scale.low - margin;
  return {scale.low >= 0 && low < 0 ? 0 : low, scale.high + margin};
}

//===- Drawing --------------------------------------------------------------------------------===//

/// Of a panel's line, colours and dashes that tell it from the others.
std::string strokeOf(const ChartLine &line, size_t index) {
  if (line.isReference)
    return "reference";
  std::string colour = "s" + std::to_string(index % colours);
  size_t again = index / colours % dashes;
  return again == 0 ? colour : colour + " again" + std::to_string(again);
}

class Drawing {
public:
  explicit Drawing(const Chart &chart);
  std::string run();

private:
  void measureHorizontal();
  std::vector<double> horizontalTicks() const;
  double x(double value) const { return left + plotWidth * horizontal.share(value); }
  void panel(const ChartPanel &panel, double height);
  void grid(const ChartPanel &panel, const Scale &scale, double height);
  void line(const ChartLine &line, const std::string &style, const std::string &dot,
            const Scale &scale, double height, double row);
  std::string hint(const ChartLine &line, ChartPoint point) const;
  void names(const ChartPanel &panel, const Scale &scale, double height);
  void axis();

  const Chart &chart;
  Scale horizontal;
  double first = 0; // value of the horizontal axis
  double left = 64, right = 0, top = 70;
  size_t mostPoints = 0;
  std::ostringstream svg;
};

Drawing::Drawing(const Chart &chart) : chart(chart) {
  size_t longest = 0;
  for (const ChartPanel &panel : chart.panels)
    for (const ChartLine &line : panel.lines) {
      longest = std::max(longest, std::min(line.name.size(), longestName));
      mostPoints = std::max(mostPoints, line.points.size());
    }
  // A swatch, the name, the last value.
  right = 34 + charWidth * static_cast<double>(longest + 9);
  measureHorizontal();
}

void Drawing::measureHorizontal() {
  double low = INFINITY, high = -INFINITY;
  for (const ChartPanel &panel : chart.panels)
    for (const ChartLine &line : panel.lines)
      for (ChartPoint point : line.points) {
        low = std::min(low, point.x);
        high = std::max(high, point.x);
      }
  if (low > high)
    low = high = 0;
  first = low;
  // Given ticks are the points that were measured. If they double, a logarithmic axis spaces them
  // evenly.
  bool doubles = !chart.ticks.empty() && low > 0 && high >= 8 * low;
  if (low == high)
    horizontal = {low - 0.5, high + 0.5};
  else if (doubles)
    horizontal = {low / std::pow(high / low, 0.03), high * std::pow(high / low, 0.03), true};
  else
    horizontal = {low - 0.02 * (high - low), high + 0.02 * (high - low)};
}

std::vector<double> Drawing::horizontalTicks() const {
  if (!chart.ticks.empty())
    return chart.ticks;
  std::vector<double> ticks = roundTicks(horizontal.low, horizontal.high, 8);
  std::erase_if(ticks, [&](double tick) { return tick != std::round(tick) || tick < first; });
  return ticks;
}

void Drawing::grid(const ChartPanel &panel, const Scale &scale, double height) {
  double bottom = top + height;
  for (double tick : horizontalTicks())
    svg << "<path class=\"grid\" d=\"M" << pixels(x(tick)) << ' ' << pixels(top) << 'V'
        << pixels(bottom) << "\"/>\n";
  std::vector<double> ticks = scale.isLogarithmic
                                  ? logarithmicTicks(scale.low, scale.high, height)
                                  : roundTicks(scale.low, scale.high, height > 150 ? 5 : 3);
  if (valuesOf(panel).empty())
    ticks.clear();
  for (double tick : ticks) {
    double y = bottom - height * scale.share(tick);
    std::string text = panel.range == ChartRange::Share ? numberText(100 * tick) + "%"
                                                        : numberText(tick, 4, ticks.back());
    svg << "<path class=\"grid\" d=\"M" << pixels(left) << ' ' << pixels(y) << 'h'
        << pixels(plotWidth) << "\"/>\n<text x=\"" << pixels(left - 8) << "\" y=\"" << pixels(y + 4)
        << "\" text-anchor=\"end\">" << text << "</text>\n";
  }
  svg << "<path class=\"axis\" d=\"M" << pixels(left) << ' ' << pixels(bottom) << 'h'
      << pixels(plotWidth) << "\"/>\n<text class=\"label\" x=\"" << pixels(left) << "\" y=\""
      << pixels(top - 10) << "\">" << escaped(panel.label)
      << (scale.isLogarithmic ? " <tspan font-weight=\"400\">(log scale)</tspan>" : "")
      << "</text>\n";
}

/// Shown where the pointer rests.
std::string Drawing::hint(const ChartLine &line, ChartPoint point) const {
  return "<title>" + escaped(line.name) + ", " + escaped(chart.axis) + " " +
         numberText(point.x, 7) + ": " +
         (std::isfinite(point.y) ? numberText(point.y, 6) : "not a finite number") + "</title>";
}

/// A path of the finite points, circles where few points are or one stands alone, crosses at the
/// bottom, a row for each line, for the others.
void Drawing::line(const ChartLine &line, const std::string &style, const std::string &dot,
                   const Scale &scale, double height, double row) {
  double bottom = top + height;
  const std::vector<ChartPoint> &points = line.points;
  auto isDrawn = [&](size_t i) { return i < points.size() && std::isfinite(points[i].y); };
  std::ostringstream path, marks;
  for (size_t i = 0; i < points.size(); ++i) {
    std::string px = pixels(x(points[i].x));
    if (!isDrawn(i)) {
      if (!line.isReference)
        marks << "<path class=\"cross " << style << "\" d=\"M" << px << ' '
              << pixels(bottom - 8 - 9 * row) << "m-3 -3l6 6m0 -6l-6 6\">" << hint(line, points[i])
              << "</path>\n";
      continue;
    }
    std::string py = pixels(bottom - height * scale.share(points[i].y));
    bool begins = i == 0 || !isDrawn(i - 1);
    path << (begins ? 'M' : 'L') << px << ' ' << py;
    if (!line.isReference && (mostPoints <= 32 || (begins && !isDrawn(i + 1))))
      marks << "<circle class=\"halo " << dot << "\" cx=\"" << px << "\" cy=\"" << py
            << "\" r=\"3.5\">" << hint(line, points[i]) << "</circle>\n";
  }
  if (!path.str().empty())
    svg << "<path class=\"line " << style << "\" d=\"" << path.str() << "\"/>\n";
  svg << marks.str();
}

/// Beside the lines' ends, pushed apart where they would overlap.
void Drawing::names(const ChartPanel &panel, const Scale &scale, double height) {
  struct Name {
    double y;
    size_t index;
    std::string value;
  };
  std::vector<Name> names;
  for (size_t i = 0; i < panel.lines.size(); ++i) {
    const std::vector<ChartPoint> &points = panel.lines[i].points;
    auto last = std::find_if(points.rbegin(), points.rend(),
                             [](ChartPoint point) { return std::isfinite(point.y); });
    if (last == points.rend())
      names.push_back({top + height, i, "none"});
    else
      names.push_back({top + height * (1 - scale.share(last->y)), i,
                       panel.range == ChartRange::Share ? numberText(100 * last->y, 3) + "%"
                                                        : numberText(last->y, 3)});
  }
  std::sort(names.begin(), names.end(), [](const Name &a, const Name &b) {
    return std::pair(a.y, a.index) < std::pair(b.y, b.index);
  });
  for (size_t i = 1; i < names.size(); ++i)
    names[i].y = std::max(names[i].y, names[i - 1].y + nameDistance);
  double limit = top + height;
  for (size_t i = names.size(); i-- > 0; limit = names[i].y - nameDistance)
    names[i].y = std::min(names[i].y, limit);
  for (const Name &name : names) {
    const ChartLine &line = panel.lines[name.index];
    std::string text = line.name.size() > longestName
                           ? line.name.substr(0, longestName - 1) + "\u2026"
                           : line.name;
    double begin = left + plotWidth + 12;
    svg << "<path class=\"line " << strokeOf(line, name.index) << "\" d=\"M" << pixels(begin) << ' '
        << pixels(name.y) << "h14\"/>\n<text class=\"name\" x=\"" << pixels(begin + 20) << "\" y=\""
        << pixels(name.y + 4) << "\"><title>" << escaped(line.name) << "</title>" << escaped(text)
        << (line.isReference ? "" : "<tspan class=\"value\" dx=\"6\">" + name.value + "</tspan>")
        << "</text>\n";
  }
}

void Drawing::panel(const ChartPanel &panel, double height) {
  Scale scale = verticalScale(panel);
  grid(panel, scale, height);
  for (size_t i = 0; i < panel.lines.size(); ++i) {
    const ChartLine &drawn = panel.lines[i];
    std::string dot = drawn.isReference ? "dot-reference" : "d" + std::to_string(i % colours);
    line(drawn, strokeOf(drawn, i), dot, scale, height, static_cast<double>(i));
  }
  names(panel, scale, height);
  top += height + gap;
}

/// Leaves out ticks' numbers that would overlap the one before.
void Drawing::axis() {
  double bottom = top - gap, free = 0;
  for (double tick : horizontalTicks()) {
    std::string text = numberText(tick, 7);
    double half = charWidth * static_cast<double>(text.size()) / 2;
    svg << "<path class=\"axis\" d=\"M" << pixels(x(tick)) << ' ' << pixels(bottom) << "v4\"/>\n";
    if (x(tick) - half < free)
      continue;
    free = x(tick) + half + 4;
    svg << "<text x=\"" << pixels(x(tick)) << "\" y=\"" << pixels(bottom + 17)
        << "\" text-anchor=\"middle\">" << text << "</text>\n";
  }
  svg << "<text class=\"label\" x=\"" << pixels(left + plotWidth / 2) << "\" y=\""
      << pixels(bottom + 36) << "\" text-anchor=\"middle\">" << escaped(chart.axis) << "</text>\n";
}

std::string Drawing::run() {
  for (size_t i = 0; i < chart.panels.size(); ++i)
    panel(chart.panels[i],
          std::max(i ? shortPanel : tallPanel,
                   nameDistance * static_cast<double>(chart.panels[i].lines.size())));
  if (chart.panels.empty())
    top += tallPanel + gap;
  axis();
  std::string width = pixels(left + plotWidth + right), height = pixels(top);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
         "\" viewBox=\"0 0 " + width + ' ' + height + "\">\n" + style +
         "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n<text class=\"title\" x=\"" +
         pixels(left) + "\" y=\"28\">" + escaped(chart.title) + "</text>\n" + svg.str() +
         "</svg>\n";
}

} // namespace

std::vector<double> roundTicks(double low, double high, int count) {
  double rough = (high - low) / count;
  if (!(rough > 0) || !std::isnormal(rough)) // below, no power of ten is a step
    return {low};
  double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  std::vector<double> ticks;
  for (auto i = static_cast<int64_t>(std::ceil(low / step - 1e-9));
       static_cast<double>(i) * step <= high + 1e-9 * step; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::string svgOf(const Chart &chart) { return Drawing(chart).run(); }

} // namespace dlc::rt
