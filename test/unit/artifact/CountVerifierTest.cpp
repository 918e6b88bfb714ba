// What is counted ahead of the first micro-batch, and faults of that.

#include "test/unit/artifact/ArtifactFault.h"

#include <utility>

using namespace dlc::rt::test;
namespace artifact = dlc::artifact;

TEST(CountAhead, IsTaken) { EXPECT_EQ(messageAfter(&TinyArtifact::countAhead), ""); }

class CountFault : public ::testing::TestWithParam<FaultCase> {};

TEST_P(CountFault, IsFoundAndNamed) {
  EXPECT_NE(messageAfter(GetParam().change).find(GetParam().message), std::string::npos)
      << messageAfter(GetParam().change);
}

static const FaultCase faultCases[] = {
    {"CountsAVariable",
     [](TinyArtifact &t) {
       t.countAhead();
       t.program().instructions[14]->operation.AsCopy()->source = 0;
     },
     "counts what buffer 0 holds, which does not depend on inputs alone"},
    {"CountsAnotherCount",
     [](TinyArtifact &t) {
       t.countAhead();
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
       t.countAhead();
       auto &list = t.program().instructions;
       list.insert(list.begin() + 14, std::make_unique<artifact::InstructionT>(*list[21]));
       list[14]->operation.AsCopy()->source = 0;
       list[15]->operation.AsCopy()->source = 9;
     },
     "counts what buffer 9 holds, which does not depend on inputs alone"},
    {"CountedInAnotherPhase",
     [](TinyArtifact &t) {
       t.countAhead();
       t.program().instructions[14]->phase = artifact::Phase::Forward;
     },
     "counts what buffer 7 holds, which does not depend on inputs alone"},
    {"CountSummedInAnotherPhase",
     [](TinyArtifact &t) {
       t.countAhead();
       t.program().instructions[15]->phase = artifact::Phase::Backward;
     },
     "starts collective 1, which counts, without a sum of that phase"},
    {"CountReducedInAnotherPhase",
     [](TinyArtifact &t) {
       t.countAhead();
       t.program().instructions[18]->phase = artifact::Phase::Communication;
     },
     "starts collective 1, whose sum is of phase Count"},
    {"CountAwaitedInAnotherPhase",
     [](TinyArtifact &t) {
       t.countAhead();
       t.program().instructions[19]->phase = artifact::Phase::Communication;
     },
     "waits for collective 1, which is of another phase"},
    {"CountRecalledInAnotherPhase",
     [](TinyArtifact &t) {
       t.countAhead();
       t.program().instructions[20]->phase = artifact::Phase::Backward;
     },
     "recalls a sum in another phase than Count"},
    {"NeverRecalled",
     [](TinyArtifact &t) {
       t.countAhead();
       auto &list = t.program().instructions;
       list.erase(list.begin() + 20, list.end());
     },
     "buffer 7 is counted ahead and never recalled"},
    {"UsedBeforeItIsRecalled",
     [](TinyArtifact &t) {
       t.countAhead();
       std::swap(t.program().instructions[20], t.program().instructions[21]);
     },
     "buffer 7 is used before it is recalled from its sum"},
    {"RecallsAnotherSum",
     [](TinyArtifact &t) {
       t.countAhead();
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
       t.countAhead();
       t.program().instructions[21]->stream = artifact::Stream::Copy;
     },
     "buffer 7 meets memory of instruction 20, and nothing orders the two"},
};

INSTANTIATE_TEST_SUITE_P(All, CountFault, ::testing::ValuesIn(faultCases),
                         [](const auto &info) { return info.param.name; });
