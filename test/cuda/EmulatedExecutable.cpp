#include "test/cuda/EmulatedExecutable.h"

#include "runtime/artifact/Error.h"

#include <cstring>

namespace dlc::rt::test {

static void copy(DeviceSpan from, DeviceSpan to) {
  std::memcpy(reinterpret_cast<void *>(to.address), reinterpret_cast<const void *>(from.address),
              to.bytes);
}

void EmulatedExecutable::run(const RunArguments &arguments) {
  for (const ResolvedProgram::Instruction &instruction : program.instructions)
    if (instruction.runsIn(arguments.part))
      run(instruction, arguments);
}

void EmulatedExecutable::run(const ResolvedProgram::Instruction &instruction,
                             const RunArguments &arguments) {
  const auto &operation = instruction.operation;
  if (const auto *launch = std::get_if<ResolvedProgram::Launch>(&operation)) {
    std::vector<DeviceSpan> operands;
    for (const Places &operand : launch->operands)
      operands.push_back(operand[arguments.slot]);
    device.launch(launch->kernel, operands);
  } else if (const auto *copied = std::get_if<ResolvedProgram::Copy>(&operation)) {
    copy(copied->from[arguments.slot], copied->to[arguments.slot]);
  } else if (const auto *add = std::get_if<ResolvedProgram::Accumulate>(&operation)) {
    if (arguments.part.index == 0)
      return copy(add->bucket, add->sum);
    DeviceSpan to = arguments.part.isLast() ? add->bucket : add->sum;
    DeviceSpan from = arguments.part.isLast() ? add->sum : add->bucket;
    device.launch(add->kernel, std::vector{to, from, to});
  } else if (const auto *recall = std::get_if<ResolvedProgram::Recall>(&operation)) {
    if (arguments.part.counts)
      copy(recall->bucket, recall->sum);
    else
      copy(recall->sum, recall->bucket);
  } else {
    throw Error(ErrorCode::Runtime, "the emulated device neither transfers nor communicates");
  }
}

} // namespace dlc::rt::test
