// What a chart says, by its elements: an SVG document of finite numbers, whatever the values.

#include "runtime/record/Chart.h"
#include "runtime/record/RunLog.h"

#include <cmath>
#include <gtest/gtest.h>

namespace dlc::rt {
namespace {

size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

Chart chartOf(const std::vector<double> &values, ChartRange range = ChartRange::Tight) {
  ChartLine line{"loss", {}};
  for (size_t i = 0; i < values.size(); ++i)
    line.points.push_back({static_cast<double>(i + 1), values[i]});
  return {"run", "epoch", {{"loss", {line}, range}}, {}};
}

bool isFinite(const std::string &svg) {
  std::string attributes = svg.substr(svg.find("<rect"));
  return attributes.find("nan") == std::string::npos && attributes.find("inf") == std::string::npos;
}

TEST(Chart, TicksAreRound) {
  EXPECT_EQ(roundTicks(0, 20, 5), (std::vector<double>{0, 5, 10, 15, 20}));
  EXPECT_EQ(roundTicks(-0.5, 1.1, 4), (std::vector<double>{-0.5, 0, 0.5, 1}));
  EXPECT_EQ(roundTicks(3, 3, 4), std::vector<double>{3});
  EXPECT_EQ(roundTicks(0, 2e-323, 4), std::vector<double>{0});
}

TEST(Chart, AnyNumberOfPointsOfAnyValue) {
  for (const std::vector<double> &values :
       std::vector<std::vector<double>>{{},
                                        {0},
                                        {7},
                                        {NAN},
                                        {3, 3, 3},
                                        {-1, 1},
                                        {INFINITY, 1},
                                        {1e-30, 1e30},
                                        {1e300, -1e300},
                                        std::vector<double>(500, 0.5)})
    for (ChartRange range : {ChartRange::Tight, ChartRange::FromZero, ChartRange::Share}) {
      std::string svg = svgOf(chartOf(values, range));
      EXPECT_TRUE(isFinite(svg)) << svg;
      EXPECT_TRUE(svg.ends_with("</svg>\n"));
    }
}

TEST(Chart, AWideRangeIsLogarithmic) {
  std::string svg = svgOf(chartOf({7, 1, 0.1, 0.01}));
  EXPECT_NE(svg.find("(log scale)"), std::string::npos);
  for (const char *tick : {">1</text>", ">0.1</text>", ">0.01</text>"})
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  EXPECT_EQ(svgOf(chartOf({7, 1, 0})).find("(log scale)"), std::string::npos);
}

TEST(Chart, ValuesThatAreNotFiniteAreGapsWithACross) {
  std::string svg = svgOf(chartOf({3, 2, NAN, 2, 1}));
  EXPECT_EQ(countOf(svg, "class=\"cross"), 1u);
  EXPECT_EQ(countOf(svg, "<circle"), 4u);
  size_t path = svg.find("class=\"line s0\" d=\"");
  std::string line = svg.substr(path, svg.find("/>", path) - path);
  EXPECT_EQ(countOf(line, "M"), 2u) << line;
}

TEST(Chart, NoTwoLinesOfAPanelLookAlike) {
  Chart chart{"run", "epoch", {{"metrics", {}}}, {}};
  for (int i = 0; i < 14; ++i)
    chart.panels[0].lines.push_back({"iou." + std::to_string(i), {{1, 0.1 * i}, {2, 0.2 * i}}});
  std::string svg = svgOf(chart);
  for (const char *look : {"s0", "s5", "s0 again1", "s5 again1", "s0 again2", "s1 again2"})
    EXPECT_EQ(countOf(svg, "class=\"line " + std::string(look) + "\""), 2u) << look; // and its name
}

TEST(Chart, NamesAreEscapedAndShortened) {
  Chart chart = chartOf({1, 2});
  chart.title = "a<b>&\"c\"";
  chart.panels[0].lines[0].name = std::string(40, 'x');
  std::string svg = svgOf(chart);
  EXPECT_NE(svg.find("a&lt;b&gt;&amp;&quot;c&quot;"), std::string::npos);
  EXPECT_NE(svg.find(">" + std::string(27, 'x') + "\u2026"), std::string::npos);
}

TEST(Chart, FollowsTheReadersScheme) {
  EXPECT_NE(svgOf(chartOf({1})).find("@media (prefers-color-scheme:dark)"), std::string::npos);
}

TEST(LossPicture, DrawsLossesMetricsAndLearningRate) {
  Record first = {{"event", "epoch"},     {"step", 5},           {"epoch", 3},
                  {"loss", 1.0},          {"lr", 0.1},           {"iou", 0.5},
                  {"psnr", 20.0},         {"val_loss", nullptr}, {"val_iou", 0.4},
                  {"samples_per_s", 9.0}, {"seconds", 1.0}};
  std::string svg = lossPicture("runs", {first});
  for (const char *label : {">loss</text>", ">metrics</text>", ">psnr</text>",
                            ">learning rate</text>", ">epoch</text>", ">3</text>", ">runs</text>"})
    EXPECT_NE(svg.find(label), std::string::npos) << label;
  EXPECT_EQ(countOf(svg, "<circle"), 5u); // loss, iou, val_iou, psnr, lr
  EXPECT_EQ(countOf(svg, "class=\"cross"), 1u);
  EXPECT_EQ(svg.find("samples_per_s"), std::string::npos);
}

TEST(LossPicture, OfALongRunShowsSomeEpochsAndTheLast) {
  std::vector<Record> epochs;
  auto pointsOf = [&](size_t wanted) {
    while (epochs.size() < wanted)
      epochs.push_back({{"event", "epoch"}, {"epoch", epochs.size() + 1}, {"loss", 1.5}});
    epochs.back()["loss"] = 7.25;
    std::string svg = lossPicture("runs", epochs);
    EXPECT_NE(svg.find(">7.25</tspan>"), std::string::npos) << wanted;
    size_t begin = svg.find("class=\"line s0\" d=\"M");
    return countOf(svg.substr(begin, svg.find("/>", begin) - begin), "L") + 1;
  };
  EXPECT_EQ(pointsOf(500), 500u);
  EXPECT_EQ(pointsOf(501), 251u);
  EXPECT_EQ(pointsOf(1000), 501u);
  EXPECT_EQ(pointsOf(4999), 501u);
}

} // namespace
} // namespace dlc::rt
