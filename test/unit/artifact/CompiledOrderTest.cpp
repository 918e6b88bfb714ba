// Every record, start and wait, of events and of collectives, of every model's programs is deleted,
// moved by powers of two, and swapped with the next four: of these mutants the verifier refuses
// those that are malformed or lose an order, as the closure says, and no others. So it does of
// those in which a sum over micro-batches moves to the collective's stream, and of those without
// one of the kernels, where it is the kernel that wrote what another one reads. Of deep models it
// is every so many-th of them.

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
  void runKernels();

  size_t refused = 0, accepted = 0;
  size_t refusedBefore = 0; // in micro-batches before the last one alone

private:
  struct Touch {
    uint32_t buffer;
    bool writes;
    bool reads = !writes;
    bool isPart = false; // of what is written, other kernels write the rest
  };
  std::vector<Touch> touchesOf(const artifact::InstructionT &instruction) const;
  void findConflicts();
  void judge(const Sequence &sequence, const std::string &what);
  bool isSound(const Sequence &sequence) const;
  bool isOrdered(const Sequence &sequence, Pass pass) const;
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
                         kernel.access[i] != artifact::Access::Write, kernel.part != 0});
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

void Mutants::runOrders() {
  Sequence whole(steps.size());
  for (size_t i = 0; i < whole.size(); ++i)
    whole[i] = i;
  judge(whole, "unchanged");
  EXPECT_EQ(accepted, 1u) << program.name;
  std::vector<size_t> order;
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].kind != OrderStep::Other)
      order.push_back(i);
  for (size_t i = 0; i < order.size(); i += strideOf(order.size(), 100)) {
    size_t at = order[i];
    std::string name = std::to_string(at);
    Sequence without = whole;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(at));
    judge(without, name + " deleted");
    auto move = [&](size_t to) {
      Sequence moved = without;
      moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(to), at);
      judge(moved, name + " moved to " + std::to_string(to));
    };
    for (size_t distance = 1; distance <= at; distance *= 2)
      move(at - distance);
    for (size_t distance = 1; at + distance <= without.size(); distance *= 2)
      move(at + distance);
    auto next = std::ranges::upper_bound(order, at);
    for (int k = 0; k < 4 && next != order.end(); ++k, ++next) {
      Sequence swapped = whole;
      std::swap(swapped[at], swapped[*next]);
      judge(swapped, name + " swapped with " + std::to_string(*next));
    }
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
    Sequence moved(steps.size());
    std::iota(moved.begin(), moved.end(), 0);
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

void Mutants::runKernels() {
  for (size_t at = 0; at < steps.size(); at += strideOf(steps.size(), 250)) {
    if (!program.instructions[at]->operation.AsDispatch())
      continue;
    Sequence without(steps.size());
    std::iota(without.begin(), without.end(), 0);
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
      return other.writes && !other.isPart && meets(other, what);
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

void Mutants::judge(const Sequence &sequence, const std::string &what) {
  bool sound = isSound(sequence);
  EXPECT_EQ(isAccepted(sequence), sound) << program.name << ", " << what;
  (sound ? accepted : refused) += 1;
}

/// Each event and collective in its order, and every conflict ordered one way or the other.
bool Mutants::isSound(const Sequence &sequence) const {
  std::set<uint32_t> recorded, started, finished;
  for (size_t number : sequence) {
    const OrderStep &step = steps[number];
    if ((step.kind == OrderStep::Wait && !recorded.contains(step.number)) ||
        (step.kind == OrderStep::Finish && !started.contains(step.number)))
      return false;
    if (step.kind == OrderStep::Record)
      recorded.insert(step.number);
    if (step.kind == OrderStep::Start)
      started.insert(step.number);
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

std::string nameOf(const testing::TestParamInfo<std::filesystem::path> &info) {
  return info.param.stem().string();
}

std::vector<std::filesystem::path> allModels() {
  std::vector<std::filesystem::path> found;
  for (const auto &entry : std::filesystem::directory_iterator(test::models)) {
    std::ifstream file(entry.path());
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (entry.path().extension() == ".dl" && text.find("\nmodel ") != std::string::npos)
      found.push_back(entry.path()); // others are included by models
  }
  std::ranges::sort(found);
  return found;
}

class CompiledOrder : public testing::TestWithParam<std::filesystem::path> {};
INSTANTIATE_TEST_SUITE_P(All, CompiledOrder, testing::ValuesIn(allModels()), nameOf);

TEST_P(CompiledOrder, IsRefusedWhereItIsLost) {
  if (!test::hasCompiler())
    GTEST_SKIP() << "this build has no compiler";
  Artifact compiled(test::compiledModel(GetParam(), ""));
  std::unique_ptr<artifact::ArtifactT> root(compiled->UnPack());
  size_t refused = 0, accepted = 0, refusedBefore = 0;
  for (size_t i = 0; i < root->programs.size(); ++i) {
    Mutants mutants(*root, i);
    mutants.runOrders();
    mutants.runSums();
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
  if (!countsAhead) // where the one other bucket may be all that there is
    EXPECT_GT(refusedBefore, 0u);
}

} // namespace
