// What a run prints: plain lines, and on a terminal one progress bar below them.
//
// Rank 0 speaks, the others are silent. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace dlc::rt {

struct ProgressFigures {
  int64_t epoch = 0, epochs = 0; // epochs 0: unknown
  int64_t step = 0, steps = 0;   // within the epoch
  double loss = 0;
  double samplesPerSecond = 0;
  double secondsLeft = 0; // of the run
};

/// "1:02:03" or "2:03".
std::string durationText(double seconds);

class Console {
public:
  /// `speaks` on rank 0 alone; `terminal` chooses the bar.
  Console(bool speaks, bool terminal, std::FILE *out = stdout);
  ~Console();

  void line(const std::string &text);
  /// Redraws the bar ten times a second; without a terminal prints a line every ten seconds.
  void progress(const ProgressFigures &figures);
  bool speaks() const { return enabled; }

private:
  void clearBar();

  bool enabled, terminal;
  std::FILE *out;
  bool barShown = false;
  std::chrono::steady_clock::time_point shown;
};

} // namespace dlc::rt
