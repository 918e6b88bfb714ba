// One program of an artifact with every index followed: what a device makes an Executable of.
//
// A device with streams runs each stream's instructions in their order here, and orders streams by
// records and waits and by starts and waits of collectives alone; one without runs all in this
// order.
#pragma once

#include "runtime/artifact/artifact_generated.h"
#include "runtime/core/Collectives.h"
#include "runtime/core/DeviceSpan.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace dlc::rt {

class Arenas;
class ScalarBlock;

/// A buffer's memory when the program runs on input arena 0 and on 1.
using Places = std::array<DeviceSpan, 2>;

struct ResolvedProgram {
  struct Launch {
    uint32_t kernel; // as Device::load numbers it
    std::vector<Places> operands;
  };
  struct Start {
    uint32_t collective;
  };
  struct Wait {
    uint32_t collective;
  };
  struct Copy {
    Places from, to;
  };
  struct Fill {
    Places memory;
    uint8_t value;
  };
  struct RecordEvent {
    uint32_t event;
  };
  struct WaitEvent {
    uint32_t event;
  };
  /// The result is final.
  struct HostRead {
    uint32_t result;
  };

  struct Instruction {
    artifact::Stream stream = artifact::Stream::Compute;
    std::variant<Launch, Start, Wait, Copy, Fill, RecordEvent, WaitEvent, HostRead> operation;
  };
  struct Collective {
    CollectiveOperation operation;
    std::vector<std::string> members; // for messages
  };
  /// From or to a block of the host.
  struct Transfer {
    Places memory;
    size_t offset; // in the block
  };

  std::vector<Instruction> instructions;
  std::vector<Collective> collectives;
  uint32_t events = 0;

  /// Staged by the host, and in their places before the first instruction.
  std::vector<Places> inputs;
  /// Likewise, from the block that a run is given.
  std::vector<Transfer> scalars;
  /// By result: sum and count of losses and metrics, f32, which a run takes into its block; nothing
  /// of outputs.
  std::vector<std::vector<Transfer>> results;
  size_t resultBytes = 0; // of the block
};

/// Follows a program of the artifact. `kernels` are the artifact's, loaded on the device.
ResolvedProgram resolve(const artifact::Program &program, const Arenas &arenas,
                        std::span<const uint32_t> kernels, const ScalarBlock &scalars);

} // namespace dlc::rt
