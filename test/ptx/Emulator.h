// Executes a kernel's PTX on the host and finds what is wrong with it.
//
// Blocks run one after the other, in an order that may be chosen; threads of a block run one after
// the other from barrier to barrier. What two threads do between two barriers is unordered, for
// lanes of a warp as for others: a conflict is a race, whatever order was run.
#pragma once

#include "test/ptx/Memory.h"
#include "test/ptx/Module.h"

#include <vector>

namespace dlc::ptx {

struct Launch {
  std::string entry;
  uint32_t blocks = 1, threads = 1;
  std::vector<uint64_t> arguments;
  /// Blocks to run, in this order; empty: all, from the first to the last.
  std::vector<uint32_t> order;
  /// Of a thread, as an assembler counted them, which those of the text are not; 0: as many as the
  /// text allows.
  uint32_t registers = 0;
};

/// What a launch did.
struct Counts {
  uint64_t instructions = 0; // of threads
  uint64_t barriers = 0;     // of blocks
  /// Global memory: bytes that threads asked for, sectors of 32 bytes that their warps needed for
  /// it, an access of all lanes together, and how many would hold as much, what several lanes ask
  /// for once; likewise bytes, and those of accesses of 16 a lane.
  uint64_t bytes = 0, sectors = 0, leastSectors = 0, usedBytes = 0, wideBytes = 0;
  /// Sectors that blocks touch, and bytes in them, each once a block.
  uint64_t blockSectors = 0, blockBytes = 0;
  /// Shared memory: rounds of 32 banks that accesses of warps took, and how many would be enough.
  uint64_t sharedRounds = 0, leastSharedRounds = 0;
};

struct Report {
  /// What is wrong, one line each with entry, line of the text, block and thread; the launch ends
  /// with the first.
  std::vector<std::string> faults;
  Counts counts;
};

/// Tables of a module that a launch reads lie in the memory from then on.
class Emulator {
public:
  Emulator(const Module &module, Memory &memory);
  Report run(const Launch &launch);

private:
  const Module &module;
  Memory &memory;
};

} // namespace dlc::ptx
