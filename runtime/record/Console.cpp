#include "runtime/record/Console.h"

#include <cmath>

namespace dlc::rt {

std::string durationText(double seconds) {
  if (!std::isfinite(seconds))
    return "?";
  auto total = static_cast<long>(std::lround(seconds));
  char text[64];
  if (total >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", total / 3600, total / 60 % 60, total % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", total / 60, total % 60);
  return text;
}

Console::Console(bool speaks, bool terminal, std::FILE *out)
    : enabled(speaks), terminal(terminal), out(out), shown(std::chrono::steady_clock::now()) {}

Console::~Console() { clearBar(); }

void Console::clearBar() {
  if (barShown)
    std::fputs("\r\033[K", out);
  barShown = false;
}

void Console::line(const std::string &text) {
  if (!enabled)
    return;
  clearBar();
  std::fprintf(out, "%s\n", text.c_str());
  std::fflush(out);
}

void Console::progress(const ProgressFigures &figures) {
  auto now = std::chrono::steady_clock::now();
  double since = std::chrono::duration<double>(now - shown).count();
  if (!enabled || since < (terminal ? 0.1 : 10.0))
    return;
  shown = now;
  std::string of = figures.epochs ? "/" + std::to_string(figures.epochs) : "";
  std::string bar;
  if (terminal) {
    constexpr int64_t width = 24;
    int64_t done = figures.step * width / std::max<int64_t>(figures.steps, 1);
    bar = "[" + std::string(static_cast<size_t>(done), '=') +
          std::string(static_cast<size_t>(width - done), ' ') + "] ";
  }
  char text[256];
  std::snprintf(text, sizeof text,
                "epoch %lld%s  %sstep %lld/%lld  loss %.4f  %.1f samples/s  ETA %s",
                static_cast<long long>(figures.epoch), of.c_str(), bar.c_str(),
                static_cast<long long>(figures.step), static_cast<long long>(figures.steps),
                figures.loss, figures.samplesPerSecond, durationText(figures.secondsLeft).c_str());
  std::fprintf(out, terminal ? "\r%s\033[K" : "%s\n", text);
  std::fflush(out);
  barShown = terminal;
}

} // namespace dlc::rt
