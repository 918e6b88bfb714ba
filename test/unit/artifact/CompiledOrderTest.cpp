// Every record, start and wait, of events and of collectives, of every model's programs, every sum
// over micro-batches, recall and copy, and all that counts ahead, is deleted, moved by powers of
// two, and swapped with the next four: of these mutants the verifier refuses those that are
// malformed, lose an order, as the closure says, read what is not there yet, or use a bucket where
// its sum forbids it, and no others. So it does of those in which a sum over micro-batches moves to
// the collective's stream, and of those without one of the kernels, where it is the kernel that
// wrote what another one reads. So it does, too, of those in which a recall runs on another stream,
// and in which what did not count ahead does, or the reverse. Of deep models it is every so many-th
// of them.

#include "test/unit/CompiledModel.h"
#include "test/unit/artifact/HappensBefore.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Faults.h"
#include "runtime/artifact/LayoutIo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>

using namespace dlc::rt;
using dlc::rt::test::HappensBefore;
using dlc::rt::test::OrderStep;
namespace artifact = dlc::artifact;

namespace {

OrderStep stepOf(const artifact::InstructionT &instruction) {
  OrderStep step;
  step.stream = instruction.stream;
  if (const auto *record = instruction.operation.AsRecordEvent())
    return {OrderStep::Record, step.stream, record->event};
  if (const auto *wait = instruction.operation.AsWaitEvent())
    return {OrderStep::Wait, step.stream, wait->event};
  if (const auto *start = instruction.operation.AsCollectiveStart())
    return {OrderStep::Start, step.stream, start->collective};
  if (const auto *finish = instruction.operation.AsCollectiveWait())
    return {OrderStep::Finish, step.stream, finish->collective};
  return step;
}

/// Of this many, which are tried: all, or as many as take a second or two.
size_t strideOf(size_t count, size_t most) { return (count + most - 1) / most; }

/// Numbers of a program's instructions as compiled; a mutant is another sequence of them.
using Sequence = std::vector<size_t>;

/// Of a step: with one micro-batch, or with several those for what is counted ahead and those for
/// gradients, in which the last one has the collectives.
enum class Pass { Only, Count, LastCount, Before, Last };
constexpr std::array allPasses = {Pass::Only, Pass::Count, Pass::LastCount, Pass::Before,
                                  Pass::Last};

std::set<Pass> passesOf(const artifact::InstructionT &instruction) {
  const artifact::OperationUnion &operation = instruction.operation;
  bool counts = instruction.phase == artifact::Phase::Count;
  if (operation.AsCollectiveStart() || operation.AsCollectiveWait())
    return {Pass::Only, counts ? Pass::LastCount : Pass::Last};
  if (operation.AsAccumulate())
    return counts ? std::set{Pass::Count, Pass::LastCount} : std::set{Pass::Before, Pass::Last};
  if (operation.AsRecall())
    return {Pass::LastCount, Pass::Before, Pass::Last};
  if (operation.AsDispatch() || operation.AsCopy()) {
    if (counts)
      return {allPasses.begin(), allPasses.end()};
    if (instruction.phase == artifact::Phase::Optimizer)
      return {Pass::Only, Pass::Last};
    return {Pass::Only, Pass::Before, Pass::Last};
  }
  if (operation.AsDownload())
    return {Pass::Only, Pass::Before, Pass::Last};
  return {allPasses.begin(), allPasses.end()};
}

class Mutants {
public:
  Mutants(artifact::ArtifactT &root, size_t program);

  void runOrders();
  void runSums();
  void runRecalls();
  void runPhases();
  void runKernels();

  size_t refused = 0, accepted = 0;
  size_t refusedBefore = 0; // in micro-batches before the last one alone

private:
  struct Touch {
    uint32_t buffer;
    bool writes;
    bool reads = !writes;
    uint64_t part = 0; // bytes that are written, where other kernels write the rest
    bool fills() const { return writes && !reads; }
  };
  std::vector<Touch> touchesOf(const artifact::InstructionT &instruction) const;
  void findConflicts();
  Sequence whole() const {
    Sequence sequence(steps.size());
    std::iota(sequence.begin(), sequence.end(), 0);
    return sequence;
  }
  void mutate(const std::vector<size_t> &chosen, size_t at);
  void judge(const Sequence &sequence, const std::string &what,
             const std::vector<size_t> &changed = {});
  bool isSound(const Sequence &sequence) const;
  bool isOrdered(const Sequence &sequence, Pass pass) const;
  /// Of a buffer that is no view.
  bool isThereWhenRead(const Sequence &sequence, uint32_t buffer) const;
  bool isSummedAlone(const Sequence &sequence, uint32_t buffer) const;
  bool isCountedOfInputs(const Sequence &sequence, uint32_t buffer) const;
  bool isLeftToTheHost(const Sequence &sequence, uint32_t buffer) const;
  /// By instruction that uses the buffer: which stretches of it are filled before.
  std::map<size_t, std::vector<char>> filledBefore(const Sequence &sequence, uint32_t buffer) const;
  std::vector<uint64_t> stretchesOf(uint32_t buffer) const;
  std::vector<Touch> touchesOf(size_t number, uint32_t buffer) const;
  /// Uses it otherwise than to recall it.
  bool reads(size_t number, uint32_t buffer) const;
  bool counts(size_t number) const {
    return program.instructions[number]->phase == artifact::Phase::Count;
  }
  bool isMutated(size_t number) const;
  bool isUploaded(uint32_t buffer) const;
  bool isNeeded(size_t writer) const;
  uint32_t rootOf(uint32_t buffer) const {
    return buffers[buffer].aliasOf < 0 ? buffer : static_cast<uint32_t>(buffers[buffer].aliasOf);
  }
  bool isAccepted(const Sequence &sequence);

  artifact::ArtifactT &root;
  artifact::ProgramT &program;
  uint32_t index;
  std::vector<CheckedBuffer> buffers; // which live for ever: lives count instructions
  std::vector<OrderStep> steps;
  std::vector<std::set<Pass>> passes; // in which they run
  std::vector<std::vector<Touch>> touches;
  std::vector<std::pair<size_t, size_t>> conflicts;
};

Mutants::Mutants(artifact::ArtifactT &root, size_t number)
    : root(root), program(*root.programs[number]), index(static_cast<uint32_t>(number)) {
  for (const auto &buffer : root.buffers) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(artifact::TensorType::Pack(builder, buffer->type.get()));
    const auto &type = *flatbuffers::GetRoot<artifact::TensorType>(builder.GetBufferPointer());
    CheckedBuffer checked{true, buffer->arena, buffer->offset, buffer->offset};
    checked.elements = static_cast<uint64_t>(readLayout(type)->physicalElements(readShape(type)));
    checked.end += checked.elements * sizeOf(type.dtype());
    checked.program = buffer->program;
    checked.aliasOf = buffer->alias_of;
    checked.liveEnd = UINT32_MAX;
    buffers.push_back(checked);
  }
  for (const auto &instruction : program.instructions) {
    steps.push_back(stepOf(*instruction));
    touches.push_back(touchesOf(*instruction));
    passes.push_back(passesOf(*instruction));
  }
  findConflicts();
}

std::vector<Mutants::Touch> Mutants::touchesOf(const artifact::InstructionT &instruction) const {
  std::vector<Touch> touches;
  const artifact::OperationUnion &operation = instruction.operation;
  if (const auto *dispatch = operation.AsDispatch()) {
    const artifact::KernelT &kernel = *root.kernels[dispatch->kernel];
    for (size_t i = 0; i < dispatch->buffers.size(); ++i)
      touches.push_back({dispatch->buffers[i], kernel.access[i] != artifact::Access::Read,
                         kernel.access[i] != artifact::Access::Write,
                         kernel.part * sizeOf(root.buffers[dispatch->buffers[i]]->type->dtype)});
  } else if (const auto *copy = operation.AsCopy()) {
    touches = {{copy->source, false}, {copy->destination, true}};
  } else if (const auto *start = operation.AsCollectiveStart()) {
    touches = {{program.collectives[start->collective]->buffer, true, true}};
  } else if (const auto *add = operation.AsAccumulate()) {
    touches = {{add->bucket, true, true}, {add->sum, true, true}};
  } else if (const auto *recall = operation.AsRecall()) {
    touches = {{recall->bucket, true, true}, {recall->sum, true, true}};
  } else if (const auto *upload = operation.AsUpload()) {
    for (uint32_t buffer : upload->buffers)
      touches.push_back({buffer, true});
  } else if (const auto *download = operation.AsDownload()) {
    for (uint32_t buffer : program.results[download->result]->buffers)
      touches.push_back({buffer, false});
  }
  return touches;
}

void Mutants::findConflicts() {
  auto meet = [&](const Touch &a, const Touch &b) {
    const CheckedBuffer &first = buffers[a.buffer], &second = buffers[b.buffer];
    return (a.writes || b.writes) && first.arena == second.arena && first.begin < second.end &&
           second.begin < first.end;
  };
  for (size_t i = 0; i < touches.size(); ++i)
    for (size_t k = i + 1; k < touches.size(); ++k)
      if (std::ranges::any_of(touches[i], [&](const Touch &a) {
            return std::ranges::any_of(touches[k], [&](const Touch &b) { return meet(a, b); });
          }))
        conflicts.emplace_back(i, k);
}

bool Mutants::isUploaded(uint32_t buffer) const {
  return std::ranges::any_of(whole(), [&](size_t number) {
    return program.instructions[number]->operation.AsUpload() && !touchesOf(number, buffer).empty();
  });
}

bool Mutants::isMutated(size_t number) const {
  const artifact::OperationUnion &operation = program.instructions[number]->operation;
  return steps[number].kind != OrderStep::Other || counts(number) || operation.AsAccumulate() ||
         operation.AsCopy();
}

void Mutants::runOrders() {
  judge(whole(), "unchanged");
  EXPECT_EQ(accepted, 1u) << program.name;
  std::vector<size_t> chosen;
  for (size_t number = 0; number < steps.size(); ++number)
    if (isMutated(number))
      chosen.push_back(number);
  for (size_t i = 0; i < chosen.size(); i += strideOf(chosen.size(), 100))
    mutate(chosen, chosen[i]);
}

void Mutants::mutate(const std::vector<size_t> &chosen, size_t at) {
  std::string name = std::to_string(at);
  Sequence without = whole();
  without.erase(without.begin() + static_cast<std::ptrdiff_t>(at));
  judge(without, name + " deleted", {at});
  auto move = [&](size_t to) {
    Sequence moved = without;
    moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(to), at);
    judge(moved, name + " moved to " + std::to_string(to), {at});
  };
  for (size_t distance = 1; distance <= at; distance *= 2)
    move(at - distance);
  for (size_t distance = 1; at + distance <= without.size(); distance *= 2)
    move(at + distance);
  move(without.size());
  auto next = std::ranges::upper_bound(chosen, at);
  for (int k = 0; k < 4 && next != chosen.end(); ++k, ++next) {
    Sequence swapped = whole();
    std::swap(swapped[at], swapped[*next]);
    judge(swapped, name + " swapped with " + std::to_string(*next), {at, *next});
  }
}

/// On the stream of collectives a sum is ordered with what follows by its collective alone, which
/// does not run in every micro-batch.
void Mutants::runSums() {
  for (size_t at = 0; at < steps.size(); ++at) {
    if (!program.instructions[at]->operation.AsAccumulate())
      continue;
    auto start = std::ranges::find_if(
        steps.begin() + static_cast<std::ptrdiff_t>(at), steps.end(), [&](const OrderStep &step) {
          size_t place = &step - steps.data();
          return step.kind == OrderStep::Start && touches[place][0].buffer == touches[at][0].buffer;
        });
    ASSERT_NE(start, steps.end()) << program.name << ", " << at;
    Sequence moved = whole();
    auto from = moved.begin() + static_cast<std::ptrdiff_t>(at);
    std::rotate(from, from + 1, moved.begin() + (start - steps.begin()));
    artifact::Stream compute = std::exchange(steps[at].stream, start->stream);
    program.instructions[at]->stream = start->stream;
    judge(moved, std::to_string(at) + " beside its collective");
    refusedBefore += isOrdered(moved, Pass::Last) &&
                     !(isOrdered(moved, Pass::Before) && isOrdered(moved, Pass::Count));
    program.instructions[at]->stream = steps[at].stream = compute;
  }
}

void Mutants::runRecalls() {
  for (size_t at = 0; at < steps.size(); ++at) {
    if (!program.instructions[at]->operation.AsRecall())
      continue;
    for (artifact::Stream stream : {artifact::Stream::Comm, artifact::Stream::Copy}) {
      artifact::Stream compute = std::exchange(steps[at].stream, stream);
      program.instructions[at]->stream = stream;
      judge(whole(), std::to_string(at) + " on stream " + artifact::EnumNameStream(stream));
      program.instructions[at]->stream = steps[at].stream = compute;
    }
  }
}

void Mutants::runPhases() {
  std::vector<size_t> chosen;
  for (size_t number = 0; number < steps.size(); ++number) {
    const artifact::OperationUnion &operation = program.instructions[number]->operation;
    if (isMutated(number) ? !operation.AsRecordEvent() && !operation.AsWaitEvent()
                          : operation.AsDispatch() != nullptr)
      chosen.push_back(number);
  }
  for (size_t i = 0; i < chosen.size(); i += strideOf(chosen.size(), 60)) {
    size_t at = chosen[i];
    artifact::Phase &phase = program.instructions[at]->phase;
    artifact::Phase compiled =
        std::exchange(phase, counts(at) ? artifact::Phase::Forward : artifact::Phase::Count);
    std::set<Pass> kept = std::exchange(passes[at], passesOf(*program.instructions[at]));
    judge(whole(), std::to_string(at) + " in phase " + artifact::EnumNamePhase(phase), {at});
    passes[at] = std::move(kept);
    phase = compiled;
  }
}

void Mutants::runKernels() {
  for (size_t at = 0; at < steps.size(); at += strideOf(steps.size(), 250)) {
    if (!program.instructions[at]->operation.AsDispatch())
      continue;
    Sequence without = whole();
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(at));
    bool needed = isNeeded(at);
    EXPECT_EQ(isAccepted(without), !needed) << program.name << ", without " << at;
    (needed ? refused : accepted) += 1;
  }
}

/// Whether a later instruction reads some of what this one alone has written by then.
bool Mutants::isNeeded(size_t writer) const {
  auto meets = [&](const Touch &a, const Touch &b) {
    const CheckedBuffer &first = buffers[a.buffer], &second = buffers[b.buffer];
    return rootOf(a.buffer) == rootOf(b.buffer) && first.begin < second.end &&
           second.begin < first.end;
  };
  auto writesAll = [&](size_t place, const Touch &what) {
    return std::ranges::any_of(touches[place], [&](const Touch &other) {
      return other.writes && other.part == 0 && meets(other, what);
    });
  };
  for (const Touch &result : touches[writer]) {
    if (!result.writes || buffers[rootOf(result.buffer)].program < 0)
      continue;
    for (size_t reader = 0; reader < steps.size(); ++reader) {
      if (reader > writer && std::ranges::any_of(touches[reader], [&](const Touch &operand) {
            return operand.reads && meets(operand, result);
          }))
        return true;
      if (reader != writer && writesAll(reader, result))
        break; // another one has
    }
  }
  return false;
}

/// What the mutant's other instructions use is as compiled.
void Mutants::judge(const Sequence &sequence, const std::string &what,
                    const std::vector<size_t> &changed) {
  std::set<uint32_t> used; // that are no views
  for (size_t number : changed) {
    for (const Touch &touch : touches[number])
      used.insert(rootOf(touch.buffer));
    if (steps[number].kind == OrderStep::Finish)
      used.insert(program.collectives[steps[number].number]->buffer);
  }
  bool sound = isSound(sequence) && std::ranges::all_of(used, [&](uint32_t buffer) {
                 return isThereWhenRead(sequence, buffer) && isSummedAlone(sequence, buffer) &&
                        isCountedOfInputs(sequence, buffer) && isLeftToTheHost(sequence, buffer);
               });
  EXPECT_EQ(isAccepted(sequence), sound) << program.name << ", " << what;
  (sound ? accepted : refused) += 1;
}

/// Each event and collective in its order, starts and ends of one phase, and every conflict ordered
/// one way or the other.
bool Mutants::isSound(const Sequence &sequence) const {
  std::set<uint32_t> recorded, finished;
  std::map<uint32_t, bool> started; // whether they count
  for (size_t number : sequence) {
    const OrderStep &step = steps[number];
    if ((step.kind == OrderStep::Wait && !recorded.contains(step.number)) ||
        (step.kind == OrderStep::Finish &&
         (!started.contains(step.number) || started.at(step.number) != counts(number))))
      return false;
    if (step.kind == OrderStep::Record)
      recorded.insert(step.number);
    if (step.kind == OrderStep::Start)
      started[step.number] = counts(number);
    if (step.kind == OrderStep::Finish)
      finished.insert(step.number);
  }
  return started.size() == program.collectives.size() && finished.size() == started.size() &&
         std::ranges::all_of(allPasses, [&](Pass pass) { return isOrdered(sequence, pass); });
}

bool Mutants::isOrdered(const Sequence &sequence, Pass pass) const {
  std::vector<OrderStep> order;
  std::vector<size_t> place(steps.size(), SIZE_MAX);
  std::map<uint32_t, size_t> ends; // a collective's memory is its own until then
  for (size_t number : sequence) {
    if (!passes[number].contains(pass))
      continue;
    place[number] = order.size();
    if (steps[number].kind == OrderStep::Finish)
      ends[steps[number].number] = order.size();
    order.push_back(steps[number]);
  }
  HappensBefore isBefore(order);
  auto endOf = [&](size_t number) {
    return steps[number].kind == OrderStep::Start ? ends.at(steps[number].number) : place[number];
  };
  return std::ranges::all_of(conflicts, [&](const auto &conflict) {
    auto [a, b] = conflict;
    if (place[a] == SIZE_MAX || place[b] == SIZE_MAX)
      return true; // one of them does not run
    size_t first = place[a] < place[b] ? a : b, then = place[a] < place[b] ? b : a;
    return isBefore(endOf(first), place[then]);
  });
}

std::vector<Mutants::Touch> Mutants::touchesOf(size_t number, uint32_t buffer) const {
  std::vector<Touch> found;
  std::ranges::copy_if(touches[number], std::back_inserter(found),
                       [&](const Touch &touch) { return rootOf(touch.buffer) == buffer; });
  return found;
}

bool Mutants::reads(size_t number, uint32_t buffer) const {
  return !program.instructions[number]->operation.AsRecall() &&
         std::ranges::any_of(touchesOf(number, buffer), &Touch::reads);
}

/// Where they begin and end that anything uses.
std::vector<uint64_t> Mutants::stretchesOf(uint32_t buffer) const {
  std::set<uint64_t> cuts;
  for (size_t number = 0; number < steps.size(); ++number)
    for (const Touch &touch : touchesOf(number, buffer))
      cuts.insert({buffers[touch.buffer].begin, buffers[touch.buffer].end});
  return {cuts.begin(), cuts.end()};
}

/// What works in place fills nothing. A variable has its value, unless the host gives it.
std::map<size_t, std::vector<char>> Mutants::filledBefore(const Sequence &sequence,
                                                          uint32_t buffer) const {
  std::vector<uint64_t> cuts = stretchesOf(buffer);
  std::vector<char> filled(cuts.size());
  std::map<std::pair<uint64_t, uint64_t>, std::map<uint32_t, uint64_t>> parts; // by bytes, kernel
  std::map<size_t, std::vector<char>> before;
  for (size_t number : sequence) {
    std::vector<Touch> uses = touchesOf(number, buffer);
    if (!uses.empty())
      before[number] = filled;
    const artifact::OperationUnion &operation = program.instructions[number]->operation;
    if (buffers[buffer].program < 0 && !operation.AsUpload())
      continue;
    for (const Touch &touch : uses) {
      auto [begin, end] = std::pair(buffers[touch.buffer].begin, buffers[touch.buffer].end);
      uint64_t bytes = touch.fills() ? end - begin : 0;
      if (touch.fills() && touch.part) {
        auto &known = parts[{begin, end}];
        known[operation.AsDispatch()->kernel] = touch.part;
        bytes = 0;
        for (auto [kernel, part] : known)
          bytes += part;
      }
      for (size_t i = 0; i < cuts.size() && touch.fills(); ++i)
        filled[i] |= bytes >= end - begin && cuts[i] >= begin && cuts[i] < end;
    }
  }
  return before;
}

/// Whatever was filled before a use of it as compiled is so in the mutant.
bool Mutants::isThereWhenRead(const Sequence &sequence, uint32_t buffer) const {
  std::vector<uint64_t> cuts = stretchesOf(buffer);
  auto compiled = filledBefore(whole(), buffer), changed = filledBefore(sequence, buffer);
  return std::ranges::all_of(changed, [&](const auto &use) {
    const auto &[number, filled] = use;
    return std::ranges::all_of(touchesOf(number, buffer), [&](const Touch &touch) {
      for (size_t i = 0; i < cuts.size(); ++i)
        if (touch.reads && cuts[i] >= buffers[touch.buffer].begin &&
            cuts[i] < buffers[touch.buffer].end && compiled[number][i] > filled[i])
          return false;
      return true;
    });
  });
}

/// From a sum over micro-batches to the start of its collective, and from the end of one that
/// counts to its recall, nothing else uses the bucket; all four count, or none does.
bool Mutants::isSummedAlone(const Sequence &sequence, uint32_t buffer) const {
  constexpr size_t nowhere = SIZE_MAX;
  size_t sum = nowhere, start = nowhere, finish = nowhere, recall = nowhere;
  std::vector<size_t> others;
  for (size_t place = 0; place < sequence.size(); ++place) {
    size_t number = sequence[place];
    const artifact::OperationUnion &operation = program.instructions[number]->operation;
    if (steps[number].kind == OrderStep::Finish) {
      if (program.collectives[steps[number].number]->buffer == buffer)
        finish = place;
    } else if (touchesOf(number, buffer).empty()) {
      continue;
    } else if (operation.AsAccumulate()) {
      sum = place;
    } else if (operation.AsRecall()) {
      recall = place;
    } else if (steps[number].kind == OrderStep::Start) {
      start = place;
    } else {
      others.push_back(place);
    }
  }
  if (start == nowhere) // no bucket, and no sum's buffer is used otherwise
    return true;
  auto isAlone = [&](size_t from, size_t to) {
    return from < to && to != nowhere &&
           std::ranges::none_of(others, [&](size_t place) { return from < place && place < to; });
  };
  bool isCount = counts(sequence[start]);
  auto isOfOnePhase = [&](size_t place) {
    return place == nowhere || counts(sequence[place]) == isCount;
  };
  if (!isOfOnePhase(sum) || !isOfOnePhase(finish) || !isOfOnePhase(recall))
    return false;
  if (sum == nowhere ? isCount : !isAlone(sum, start))
    return false;
  return isCount ? isAlone(finish, recall) : recall == nowhere;
}

/// What counts ahead reads nothing that anything else has written, the host apart, nothing that
/// ranks have summed up, and no variable.
bool Mutants::isCountedOfInputs(const Sequence &sequence, uint32_t buffer) const {
  bool isOfPass = buffers[buffer].program < 0 && !isUploaded(buffer);
  for (size_t number : sequence) {
    if (isOfPass && counts(number) && reads(number, buffer))
      return false;
    bool isOther = !counts(number) || steps[number].kind == OrderStep::Start;
    isOfPass |= isOther && !program.instructions[number]->operation.AsUpload() &&
                std::ranges::any_of(touchesOf(number, buffer), &Touch::writes);
  }
  return true;
}

/// Nothing writes what the host has taken.
bool Mutants::isLeftToTheHost(const Sequence &sequence, uint32_t buffer) const {
  bool isTaken = false;
  for (size_t number : sequence) {
    std::vector<Touch> uses = touchesOf(number, buffer);
    if (isTaken && std::ranges::any_of(uses, &Touch::writes))
      return false;
    isTaken |= !uses.empty() && program.instructions[number]->operation.AsDownload();
  }
  return true;
}

bool Mutants::isAccepted(const Sequence &sequence) {
  std::vector<std::unique_ptr<artifact::InstructionT>> whole = std::move(program.instructions);
  program.instructions.clear();
  for (size_t number : sequence)
    program.instructions.push_back(std::move(whole[number]));
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(artifact::Artifact::Pack(builder, &root));
  for (size_t i = 0; i < sequence.size(); ++i)
    whole[sequence[i]] = std::move(program.instructions[i]);
  program.instructions = std::move(whole);
  Faults faults;
  verifyProgram(*artifact::GetArtifact(builder.GetBufferPointer()), buffers, index, faults);
  return faults.take().empty();
}

struct Case {
  std::filesystem::path model;
  bool forGpu;
};

std::string nameOf(const testing::TestParamInfo<Case> &info) {
  return info.param.model.stem().string() + (info.param.forGpu ? "OnGpu" : "");
}

/// Plans for GPUs need cuDNN.
bool hasCuda() {
  const std::string command = DLC_TEST_COMPILER " compile " +
                              (test::models / "mnist_cnn.dl").string() +
                              " --target=cuda:h200 --emit=exec > /dev/null 2>&1";
  // NOLINTNEXTLINE(bugprone-command-processor): the command is one of this build
  static const bool has = std::system(command.c_str()) == 0;
  return has;
}

std::vector<Case> allModels() {
  std::vector<Case> found;
  for (const auto &entry : std::filesystem::directory_iterator(test::models)) {
    std::ifstream file(entry.path());
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (entry.path().extension() == ".dl" && text.find("\nmodel ") != std::string::npos)
      for (bool forGpu : {false, true})
        found.push_back({entry.path(), forGpu}); // others are included by models
  }
  std::ranges::sort(found, {}, &Case::model);
  return found;
}

void PrintTo(const Case &test, std::ostream *os) { *os << test.model << test.forGpu; }

class CompiledOrder : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, CompiledOrder, testing::ValuesIn(allModels()), nameOf);

TEST_P(CompiledOrder, IsRefusedWhereItIsLost) {
  if (!test::hasCompiler())
    GTEST_SKIP() << "this build has no compiler";
  auto [model, forGpu] = GetParam();
  if (forGpu && !std::getenv("DLC_REQUIRE_CUDA") && !hasCuda())
    GTEST_SKIP() << "no plans for GPUs here";
  Artifact compiled(forGpu ? test::compiledModel(model, "--precision=bf16", "cuda:h200")
                           : test::compiledModel(model, ""));
  std::unique_ptr<artifact::ArtifactT> root(compiled->UnPack());
  size_t refused = 0, accepted = 0, refusedBefore = 0;
  for (size_t i = 0; i < root->programs.size(); ++i) {
    Mutants mutants(*root, i);
    mutants.runOrders();
    mutants.runSums();
    mutants.runRecalls();
    mutants.runPhases();
    mutants.runKernels();
    refused += mutants.refused;
    accepted += mutants.accepted;
    refusedBefore += mutants.refusedBefore;
  }
  RecordProperty("refusedBefore", static_cast<int>(refusedBefore));
  RecordProperty("refused", static_cast<int>(refused));
  RecordProperty("accepted", static_cast<int>(accepted));
  EXPECT_GT(refused, 20u);
  EXPECT_GT(accepted, 20u);
  bool countsAhead = std::ranges::any_of(root->programs[0]->instructions, [](const auto &it) {
    return it->operation.AsRecall() != nullptr;
  });
  // Where that is, the one other bucket may be all that there is; over a GPU's link it often is.
  if (!countsAhead && !forGpu)
    EXPECT_GT(refusedBefore, 0u);
}

} // namespace
