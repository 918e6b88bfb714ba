// Blocking exchanges of small data between all ranks, by messages alone.
//
// Every rank sends to every other one directly, so that a rank that does not answer is known by
// name. Data travels through buffers that live as long as this object: a message that arrives after
// a timeout must not land in memory given back meanwhile.
#pragma once

#include "runtime/comm/Messages.h"
#include "runtime/comm/PeerWatch.h"
#include "runtime/comm/Standings.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

class SmallCollectives {
public:
  /// Who waits in an exchange tells so where `standings` are asked for.
  SmallCollectives(Transport &transport, PeerWatch &watch, Standings &standings)
      : transport(transport), watch(watch), standings(standings) {}

  /// What every rank gave, in rank order; `doing` names the operation in messages.
  std::vector<std::vector<std::byte>> allGather(std::span<const std::byte> mine,
                                                const std::string &doing, double timeout);
  /// The same where all give equally many bytes, which saves a round.
  std::vector<std::vector<std::byte>> allGatherEqual(std::span<const std::byte> mine,
                                                     const std::string &doing, double timeout);
  void broadcast(std::span<std::byte> data, int root, double timeout);

private:
  /// Sends `mine` to all and receives sizes[r] bytes from r.
  std::vector<std::vector<std::byte>> exchange(std::span<const std::byte> mine,
                                               std::span<const size_t> sizes,
                                               const std::string &doing, double timeout);
  void begin(const std::string &doing);
  void await(const std::string &doing, double timeout);

  Transport &transport;
  PeerWatch &watch;
  Standings &standings;
  Messages receives;
  Messages sends;
  std::vector<std::byte> outbox;
  std::vector<std::vector<std::byte>> inbox;
  bool failed = false;
};

} // namespace dlc::rt
