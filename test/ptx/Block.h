// One block of threads.
#pragma once

#include "test/ptx/Emulator.h"

#include <map>
#include <optional>

namespace dlc::ptx {

/// The arrays of a module, at the addresses that its text has them.
using Tables = std::map<uint64_t, const Table *>;

class Block {
public:
  Block(const Entry &entry, const Launch &launch, uint32_t number, const Tables &tables,
        Memory &memory, Counts &counts);
  /// Runs all threads to their end. Returns what is wrong, or nothing.
  std::optional<std::string> run();

private:
  struct Thread {
    uint64_t *registers = nullptr; // those of the entry
    uint8_t *isWritten = nullptr;
    uint32_t next = 0;
    bool isDone = false;
    std::vector<uint32_t> visits; // of each memory access, by instruction
  };
  using Ranges = std::vector<std::pair<uint64_t, uint64_t>>; // from and to
  /// The bytes that lanes of a warp access together.
  struct WarpAccess {
    std::vector<uint64_t> places; // sectors, or words of shared memory
    Ranges ranges;                // of global memory
    uint32_t width = 0;           // bytes of a lane
    bool isShared = false;
  };
  struct SharedByte {
    bool isWritten = false;
    uint32_t writer = 0, writerEpoch = 0, reader = 0, readerEpoch = 0;
  };

  std::optional<std::string> runToBarrier(uint32_t number);
  std::optional<std::string> meet();
  std::optional<std::string> execute(Thread &thread, uint32_t number, const Instruction &in);
  std::optional<std::string> evaluateInto(Thread &thread, uint32_t number, const Instruction &in);
  std::optional<std::string> move(Thread &thread, uint32_t number, const Instruction &in);
  std::optional<std::string> access(Thread &thread, uint32_t number, const Instruction &in);
  std::string transfer(const Instruction &in, uint64_t address, uint32_t bytes, uint32_t number,
                       uint64_t &value);
  std::string transferShared(const Instruction &in, uint64_t address, uint32_t bytes,
                             uint32_t number, uint64_t &value);
  std::string loadTable(uint64_t address, uint32_t bytes, uint64_t &value) const;
  std::string loadParameter(uint64_t address, uint32_t bytes, uint64_t &value) const;
  void count(Thread &thread, uint32_t number, const Instruction &in, uint64_t address,
             uint32_t bytes);
  void settleCounts();
  static uint64_t unionOf(Ranges &ranges, uint64_t unit = 1);
  bool valueOf(const Thread &thread, uint32_t number, const Operand &operand,
               uint64_t &value) const;
  void set(Thread &thread, uint32_t reg, uint64_t value) const;
  std::string at(uint32_t thread, const Instruction &in, const std::string &what) const;

  const Entry &entry;
  const Launch &launch;
  uint32_t number;
  const Tables &tables;
  Memory &memory;
  Counts &counts;
  uint32_t epoch = 0;
  std::vector<uint64_t> registers; // of all threads
  std::vector<uint8_t> isWritten;
  std::vector<Thread> threads;
  std::vector<uint8_t> shared;
  std::vector<SharedByte> sharedBytes;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, WarpAccess> accesses; // warp, line, visit
  Ranges touched;                                                          // of global memory
};

} // namespace dlc::ptx
