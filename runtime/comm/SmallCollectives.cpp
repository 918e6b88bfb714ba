#include "runtime/comm/SmallCollectives.h"

#include "runtime/comm/Patience.h"
#include "runtime/comm/Tags.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace dlc::rt {

std::vector<std::vector<std::byte>> SmallCollectives::allGather(std::span<const std::byte> mine,
                                                                const std::string &doing,
                                                                double timeout) {
  uint64_t length = mine.size();
  auto lengths = allGatherEqual(std::as_bytes(std::span(&length, 1)), doing, timeout);
  std::vector<size_t> sizes(lengths.size());
  for (size_t r = 0; r < sizes.size(); ++r) {
    std::memcpy(&length, lengths[r].data(), sizeof(length));
    sizes[r] = length;
  }
  return exchange(mine, sizes, doing, timeout);
}

std::vector<std::vector<std::byte>>
SmallCollectives::allGatherEqual(std::span<const std::byte> mine, const std::string &doing,
                                 double timeout) {
  std::vector<size_t> sizes(static_cast<size_t>(transport.size()), mine.size());
  return exchange(mine, sizes, doing, timeout);
}

std::vector<std::vector<std::byte>> SmallCollectives::exchange(std::span<const std::byte> mine,
                                                               std::span<const size_t> sizes,
                                                               const std::string &doing,
                                                               double timeout) {
  begin(doing);
  outbox.assign(mine.begin(), mine.end());
  inbox.resize(sizes.size());
  // From the next rank on, so that not all ranks send to rank 0 first.
  for (int step = 1; step < transport.size(); ++step) {
    int peer = (transport.rank() + step) % transport.size();
    inbox[peer].resize(sizes[peer]);
    receives.add(peer, transport.receive(peer, tags::small, inbox[peer]));
    sends.add(peer, transport.send(peer, tags::small, outbox));
  }
  await(doing, timeout);
  inbox[transport.rank()] = outbox;
  return std::move(inbox);
}

void SmallCollectives::broadcast(std::span<std::byte> data, int root, double timeout) {
  std::string doing = "broadcast from " + transport.describe(root);
  begin(doing);
  const bool mine = transport.rank() == root;
  if (mine) {
    outbox.assign(data.begin(), data.end());
    for (int step = 1; step < transport.size(); ++step) {
      int peer = (root + step) % transport.size();
      sends.add(peer, transport.send(peer, tags::small, outbox));
    }
  } else {
    inbox.resize(1);
    inbox[0].resize(data.size());
    receives.add(root, transport.receive(root, tags::small, inbox[0]));
  }
  await(doing, timeout);
  if (!mine)
    std::ranges::copy(inbox[0], data.begin());
}

void SmallCollectives::begin(const std::string &doing) {
  if (failed)
    throw Error(ErrorCode::Peer, doing + " after an exchange between ranks has failed");
  receives.clear();
  sends.clear();
  inbox.clear();
}

void SmallCollectives::await(const std::string &doing, double timeout) {
  failed = true; // unless all goes well
  Patience patience(timeout);
  Lateness late{{}, "has not joined it"};
  while (!receives.takeAll(transport) || !sends.takeAll(transport)) {
    if (!patience.pause())
      continue;
    late.ranks.clear();
    receives.appendUnfinished(transport, late.ranks);
    if (late.ranks.empty())
      sends.appendUnfinished(transport, late.ranks);
    if (standings.isAsked())
      standings.tell(Standings::ahead);
    watch.check(late, doing);
    if (patience.expired() && !late.ranks.empty())
      throw watch.timeout(late, doing, timeout);
  }
  failed = false;
}

} // namespace dlc::rt
