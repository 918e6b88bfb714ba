#include "runtime/comm/TcpTransport.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>

namespace dlc::rt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t partBytes = size_t{60} << 10; // of a long message, for moved()
constexpr int goodbye = -1, abortion = -2;     // in place of tags
/// A peer of this host that died is told of by its process's end, which says more.
constexpr std::chrono::seconds graceOfTheLost{1};
constexpr std::chrono::milliseconds lastWords{300};

std::vector<int> numbered(const std::vector<std::string> &identities) {
  std::vector<int> hosts;
  for (const std::string &identity : identities)
    hosts.push_back(static_cast<int>(std::ranges::find(identities, identity) - identities.begin()));
  return hosts;
}

} // namespace

std::unique_ptr<TcpTransport> TcpTransport::connect(const MeetingPlace &place, double seconds,
                                                    int ranksPerHost) {
  Meeting meeting = meet(place, seconds);
  std::vector<int> hosts = ranksPerHost > 0 ? pretendedHosts(place.ranks, ranksPerHost)
                                            : numbered(meeting.hostIdentities);
  return std::unique_ptr<TcpTransport>(
      new TcpTransport(place.rank, std::move(hosts), std::move(meeting), seconds));
}

TcpTransport::TcpTransport(int rank, std::vector<int> hosts, Meeting meeting, double seconds)
    : HostTransport(rank, std::move(hosts), std::move(meeting.names)), patience(seconds),
      exceptionsAtStart(std::uncaught_exceptions()) {
  for (Socket &socket : meeting.peers) {
    if (socket)
      socket.prepare();
    waited.push_back({socket.get(), POLLIN, 0});
    peers.emplace_back().socket = std::move(socket);
  }
}

/// A connection that is closed while the other side still sends would take with it what this side
/// has sent, so that all sides close together.
TcpTransport::~TcpTransport() {
  bool isIdle = freeRequests.size() == isDone.size(); // else memory of messages may be gone
  if (!isIdle || hasAborted || std::uncaught_exceptions() > exceptionsAtStart)
    return;
  for (Peer &peer : peers)
    if (peer.socket)
      peer.outgoing.push_back({{0, goodbye}, {}, none});
  auto hasEnded = [](const Peer &peer) {
    return !peer.socket || (peer.hasLeft && peer.outgoing.empty());
  };
  auto end = Clock::now() + patience;
  try {
    while (!std::ranges::all_of(peers, hasEnded) && Clock::now() < end)
      progress(100);
  } catch (const Error &) { // of a peer that sends what nobody asked for
    hasAborted = true;
  }
}

//===- Requests -------------------------------------------------------------------------------===//

Transport::Request TcpTransport::begin() {
  if (freeRequests.empty()) {
    freeRequests.push_back(static_cast<Request>(isDone.size()));
    isDone.push_back(false);
  }
  Request request = freeRequests.back();
  freeRequests.pop_back();
  isDone[request] = false;
  return request;
}

void TcpTransport::complete(Request request) {
  if (request != none)
    isDone[request] = true;
}

Transport::Request TcpTransport::send(int peer, int tag, std::span<const std::byte> data) {
  Request request = begin();
  Peer &to = peers[peer];
  to.outgoing.push_back({{static_cast<int64_t>(data.size()), tag}, data, request});
  if (to.outgoing.size() == 1)
    write(to);
  return request;
}

Transport::Request TcpTransport::receive(int peer, int tag, std::span<std::byte> data) {
  Request request = begin();
  Posted posted{request, data};
  Peer &from = peers[peer];
  std::deque<std::vector<std::byte>> &held = from.held[tag];
  if (held.empty()) {
    from.posted[tag].push_back(posted);
  } else {
    take(posted, held.front());
    held.pop_front();
  }
  return request;
}

bool TcpTransport::test(Request request) {
  if (!isDone[request])
    progress();
  if (!isDone[request])
    return false;
  freeRequests.push_back(request);
  return true;
}

std::optional<int> TcpTransport::senderOf(int tag) {
  progress();
  for (size_t peer = 0; peer < peers.size(); ++peer)
    if (auto held = peers[peer].held.find(tag);
        held != peers[peer].held.end() && !held->second.empty())
      return static_cast<int>(peer);
  return {};
}

//===- Messages -------------------------------------------------------------------------------===//

void TcpTransport::progress(int milliseconds) {
  for (size_t i = 0; i < peers.size(); ++i) {
    waited[i].fd = peers[i].socket.get();
    waited[i].events = static_cast<short>(POLLIN | (peers[i].outgoing.empty() ? 0 : POLLOUT));
  }
  if (poll(waited.data(), waited.size(), milliseconds) <= 0)
    return;
  for (size_t i = 0; i < peers.size(); ++i) {
    if (waited[i].fd >= 0 && waited[i].revents & (POLLOUT | POLLERR))
      write(peers[i]);
    if (peers[i].socket && waited[i].revents & (POLLIN | POLLHUP | POLLERR))
      read(peers[i]);
  }
}

void TcpTransport::countMoved(size_t before, size_t after, bool isWhole) {
  movedParts += after / partBytes - before / partBytes + isWhole;
}

void TcpTransport::write(Peer &peer) {
  while (peer.socket && !peer.outgoing.empty()) {
    Outgoing &message = peer.outgoing.front();
    std::span<const std::byte> parts[] = {std::as_bytes(std::span(&message.header, 1)),
                                          message.data};
    iovec left[2];
    size_t skip = message.sent, count = 0;
    for (std::span<const std::byte> part : parts) {
      size_t skipped = std::min(skip, part.size());
      skip -= skipped;
      if (part.size() > skipped)
        left[count++] = {const_cast<std::byte *>(part.data() + skipped), part.size() - skipped};
    }
    msghdr call{};
    call.msg_iov = left;
    call.msg_iovlen = count;
    ssize_t sent = sendmsg(peer.socket.get(), &call, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR)
        lose(peer);
      return;
    }
    size_t before = std::exchange(message.sent, message.sent + static_cast<size_t>(sent));
    bool isWhole = message.sent == sizeof(Header) + message.data.size();
    countMoved(before, message.sent, isWhole);
    if (!isWhole)
      continue;
    complete(message.request);
    peer.outgoing.pop_front();
  }
}

void TcpTransport::read(Peer &peer) {
  for (;;) {
    Incoming &message = peer.incoming;
    bool inHeader = message.got < sizeof(Header);
    std::span<std::byte> to =
        inHeader ? std::as_writable_bytes(std::span(&message.header, 1)).subspan(message.got)
                 : message.to.subspan(message.got - sizeof(Header));
    ssize_t got = recv(peer.socket.get(), to.data(), to.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (got <= 0)
      return lose(peer);
    size_t before = std::exchange(message.got, message.got + static_cast<size_t>(got));
    if (inHeader && message.got == sizeof(Header))
      takeHeader(peer);
    bool isWhole = message.got == sizeof(Header) + message.to.size();
    countMoved(before, message.got, isWhole);
    if (isWhole)
      takeMessage(peer);
    if (!peer.socket)
      return;
  }
}

/// Finds memory for the bytes that follow.
void TcpTransport::takeHeader(Peer &peer) {
  Incoming &message = peer.incoming;
  auto bytes = static_cast<size_t>(message.header.bytes);
  std::deque<Posted> &posted = peer.posted[message.header.tag];
  if (posted.empty()) {
    message.held.resize(bytes);
    message.to = message.held;
    return;
  }
  if (posted.front().data.size() != bytes)
    throw Error(ErrorCode::Peer, "message of unexpected length");
  message.request = posted.front().request;
  message.to = posted.front().data;
  posted.pop_front();
}

void TcpTransport::takeMessage(Peer &peer) {
  Incoming message = std::exchange(peer.incoming, {});
  int tag = message.header.tag;
  if (tag == goodbye) {
    peer.hasLeft = true;
  } else if (tag == abortion) {
    abortReason.assign(reinterpret_cast<const char *>(message.held.data()), message.held.size());
  } else if (message.request != none) {
    complete(message.request);
  } else if (std::deque<Posted> &posted = peer.posted[tag]; !posted.empty()) {
    take(posted.front(), message.held); // asked for meanwhile
    posted.pop_front();
  } else {
    peer.held[tag].push_back(std::move(message.held));
  }
}

void TcpTransport::take(const Posted &posted, std::span<const std::byte> data) {
  if (posted.data.size() != data.size())
    throw Error(ErrorCode::Peer, "message of unexpected length");
  std::ranges::copy(data, posted.data.begin());
  complete(posted.request);
}

//===- Ends -----------------------------------------------------------------------------------===//

void TcpTransport::lose(Peer &peer) {
  peer.socket = Socket();
  peer.lostSince = Clock::now();
}

void TcpTransport::checkRun() {
  progress(); // ranks that wait in shared memory test no message
  if (!abortReason.empty())
    throw Error(ErrorCode::Peer, "another rank gave up: " + abortReason);
  for (size_t rank = 0; rank < peers.size(); ++rank) {
    const Peer &peer = peers[rank];
    if (static_cast<int>(rank) != this->rank() && !peer.socket && !peer.hasLeft &&
        Clock::now() - peer.lostSince > graceOfTheLost)
      throw Error(ErrorCode::Peer, describe(static_cast<int>(rank)) +
                                       " has died: its connection is closed (killed? look at that "
                                       "host's log; out of memory is likely)");
  }
}

void TcpTransport::abort(const std::string &reason) noexcept try {
  hasAborted = true;
  if (!abortReason.empty()) // which all have heard
    return;
  auto text = std::as_bytes(std::span(reason));
  for (Peer &peer : peers)
    if (peer.socket)
      peer.outgoing.push_back({{static_cast<int64_t>(text.size()), abortion}, text, none});
  Deadline end = Clock::now() + lastWords;
  // Closed before the other side has, a connection may lose what was said last.
  auto isClosed = [](const Peer &peer) { return !peer.socket; };
  while (!std::ranges::all_of(peers, isClosed) && Clock::now() < end) {
    progress(10);
    for (Peer &peer : peers)
      if (peer.socket && peer.outgoing.empty())
        shutdown(peer.socket.get(), SHUT_WR);
  }
} catch (const std::exception &) { // then peers learn it from the end of their connections
  for (Peer &peer : peers)
    peer.socket = Socket();
}

} // namespace dlc::rt
