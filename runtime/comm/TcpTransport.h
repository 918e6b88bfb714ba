// Messages by TCP, shared memory by POSIX: ranks need no MPI.
//
// A message is a header and its bytes. What has come before it was asked for is held. Everything
// moves within test(), in the one compute thread. A rank that ends in order says goodbye first.
#pragma once

#include "runtime/comm/HostTransport.h"
#include "runtime/comm/Rendezvous.h"

#include <chrono>
#include <deque>
#include <map>
#include <poll.h>

namespace dlc::rt {

class TcpTransport final : public HostTransport {
public:
  /// Collective: meets the others. `ranksPerHost` > 0 pretends that so many neighbours share a
  /// host.
  static std::unique_ptr<TcpTransport> connect(const MeetingPlace &place, double seconds,
                                               int ranksPerHost = 0);
  /// Waits until all peers have ended, too, for as long as they had to meet, unless messages are
  /// under way or an exception is passing through.
  ~TcpTransport() override;

  Request send(int peer, int tag, std::span<const std::byte> data) override;
  Request receive(int peer, int tag, std::span<std::byte> data) override;
  bool test(Request request) override;
  std::optional<int> senderOf(int tag) override;

  void checkRun() override;
  void abort(const std::string &reason) noexcept override;

private:
  struct Header {
    int64_t bytes;
    int32_t tag;
    int32_t unused = 0;
  };
  static constexpr Request none = ~Request{0};
  struct Outgoing {
    Header header;
    std::span<const std::byte> data;
    Request request;
    size_t sent = 0; // header and data
  };
  struct Posted {
    Request request;
    std::span<std::byte> data;
  };
  /// The message that is being read.
  struct Incoming {
    Header header{};
    size_t got = 0; // header and data
    std::span<std::byte> to;
    Request request = none;      // whose memory that is
    std::vector<std::byte> held; // else this
  };
  struct Peer {
    Socket socket;
    std::deque<Outgoing> outgoing;
    Incoming incoming;
    std::map<int, std::deque<Posted>> posted;               // by tag
    std::map<int, std::deque<std::vector<std::byte>>> held; // likewise, in order
    bool hasLeft = false;                                   // in order
    std::chrono::steady_clock::time_point lostSince = {};   // if the connection is gone
  };

  TcpTransport(int rank, std::vector<int> hosts, Meeting meeting, double seconds);

  Request begin();
  void complete(Request request);
  /// Moves what can be moved without waiting, or after up to so many milliseconds.
  void progress(int milliseconds = 0);
  void write(Peer &peer);
  void read(Peer &peer);
  void takeHeader(Peer &peer);
  void takeMessage(Peer &peer);
  void take(const Posted &posted, std::span<const std::byte> data);
  void countMoved(size_t before, size_t after, bool isWhole);
  void lose(Peer &peer);

  std::vector<Peer> peers;    // by rank
  std::vector<pollfd> waited; // likewise
  std::vector<bool> isDone;   // by request
  std::vector<Request> freeRequests;
  std::string abortReason; // of a peer
  bool hasAborted = false;
  std::chrono::duration<double> patience; // with peers that are to end
  int exceptionsAtStart;
};

} // namespace dlc::rt
