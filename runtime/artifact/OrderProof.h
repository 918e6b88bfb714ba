// Whether every order that streams, events and collectives allow gives the same result: any two
// accesses whose addresses meet, one of them writing, must be ordered.
//
// Instructions are fed in the artifact's order, which is one of those allowed. A stream runs its
// instructions one after the other; what follows a wait on a stream follows all that stood before
// the event's record on its stream. A collective reads and writes its buffer at any time between
// its start and its wait, and what follows the wait follows what stood before the start. Near
// linear in the number of accesses.
#pragma once

#include "runtime/artifact/artifact_generated.h"

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

/// True of what runs in the last micro-batch of a step alone: collectives, and what computes or
/// copies for the optimizer.
bool isOncePerStep(const artifact::Instruction &instruction);

/// The proof for both runs of a program: the last micro-batch of a step, or the only one, in which
/// everything runs, and those before it, in which what runs once a step orders nothing.
class StepOrderProof {
public:
  using Stream = OrderProof::Stream;

  void begin(uint32_t instruction, Stream stream, bool oncePerStep) {
    last.begin(instruction, stream);
    runsBefore = !oncePerStep;
    if (runsBefore)
      before.begin(instruction, stream);
  }
  void record(uint32_t event) {
    last.record(event);
    before.record(event);
  }
  void wait(uint32_t event) {
    last.wait(event);
    before.wait(event);
  }
  std::optional<uint32_t> read(const ArenaRange &range) {
    std::optional<uint32_t> found = runsBefore ? before.read(range) : std::nullopt;
    std::optional<uint32_t> other = last.read(range);
    return found ? found : other;
  }
  std::optional<uint32_t> write(const ArenaRange &range) {
    std::optional<uint32_t> found = runsBefore ? before.write(range) : std::nullopt;
    std::optional<uint32_t> other = last.write(range);
    return found ? found : other;
  }
  std::optional<uint32_t> start(uint32_t collective, const ArenaRange &range) {
    return last.start(collective, range);
  }
  void finish(uint32_t collective) { last.finish(collective); }

private:
  OrderProof last, before;
  bool runsBefore = true;
};

} // namespace dlc::rt
