// The life of operation k on rank r:
//   post       publish the operand, count `started` to k+1, send part p of the data to each message
//              peer p, receive its part of slice r.
//   sum        once every local peer has started k and every part has arrived: add in rank order,
//              write to all visible memory, count `reduced` to k+1, send the sum to message peers.
//   gather     receive slice p's sum from each message peer p; wait until `reduced` of every local
//              peer is past k: it has then read and written all that it will of this rank's memory.
// A slice's sum is received into the memory from which its contribution was sent, so only after the
// sending is complete.
#include "runtime/comm/SliceAllReduce.h"

#include "runtime/comm/Tags.h"

#include <algorithm>

namespace dlc::rt {

void SliceAllReduce::prepare(uint64_t newSequence, const CollectiveOperation &operation,
                             const CollectiveLabel &newLabel) {
  sequence = newSequence;
  operand = {reinterpret_cast<float *>(operation.memory.address),
             operation.memory.bytes / sizeof(float), operation.wire};
  label = newLabel;
  isPosted = bound = reduced = false;
  summed = 0;
  for (Messages *messages : {&contributionsOut, &contributionsIn, &sumsOut, &sumsIn})
    messages->clear();

  auto found = std::ranges::find_if(context.windows,
                                    [&](const Window &w) { return w.contains(operation.memory); });
  bool shared = found != context.windows.end();
  window = shared ? static_cast<int>(found - context.windows.begin()) : -1;

  messagePeers.clear();
  for (int step = 1; step < size(); ++step) {
    int peer = (rank() + step) % size();
    if (!(shared && found->base(peer) && context.blocks[peer]))
      messagePeers.push_back(peer);
  }
}

void SliceAllReduce::post() {
  isPosted = true;
  publish();
  sendContributions();
  receiveContributions();
}

void SliceAllReduce::publish() {
  ControlBlock &own = *context.blocks[rank()];
  PublishedOperation &entry = own.published[sequence % ControlBlock::ringSize];
  entry.elements = operand.elements;
  entry.wire = static_cast<uint64_t>(operand.wire);
  entry.window = PublishedOperation::privateMemory;
  entry.offset = 0;
  if (window >= 0) {
    entry.window = static_cast<uint64_t>(window);
    entry.offset =
        reinterpret_cast<std::byte *>(operand.data) - context.windows[window].own().data();
  }
  own.started.store(sequence + 1, std::memory_order_release);
}

float *SliceAllReduce::peerData(int peer) const {
  if (peer == rank())
    return operand.data;
  const PublishedOperation &entry =
      context.blocks[peer]->published[sequence % ControlBlock::ringSize];
  return reinterpret_cast<float *>(context.windows[entry.window].base(peer) + entry.offset);
}

void SliceAllReduce::checkAgreement(int peer) const {
  uint64_t entry = sequence % ControlBlock::ringSize;
  const PublishedOperation &mine = context.blocks[rank()]->published[entry];
  const PublishedOperation &theirs = context.blocks[peer]->published[entry];
  bool sameKind = (mine.window == PublishedOperation::privateMemory) ==
                  (theirs.window == PublishedOperation::privateMemory);
  if (mine.elements != theirs.elements || mine.wire != theirs.wire || !sameKind)
    throw Error(ErrorCode::Peer, describe() + ": " + context.transport.describe(peer) + " brings " +
                                     std::to_string(theirs.elements) + " elements, this rank " +
                                     std::to_string(mine.elements) +
                                     (sameKind ? "" : ", and only one of them in shared memory") +
                                     "; do all ranks run the same artifact?");
}

std::span<const std::byte> SliceAllReduce::outgoing(Slice part) const {
  if (rounded())
    return std::as_bytes(std::span(packed.data() + part.begin, part.size()));
  return std::as_bytes(std::span(operand.data + part.begin, part.size()));
}

void SliceAllReduce::sendContributions() {
  if (rounded() && !messagePeers.empty()) {
    packed.resize(operand.elements);
    arrived.resize(operand.elements);
  }
  for (int peer : messagePeers) {
    Slice part = slice(peer);
    if (part.size() == 0)
      continue;
    if (rounded())
      packBf16({operand.data + part.begin, part.size()}, packed.data() + part.begin);
    contributionsOut.add(
        peer, context.transport.send(peer, tags::contribution(sequence), outgoing(part)));
  }
}

void SliceAllReduce::receiveContributions() {
  Slice own = slice(rank());
  if (own.size() == 0 || messagePeers.empty())
    return;
  size_t bytes = outgoing(own).size();
  received.resize(bytes * messagePeers.size());
  for (size_t i = 0; i < messagePeers.size(); ++i)
    contributionsIn.add(messagePeers[i],
                        context.transport.receive(messagePeers[i], tags::contribution(sequence),
                                                  std::span(received).subspan(i * bytes, bytes)));
}

bool SliceAllReduce::advance(size_t &budget) {
  Transport &transport = context.transport;
  receiveSums();
  if (!bound && peersStarted() && contributionsIn.takeAll(transport))
    bindContributions();
  if (bound && !reduced)
    sumSome(budget);
  unpackSums();
  return reduced && contributionsOut.allTaken() && sumsOut.takeAll(transport) &&
         sumsIn.allTaken() && peersReduced();
}

void SliceAllReduce::receiveSums() {
  for (int peer; (peer = contributionsOut.takeNext(context.transport)) >= 0;) {
    Slice part = slice(peer);
    std::span<std::byte> memory =
        rounded() ? std::as_writable_bytes(std::span(arrived.data() + part.begin, part.size()))
                  : std::as_writable_bytes(std::span(operand.data + part.begin, part.size()));
    sumsIn.add(peer, context.transport.receive(peer, tags::sum(sequence), memory));
  }
}

void SliceAllReduce::unpackSums() {
  for (int peer; (peer = sumsIn.takeNext(context.transport)) >= 0;) {
    Slice part = slice(peer);
    if (rounded())
      unpackBf16({arrived.data() + part.begin, part.size()}, operand.data + part.begin);
  }
}

bool SliceAllReduce::peersStarted() const {
  return std::ranges::all_of(context.blocks, [&](const ControlBlock *block) {
    return !block || block->started.load(std::memory_order_acquire) > sequence;
  });
}

bool SliceAllReduce::peersReduced() const {
  return std::ranges::all_of(context.blocks, [&](const ControlBlock *block) {
    return !block || block->reduced.load(std::memory_order_acquire) > sequence;
  });
}

void SliceAllReduce::bindContributions() {
  bound = true;
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank() && context.blocks[peer])
      checkAgreement(peer);

  Slice own = slice(rank());
  contributions.resize(static_cast<size_t>(size()));
  destinations.clear();
  for (int peer = 0; peer < size(); ++peer) {
    auto message = std::ranges::find(messagePeers, peer);
    if (message == messagePeers.end()) {
      float *part = peerData(peer) + own.begin;
      contributions[peer] = {part, nullptr};
      destinations.push_back(part);
      continue;
    }
    std::byte *part = received.data() + (message - messagePeers.begin()) * outgoing(own).size();
    contributions[peer] = rounded()
                              ? Contribution{nullptr, reinterpret_cast<const uint16_t *>(part)}
                              : Contribution{reinterpret_cast<const float *>(part), nullptr};
  }
}

void SliceAllReduce::sumSome(size_t &budget) {
  ControlBlock &own = *context.blocks[rank()];
  if (own.reduced.load(std::memory_order_relaxed) != sequence)
    return; // an earlier operation's turn
  size_t end = std::min(slice(rank()).size(), summed + budget);
  sumContributions(contributions, destinations, summed, end, operand.wire);
  budget -= end - summed;
  summed = end;
  if (summed < slice(rank()).size())
    return;
  reduced = true;
  own.reduced.store(sequence + 1, std::memory_order_release);
  sendSums();
}

void SliceAllReduce::sendSums() {
  Slice own = slice(rank());
  if (own.size() == 0 || messagePeers.empty())
    return;
  if (rounded())
    packBf16({operand.data + own.begin, own.size()}, packed.data() + own.begin);
  for (int peer : messagePeers)
    sumsOut.add(peer, context.transport.send(peer, tags::sum(sequence), outgoing(own)));
}

Lateness SliceAllReduce::lateness() {
  Lateness late{{}, "has not started it"};
  for (int peer = 0; peer < size(); ++peer)
    if (const ControlBlock *block = context.blocks[peer];
        block && block->started.load(std::memory_order_acquire) <= sequence)
      late.ranks.push_back(peer);
  // A local peer that sends messages is known by its counter already.
  auto addUnfinished = [&](Messages &messages) {
    std::vector<int> peers;
    messages.appendUnfinished(context.transport, peers);
    for (int peer : peers)
      if (std::ranges::find(late.ranks, peer) == late.ranks.end())
        late.ranks.push_back(peer);
  };
  addUnfinished(contributionsIn);
  std::ranges::sort(late.ranks);
  if (!late.ranks.empty())
    return late;

  late.failing = "has not delivered its slice";
  for (int peer = 0; peer < size(); ++peer)
    if (const ControlBlock *block = context.blocks[peer];
        peer != rank() && block && block->reduced.load(std::memory_order_acquire) <= sequence)
      late.ranks.push_back(peer);
  for (Messages *messages : {&sumsIn, &contributionsOut, &sumsOut})
    addUnfinished(*messages);
  std::ranges::sort(late.ranks);
  return late;
}

} // namespace dlc::rt
