#include "runtime/comm/PeerWatch.h"

#include <cerrno>
#include <csignal>
#include <sstream>
#include <unistd.h>

namespace dlc::rt {
namespace {

/// What a peer sent just before it ended may still be on its way.
constexpr std::chrono::milliseconds grace{500};

bool processExists(pid_t process) { return kill(process, 0) == 0 || errno != ESRCH; }

} // namespace

void PeerWatch::observe(std::span<ControlBlock *const> blocks) {
  peers.assign(blocks.size(), {});
  for (size_t r = 0; r < blocks.size(); ++r) {
    peers[r].block = blocks[r];
    peers[r].processVisible = blocks[r] && processExists(blocks[r]->pid);
  }
}

void PeerWatch::check(const Lateness &late, const std::string &doing) {
  transport.checkRun();
  auto now = std::chrono::steady_clock::now();
  for (int rank : late.ranks) {
    if (static_cast<size_t>(rank) >= peers.size() || !peers[rank].block)
      continue;
    Peer &peer = peers[rank];
    bool left = peer.block->left.load(std::memory_order_acquire) != 0;
    bool died = peer.processVisible && !processExists(peer.block->pid);
    if (!left && !died)
      continue;
    if (!peer.gone) {
      peer.gone = true;
      peer.goneSince = now;
    } else if (now - peer.goneSince >= grace) {
      throw Error(ErrorCode::Peer,
                  describe(rank) + (died ? " has died" : " has ended") + "; " + doing +
                      " cannot complete" +
                      (died ? " (killed? look at that host's log; out of memory is likely)" : ""));
    }
  }
}

Error PeerWatch::timeout(const Lateness &late, const std::string &doing, double seconds) const {
  std::ostringstream message;
  message << doing << " did not complete within " << seconds << " s";
  if (late.ranks.empty()) {
    message << ", although all ranks have started it: find out what holds up the network between "
               "them, or raise --timeout";
    return {ErrorCode::Peer, message.str()};
  }
  message << ": ";
  constexpr size_t shown = 8;
  for (size_t i = 0; i < late.ranks.size() && i < shown; ++i)
    message << (i ? ", " : "") << describe(late.ranks[i]);
  if (late.ranks.size() > shown)
    message << " and " << late.ranks.size() - shown << " more";
  message << ' ' << late.failing << "; find out what holds it up, or raise --timeout";
  return {ErrorCode::Peer, message.str()};
}

std::string PeerWatch::describe(int rank) const {
  std::string text = transport.describe(rank);
  if (static_cast<size_t>(rank) < peers.size() && peers[rank].processVisible &&
      peers[rank].block->pid != getpid())
    text += " (process " + std::to_string(peers[rank].block->pid) + ")";
  return text;
}

} // namespace dlc::rt
