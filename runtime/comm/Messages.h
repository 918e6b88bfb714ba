// A list of messages in flight, polled in order.
#pragma once

#include "runtime/comm/Transport.h"

#include <vector>

namespace dlc::rt {

class Messages {
public:
  void clear() {
    list.clear();
    cursor = 0;
  }
  void add(int peer, Transport::Request request) { list.push_back({peer, request, false}); }

  /// Peer of the next message in order if that one is complete, else -1. Stopping at the first
  /// incomplete one keeps a poll at one test, however many messages are in flight.
  int takeNext(Transport &transport) {
    if (cursor == list.size() || !finish(transport, list[cursor]))
      return -1;
    return list[cursor++].peer;
  }
  bool allTaken() const { return cursor == list.size(); }
  /// Takes what is complete, for lists whose messages need nothing done one by one.
  bool takeAll(Transport &transport) {
    while (takeNext(transport) >= 0)
      continue;
    return allTaken();
  }
  /// Adds the peers of all incomplete messages.
  void appendUnfinished(Transport &transport, std::vector<int> &peers) {
    for (Message &message : list)
      if (!finish(transport, message))
        peers.push_back(message.peer);
  }

private:
  struct Message {
    int peer;
    Transport::Request request;
    bool done;
  };

  static bool finish(Transport &transport, Message &message) {
    if (!message.done)
      message.done = transport.test(message.request);
    return message.done;
  }

  std::vector<Message> list;
  size_t cursor = 0;
};

} // namespace dlc::rt
