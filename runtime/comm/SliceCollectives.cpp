#include "runtime/comm/SliceCollectives.h"

#include "runtime/artifact/Error.h"
#include "runtime/comm/Patience.h"

#include <algorithm>
#include <cstdio>
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

void requireSumOfF32(const CollectiveOperation &operation) {
  if (operation.kind != artifact::CollectiveKind::AllReduceSum)
    throw Error(ErrorCode::Artifact, "collectives on the host are sums, got kind " +
                                         std::to_string(static_cast<int>(operation.kind)));
  if (operation.type != artifact::DType::F32)
    throw Error(ErrorCode::Artifact, std::string("all-reduces on the host add f32, got ") +
                                         artifact::EnumNameDType(operation.type));
}

} // namespace

SliceCollectives::SliceCollectives(const ControlPlane &control, Transport &transport,
                                   PeerWatch &watch, SmallCollectives &exchanges)
    : control(control), transport(transport), watch(watch), exchanges(exchanges),
      blockWindow(share(sizeof(ControlBlock), createControlBlock)) {
  for (int r = 0; r < transport.size(); ++r)
    blocks.push_back(reinterpret_cast<ControlBlock *>(blockWindow.base(r)));
  watch.observe(blocks);
}

void SliceCollectives::leave() noexcept {
  blocks[transport.rank()]->left.store(1, std::memory_order_release);
}

Window SliceCollectives::share(size_t bytes,
                               const std::function<void(std::span<std::byte>)> &prepare) {
  Window window(transport, exchanges, bytes, control.timeout(), prepare);
  if (!window.refusal().empty() && transport.rank() == 0 && !refusalReported) {
    refusalReported = true;
    std::fprintf(stderr,
                 "note: ranks of one host cannot share memory and exchange gradients by messages, "
                 "which is slower (%s); in a container give it more, e.g. docker run --shm-size\n",
                 window.refusal().c_str());
  }
  return window;
}

DeviceSpan SliceCollectives::allocateShared(size_t bytes) {
  std::span<std::byte> memory = windows.emplace_back(share(bytes)).own();
  return {reinterpret_cast<uintptr_t>(memory.data()), memory.size()};
}

/// After an error messages may still arrive in the memory, so it stays registered then.
void SliceCollectives::unregisterMemory(DeviceSpan memory) noexcept {
  if (outstanding.empty())
    for (Window &window : windows)
      if (window.contains(memory))
        window.release();
}

Collectives::Ticket SliceCollectives::start(const CollectiveOperation &operation,
                                            const CollectiveLabel &label) {
  requireSumOfF32(operation);
  uint64_t sequence = startedCount++;
  if (transport.size() > 1) {
    if (idle.empty())
      idle.push_back(
          std::make_unique<SliceAllReduce>(AllReduceContext{transport, blocks, windows}));
    outstanding.push_back(std::move(idle.back()));
    idle.pop_back();
    outstanding.back()->prepare(sequence, operation, label);
    postInOrder();
  }
  return static_cast<Ticket>(sequence);
}

void SliceCollectives::postInOrder() {
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
void SliceCollectives::progress() {
  constexpr unsigned fruitlessPolls = 2; // the first may have ended in the middle of a message
  unsigned fruitless = 0;
  while (fruitless < fruitlessPolls && !outstanding.empty()) {
    uint64_t before = transport.moved();
    bool moves = advance() || transport.moved() != before;
    fruitless = moves ? 0 : fruitless + 1;
  }
}

bool SliceCollectives::advance() {
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

SliceAllReduce *SliceCollectives::find(Ticket ticket) const {
  auto found = std::ranges::find_if(outstanding, [&](const auto &operation) {
    return static_cast<Ticket>(operation->number()) == ticket;
  });
  return found == outstanding.end() ? nullptr : found->get();
}

void SliceCollectives::wait(Ticket ticket) {
  Patience patience(control.timeout());
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
      throw watch.timeout(late, operation->describe(), control.timeout());
  }
}

} // namespace dlc::rt
