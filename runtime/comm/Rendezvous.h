// How ranks find each other by TCP: rank 0 waits at an address that all know, tells each where the
// others are, and every two of them connect.
#pragma once

#include "runtime/comm/Socket.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dlc::rt {

/// A rank among those that are to meet.
struct MeetingPlace {
  int rank = 0, ranks = 1;
  std::string host; // of rank 0
  uint16_t port = 0;
  uint64_t key = 0; // of the run: strangers have another
  /// Whoever has started the ranks keeps the port for rank 0, see Socket::hold.
  bool isHeld = false;
};

struct Meeting {
  std::vector<Socket> peers;                      // by rank; none for the own
  std::vector<std::string> hostIdentities, names; // by rank: equal where memory can be shared
};

/// Collective. Throws Error(Peer) naming who has not come within so many seconds, and
/// Error(BadInput) if ranks do not fit together. Whoever connects without being a rank of the run
/// is turned away.
Meeting meet(const MeetingPlace &place, double seconds);

} // namespace dlc::rt
