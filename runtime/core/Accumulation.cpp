// Which instructions run once a step is what the compiler calls their phase. That the others do
// without them is checked here: they write no variable, read none that was written, no sum over
// ranks but those that are counted ahead, and nothing that follows from one; and that those which
// do read nothing of one micro-batch.
#include "runtime/core/Accumulation.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/StepPass.h"
#include "runtime/artifact/WrittenRanges.h"
#include "runtime/core/TensorIo.h"

#include <algorithm>
#include <map>
#include <set>

namespace dlc::rt {

namespace {

class Checker {
public:
  explicit Checker(const Artifact &artifact) : artifact(artifact) {}

  void visit(const artifact::Program &program, const artifact::Instruction &instruction) {
    if (const auto *upload = instruction.operation_as_Upload(); upload && upload->buffers())
      for (uint32_t buffer : *upload->buffers())
        if (!isKept(buffer))
          ofBatch.insert(rootOf(buffer));
    bool counts = instruction.phase() == artifact::Phase::Count;
    if (const auto *add = instruction.operation_as_Accumulate(); add && !counts) {
      require(!late.contains(rootOf(add->bucket())));
      late.insert(rootOf(add->bucket()));
    }
    if (const auto *start = instruction.operation_as_CollectiveStart(); start && !counts)
      late.insert(rootOf(program.collectives()->Get(start->collective())->buffer()));
    reads.clear();
    writes.clear();
    collect(instruction);
    if (const auto *download = instruction.operation_as_Download())
      for (uint32_t buffer : *program.results()->Get(download->result())->buffers())
        reads.insert(buffer);
    bool once = isOncePerStep(instruction);
    bool isOfBatch = false;
    for (uint32_t buffer : reads) {
      bool isLate = late.contains(rootOf(buffer));
      require(once ? isLate || !ofBatch.contains(rootOf(buffer))
                   : !isLate && !updated[arenaOf(buffer)].meets(bytesOf(buffer)));
      isOfBatch |= ofBatch.contains(rootOf(buffer));
    }
    for (uint32_t buffer : writes) {
      bool kept = isKept(buffer);
      require(once || !kept);
      if (kept)
        updated[arenaOf(buffer)].add(bytesOf(buffer));
      else if (once)
        late.insert(rootOf(buffer));
      else if (isOfBatch)
        ofBatch.insert(rootOf(buffer));
    }
  }

private:
  uint32_t rootOf(uint32_t buffer) const {
    int32_t source = artifact->buffers()->Get(buffer)->alias_of();
    return source < 0 ? buffer : static_cast<uint32_t>(source);
  }

  uint32_t arenaOf(uint32_t buffer) const { return artifact->buffers()->Get(buffer)->arena(); }
  WrittenRanges::Range bytesOf(uint32_t buffer) const {
    const artifact::Buffer *place = artifact->buffers()->Get(buffer);
    return {place->offset(), place->offset() + PhysicalType(*place->type()).bytes()};
  }

  bool isKept(uint32_t buffer) const {
    auto kind = artifact->arenas()->Get(artifact->buffers()->Get(buffer)->arena())->kind();
    return kind == artifact::ArenaKind::Variables || kind == artifact::ArenaKind::Slots;
  }

  void collect(const artifact::Instruction &instruction) {
    if (const auto *copy = instruction.operation_as_Copy()) {
      reads.insert(copy->source());
      writes.insert(copy->destination());
    } else if (const auto *dispatch = instruction.operation_as_Dispatch();
               dispatch && dispatch->buffers()) {
      const auto *access = artifact->kernels()->Get(dispatch->kernel())->access();
      for (uint32_t i = 0; i < dispatch->buffers()->size(); ++i) {
        auto how = static_cast<artifact::Access>(access->Get(i));
        if (how != artifact::Access::Write)
          reads.insert(dispatch->buffers()->Get(i));
        if (how != artifact::Access::Read)
          writes.insert(dispatch->buffers()->Get(i));
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
  std::set<uint32_t> late;    // roots that hold what is known after the last micro-batch only
  std::set<uint32_t> ofBatch; // and what depends on the inputs of the present one
  std::map<uint32_t, WrittenRanges> updated; // by arena: what holds the next step's values
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
