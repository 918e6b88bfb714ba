// One rank without peers: every operation is complete when it starts.
#include "runtime/artifact/Error.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/comm/Mapping.h"

#include <vector>

namespace dlc::rt {
namespace {

class SingleCollectives final : public HostCollectives {
public:
  DeviceSpan allocateShared(size_t bytes) override {
    std::span<std::byte> memory = mappings.emplace_back(Mapping::anonymous(bytes)).bytes();
    return {reinterpret_cast<uintptr_t>(memory.data()), memory.size()};
  }
  void registerMemory(DeviceSpan) override {}
  void unregisterMemory(DeviceSpan memory) noexcept override {
    std::erase_if(mappings, [&](const Mapping &mapping) {
      return reinterpret_cast<uintptr_t>(mapping.bytes().data()) == memory.address;
    });
  }
  Ticket start(const CollectiveOperation &, const CollectiveLabel &) override { return 0; }
  void progress() override {}
  bool isComplete(Ticket) const override { return true; }
  void wait(Ticket) override {}

private:
  std::vector<Mapping> mappings;
};

class SingleControlPlane final : public ControlPlane {
public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int localRank() const override { return 0; }
  int localSize() const override { return 1; }

  void sum(std::span<double>, const std::string &) override {}
  std::vector<std::vector<std::byte>> allGather(std::span<const std::byte> mine,
                                                const std::string &) override {
    return {{mine.begin(), mine.end()}};
  }
  void broadcast(std::span<std::byte>, int) override {}
  void barrier(const std::string &) override {}
  [[noreturn]] void giveUp(Standing standing,
                           const std::function<std::string(uint64_t)> &nameOf) override {
    throw Error(ErrorCode::Peer, nameOf(standing.started) + " does not complete");
  }
  void abort(const std::string &) noexcept override {}
  HostCollectives &hostCollectives() override { return collectives; }

private:
  SingleCollectives collectives;
};

} // namespace

std::unique_ptr<ControlPlane> makeSingleControlPlane() {
  return std::make_unique<SingleControlPlane>();
}

} // namespace dlc::rt
