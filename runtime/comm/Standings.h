// How far ranks have come in collectives that go another way than messages, told when one has
// waited for too long.
#pragma once

#include "runtime/comm/Messages.h"
#include "runtime/comm/Transport.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace dlc::rt {

class Standings {
public:
  /// Of a rank that waits for none of them.
  static constexpr uint64_t ahead = ~uint64_t{0};

  explicit Standings(Transport &transport) : transport(transport) {}

  /// True once another rank has told its own and wants to hear of this one's.
  bool isAsked();
  /// Tells all ranks, once.
  void tell(uint64_t started);
  /// Tells all ranks, and hears of them for up to so many seconds: by rank, empty of those that do
  /// not answer.
  std::vector<std::optional<uint64_t>> exchange(uint64_t started, double seconds);

private:
  Transport &transport;
  std::optional<uint64_t> told; // which stays where it is while messages are under way
  Messages sends;
};

} // namespace dlc::rt
