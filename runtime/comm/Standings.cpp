#include "runtime/comm/Standings.h"

#include "runtime/comm/Patience.h"
#include "runtime/comm/Tags.h"

#include <algorithm>

namespace dlc::rt {

bool Standings::isAsked() { return transport.senderOf(tags::standing).has_value(); }

void Standings::tell(uint64_t started) {
  if (told)
    return;
  told = started;
  for (int peer = 0; peer < transport.size(); ++peer)
    if (peer != transport.rank())
      sends.add(peer, transport.send(peer, tags::standing, std::as_bytes(std::span(&*told, 1))));
}

std::vector<std::optional<uint64_t>> Standings::exchange(uint64_t started, double seconds) {
  tell(started);
  std::vector<std::optional<uint64_t>> all(static_cast<size_t>(transport.size()));
  all[transport.rank()] = started;
  Patience patience(seconds);
  auto areAllThere = [&] {
    return std::ranges::all_of(all, [](const auto &each) { return each.has_value(); });
  };
  while (!areAllThere() && !patience.expired()) {
    while (std::optional<int> peer = transport.senderOf(tags::standing)) {
      uint64_t heard = 0;
      Transport::Request request =
          transport.receive(*peer, tags::standing, std::as_writable_bytes(std::span(&heard, 1)));
      while (!transport.test(request))
        continue; // it has come
      all[*peer] = heard;
    }
    sends.takeAll(transport);
    patience.pause();
  }
  return all;
}

} // namespace dlc::rt
