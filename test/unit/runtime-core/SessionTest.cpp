// Sessions: an artifact with generated kernels and an all-reduce, from file to updated weights.

#include "test/unit/ErrorOf.h"
#include "test/unit/artifact/TinyArtifact.h"

#include "runtime/artifact/Error.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/Initialize.h"
#include "runtime/core/Philox.h"
#include "runtime/core/Session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

using namespace dlc::rt;
using dlc::rt::test::errorOf;
using dlc::rt::test::TinyArtifact;
using dlc::rt::test::tinyElements;
namespace artifact = dlc::artifact;

static TinyArtifact tinyWithCode() {
  TinyArtifact tiny;
  std::ifstream file(DLC_TINY_KERNELS, std::ios::binary);
  tiny.code.assign(std::istreambuf_iterator<char>(file), {});
  for (auto &instruction : tiny.program().instructions)
    instruction->location = "layer";
  return tiny;
}

/// Why steps of several micro-batches are refused to a program whose passes cannot be told apart.
static const char *const entangled =
    "--accumulate cannot train tiny.dlx: at 'layer', what runs once a step and what runs for every "
    "batch of it use each other's results; use more ranks or a smaller batch";

static Artifact load(const TinyArtifact &tiny) { return Artifact(tiny.pack(), "tiny.dlx"); }

static void fillImage(Session &session, unsigned slot, float value) {
  std::span<std::byte> memory = session.input("train", "image", slot);
  ASSERT_EQ(memory.size(), tinyElements * sizeof(float));
  std::vector<float> values(tinyElements, value);
  std::memcpy(memory.data(), values.data(), memory.size());
}

class SessionOfTiny : public ::testing::Test {
protected:
  Artifact artifact = load(tinyWithCode());
  std::unique_ptr<ControlPlane> single = makeSingleControlPlane();
};

TEST_F(SessionOfTiny, TrainsOneStep) {
  Session session(artifact, *single, {});
  std::vector<float> before = session.read("weight");
  fillImage(session, 0, 3);
  fillImage(session, 1, -1);
  session.setScalar("lr", 0.25);
  session.setScalar("a scalar that the model lacks", int64_t{1});
  session.run("train", 0, 1);
  std::vector<float> after = session.read("weight");
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(after[i], before[i] - 0.25f * (before[i] * 3)) << i;
  // The other input arena.
  session.run("train", 1, 2);
  std::vector<float> last = session.read("weight");
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(last[i], after[i] + 0.25f * after[i]) << i;
  EXPECT_EQ(session.results("train", 0).size(), 1u);
  EXPECT_EQ(session.results("train", 0)[0].sum, 0.25); // the rate
}

TEST_F(SessionOfTiny, AllocatesWhatIsPlanned) {
  Session session(artifact, *single, {});
  uint64_t planned = 0, sums = 0;
  for (const artifact::Arena *arena : *artifact->arenas())
    if (arena->kind() == artifact::ArenaKind::Sums)
      sums += arena->bytes();
    else
      planned += arena->bytes() * (arena->kind() == artifact::ArenaKind::Inputs ? 2 : 1);
  EXPECT_EQ(session.arenaBytes(), planned);
  EXPECT_GT(sums, 0u);
  for (int i = 0; i < 2; ++i) { // once, however often they are asked for
    EXPECT_EQ(session.accumulate("train"), sums);
    EXPECT_EQ(session.arenaBytes(), planned + sums);
  }
}

TEST_F(SessionOfTiny, MicroBatchesNeedASumForEveryAllReduce) {
  TinyArtifact bare = tinyWithCode();
  auto &list = bare.program().instructions;
  list.erase(list.begin() + 7);
  bare.root.arenas[4]->bytes = 448;
  Artifact other = load(bare);
  Session session(other, *single, {});
  EXPECT_EQ(
      errorOf([&] { session.accumulate("train"); }),
      "--accumulate cannot train tiny.dlx: not every all-reduce of it has a sum over batches; "
      "compile the model again");
}

// A result is taken in each micro-batch, so it cannot be of what runs in the last one alone.
TEST_F(SessionOfTiny, MicroBatchesNeedResultsOfTheirOwn) {
  TinyArtifact late = tinyWithCode();
  for (size_t copy : {2, 3})
    late.program().instructions[copy]->phase = artifact::Phase::Optimizer;
  Artifact other = load(late);
  Session session(other, *single, {});
  EXPECT_EQ(errorOf([&] { session.accumulate("train"); }), entangled);
}

/// What one micro-batch alone holds cannot update a variable.
TEST_F(SessionOfTiny, MicroBatchesUpdateFromWhatAllHold) {
  TinyArtifact own = tinyWithCode();
  own.program().instructions[12]->operation.AsDispatch()->buffers[1] = 2; // the image
  Artifact other = load(own);
  Session session(other, *single, {});
  EXPECT_EQ(errorOf([&] { session.accumulate("train"); }), entangled);
}

/// Nor can what runs in each of them read what the last one alone has updated.
TEST_F(SessionOfTiny, MicroBatchesReadNoNewVariables) {
  TinyArtifact fresh = tinyWithCode();
  fresh.root.arenas[2]->bytes += 448;
  uint32_t seen = fresh.addBuffer("", 2, 128, {tinyElements}, 0, 0, 20);
  artifact::CopyT copy;
  copy.source = 0;
  copy.destination = seen;
  fresh.addInstruction(artifact::Stream::Compute, copy);
  fresh.program().instructions.back()->location = "layer";
  Artifact other = load(fresh);
  Session session(other, *single, {});
  EXPECT_EQ(errorOf([&] { session.accumulate("train"); }), entangled);
}

// What is refused for a sum is named after the sum.
TEST_F(SessionOfTiny, MicroBatchesNeedNoSumOfTheWholeBatch) {
  auto errorFor = [&](const char *member) {
    TinyArtifact summed = tinyWithCode();
    summed.countAhead();
    summed.program().collectives[1]->members = {member, member};
    auto &list = summed.program().instructions;
    list[14]->operation.AsCopy()->source = 0; // the weight
    for (size_t number = 14; number < 20; ++number)
      list[number]->phase = artifact::Phase::Forward;
    list.erase(list.begin() + 20);                                 // which recalls
    std::rotate(list.begin() + 12, list.begin() + 14, list.end()); // ahead of the update
    Artifact other = load(summed);
    Session session(other, *single, {});
    return errorOf([&] { session.accumulate("train"); });
  };
  EXPECT_EQ(errorFor("loss"),
            "--accumulate cannot train tiny.dlx: 'loss' needs a sum over the whole batch that "
            "depends on what the network computes, and only sums of inputs can be formed ahead; "
            "let the loss count by inputs alone, or use more ranks or a smaller batch");
  EXPECT_EQ(errorFor("norm"),
            "--accumulate cannot train tiny.dlx: 'norm' needs a sum over the whole batch that "
            "depends on what the network computes, and only sums of inputs can be formed ahead; "
            "give batch_norm sync = false, or use more ranks or a smaller batch");
}

TEST_F(SessionOfTiny, ThreadsDoNotChangeBits) {
  std::vector<std::vector<float>> results;
  for (unsigned threads : {1u, 2u}) {
    Session session(artifact, *single, {threads, 5});
    EXPECT_EQ(session.threads(), threads);
    fillImage(session, 0, 0.3f);
    session.run("train", 0, 1);
    results.push_back(session.read("weight"));
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST_F(SessionOfTiny, DenormalsAreFlushed) {
  Session session(artifact, *single, {});
  session.write("weight", std::vector<float>(tinyElements, 1e-38f));
  fillImage(session, 0, 1e-3f);
  session.setScalar("lr", 1e30);
  session.run("train", 0, 1); // the gradient is a denormal
  EXPECT_EQ(session.read("weight"), std::vector<float>(tinyElements, 1e-38f));
}

TEST_F(SessionOfTiny, TracesEveryInstruction) {
  Session session(artifact, *single, {});
  std::vector<TraceEvent> events;
  session.trace(&events);
  session.run("train", 0, 1);
  constexpr size_t accumulate = 7; // which a step of one micro-batch lacks
  ASSERT_EQ(events.size(), artifact->programs()->Get(0)->instructions()->size() - 1);
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].instruction, i < accumulate ? i : i + 1);
    EXPECT_LE(events[i].begin, events[i].end);
  }
  session.trace(nullptr);
  session.run("train", 0, 2);
  EXPECT_EQ(events.size(), artifact->programs()->Get(0)->instructions()->size() - 1);
}

TEST_F(SessionOfTiny, StartValuesDependOnTheSeedAlone) {
  Session session(artifact, *single, {0, 1});
  std::vector<float> first = session.read("weight");
  session.initialize(2);
  EXPECT_NE(session.read("weight"), first);
  session.initialize(1);
  EXPECT_EQ(session.read("weight"), first);
  EXPECT_EQ(session.read("lr"), std::vector<float>{0.5f});
}

// Whatever part a thread draws, an element has the value that its index gives it.
TEST_F(SessionOfTiny, EveryStartValueDependsOnItsIndexAlone) {
  const artifact::Variable &weight = *artifact.variable("weight");
  auto elementOf = [](uint64_t i) {
    uint32_t stream = randomStream("weight");
    auto [even, odd] =
        normalPair(philoxBits(7, stream, 0, i & ~uint64_t{1}), philoxBits(7, stream, 0, i | 1));
    return i % 2 ? odd : even;
  };
  for (size_t first : {0, 1, 2, 7, 5000})
    for (size_t count : {1, 3, 600}) {
      std::vector<float> part(count);
      drawInitialValues(weight, 7, first, part);
      for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(part[i], elementOf(first + i)) << first << " " << i;
    }
}

// The same values whatever the layout; padding lanes are zero, so an update leaves them zero.
TEST_F(SessionOfTiny, LayoutsAreInvisibleOutside) {
  TinyArtifact blocked = tinyWithCode();
  auto layout = std::make_unique<artifact::LayoutT>();
  layout->order = {0, 1};
  layout->block_dims = {1};
  layout->block_sizes = {16};
  blocked.root.buffers[0]->type->shape = {4, 25};
  blocked.root.buffers[0]->type->layout = std::make_unique<artifact::LayoutT>(*layout);
  blocked.root.buffers[1]->offset = 512;
  blocked.root.arenas[0]->bytes = blocked.root.arenas[0]->lower_bound = 576;
  for (size_t kernel : {0, 1}) // which take the weight
    blocked.root.kernels[kernel]->operands[0] = TinyArtifact::copy(*blocked.root.buffers[0]->type);
  blocked.program().collectives[0]->members.clear(); // whose gradients have another size
  Artifact other = load(blocked);
  Session plain(artifact, *single, {0, 9}), padded(other, *single, {0, 9});
  EXPECT_EQ(plain.read("weight"), padded.read("weight"));
  std::vector<float> values(tinyElements);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i);
  padded.write("weight", values);
  EXPECT_EQ(padded.read("weight"), values);
}

// A copy is its parameter rounded, to even in the middle, after a start and after every write.
TEST_F(SessionOfTiny, CopiesFollowTheirParameters) {
  TinyArtifact copied = tinyWithCode();
  copied.addCopy(0);
  Artifact other = load(copied);
  Session session(other, *single, {0, 9});
  std::vector<float> drawn = session.read("weight"), rounded = session.read("copy");
  for (size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_NE(rounded[i], drawn[i]) << i;
    EXPECT_LE(std::abs(rounded[i] - drawn[i]), std::abs(drawn[i]) / 256) << i;
  }
  std::vector<float> values(tinyElements, 1 + 0x1p-8f);
  values[1] = 1 + 0x3p-8f;
  session.write("weight", values);
  std::vector<float> expected(tinyElements, 1);
  expected[1] = 1 + 0x1p-6f;
  EXPECT_EQ(session.read("copy"), expected);
}

TEST_F(SessionOfTiny, WrongNamesAndSizesAreErrors) {
  Session session(artifact, *single, {});
  EXPECT_NE(errorOf([&] { session.read("w"); }).find("no variable 'w'"), std::string::npos);
  EXPECT_NE(errorOf([&] { session.write("weight", std::vector<float>(3)); }).find("100 elements"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { session.run("eval", 0, 0); }).find("no program 'eval'"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { session.input("train", "x", 0); }).find("no input 'x'"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { session.output("train", "y"); }).find("no output 'y'"),
            std::string::npos);
}

TEST_F(SessionOfTiny, MoreThreadsThanPlannedAreRefused) {
  std::string message = errorOf([&] { Session session(artifact, *single, {3, 0}); });
  EXPECT_NE(message.find("planned for at most 2"), std::string::npos) << message;
  EXPECT_NE(message.find("--threads=3"), std::string::npos) << message;
}

TEST_F(SessionOfTiny, AnotherProcessorsArtifactIsRefused) {
  TinyArtifact foreign = tinyWithCode();
  foreign.root.target->features = {"avx2", "avx9999"};
  std::string message = errorOf([&] { Session session(load(foreign), *single, {}); });
  EXPECT_NE(message.find("needs avx9999"), std::string::npos) << message;
  foreign.root.target->name = "abacus:native";
  message = errorOf([&] { Session session(load(foreign), *single, {}); });
  EXPECT_NE(message.find("no back end"), std::string::npos) << message;
}

TEST_F(SessionOfTiny, MissingKernelsAreNamed) {
  TinyArtifact broken = tinyWithCode();
  broken.root.kernels[1]->symbol = "nowhere";
  std::string message = errorOf([&] { Session session(load(broken), *single, {}); });
  EXPECT_NE(message.find("nowhere"), std::string::npos) << message;
  broken.code = {1, 2, 3}; // a second module, though the first may still be loaded
  message = errorOf([&] { Session session(load(broken), *single, {}); });
  EXPECT_NE(message.find("cannot load the generated kernels"), std::string::npos) << message;
}

TEST_F(SessionOfTiny, RanksAddTheirGradients) {
  std::vector<std::vector<float>> weights(2);
  std::vector<float> before = Session(artifact, *single, {1, 3}).read("weight");
  runInProcess(2, [&](ControlPlane &control) {
    Session session(artifact, control, {1, 3});
    fillImage(session, 0, control.rank() == 0 ? 1 : 2);
    session.setScalar("lr", 0.5);
    session.run("train", 0, 1);
    weights[static_cast<size_t>(control.rank())] = session.read("weight");
  });
  EXPECT_EQ(weights[0], weights[1]);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(weights[0][i], before[i] - 0.5f * (before[i] + before[i] * 2)) << i;
}

TEST_F(SessionOfTiny, RanksWithDifferentArtifactsDoNotStart) {
  TinyArtifact changed = tinyWithCode();
  changed.root.schedule_hash = 2;
  Artifact other = load(changed);
  std::string message = errorOf([&] {
    runInProcess(2, [&](ControlPlane &control) {
      Session session(control.rank() == 0 ? artifact : other, control, {1, 0});
    });
  });
  EXPECT_NE(message.find("ranks run different artifacts: rank 1 differs"), std::string::npos)
      << message;
}
