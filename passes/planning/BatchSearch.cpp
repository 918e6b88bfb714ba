// Regula falsi between a batch that fits and one that does not; each third guess halves the
// interval, whatever the bytes are.

#include "passes/planning/BatchSearch.h"

#include <algorithm>

using namespace dlc;

namespace {
struct Point {
  int64_t batch;
  double bytes;
};

/// Where the line through two points reaches the limit.
int64_t guess(Point a, Point b, double limit) {
  double slope = std::max((b.bytes - a.bytes) / static_cast<double>(b.batch - a.batch), 1e-3);
  double batch = static_cast<double>(a.batch) + (limit - a.bytes) / slope;
  return static_cast<int64_t>(std::clamp(batch, 0.0, 1e12));
}
} // namespace

std::optional<int64_t> dlc::largestBatch(BytesOfBatch bytesOf, uint64_t limit, int64_t most) {
  auto allowed = static_cast<double>(limit);
  std::optional<uint64_t> first = bytesOf(1);
  if (!first || *first > limit)
    return first ? std::optional<int64_t>(0) : std::nullopt;
  Point fits{1, static_cast<double>(*first)};
  std::optional<Point> exceeds;
  for (int64_t next = 2, plans = 1; next <= most; ++plans) {
    std::optional<uint64_t> bytes = bytesOf(next);
    if (!bytes)
      return std::nullopt;
    Point here{next, static_cast<double>(*bytes)}, before = fits;
    if (*bytes <= limit)
      fits = here;
    else
      exceeds = here;
    if (exceeds && exceeds->batch == fits.batch + 1)
      break;
    if (!exceeds)
      // One more than the line says, to learn that it does not fit; never back.
      next = std::min(std::max(guess(before, fits, allowed) + 1, fits.batch + 1),
                      std::max(most, fits.batch + 1));
    else
      next = std::clamp(plans % 3 ? guess(fits, *exceeds, allowed)
                                  : fits.batch + (exceeds->batch - fits.batch) / 2,
                        fits.batch + 1, exceeds->batch - 1);
  }
  return fits.batch;
}
