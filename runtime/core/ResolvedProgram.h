// One program of an artifact with every index followed: what a device makes an Executable of.
//
// A device with streams runs each stream's instructions in their order here, and orders streams by
// records and waits and by starts and waits of collectives alone; one without runs all in this
// order.
#pragma once

#include "runtime/artifact/artifact_generated.h"
#include "runtime/core/Collectives.h"
#include "runtime/core/DeviceSpan.h"
#include "runtime/core/MicroBatch.h"

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
  /// From or to a block of the host.
  struct Transfer {
    Places memory;
    size_t offset; // in the block
  };
  /// What the host has staged for the inputs of the run's slot, or scalars from the block that the
  /// run is given. Inputs may go up while the run before is under way, but not while one before on
  /// the same slot is.
  struct Upload {
    std::vector<Places> inputs;
    std::vector<Transfer> scalars;
  };
  /// A result is final: sum and count of a loss or metric go to the block of results, an output
  /// stays where it is.
  struct Download {
    std::vector<Transfer> parts;
  };
  /// Nothing in a step of one micro-batch. In another, the first one's bucket becomes the sum,
  /// further ones are added to it, and the last one's bucket takes it. The kernel adds its second
  /// operand to its first, which is its third.
  struct Accumulate {
    uint32_t kernel;
    DeviceSpan bucket, sum;
  };
  /// Nothing in a step of one micro-batch. In another, the sum keeps what the bucket holds when its
  /// collective has run, and in passes for gradients the bucket takes that.
  struct Recall {
    DeviceSpan bucket, sum;
  };
  struct RecordEvent {
    uint32_t event;
  };
  struct WaitEvent {
    uint32_t event;
  };

  struct Instruction {
    artifact::Stream stream = artifact::Stream::Compute;
    std::variant<std::monostate, Launch, Start, Wait, Copy, RecordEvent, WaitEvent, Upload,
                 Download, Accumulate, Recall>
        operation;
    StepPasses passes = everyPass;
    std::string layer = {}; // or its place in the model's source, for messages and traces

    bool runsIn(MicroBatch part) const { return passes[static_cast<size_t>(part.pass())]; }
  };
  struct Collective {
    CollectiveOperation operation;
    std::vector<std::string> members; // for messages
  };

  std::vector<Instruction> instructions;
  std::vector<Collective> collectives;
  uint32_t events = 0;
  size_t resultBytes = 0; // of the block
};

/// Follows a program of the artifact. `kernels` are the artifact's, loaded on the device. Where the
/// arena of sums is missing, the program is for steps of one micro-batch.
ResolvedProgram resolve(const artifact::Program &program, const Arenas &arenas,
                        std::span<const uint32_t> kernels, const ScalarBlock &scalars);

} // namespace dlc::rt
