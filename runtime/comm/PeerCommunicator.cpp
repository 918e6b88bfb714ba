#include "runtime/comm/PeerCommunicator.h"

#include "runtime/comm/Patience.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <unistd.h>

namespace dlc::rt {
namespace {

/// Between two polls of the messages no more than 256 KB of sums: the wire must not run dry.
constexpr size_t elementsPerPoll = size_t{64} * 1024;

void createControlBlock(std::span<std::byte> memory) {
  auto *block = new (memory.data()) ControlBlock;
  block->pid = getpid();
}

} // namespace

PeerCommunicator::PeerCommunicator(std::unique_ptr<Transport> newTransport)
    : transport(std::move(newTransport)), watch(*transport), collectives(*transport, watch),
      control(share(sizeof(ControlBlock), createControlBlock)) {
  for (int r = 0; r < size(); ++r)
    blocks.push_back(reinterpret_cast<ControlBlock *>(control.base(r)));
  watch.observe(blocks);
}

PeerCommunicator::~PeerCommunicator() { blocks[rank()]->left.store(1, std::memory_order_release); }

int PeerCommunicator::localRank() const {
  int count = 0;
  for (int r = 0; r < rank(); ++r)
    count += transport->sameHost(r);
  return count;
}

int PeerCommunicator::localSize() const {
  const std::vector<int> &hosts = transport->hostOfRank();
  return static_cast<int>(std::ranges::count(hosts, hosts[rank()]));
}

Window PeerCommunicator::share(size_t bytes,
                               const std::function<void(std::span<std::byte>)> &prepare) {
  Window window(*transport, collectives, bytes, timeoutSeconds, prepare);
  if (!window.refusal().empty() && rank() == 0 && !refusalReported) {
    refusalReported = true;
    std::fprintf(stderr,
                 "note: ranks of one host cannot share memory and exchange gradients by messages, "
                 "which is slower (%s); in a container give it more, e.g. docker run --shm-size\n",
                 window.refusal().c_str());
  }
  return window;
}

std::span<std::byte> PeerCommunicator::allocateShared(size_t bytes) {
  return windows.emplace_back(share(bytes)).own();
}

Communicator::Ticket PeerCommunicator::startAllReduce(float *data, size_t elements,
                                                      artifact::DType wire,
                                                      const CollectiveLabel &label) {
  uint64_t sequence = startedCount++;
  if (size() > 1) {
    if (idle.empty())
      idle.push_back(
          std::make_unique<SliceAllReduce>(AllReduceContext{*transport, blocks, windows}));
    outstanding.push_back(std::move(idle.back()));
    idle.pop_back();
    outstanding.back()->prepare(sequence, {data, elements, wire}, label);
    postInOrder();
  }
  return static_cast<Ticket>(sequence);
}

void PeerCommunicator::postInOrder() {
  for (auto &operation : outstanding) {
    if (operation->posted())
      continue;
    if (operation->number() >= outstanding.front()->number() + ControlBlock::ringSize)
      return;
    operation->post();
  }
}

/// A kernel that takes long may come next, so this goes on until nothing moves: a poll takes little
/// out of a socket, and peers wait for the sums of all that has arrived.
void PeerCommunicator::progress() {
  constexpr unsigned fruitlessPolls = 2; // the first may have ended in the middle of a message
  unsigned fruitless = 0;
  while (fruitless < fruitlessPolls && !outstanding.empty()) {
    uint64_t before = transport->moved();
    bool moves = advance() || transport->moved() != before;
    fruitless = moves ? 0 : fruitless + 1;
  }
}

bool PeerCommunicator::advance() {
  size_t budget = elementsPerPoll;
  size_t kept = 0;
  for (size_t i = 0; i < outstanding.size(); ++i) {
    if (outstanding[i]->posted() && outstanding[i]->advance(budget))
      idle.push_back(std::move(outstanding[i]));
    else
      std::swap(outstanding[kept++], outstanding[i]);
  }
  if (kept < outstanding.size()) {
    outstanding.resize(kept);
    postInOrder();
  }
  return budget < elementsPerPoll;
}

SliceAllReduce *PeerCommunicator::find(Ticket ticket) const {
  auto found = std::ranges::find_if(outstanding, [&](const auto &operation) {
    return static_cast<Ticket>(operation->number()) == ticket;
  });
  return found == outstanding.end() ? nullptr : found->get();
}

void PeerCommunicator::wait(Ticket ticket) {
  Patience patience(timeoutSeconds);
  while (SliceAllReduce *operation = find(ticket)) {
    if (advance())
      continue;
    operation = find(ticket);
    if (!operation)
      return;
    if (!patience.pause())
      continue;
    if (!operation->posted()) // too many before it: the oldest is what all wait for
      operation = outstanding.front().get();
    Lateness late = operation->lateness();
    watch.check(late, operation->describe());
    if (patience.expired() && !late.ranks.empty())
      throw watch.timeout(late, operation->describe(), timeoutSeconds);
  }
}

void PeerCommunicator::allReduceSum(std::span<double> values, const std::string &doing) {
  auto all = collectives.allGatherEqual(std::as_bytes(values), doing, timeoutSeconds);
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

std::vector<std::vector<std::byte>> PeerCommunicator::allGather(std::span<const std::byte> mine,
                                                                const std::string &doing) {
  return collectives.allGather(mine, doing, timeoutSeconds);
}

void PeerCommunicator::broadcast(std::span<std::byte> data, int root) {
  collectives.broadcast(data, root, timeoutSeconds);
}

void PeerCommunicator::barrier(const std::string &doing) {
  collectives.allGatherEqual({}, doing, timeoutSeconds);
}

void PeerCommunicator::abort(const std::string &reason) noexcept { transport->abort(reason); }

} // namespace dlc::rt
