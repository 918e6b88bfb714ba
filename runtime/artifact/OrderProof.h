// Whether every order that streams, events and collectives allow gives the same result: any two
// accesses whose addresses meet, one of them writing, must be ordered.
//
// Instructions are fed in the artifact's order, which is one of those allowed. A stream runs its
// instructions one after the other; what follows a wait on a stream follows all that stood before
// the event's record on its stream. A collective reads and writes its buffer at any time between
// its start and its wait, and what follows the wait follows what stood before the start. Near
// linear in the number of accesses.
#pragma once

#include "runtime/artifact/StepPass.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>

namespace dlc::rt {

/// Bytes [begin, end) of an arena.
struct ArenaRange {
  uint32_t arena = 0;
  uint64_t begin = 0, end = 0;
};

class OrderProof {
public:
  using Stream = artifact::Stream;

  /// The instruction that the following calls speak of.
  void begin(uint32_t instruction, Stream stream);

  /// The instruction records or waits for an event. Waits come behind their records.
  void record(uint32_t event);
  void wait(uint32_t event);

  /// The instruction reads or writes a range. The earlier instruction that this one is not ordered
  /// with, if there is one.
  std::optional<uint32_t> read(const ArenaRange &range) { return access(range, false); }
  std::optional<uint32_t> write(const ArenaRange &range) { return access(range, true); }

  /// The instruction starts a collective over a range, or waits for it: from one to the other, no
  /// instruction may touch the range.
  std::optional<uint32_t> start(uint32_t collective, const ArenaRange &range);
  void finish(uint32_t collective);

private:
  static constexpr size_t streams = static_cast<size_t>(Stream::MAX) + 1;
  /// How much of each stream is known to have run: a number of its instructions.
  using Clock = std::array<uint32_t, streams>;

  struct Point {
    uint32_t instruction = 0;
    uint32_t number = 0; // on its stream, from 1; 0: none
    uint8_t stream = 0;
    bool operator==(const Point &) const = default;
  };
  /// Who last touched a stretch of memory. Of the reads since the last write only the last one of
  /// each stream counts: the others come before it.
  struct Stretch {
    uint64_t end = 0;
    Point written;
    std::array<Point, streams> read;
    bool inFlight = false; // `written` starts a collective that nothing has waited for
  };
  using Memory = std::map<uint64_t, Stretch>; // by begin; stretches do not overlap

  bool follows(const Point &earlier) const {
    return earlier.number <= clocks[now.stream][earlier.stream];
  }
  /// An access that comes before `now` and conflicts with a read or write, but is not ordered.
  std::optional<uint32_t> conflict(const Stretch &stretch, bool writes) const;
  std::optional<uint32_t> access(const ArenaRange &range, bool writes);
  void split(Memory &memory, uint64_t at);
  void join(const Clock &clock);

  std::array<Clock, streams> clocks = {};
  std::map<uint32_t, Clock> events;
  struct InFlight {
    ArenaRange range;
    Clock clock; // of its start
  };
  std::map<uint32_t, InFlight> collectives;
  std::map<uint32_t, Memory> arenas;
  Point now;
};

/// The proof for every pass of a step: what does not run in it orders nothing there.
class StepOrderProof {
public:
  using Stream = OrderProof::Stream;

  void begin(uint32_t instruction, Stream stream, artifact::Operation operation,
             artifact::Phase phase);
  void record(uint32_t event) {
    inEach([&](OrderProof &proof) { proof.record(event); });
  }
  void wait(uint32_t event) {
    inEach([&](OrderProof &proof) { proof.wait(event); });
  }
  std::optional<uint32_t> read(const ArenaRange &range) {
    return lastOf([&](OrderProof &proof) { return proof.read(range); });
  }
  std::optional<uint32_t> write(const ArenaRange &range) {
    return lastOf([&](OrderProof &proof) { return proof.write(range); });
  }
  std::optional<uint32_t> start(uint32_t collective, const ArenaRange &range) {
    return lastOf([&](OrderProof &proof) { return proof.start(collective, range); });
  }
  void finish(uint32_t collective) {
    inEach([&](OrderProof &proof) { proof.finish(collective); });
  }

private:
  template <typename Function> void inEach(Function function) {
    for (size_t pass = 0; pass < proofs.size(); ++pass)
      if (runs[pass])
        function(proofs[pass]);
  }
  /// The last instruction that a proof finds.
  template <typename Function> std::optional<uint32_t> lastOf(Function function) {
    std::optional<uint32_t> found;
    inEach([&](OrderProof &proof) { found = std::max(found, function(proof)); });
    return found;
  }

  std::array<OrderProof, stepPasses.size()> proofs;
  StepPasses runs = {}; // the present instruction
};

} // namespace dlc::rt
