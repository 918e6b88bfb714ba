// What is complete before what begins, in every order that streams, events and collectives allow:
// the closure of the rules by brute force, against which the proof of order is tested.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace dlc::rt::test {

struct OrderStep {
  enum Kind { Record, Wait, Start, Finish, Other } kind = Other;
  artifact::Stream stream = artifact::Stream::Compute;
  uint32_t number = 0; // of the event or collective
};

class HappensBefore {
public:
  /// Records stand before their waits, starts before their ends.
  explicit HappensBefore(std::span<const OrderStep> steps) : before(steps.size()) {
    std::map<artifact::Stream, size_t> last;
    std::map<uint32_t, size_t> records, starts;
    for (size_t i = 0; i < steps.size(); ++i) {
      before[i].resize(steps.size());
      const OrderStep &step = steps[i];
      if (auto previous = last.find(step.stream); previous != last.end())
        follow(i, previous->second);
      last[step.stream] = i;
      if (step.kind == OrderStep::Record)
        records[step.number] = i;
      if (step.kind == OrderStep::Wait)
        follow(i, records.at(step.number));
      if (step.kind == OrderStep::Start)
        starts[step.number] = i;
      if (step.kind == OrderStep::Finish)
        follow(i, starts.at(step.number));
    }
  }

  bool operator()(size_t first, size_t then) const { return before[then][first]; }

private:
  /// With all that is complete before the earlier one.
  void follow(size_t then, size_t first) {
    for (size_t i = 0; i < first; ++i)
      before[then][i] = before[then][i] | before[first][i];
    before[then][first] = 1;
  }

  std::vector<std::vector<char>> before;
};

} // namespace dlc::rt::test
