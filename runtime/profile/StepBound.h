// What each instruction of a step moves and computes, what it was forecast to take, and the least
// that it can take here.
//
// The bound of a library kernel is its own time standing alone; that of all else is the time that
// memory needs, with the caches as the instructions before have left them. Where stores fetch
// lines, every one is taken to read what it overwrites.
#pragma once

#include "runtime/core/MachineSpeed.h"
#include "runtime/core/Session.h"

#include <map>
#include <string>
#include <vector>

namespace dlc::rt {

struct InstructionBound {
  std::string kind;                     // category of the kernel, "copy" or "all-reduce"
  bool library = false;                 // the bound is a time standing alone
  double bytes = 0;                     // on the bus: read, fetched for stores, written
  std::map<std::string, double> levels; // of these, by the name of the level they lie in
  double flops = 0;
  double forecast = 0; // seconds, as are the bounds
  double bound = 0;
};

/// One bound an instruction. `standalone` has the library kernels' times by index.
std::vector<InstructionBound> stepBounds(const Session &session, const artifact::Program &program,
                                         const MachineSpeed &speed,
                                         const std::map<uint32_t, double> &standalone);

} // namespace dlc::rt
