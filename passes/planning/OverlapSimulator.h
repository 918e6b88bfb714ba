// Forecast of how much of a step's communication hides behind its compute.
//
// Two serial resources: the compute thread runs the items in order, the wire carries one bucket at
// a time in the order of their starts. A wait that comes before its bucket's arrival idles the
// compute thread: that time is exposed. Free of MLIR, since `dlc inspect` re-evaluates an
// artifact's costs for other links and numbers of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dlc {

/// What joins two ranks.
struct Link {
  double gbitPerSecond = 10;
  double latencyMicroseconds = 30; // of a message

  /// What `parse` reads, for messages.
  static constexpr std::string_view forms = "GBIT[:US], shm, nvlink or pcie";
  /// Reads GBIT[:US], shm (processes of one host), nvlink or pcie (GPUs of one host); nothing if
  /// the text is none of them.
  static std::optional<Link> parse(std::string_view text);
};

/// One step of the schedule.
struct ScheduleItem {
  enum class Kind { Compute, Start, Wait } kind = Kind::Compute;
  uint64_t nanoseconds = 0; // Compute
  unsigned bucket = 0;      // Start, Wait: consecutive from 0 in the order of the starts
  uint64_t bytes = 0;       // Start: size of the message

  static ScheduleItem compute(uint64_t nanoseconds) { return {Kind::Compute, nanoseconds, 0, 0}; }
  static ScheduleItem start(unsigned bucket, uint64_t bytes) {
    return {Kind::Start, 0, bucket, bytes};
  }
  static ScheduleItem wait(unsigned bucket) { return {Kind::Wait, 0, bucket, 0}; }
};

/// When a bucket was started, travelled and was waited for, in nanoseconds from the step's begin.
struct BucketForecast {
  uint64_t started = 0;
  uint64_t onWire = 0; // later than `started` if the wire was busy
  uint64_t arrived = 0;
  uint64_t waited = 0;
  uint64_t exposed() const { return arrived > waited ? arrived - waited : 0; }
};

struct OverlapForecast {
  uint64_t compute = 0;       // nanoseconds
  uint64_t communication = 0; // time that the wire is busy
  uint64_t exposed = 0;       // time that compute waits
  std::vector<BucketForecast> buckets;
  uint64_t total() const { return compute + exposed; }
};

class OverlapSimulator {
public:
  /// No number of ranks means any: an all-reduce moves twice its bytes, as it does in the limit of
  /// many, in one message, so that what is planned does not depend on the number.
  explicit OverlapSimulator(const Link &link, std::optional<unsigned> ranks = std::nullopt)
      : link(link), ranks(ranks) {}

  /// With a link that is so many times as fast.
  OverlapSimulator faster(double factor) const {
    return OverlapSimulator({link.gbitPerSecond * factor, link.latencyMicroseconds / factor},
                            ranks);
  }

  /// Time of an all-reduce of so many bytes on the wire.
  uint64_t transferTime(uint64_t bytes) const;
  /// Each bucket must be started before it is waited for, and waited for at most once.
  OverlapForecast run(std::span<const ScheduleItem> schedule) const;

private:
  Link link;
  std::optional<unsigned> ranks;
};

} // namespace dlc
