#include "runtime/comm/Rendezvous.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace dlc::rt {
namespace {

/// Of this version of what ranks say to each other.
constexpr uint64_t magic = 0x00317063742d636c;
constexpr std::chrono::seconds patienceWithStrangers{2};

template <size_t size> std::array<char, size> fixed(const std::string &text) {
  std::array<char, size> bytes{};
  std::memcpy(bytes.data(), text.data(), std::min(text.size(), size - 1));
  return bytes;
}

/// Where a rank is.
struct Place {
  std::array<char, 64> address; // numeric; empty: where rank 0 is
  std::array<char, 64> hostIdentity, name;
  int32_t port;
};

/// What a rank says first to one that it has connected to.
struct Greeting {
  uint64_t magic, key;
  int32_t rank, ranks;
  Place place;
};

/// Memory is shared by what runs under one kernel and sees one /dev/shm.
std::string hostIdentity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, boot);
  struct stat memory{};
  stat("/dev/shm", &memory);
  return boot + "/" + std::to_string(memory.st_dev);
}

std::string hostName() {
  std::array<char, 64> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

template <typename T> std::span<std::byte> bytesOf(T &value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

class Meeter {
public:
  Meeter(const MeetingPlace &place, double seconds)
      : place(place), seconds(seconds),
        deadline(std::chrono::steady_clock::now() +
                 std::chrono::milliseconds(std::llround(std::min(seconds, 1e6) * 1000))) {
    peers.resize(static_cast<size_t>(place.ranks));
    places.resize(peers.size());
    places[place.rank] = {{}, fixed<64>(hostIdentity()), fixed<64>(hostName()), 0};
  }

  Meeting run();

private:
  std::string doorText() const { return place.host + ":" + std::to_string(place.port); }
  bool isLoopback() const { return place.host == "127.0.0.1" || place.host == "localhost"; }
  void welcome(const Socket &door, int first);
  void admit(Socket socket, int first);
  void goToFirst(int ownPort);
  void goTo(int rank);
  [[noreturn]] void giveUp(const std::string &what) const;

  const MeetingPlace &place;
  double seconds;
  Deadline deadline;
  std::vector<Socket> peers;
  std::vector<Place> places;
};

void Meeter::giveUp(const std::string &what) const {
  throw Error(ErrorCode::Peer, "rank " + std::to_string(place.rank) + " of " +
                                   std::to_string(place.ranks) + " " + what + " within " +
                                   std::to_string(std::llround(seconds)) +
                                   " s; see what became of the other processes, or raise "
                                   "--timeout");
}

/// Lets ranks from `first` on in until all have come.
void Meeter::welcome(const Socket &door, int first) {
  auto missing = [&] {
    std::string text;
    for (int rank = first; rank < place.ranks; ++rank)
      if (!peers[rank])
        text += (text.empty() ? "" : ", ") + std::to_string(rank);
    return text;
  };
  while (!missing().empty()) {
    Socket socket = door.accept(deadline);
    if (!socket && std::chrono::steady_clock::now() >= deadline)
      giveUp("waited for rank " + missing() + " at port " + std::to_string(door.port()) +
             ", which did not come");
    if (socket)
      admit(std::move(socket), first);
    else // out of descriptors, perhaps for a while
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void Meeter::admit(Socket socket, int first) {
  Greeting greeting{};
  Deadline patience = std::min(deadline, std::chrono::steady_clock::now() + patienceWithStrangers);
  if (!socket.receive(bytesOf(greeting), patience) || greeting.magic != magic ||
      greeting.key != place.key)
    return;
  std::string who = "rank " + std::to_string(greeting.rank);
  if (greeting.ranks != place.ranks)
    throw Error(ErrorCode::BadInput,
                who + " was started as one of " + std::to_string(greeting.ranks) + " ranks, rank " +
                    std::to_string(place.rank) + " as one of " + std::to_string(place.ranks) +
                    ": start all ranks of a run alike");
  if (greeting.rank < first || greeting.rank >= place.ranks || peers[greeting.rank])
    throw Error(ErrorCode::BadInput,
                "two processes were started as " + who + ": give each a number of its own");
  if (place.rank == 0) {
    places[greeting.rank] = greeting.place;
    std::string address = socket.peerAddress();
    places[greeting.rank].address = fixed<64>(socket.isLocal() ? "" : address);
  }
  peers[greeting.rank] = std::move(socket);
}

/// Rank 0 may be started later.
void Meeter::goToFirst(int ownPort) {
  std::string reason;
  while (!(peers[0] = Socket::connect(place.host, place.port, reason))) {
    if (std::chrono::steady_clock::now() >= deadline)
      giveUp("could not reach rank 0 at " + doorText() + " (" + reason + ")");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  Greeting greeting{magic, place.key, place.rank, place.ranks, places[place.rank]};
  greeting.place.port = ownPort;
  uint64_t answer = 0;
  auto all = std::as_writable_bytes(std::span(places));
  if (!peers[0].send(bytesOf(greeting), deadline) || !peers[0].receive(bytesOf(answer), deadline) ||
      answer != (magic ^ place.key) || !peers[0].receive(all, deadline)) {
    if (std::chrono::steady_clock::now() >= deadline)
      giveUp("heard nothing from rank 0 at " + doorText());
    throw Error(ErrorCode::Peer, "rank 0 at " + doorText() +
                                     " has ended, or is none of this run; its own error says why");
  }
}

void Meeter::goTo(int rank) {
  std::string address = places[rank].address.data(), reason;
  if (address.empty())
    address = peers[0].peerAddress();
  auto port = static_cast<uint16_t>(places[rank].port);
  Greeting greeting{magic, place.key, place.rank, place.ranks, {}};
  peers[rank] = Socket::connect(address, port, reason);
  if (!peers[rank] || !peers[rank].send(bytesOf(greeting), deadline))
    throw Error(ErrorCode::Peer, "rank " + std::to_string(place.rank) + " cannot reach rank " +
                                     std::to_string(rank) + " at " + address + ":" +
                                     std::to_string(port) + ": " + reason +
                                     "; hosts must let each other's processes connect");
}

Meeting Meeter::run() {
  // Listening before others hear of it, so that nobody comes too early.
  Socket door = place.rank == 0 ? Socket::listen(place.port, isLoopback(), place.isHeld)
                                : Socket::listen(0, isLoopback(), false);
  if (place.rank == 0) {
    welcome(door, 1);
    uint64_t answer = magic ^ place.key;
    for (int rank = 1; rank < place.ranks; ++rank)
      if (!peers[rank].send(bytesOf(answer), deadline) ||
          !peers[rank].send(std::as_bytes(std::span(places)), deadline))
        throw Error(ErrorCode::Peer,
                    "rank " + std::to_string(rank) + " ended while ranks met: see its own error");
  } else {
    goToFirst(door.port());
    for (int rank = 1; rank < place.rank; ++rank)
      goTo(rank);
    welcome(door, place.rank + 1);
  }
  Meeting meeting;
  for (const Place &each : places) {
    meeting.hostIdentities.emplace_back(each.hostIdentity.data());
    meeting.names.emplace_back(each.name.data());
  }
  meeting.peers = std::move(peers);
  return meeting;
}

} // namespace

Meeting meet(const MeetingPlace &place, double seconds) { return Meeter(place, seconds).run(); }

} // namespace dlc::rt
