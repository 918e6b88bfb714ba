// What is counted ahead of the first micro-batch, and faults of that.

#include "test/unit/artifact/ArtifactFault.h"

#include <utility>

using dlc::rt::test::addCopy;
using dlc::rt::test::FaultCase;
using dlc::rt::test::messageAfter;
using dlc::rt::test::TinyArtifact;
using dlc::rt::test::tinyElements;
namespace artifact = dlc::artifact;

/// Sums the image over micro-batches and ranks ahead of all else, in bucket 7 with sum 8, and
/// copies the bucket. Its instructions are 14 copy, 15 accumulate, 16 record, 17 wait, 18 start, 19
/// wait, 20 recall and 21 copy.
static void countAhead(TinyArtifact &t) {
  for (uint32_t arena : {2u, 3u, 4u})
    t.root.arenas[arena]->bytes += 448;
  for (auto &buffer : t.root.buffers)
    buffer->live_end = 30;
  t.addBuffer("count", 3, 448, {tinyElements}, 0, 0, 30);
  t.addBuffer("counted", 4, 448, {tinyElements}, 0, 0, 30);
  t.addBuffer("seen", 2, 128, {tinyElements}, 0, 0, 30);
  auto message = std::make_unique<artifact::CollectiveT>();
  message->buffer = 7;
  message->elements = tinyElements;
  message->members = {"loss"};
  t.program().collectives.push_back(std::move(message));
  auto counts = [&] { t.program().instructions.back()->phase = artifact::Phase::Count; };
  uint32_t event = t.program().events++;
  artifact::RecordEventT record;
  record.event = event;
  artifact::WaitEventT wait;
  wait.event = event;
  artifact::CollectiveStartT start;
  start.collective = 1;
  artifact::CollectiveWaitT finish;
  finish.collective = 1;
  artifact::RecallT recall;
  recall.bucket = 7;
  recall.sum = 8;
  addCopy(t, artifact::Stream::Compute, 2, 7);
  counts();
  t.addAccumulate(2, 7, 8);
  counts();
  t.addInstruction(artifact::Stream::Compute, record);
  t.addInstruction(artifact::Stream::Comm, wait);
  t.addInstruction(artifact::Stream::Comm, start);
  counts();
  t.addInstruction(artifact::Stream::Compute, finish);
  counts();
  t.addInstruction(artifact::Stream::Compute, recall);
  counts();
  addCopy(t, artifact::Stream::Compute, 7, 9);
}

TEST(CountAhead, IsTaken) { EXPECT_EQ(messageAfter(countAhead), ""); }

class CountFault : public ::testing::TestWithParam<FaultCase> {};

TEST_P(CountFault, IsFoundAndNamed) {
  EXPECT_NE(messageAfter(GetParam().change).find(GetParam().message), std::string::npos)
      << messageAfter(GetParam().change);
}

static const FaultCase faultCases[] = {
    {"CountsAVariable",
     [](TinyArtifact &t) {
       countAhead(t);
       t.program().instructions[14]->operation.AsCopy()->source = 0;
     },
     "counts what buffer 0 holds, which does not depend on inputs alone"},
    {"CountsAnotherCount",
     [](TinyArtifact &t) {
       countAhead(t);
       auto again = std::make_unique<artifact::InstructionT>(*t.program().instructions[21]);
       again->phase = artifact::Phase::Count;
       t.program().instructions.push_back(std::move(again));
     },
     "counts what buffer 7 holds, which does not depend on inputs alone"},
    {"AddsByAKernelThatItRunsOtherwise",
     [](TinyArtifact &t) {
       t.root.arenas[2]->bytes += 448;
       t.addDispatch(2, {0, 0, t.addBuffer("", 2, 128, {tinyElements}, 0, 0, 20)});
     },
     "adds up by kernel 2, which it runs otherwise"},
    {"CountsWhatThePassComputes",
     [](TinyArtifact &t) {
       countAhead(t);
       auto &list = t.program().instructions;
       list.insert(list.begin() + 14, std::make_unique<artifact::InstructionT>(*list[21]));
       list[14]->operation.AsCopy()->source = 0;
       list[15]->operation.AsCopy()->source = 9;
     },
     "counts what buffer 9 holds, which does not depend on inputs alone"},
    {"CountedInAnotherPhase",
     [](TinyArtifact &t) {
       countAhead(t);
       t.program().instructions[14]->phase = artifact::Phase::Forward;
     },
     "counts what buffer 7 holds, which does not depend on inputs alone"},
    {"CountSummedInAnotherPhase",
     [](TinyArtifact &t) {
       countAhead(t);
       t.program().instructions[15]->phase = artifact::Phase::Backward;
     },
     "starts collective 1, which counts, without a sum of that phase"},
    {"CountReducedInAnotherPhase",
     [](TinyArtifact &t) {
       countAhead(t);
       t.program().instructions[18]->phase = artifact::Phase::Communication;
     },
     "starts collective 1, whose sum is of phase Count"},
    {"CountAwaitedInAnotherPhase",
     [](TinyArtifact &t) {
       countAhead(t);
       t.program().instructions[19]->phase = artifact::Phase::Communication;
     },
     "waits for collective 1, which is of another phase"},
    {"CountRecalledInAnotherPhase",
     [](TinyArtifact &t) {
       countAhead(t);
       t.program().instructions[20]->phase = artifact::Phase::Backward;
     },
     "recalls a sum in another phase than Count"},
    {"NeverRecalled",
     [](TinyArtifact &t) {
       countAhead(t);
       auto &list = t.program().instructions;
       list.erase(list.begin() + 20, list.end());
     },
     "buffer 7 is counted ahead and never recalled"},
    {"UsedBeforeItIsRecalled",
     [](TinyArtifact &t) {
       countAhead(t);
       std::swap(t.program().instructions[20], t.program().instructions[21]);
     },
     "buffer 7 is used before it is recalled from its sum"},
    {"RecallsAnotherSum",
     [](TinyArtifact &t) {
       countAhead(t);
       t.program().instructions[20]->operation.AsRecall()->sum = 6;
     },
     "recalls buffer 7 from buffer 6, which is not its sum over all ranks"},
    {"RecallsAGradient",
     [](TinyArtifact &t) {
       artifact::RecallT recall;
       recall.bucket = 5;
       recall.sum = 6;
       t.addInstruction(artifact::Stream::Compute, recall);
       t.program().instructions.back()->phase = artifact::Phase::Count;
     },
     "recalls buffer 5 from buffer 6, which is not its sum over all ranks"},
    {"RecallBesideItsReader",
     [](TinyArtifact &t) {
       countAhead(t);
       t.program().instructions[21]->stream = artifact::Stream::Copy;
     },
     "buffer 7 meets memory of instruction 20, and nothing orders the two"},
};

INSTANTIATE_TEST_SUITE_P(All, CountFault, ::testing::ValuesIn(faultCases),
                         [](const auto &info) { return info.param.name; });
