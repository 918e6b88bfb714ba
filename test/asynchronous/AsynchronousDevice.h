// A device for tests that is as unlike a CPU as it may be, whatever computes its kernels.
//
// The host cannot touch its memory, which starts as NaN. Runs return at once; their streams run
// when somebody waits for results, in an order drawn by a seed from those that the artifact's
// events and collectives allow. The memory of a collective in flight reads as NaN. What a program
// lacks in order, or the runtime in uploads, so shows as other bits or as a fault.
#pragma once

#include "runtime/core/ControlPlane.h"
#include "runtime/core/Device.h"
#include "test/asynchronous/HiddenMemory.h"
#include "test/asynchronous/TaskQueue.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace dlc::rt::test {

struct AsynchronousOptions {
  uint64_t seed = 0;
  /// Plants a fault that is to be found.
  std::function<void(ResolvedProgram &)> edit = nullptr;
};

class AsynchronousDevice final : public Device {
public:
  /// `kernels` computes at once, in memory that the host reaches.
  explicit AsynchronousDevice(std::unique_ptr<Device> kernels, AsynchronousOptions options = {});

  DeviceSpan allocate(artifact::ArenaKind kind, size_t bytes) override;
  void countHugePages(std::span<const DeviceSpan>, std::span<uint64_t> bytes) const override;
  Kernel load(const Artifact &artifact, const artifact::Kernel &kernel) override;
  std::unique_ptr<Executable> prepare(ResolvedProgram program) override;
  HostBlock stage(DeviceSpan memory) override;
  void upload(std::span<const std::byte> from, DeviceSpan to) override;
  void download(DeviceSpan from, std::span<std::byte> to) override;
  bool runsAhead() const override { return true; }
  Collectives &collectives() override { return translated; }

private:
  friend class AsynchronousExecutable;

  /// Runs all that is pending.
  void drain();

  /// Those of the device that computes, by the addresses handed out.
  class TranslatedCollectives final : public Collectives {
  public:
    TranslatedCollectives(const HiddenMemory &memory, Collectives &collectives)
        : memory(memory), collectives(collectives) {}
    void registerMemory(DeviceSpan span) override {
      collectives.registerMemory(memory.reveal(span));
    }
    void unregisterMemory(DeviceSpan span) noexcept override {
      collectives.unregisterMemory(memory.reveal(span));
    }
    Ticket start(const CollectiveOperation &operation, const CollectiveLabel &label) override {
      CollectiveOperation revealed = operation;
      revealed.memory = memory.reveal(operation.memory);
      return collectives.start(revealed, label);
    }
    void progress() override { collectives.progress(); }
    bool isComplete(Ticket ticket) const override { return collectives.isComplete(ticket); }
    void wait(Ticket ticket) override { collectives.wait(ticket); }

  private:
    const HiddenMemory &memory;
    Collectives &collectives;
  };

  AsynchronousOptions options;
  std::unique_ptr<Device> kernels;
  HiddenMemory memory;
  TranslatedCollectives translated{memory, kernels->collectives()};
  TaskQueue queue;
  std::map<uintptr_t, std::vector<std::byte>> mirrors;   // of input arenas, by address
  std::vector<TaskQueue::Task> runEnds;                  // of all runs since the last drain
  std::array<std::vector<TaskQueue::Task>, 2> slotUsers; // likewise, by input arena
};

} // namespace dlc::rt::test
