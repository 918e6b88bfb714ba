// Where programs run: memory that the host may not be able to touch, loaded kernels, executables.
//
// The device allocates every arena; the host's data get there by upload and come back by download.
// Made and used by one compute thread, but for staged memory and rows (Executable::rows), which any
// thread may write.
#pragma once

#include "runtime/artifact/Artifact.h"
#include "runtime/core/Collectives.h"
#include "runtime/core/DeviceSpan.h"
#include "runtime/core/Executable.h"
#include "runtime/core/ResolvedProgram.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

/// Memory of the host that a device can copy from and to directly.
struct HostBlock {
  std::span<std::byte> bytes;
  std::shared_ptr<void> owner; // null: the device's, as long as that lives
};

class Device {
public:
  using Kernel = uint32_t;

  virtual ~Device() = default;

  /// Bytes that can still be allocated, where the device has memory of its own.
  virtual std::optional<uint64_t> freeMemory() const { return {}; }
  /// Bytes of memory beside arenas that the artifact's all-reduces work in, among these ranks.
  virtual uint64_t messageBytes(const Artifact &) const { return 0; }
  /// Allocates them, if there are any; once.
  virtual void allocateMessages(const Artifact &) {}
  /// Memory for an arena, with whatever is in it, 64-byte aligned, ready to be used at full speed,
  /// which lives as long as the device. Gradients are registered with the collectives: collective,
  /// of equal size on all ranks. Throws Error(Runtime) if there is not as much.
  virtual DeviceSpan allocate(artifact::ArenaKind kind, size_t bytes) = 0;
  /// How many bytes of each span lie on huge pages; 0 where there are none.
  virtual void countHugePages(std::span<const DeviceSpan> memory,
                              std::span<uint64_t> bytes) const = 0;

  /// Loads exactly the planned kernel; throws Error(Artifact) naming it if that cannot be had.
  virtual Kernel load(const Artifact &artifact, const artifact::Kernel &kernel) = 0;
  /// What the bits of results depend on besides artifact and ranks, as far as it is not in the
  /// artifact: "NVIDIA H200 (sm_90), cuDNN 9.19.0". Known when all kernels are loaded; may be
  /// empty.
  virtual std::string platform() const { return {}; }
  /// What had to be loaded otherwise than planned, one line each.
  virtual std::vector<std::string> notices() const { return {}; }
  /// Binds a program's kernels to their operands.
  virtual std::unique_ptr<Executable> prepare(ResolvedProgram program) = 0;

  /// Where to compose all that upload is to put into `memory`: that memory itself where the host
  /// reaches it, else memory of the host. Of an input arena the same every time, and zeroed at
  /// first.
  virtual HostBlock stage(DeviceSpan memory) = 0;
  /// Makes room for copies of the host's arrays of these sizes, from which the device gathers rows
  /// of inputs by itself (Executable::rows), and returns its bytes. Once; 0 if the device has no
  /// use for it, or no room.
  virtual uint64_t keepArrays(std::span<const uint64_t>) { return 0; }
  /// Both wait for all runs, and are done when they return.
  virtual void upload(std::span<const std::byte> from, DeviceSpan to) = 0;
  virtual void download(DeviceSpan from, std::span<std::byte> to) = 0;

  /// True if runs return before they have run: the next one can then be started meanwhile, unless
  /// they are timed, for which each is waited for.
  virtual bool runsAhead() const { return false; }

  /// Between this device and those of the other ranks.
  virtual Collectives &collectives() = 0;
};

} // namespace dlc::rt
