// Which instructions run once a step is what the compiler calls their phase. That the others do
// without them is checked here: they write no variable, read no sum over ranks but those that are
// counted ahead, and nothing that follows from one.
#include "runtime/core/Accumulation.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/StepPass.h"

#include <algorithm>
#include <set>

namespace dlc::rt {

namespace {

class Checker {
public:
  explicit Checker(const Artifact &artifact) : artifact(artifact) {}

  void visit(const artifact::Program &program, const artifact::Instruction &instruction) {
    if (instruction.phase() == artifact::Phase::Count)
      return; // which depends on inputs alone
    if (const auto *add = instruction.operation_as_Accumulate()) {
      require(!late.contains(rootOf(add->bucket())));
      late.insert(rootOf(add->bucket()));
    }
    if (const auto *start = instruction.operation_as_CollectiveStart())
      late.insert(rootOf(program.collectives()->Get(start->collective())->buffer()));
    reads.clear();
    writes.clear();
    collect(instruction);
    if (const auto *download = instruction.operation_as_Download())
      for (uint32_t buffer : *program.results()->Get(download->result())->buffers())
        reads.insert(rootOf(buffer));
    bool once = isOncePerStep(instruction);
    for (uint32_t buffer : once ? std::set<uint32_t>() : reads)
      require(!late.contains(buffer));
    for (uint32_t buffer : writes) {
      bool kept = isKept(buffer);
      require(once || !kept);
      if (once && !kept)
        late.insert(buffer);
    }
  }

private:
  uint32_t rootOf(uint32_t buffer) const {
    int32_t source = artifact->buffers()->Get(buffer)->alias_of();
    return source < 0 ? buffer : static_cast<uint32_t>(source);
  }

  bool isKept(uint32_t buffer) const {
    auto kind = artifact->arenas()->Get(artifact->buffers()->Get(buffer)->arena())->kind();
    return kind == artifact::ArenaKind::Variables || kind == artifact::ArenaKind::Slots;
  }

  void collect(const artifact::Instruction &instruction) {
    if (const auto *copy = instruction.operation_as_Copy()) {
      reads.insert(rootOf(copy->source()));
      writes.insert(rootOf(copy->destination()));
    } else if (const auto *dispatch = instruction.operation_as_Dispatch();
               dispatch && dispatch->buffers()) {
      const auto *access = artifact->kernels()->Get(dispatch->kernel())->access();
      for (uint32_t i = 0; i < dispatch->buffers()->size(); ++i) {
        auto how = static_cast<artifact::Access>(access->Get(i));
        if (how != artifact::Access::Write)
          reads.insert(rootOf(dispatch->buffers()->Get(i)));
        if (how != artifact::Access::Read)
          writes.insert(rootOf(dispatch->buffers()->Get(i)));
      }
    }
  }

  static void require(bool good) {
    if (!good)
      throw Error(ErrorCode::BadInput,
                  "--accumulate cannot train this model: its backward pass needs figures of the "
                  "whole batch that depend on more than inputs (as batch_norm(sync = true) and a "
                  "loss whose count depends on what the network gives do); use more ranks or a "
                  "smaller batch");
  }

  const Artifact &artifact;
  std::set<uint32_t> late; // buffers that hold what is known after the last micro-batch only
  std::set<uint32_t> reads, writes;
};

} // namespace

bool countsAhead(const artifact::Program &program) {
  return program.instructions() &&
         std::ranges::any_of(*program.instructions(), [](const artifact::Instruction *instruction) {
           return instruction->operation_type() == artifact::Operation::Recall;
         });
}

void requireMicroBatches(const Artifact &artifact, const artifact::Program &program) {
  Checker checker(artifact);
  size_t sums = 0;
  if (program.instructions())
    for (const artifact::Instruction *instruction : *program.instructions()) {
      checker.visit(program, *instruction);
      sums += instruction->operation_type() == artifact::Operation::Accumulate;
    }
  if (sums != (program.collectives() ? program.collectives()->size() : 0))
    throw Error(ErrorCode::BadInput, "--accumulate cannot train " + artifact.name() +
                                         ": not every all-reduce of it has a sum over batches; "
                                         "compile the model again");
}

} // namespace dlc::rt
