// Which instructions run once a step is what the compiler calls their phase. That the others do
// without them is checked here: they write no variable, read none that was written, no sum over
// ranks but those that are counted ahead, and nothing that follows from one; and that those which
// do read nothing of one micro-batch. Where a sum over ranks is in the way, the message names its
// members and what the sum depends on, which the author of the model can change.
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

/// What a value is computed from, inputs apart.
struct Sources {
  bool network = false, draws = false;

  void add(Sources other) {
    network |= other.network;
    draws |= other.draws;
  }
};

class Checker {
public:
  Checker(const Artifact &artifact, const artifact::Program &program)
      : artifact(artifact), program(program) {
    if (!artifact->variables())
      return;
    for (const artifact::Variable *variable : *artifact->variables()) {
      Sources &source = sources[rootOf(variable->buffer())];
      source.network |= variable->kind() != artifact::VariableKind::Scalar;
      source.draws |= variable->name()->string_view() == "seed";
    }
  }

  void visit(const artifact::Instruction &instruction) {
    if (const auto *upload = instruction.operation_as_Upload(); upload && upload->buffers())
      for (uint32_t buffer : *upload->buffers())
        if (!isKept(buffer))
          ofBatch.insert(rootOf(buffer));
    bool counts = instruction.phase() == artifact::Phase::Count;
    if (const auto *add = instruction.operation_as_Accumulate(); add && !counts) {
      require(!late.contains(rootOf(add->bucket())), instruction);
      late.insert(rootOf(add->bucket()));
    }
    if (const auto *start = instruction.operation_as_CollectiveStart(); start && !counts) {
      const artifact::Collective *collective = program.collectives()->Get(start->collective());
      late.insert(rootOf(collective->buffer()));
      reduced[rootOf(collective->buffer())] = collective;
    }
    reads.clear();
    writes.clear();
    collect(instruction);
    if (const auto *download = instruction.operation_as_Download())
      for (uint32_t buffer : *program.results()->Get(download->result())->buffers())
        reads.insert(buffer);
    bool once = isOncePerStep(instruction);
    bool isOfBatch = false;
    Sources from;
    for (uint32_t buffer : reads) {
      bool isLate = late.contains(rootOf(buffer));
      if (auto sum = reduced.find(rootOf(buffer)); sum != reduced.end() && !once)
        refuse(*sum->second);
      require(once ? isLate || !ofBatch.contains(rootOf(buffer))
                   : !isLate && !updated[arenaOf(buffer)].meets(bytesOf(buffer)),
              instruction);
      isOfBatch |= ofBatch.contains(rootOf(buffer));
      from.add(sources[rootOf(buffer)]);
    }
    for (uint32_t buffer : writes) {
      bool kept = isKept(buffer);
      require(once || !kept, instruction);
      sources[rootOf(buffer)].add(from);
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

  void require(bool good, const artifact::Instruction &instruction) const {
    if (!good)
      throw Error(ErrorCode::BadInput,
                  "--accumulate cannot train " + artifact.name() + ": at '" +
                      (instruction.location() ? instruction.location()->str() : "") +
                      "', what runs once a step and what runs for every batch of it use each "
                      "other's results; use more ranks or a smaller batch");
  }

  /// Every micro-batch needs the sum, which is there after the last one only.
  [[noreturn]] void refuse(const artifact::Collective &sum) {
    std::set<std::string> names;
    if (sum.members())
      for (const flatbuffers::String *member : *sum.members())
        names.insert("'" + member->str() + "'");
    std::string members;
    for (const std::string &name : names)
      members += (members.empty() ? "" : ", ") + name;
    Sources of = sources[rootOf(sum.buffer())];
    bool isLoss = names.contains("'loss'");
    std::string cause = !of.draws    ? "what the network computes"
                        : of.network ? "what the network computes or draws"
                                     : "random numbers that the model draws";
    std::string change =
        isLoss ? "let the loss count by inputs alone" : "give batch_norm sync = false";
    if (isLoss && of.draws)
      change = "make what is drawn an input, so that the loss counts by inputs alone";
    throw Error(ErrorCode::BadInput, "--accumulate cannot train " + artifact.name() + ": " +
                                         members +
                                         " needs a sum over the whole batch that depends on " +
                                         cause + ", and only sums of inputs can be formed ahead; " +
                                         change + ", or use more ranks or a smaller batch");
  }

  const Artifact &artifact;
  const artifact::Program &program;
  std::map<uint32_t, Sources> sources;                      // by root
  std::map<uint32_t, const artifact::Collective *> reduced; // by root, but for what counts ahead
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
  Checker checker(artifact, program);
  size_t sums = 0;
  if (program.instructions())
    for (const artifact::Instruction *instruction : *program.instructions()) {
      checker.visit(*instruction);
      sums += instruction->operation_type() == artifact::Operation::Accumulate;
    }
  if (sums != (program.collectives() ? program.collectives()->size() : 0))
    throw Error(ErrorCode::BadInput, "--accumulate cannot train " + artifact.name() +
                                         ": not every all-reduce of it has a sum over batches; "
                                         "compile the model again");
}

} // namespace dlc::rt
