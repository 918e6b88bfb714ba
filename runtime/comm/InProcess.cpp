// Ranks as threads of one process: the transport of tests.
//
// A send lends its memory until the receiver has copied it, as a rendezvous over a network does, so
// that a buffer reused too early shows as a race. Shared segments are ordinary memory, at one
// address for all threads, so that TSan sees every access.
#include "runtime/comm/ControlPlanes.h"
#include "runtime/comm/PeerControlPlane.h"

#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

namespace dlc::rt {
namespace {

struct Loan {
  std::span<const std::byte> data;
  bool copied = false;
};

/// What the threads have in common; lives until the last of them is done.
class World {
public:
  explicit World(std::vector<int> hosts) : hosts(std::move(hosts)) {}

  using Route = std::tuple<int, int, int>; // from, to, tag

  void fail(const std::string &newReason) noexcept {
    std::scoped_lock lock(mutex);
    if (reason.empty())
      reason = newReason;
    failed.store(true);
  }
  void check() {
    if (!failed.load())
      return;
    std::scoped_lock lock(mutex);
    throw Error(ErrorCode::Peer, "another rank gave up: " + reason);
  }

  const std::vector<int> hosts;
  std::mutex mutex; // guards everything below but `failed`
  std::map<Route, std::deque<std::shared_ptr<Loan>>> mail;
  std::map<std::string, std::shared_ptr<Mapping>> segments;
  unsigned segmentCount = 0;
  std::atomic<bool> failed = false;
  std::string reason;
};

class InProcessTransport final : public Transport {
public:
  InProcessTransport(std::shared_ptr<World> newWorld, int rank)
      : Transport(rank, newWorld->hosts), world(std::move(newWorld)) {}

  Request send(int peer, int tag, std::span<const std::byte> data) override {
    auto loan = std::make_shared<Loan>(Loan{data});
    std::scoped_lock lock(world->mutex);
    world->mail[{rank(), peer, tag}].push_back(loan);
    sends[nextRequest] = std::move(loan);
    return nextRequest++;
  }

  Request receive(int peer, int tag, std::span<std::byte> data) override {
    receives[{peer, rank(), tag}].push_back({nextRequest, data});
    return nextRequest++;
  }

  bool test(Request request) override {
    std::scoped_lock lock(world->mutex);
    deliver();
    if (auto send = sends.find(request); send != sends.end()) {
      bool done = send->second->copied;
      if (done)
        sends.erase(send);
      movedParts += done;
      return done;
    }
    bool done = std::erase(arrived, request) > 0;
    movedParts += done;
    return done;
  }

  std::optional<int> senderOf(int tag) override {
    std::scoped_lock lock(world->mutex);
    deliver();
    for (int peer = 0; peer < size(); ++peer)
      if (auto mail = world->mail.find({peer, rank(), tag});
          mail != world->mail.end() && !mail->second.empty())
        return peer;
    return {};
  }

  std::shared_ptr<Mapping> createSegment(size_t bytes, std::string &name) override {
    auto mapping = std::make_shared<Mapping>(Mapping::anonymous(bytes));
    std::scoped_lock lock(world->mutex);
    name = std::to_string(world->segmentCount++);
    world->segments[name] = mapping;
    return mapping;
  }
  std::shared_ptr<Mapping> openSegment(const std::string &name, size_t) override {
    std::scoped_lock lock(world->mutex);
    return world->segments.at(name);
  }
  void unlinkSegment(const std::string &name) noexcept override {
    std::scoped_lock lock(world->mutex);
    world->segments.erase(name);
  }

  void checkRun() override { world->check(); }
  void abort(const std::string &reason) noexcept override { world->fail(reason); }

private:
  struct Posted {
    Request request;
    std::span<std::byte> data;
  };

  /// Copies all mail for which a receive is posted, in the order of posting.
  void deliver() {
    for (auto &[route, posted] : receives) {
      auto mail = world->mail.find(route);
      if (mail == world->mail.end())
        continue;
      while (!posted.empty() && !mail->second.empty()) {
        Loan &loan = *mail->second.front();
        if (loan.data.size() != posted.front().data.size())
          throw Error(ErrorCode::Peer, "message of unexpected length");
        if (!loan.data.empty())
          std::memcpy(posted.front().data.data(), loan.data.data(), loan.data.size());
        loan.copied = true;
        arrived.push_back(posted.front().request);
        posted.pop_front();
        mail->second.pop_front();
      }
    }
  }

  std::shared_ptr<World> world;
  Request nextRequest = 0;
  std::map<Request, std::shared_ptr<Loan>> sends;
  std::map<World::Route, std::deque<Posted>> receives;
  std::vector<Request> arrived;
};

} // namespace

void runInProcess(int ranks, const std::function<void(ControlPlane &)> &body, int ranksPerHost) {
  auto world =
      std::make_shared<World>(pretendedHosts(ranks, ranksPerHost > 0 ? ranksPerHost : ranks));
  std::mutex mutex;
  std::exception_ptr first;
  auto runRank = [&](int rank) {
    try {
      PeerControlPlane control(std::make_unique<InProcessTransport>(world, rank));
      body(control);
    } catch (...) {
      {
        std::scoped_lock lock(mutex);
        if (!first)
          first = std::current_exception();
      }
      world->fail("rank " + std::to_string(rank) + " ended with an error");
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back(runRank, rank);
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

} // namespace dlc::rt
