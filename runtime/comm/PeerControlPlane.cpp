#include "runtime/comm/PeerControlPlane.h"

#include "runtime/comm/ControlPlanes.h"
#include "runtime/comm/TcpTransport.h"

#include <algorithm>
#include <cstring>

namespace dlc::rt {

PeerControlPlane::PeerControlPlane(std::unique_ptr<Transport> newTransport)
    : transport(std::move(newTransport)), watch(*transport), standings(*transport),
      exchanges(*transport, watch, standings), collectives(*this, *transport, watch, exchanges) {}

PeerControlPlane::~PeerControlPlane() { collectives.leave(); }

int PeerControlPlane::localRank() const {
  int count = 0;
  for (int r = 0; r < rank(); ++r)
    count += transport->sameHost(r);
  return count;
}

int PeerControlPlane::localSize() const {
  const std::vector<int> &hosts = transport->hostOfRank();
  return static_cast<int>(std::ranges::count(hosts, hosts[rank()]));
}

void PeerControlPlane::sum(std::span<double> values, const std::string &doing) {
  auto all = exchanges.allGatherEqual(std::as_bytes(values), doing, timeout());
  std::ranges::fill(values, 0.0);
  for (int r = 0; r < size(); ++r) {
    const std::byte *part = all[r].data();
    for (size_t i = 0; i < values.size(); ++i) {
      double value;
      std::memcpy(&value, part + i * sizeof(double), sizeof(double));
      values[i] = r == 0 ? value : values[i] + value;
    }
  }
}

std::vector<std::vector<std::byte>> PeerControlPlane::allGather(std::span<const std::byte> mine,
                                                                const std::string &doing) {
  return exchanges.allGather(mine, doing, timeout());
}

void PeerControlPlane::broadcast(std::span<std::byte> data, int root) {
  exchanges.broadcast(data, root, timeout());
}

void PeerControlPlane::barrier(const std::string &doing) {
  exchanges.allGatherEqual({}, doing, timeout());
}

void PeerControlPlane::giveUp(Standing standing,
                              const std::function<std::string(uint64_t)> &nameOf) {
  constexpr double answerSeconds = 2;
  auto all = standings.exchange(standing.started, answerSeconds);
  uint64_t least = standing.started, most = least;
  for (const std::optional<uint64_t> &started : all)
    if (started) {
      least = std::min(least, *started);
      most = std::max(most, *started);
    }
  bool someAreBehind = least < most || least == standing.completed, someAreSilent = false;
  Lateness late;
  for (int r = 0; r < size(); ++r) {
    if (!all[r] || (someAreBehind && *all[r] == least))
      late.ranks.push_back(r);
    someAreSilent |= !all[r];
  }
  late.failing = !someAreBehind  ? "does not answer"
                 : someAreSilent ? "has not started it or does not answer"
                                 : "has not started it";
  throw watch.timeout(late, nameOf(someAreBehind ? least : least - 1), timeout());
}

void PeerControlPlane::abort(const std::string &reason) noexcept { transport->abort(reason); }

std::unique_ptr<ControlPlane> makeTcpControlPlane(const MeetingPlace &place, double seconds,
                                                  int ranksPerHost) {
  auto control =
      std::make_unique<PeerControlPlane>(TcpTransport::connect(place, seconds, ranksPerHost));
  control->setTimeout(seconds);
  return control;
}

} // namespace dlc::rt
