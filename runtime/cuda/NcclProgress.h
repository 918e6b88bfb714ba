// How far the runs of a program have come in their collectives, as the GPU itself tells: before
// each one, and behind the last one, it copies how many of the run it has come to into memory of
// the host, captured or not.
//
// Collectives are numbered from 0 over all runs of all programs, which ranks make in the same
// order.
#pragma once

#include "runtime/core/ControlPlane.h"
#include "runtime/core/Executable.h"
#include "runtime/core/ResolvedProgram.h"
#include "runtime/cuda/NcclGroup.h"

#include <array>
#include <string>
#include <vector>

namespace dlc::rt {

class NcclProgress {
public:
  /// Both outlive it.
  NcclProgress(const CudaContext &context, const ResolvedProgram &program);

  /// A run begins, on a slot that no other uses any more.
  void begin(const RunArguments &arguments, NcclGroup &group);
  /// What follows on a stream, or is captured, is the run's collective of this number; with the
  /// number count(slot), all of them are complete.
  void reach(uint32_t number, unsigned slot, cudart::Stream stream) const;
  /// Collectives of the run on a slot.
  uint32_t count(unsigned slot) const;

  /// Of the last run, or of the one before it.
  ControlPlane::Standing standing(bool isLast) const;
  unsigned lastSlot() const { return last; }
  std::string nameOf(uint64_t collective) const;

private:
  struct Run {
    uint64_t first = 0, step = 0;
    std::vector<uint32_t> collectives; // of the program, in the run's order
  };

  const cudart::Functions &cuda;
  const ResolvedProgram &program;
  uint32_t &reached(unsigned slot) const {
    return reinterpret_cast<uint32_t *>(locked.bytes.data())[slot];
  }

  Owned<void *> numbers;   // 1, 2, ..., of the device
  HostBlock locked;        // what has been copied of them, by slot
  std::array<Run, 2> runs; // by slot
  unsigned last = 0;
};

} // namespace dlc::rt
