// One pass over the schedule with two clocks, compute's and the wire's.

#include "passes/planning/OverlapSimulator.h"

#include <algorithm>
#include <charconv>
#include <cmath>

using namespace dlc;

static std::optional<double> parsePositive(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value <= 0)
    return std::nullopt;
  return value;
}

std::optional<Link> Link::parse(std::string_view text) {
  // Measured between processes of one host: one pass of reading and writing per rank.
  if (text == "shm")
    return Link{200, 2};
  // Bus bandwidths that NCCL's all-reduce is known to reach among eight GPUs: 360 GB/s by NVLink 4
  // and its switch, 20 GB/s by PCIe 4 through the host. Each device's own is in its description.
  if (text == "nvlink")
    return Link{2880, 2};
  if (text == "pcie")
    return Link{160, 5};
  size_t colon = text.find(':');
  std::optional<double> bandwidth = parsePositive(text.substr(0, colon));
  if (!bandwidth)
    return std::nullopt;
  Link link;
  link.gbitPerSecond = *bandwidth;
  if (colon == std::string_view::npos)
    return link;
  std::optional<double> latency = parsePositive(text.substr(colon + 1));
  if (!latency)
    return std::nullopt;
  link.latencyMicroseconds = *latency;
  return link;
}

uint64_t OverlapSimulator::transferTime(uint64_t bytes) const {
  if (ranks && *ranks <= 1)
    return 0;
  // Every rank sends its share of each other rank's slice, then its own reduced slice to all.
  // Messages in flight together do not share their latency, most of which is the hosts' work.
  double messages = ranks ? 2.0 * (*ranks - 1.0) : 1.0;
  double volume = 2.0 * static_cast<double>(bytes) * (ranks ? (*ranks - 1.0) / *ranks : 1.0);
  double nanoseconds = messages * link.latencyMicroseconds * 1e3 + volume * 8 / link.gbitPerSecond;
  return static_cast<uint64_t>(std::llround(nanoseconds));
}

OverlapForecast OverlapSimulator::run(std::span<const ScheduleItem> schedule) const {
  OverlapForecast forecast;
  uint64_t now = 0, wireFree = 0;
  auto bucketOf = [&](const ScheduleItem &item) -> BucketForecast & {
    if (item.bucket >= forecast.buckets.size())
      forecast.buckets.resize(item.bucket + 1);
    return forecast.buckets[item.bucket];
  };
  for (const ScheduleItem &item : schedule) {
    switch (item.kind) {
    case ScheduleItem::Kind::Compute:
      now += item.nanoseconds;
      forecast.compute += item.nanoseconds;
      break;
    case ScheduleItem::Kind::Start: {
      BucketForecast &bucket = bucketOf(item);
      uint64_t time = transferTime(item.bytes);
      bucket.started = now;
      bucket.onWire = std::max(now, wireFree);
      bucket.arrived = wireFree = bucket.onWire + time;
      forecast.communication += time;
      break;
    }
    case ScheduleItem::Kind::Wait: {
      BucketForecast &bucket = bucketOf(item);
      bucket.waited = now;
      forecast.exposed += bucket.exposed();
      now = std::max(now, bucket.arrived);
      break;
    }
    }
  }
  return forecast;
}
