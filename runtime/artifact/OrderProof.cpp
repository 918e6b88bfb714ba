// Vector clocks, one component a stream. Since accesses that conflict were found ordered when they
// were added, it is enough to compare each with the last write of a stretch of memory and with the
// reads since.

#include "runtime/artifact/OrderProof.h"

#include <algorithm>

namespace dlc::rt {

void OrderProof::begin(uint32_t instruction, Stream stream) {
  auto index = static_cast<uint8_t>(stream);
  now = {instruction, ++clocks[index][index], index};
}

void OrderProof::record(uint32_t event) { events[event] = clocks[now.stream]; }

void OrderProof::join(const Clock &clock) {
  Clock &own = clocks[now.stream];
  for (size_t i = 0; i < streams; ++i)
    own[i] = std::max(own[i], clock[i]);
}

void OrderProof::wait(uint32_t event) { join(events.at(event)); }

std::optional<uint32_t> OrderProof::conflict(const Stretch &stretch, bool writes) const {
  auto races = [&](const Point &earlier) { return earlier.number > 0 && !follows(earlier); };
  // An instruction may use an operand in place.
  if (stretch.inFlight || races(stretch.written))
    return stretch.written.instruction;
  if (writes)
    for (const Point &read : stretch.read)
      if (races(read))
        return read.instruction;
  return std::nullopt;
}

/// Lets a stretch begin at an address.
void OrderProof::split(Memory &memory, uint64_t at) {
  auto above = memory.upper_bound(at);
  if (above == memory.begin())
    return;
  auto &[begin, stretch] = *std::prev(above);
  if (begin == at || stretch.end <= at)
    return;
  Stretch upper = stretch;
  stretch.end = at;
  memory.emplace_hint(above, at, upper);
}

std::optional<uint32_t> OrderProof::access(const ArenaRange &range, bool writes) {
  if (range.begin >= range.end)
    return std::nullopt;
  Memory &memory = arenas[range.arena];
  split(memory, range.begin);
  split(memory, range.end);
  std::optional<uint32_t> found;
  auto first = memory.lower_bound(range.begin);
  for (auto it = first; it != memory.end() && it->first < range.end && !found; ++it)
    found = conflict(it->second, writes);
  if (writes) {
    // One stretch again, so that their number stays near that of the buffers.
    memory.erase(first, memory.lower_bound(range.end));
    memory[range.begin] = {range.end, now, {}, false};
    return found;
  }
  uint64_t reached = range.begin;
  auto fill = [&](uint64_t end) {
    if (reached < end)
      memory[reached] = {end, {}, {}, false};
    reached = end;
  };
  for (auto it = first; it != memory.end() && it->first < range.end; ++it) {
    fill(it->first);
    reached = it->second.end;
  }
  fill(range.end);
  for (auto it = memory.find(range.begin); it != memory.end() && it->first < range.end; ++it)
    it->second.read[now.stream] = now;
  return found;
}

std::optional<uint32_t> OrderProof::start(uint32_t collective, const ArenaRange &range) {
  std::optional<uint32_t> found = write(range);
  collectives[collective] = {range, clocks[now.stream]};
  if (auto it = arenas[range.arena].find(range.begin); it != arenas[range.arena].end())
    it->second.inFlight = true;
  return found;
}

void OrderProof::finish(uint32_t collective) {
  auto started = collectives.find(collective);
  if (started == collectives.end())
    return;
  const ArenaRange &range = started->second.range;
  join(started->second.clock);
  Memory &memory = arenas[range.arena];
  memory.erase(memory.lower_bound(range.begin), memory.lower_bound(range.end));
  memory[range.begin] = {range.end, now, {}, false};
  collectives.erase(started);
}

void StepOrderProof::begin(uint32_t instruction, Stream stream, artifact::Operation operation,
                           artifact::Phase phase) {
  runs = passesOf(operation, phase);
  inEach([&](OrderProof &proof) { proof.begin(instruction, stream); });
}

} // namespace dlc::rt
