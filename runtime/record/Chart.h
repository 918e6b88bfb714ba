// Line charts as SVG: panels one above the other over one horizontal axis.
//
// Ticks are round numbers; values that are all positive and span more than a factor of 20 are drawn
// on a logarithmic axis; a line's name stands beside its end. Colours follow the reader's light or
// dark scheme. Plain data and pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dlc::rt {

struct ChartPoint {
  double x = 0, y = 0; // not finite: a gap, and a cross at the panel's edge
};

struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points; // by increasing x
  bool isReference = false;       // dashed and grey: not measured
};

/// Which values an axis shows: FromZero and Share begin at 0, Share ends at 1 or above and is
/// labelled in percent.
enum class ChartRange : uint8_t { Tight, FromZero, Share };

struct ChartPanel {
  std::string label; // what is drawn, and its unit
  std::vector<ChartLine> lines;
  ChartRange range = ChartRange::Tight;
};

struct Chart {
  std::string title, axis; // the horizontal axis and its unit
  std::vector<ChartPanel> panels;
  std::vector<double> ticks; // of the horizontal axis; empty: round whole numbers
};

/// An SVG document.
std::string svgOf(const Chart &chart);

/// About `count` round numbers, 1, 2 or 5 times a power of ten apart, that lie in [low, high].
std::vector<double> roundTicks(double low, double high, int count);

} // namespace dlc::rt
