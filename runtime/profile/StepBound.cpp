#include "runtime/profile/StepBound.h"

#include "runtime/core/TensorIo.h"
#include "runtime/profile/CacheModel.h"

#include <algorithm>

namespace dlc::rt {
namespace {

class Bounds {
public:
  Bounds(const Session &session, const artifact::Program &program, const MachineSpeed &speed,
         const std::map<uint32_t, double> &standalone)
      : artifact(session.artifact()), program(program), cache(speed),
        sharesWorkspace(speed.sharesWorkspace), standalone(standalone) {}

  std::vector<InstructionBound> run();

private:
  InstructionBound of(const artifact::Instruction &instruction);
  InstructionBound of(const artifact::Dispatch &dispatch);
  Touch touch(uint32_t buffer, artifact::Access access) const;
  void finish(InstructionBound &bound, std::vector<Touch> touches, double share);

  const Artifact &artifact;
  const artifact::Program &program;
  CacheModel cache;
  bool sharesWorkspace;
  const std::map<uint32_t, double> &standalone;
};

Touch Bounds::touch(uint32_t index, artifact::Access access) const {
  const artifact::Buffer &buffer = *artifact->buffers()->Get(index);
  // Arenas lie apart; where does not matter.
  uint64_t address = (uint64_t{buffer.arena()} << 48) + buffer.offset();
  return {address, PhysicalType(*buffer.type()).bytes(), access != artifact::Access::Read,
          access != artifact::Access::Write};
}

/// Buffers in one place, a result that overwrites an operand say, are one.
std::vector<Touch> merged(std::vector<Touch> touches) {
  std::vector<Touch> result;
  for (const Touch &touch : touches) {
    auto same = std::ranges::find(result, touch.address, &Touch::address);
    if (same == result.end()) {
      result.push_back(touch);
      continue;
    }
    same->bytes = std::max(same->bytes, touch.bytes);
    same->written |= touch.written;
    same->read |= touch.read;
  }
  return result;
}

/// `share` of what the buffers hold is touched.
void Bounds::finish(InstructionBound &bound, std::vector<Touch> touches, double share) {
  touches = merged(std::move(touches));
  MemoryWork work = cache.run(touches);
  for (const auto &[level, bytes] : work.bytes) {
    bound.levels[level] = share * bytes;
    bound.bytes += share * bytes;
  }
  if (!bound.library)
    bound.bound = share * work.nanoseconds * 1e-9;
}

InstructionBound Bounds::of(const artifact::Dispatch &dispatch) {
  const artifact::Kernel &kernel = *artifact->kernels()->Get(dispatch.kernel());
  InstructionBound bound;
  bound.kind = kernel.category() ? kernel.category()->str() : "other";
  bound.flops = static_cast<double>(kernel.flops());
  bound.forecast = static_cast<double>(kernel.nanoseconds()) * 1e-9;
  if (auto alone = standalone.find(dispatch.kernel()); alone != standalone.end()) {
    bound.library = true;
    bound.bound = alone->second;
  }
  std::vector<Touch> touches;
  double held = 0;
  unsigned count = dispatch.buffers()->size();
  // Its last operand is the workspace.
  if (sharesWorkspace && kernel.kind() == artifact::KernelKind::Library)
    --count;
  for (unsigned i = 0; i < count; ++i) {
    touches.push_back(touch(dispatch.buffers()->Get(i), kernel.access()->Get(i)));
    held += static_cast<double>(touches.back().bytes);
  }
  // A cluster may touch slices of its buffers alone, and plans with what it touches.
  bool generated = kernel.kind() == artifact::KernelKind::Generated;
  double share = generated && held > 0 ? static_cast<double>(kernel.bytes()) / held : 1;
  finish(bound, std::move(touches), std::min(share, 1.0));
  return bound;
}

InstructionBound Bounds::of(const artifact::Instruction &instruction) {
  InstructionBound bound;
  if (const auto *dispatch = instruction.operation_as_Dispatch())
    return of(*dispatch);
  if (const auto *copy = instruction.operation_as_Copy()) {
    bound.kind = "copy";
    finish(bound,
           {touch(copy->source(), artifact::Access::Read),
            touch(copy->destination(), artifact::Access::Write)},
           1);
  } else if (instruction.operation_type() == artifact::Operation::CollectiveStart ||
             instruction.operation_type() == artifact::Operation::CollectiveWait) {
    bound.kind = "all-reduce";
  }
  return bound;
}

std::vector<InstructionBound> Bounds::run() {
  std::vector<InstructionBound> bounds;
  // The second time finds the caches as a step leaves them.
  for (int round = 0; round < 2; ++round) {
    bounds.clear();
    for (const artifact::Instruction *instruction : *program.instructions())
      bounds.push_back(of(*instruction));
  }
  return bounds;
}

} // namespace

std::vector<InstructionBound> stepBounds(const Session &session, const artifact::Program &program,
                                         const MachineSpeed &speed,
                                         const std::map<uint32_t, double> &standalone) {
  return Bounds(session, program, speed, standalone).run();
}

} // namespace dlc::rt
