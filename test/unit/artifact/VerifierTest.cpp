// Artifact files: what is written is read back, and every kind of fault is found and named.

#include "test/unit/artifact/ArtifactFault.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/Hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>

using namespace dlc::rt;
using namespace dlc::rt::test;
namespace artifact = dlc::artifact;

// Test vectors of the xxHash specification's reference implementation.
TEST(Hash, MatchesXxh64) {
  auto hash = [](std::string_view text) {
    return hash64({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  };
  EXPECT_EQ(hash(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(hash("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(hash("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(hash("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

/// The image, by default of one channel, with these tiles.
static void giveTiling(TinyArtifact &tiny, std::vector<uint64_t> alignment,
                       std::vector<uint64_t> overlap,
                       const std::vector<int64_t> &shape = {1, 1, 10, 10}) {
  tiny.root.buffers[2]->type->shape = shape;
  for (auto &kernel : tiny.root.kernels)
    for (size_t i = 0; i < kernel->operands.size(); ++i)
      if (kernel->name == "gradient" && i == 1)
        kernel->operands[i]->shape = shape;
  tiny.root.inputs[0]->type->shape = shape;
  tiny.program().batch = 1;
  tiny.program().tiling = std::make_unique<artifact::TilingT>();
  tiny.program().tiling->alignment = std::move(alignment);
  tiny.program().tiling->overlap = std::move(overlap);
}

/// A file of another version, whose tables hold numbers where this one's hold offsets.
static std::vector<uint8_t> ofVersion(std::optional<uint32_t> version) {
  flatbuffers::FlatBufferBuilder builder;
  flatbuffers::uoffset_t start = builder.StartTable();
  if (version)
    builder.AddElement<uint32_t>(artifact::Artifact::VT_VERSION, *version, 0);
  builder.AddElement<uint32_t>(artifact::Artifact::VT_MODEL, 0xFFFFFFF0, 0);
  builder.FinishSizePrefixed(flatbuffers::Offset<artifact::Artifact>(builder.EndTable(start)),
                             artifact::ArtifactIdentifier());
  std::vector<uint8_t> file(builder.GetBufferPointer(),
                            builder.GetBufferPointer() + builder.GetSize());
  file.resize(dataSectionBegin(file.size()) + sizeof(uint64_t));
  sealArtifact(file);
  return file;
}

TEST(Artifact, TablesOfAnotherVersionAreNotReported) {
  EXPECT_EQ(messageOf(ofVersion(2)),
            "file is of version 2, this program reads version 4: compile the model again");
  EXPECT_EQ(messageOf(ofVersion(std::nullopt)), // the first one, which is not written
            "file is of version 1, this program reads version 4: compile the model again");
  EXPECT_EQ(messageOf(ofVersion(artifactVersion)), "file is corrupt: malformed tables");
}

/// The tiny artifact with a buffer's shape, whose vector is then taken to begin one word later: the
/// first element's lower half is the count. A vector, too, inside of the file, but not aligned.
static std::vector<uint8_t> withMovedShape(unsigned buffer, std::vector<int64_t> shape) {
  TinyArtifact tiny;
  tiny.root.buffers[buffer]->type->shape = std::move(shape);
  std::vector<uint8_t> file = tiny.pack();
  const artifact::TensorType *type =
      artifact::GetSizePrefixedArtifact(file.data())->buffers()->Get(buffer)->type();
  const auto *offset = reinterpret_cast<const flatbuffers::Table *>(type)->GetAddressOf(
      artifact::TensorType::VT_SHAPE);
  file[static_cast<size_t>(offset - file.data())] += 4;
  sealArtifact(file);
  return file;
}

TEST(Artifact, NumbersThatAreNotAlignedAreFound) {
  EXPECT_EQ(messageOf(withMovedShape(0, {1, test::tinyElements})),
            "file is corrupt: artifact: numbers that are not aligned");
}

// FlatBuffers aligns no elements that do not exist.
TEST(Artifact, AnEmptyVectorMayLieAnywhere) {
  EXPECT_EQ(messageOf(withMovedShape(1, {0, 0})), ""); // a scalar's shape is empty
}

TEST(Artifact, ReadsBackWhatWasWritten) {
  TinyArtifact tiny;
  tiny.code.assign(1000, 7);
  std::string path = ::testing::TempDir() + "/tiny.dlx";
  EXPECT_EQ(ArtifactWriter::writeFile(path, tiny.pack()), "");
  Artifact artifact(path);
  EXPECT_EQ(artifact->model()->str(), "tiny");
  ASSERT_NE(artifact.program("train"), nullptr);
  EXPECT_EQ(artifact.program("eval"), nullptr);
  ASSERT_NE(artifact.variable("lr"), nullptr);
  std::span<const uint8_t> code = artifact.data(*artifact->modules()->Get(0)->code());
  EXPECT_EQ(std::vector<uint8_t>(code.begin(), code.end()), tiny.code);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(code.data()) % 64, 0u);
  std::remove(path.c_str());
}

TEST(Artifact, TakesACopyOfAParameter) {
  TinyArtifact tiny;
  tiny.addCopy(0);
  EXPECT_NO_THROW(Artifact(tiny.pack(), "tiny.dlx"));
}

TEST(Artifact, TakesATilingThatFits) {
  EXPECT_EQ(messageAfter([](TinyArtifact &t) { giveTiling(t, {2, 2}, {4, 6}); }), "");
  // Without channels.
  EXPECT_EQ(messageAfter([](TinyArtifact &t) { giveTiling(t, {2, 2}, {4, 6}, {1, 10, 10}); }), "");
}

TEST(Artifact, RefusesForeignAndDamagedFiles) {
  EXPECT_THROW(Artifact("/nonexistent.dlx"), Error);
  EXPECT_NE(messageOf({}), "");
  EXPECT_NE(messageOf(std::vector<uint8_t>(100, 'x')).find("not a dlc artifact"),
            std::string::npos);
  std::vector<uint8_t> file = TinyArtifact().pack();
  EXPECT_EQ(messageOf(file), "");
  for (size_t bytes = 0; bytes < file.size(); bytes += 13)
    EXPECT_NE(messageOf({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bytes)}), "");
  file[file.size() / 2] ^= 1;
  EXPECT_NE(messageOf(file).find("hash"), std::string::npos);
}

TEST(Artifact, WriteFailureNamesTheReason) {
  EXPECT_NE(ArtifactWriter::writeFile("/nonexistent/x.dlx", TinyArtifact().pack()), "");
}

/// A buffer as an output.
static void giveOutput(TinyArtifact &tiny, uint32_t buffer) {
  auto output = std::make_unique<artifact::ResultT>();
  output->name = "y";
  output->kind = artifact::ResultKind::Output;
  output->buffers = {buffer};
  tiny.program().results.push_back(std::move(output));
}

static void giveOptimizer(TinyArtifact &tiny, const char *argument, double value) {
  tiny.root.training = std::make_unique<artifact::TrainingT>();
  tiny.root.training->optimizer = std::make_unique<artifact::CallT>();
  tiny.root.training->optimizer->name = "sgd";
  auto number = std::make_unique<artifact::ArgumentT>();
  number->name = argument;
  number->floats = {value};
  tiny.root.training->optimizer->arguments.push_back(std::move(number));
}

static void addFormula(TinyArtifact &t, const char *name, uint32_t means, const char *expression) {
  auto formula = std::make_unique<artifact::FormulaT>();
  formula->name = name;
  formula->means = means;
  formula->expression = expression;
  t.program().formulas.push_back(std::move(formula));
}

class ArtifactFault : public ::testing::TestWithParam<FaultCase> {};

TEST_P(ArtifactFault, IsFoundAndNamed) {
  EXPECT_NE(messageAfter(GetParam().change).find(GetParam().message), std::string::npos)
      << messageAfter(GetParam().change);
}

using artifact::DType;
/// Buffer 7, which kernels 3 and 4 write together, by these of the two; then it is copied.
static void writeInParts(TinyArtifact &t, const std::vector<uint32_t> &kernels) {
  t.root.arenas[2]->bytes = 1024;
  uint32_t whole = t.addBuffer("", 2, 128, {tinyElements}, 0, 0, 40);
  uint32_t copy = t.addBuffer("", 2, 576, {tinyElements}, 0, 0, 40);
  for (uint64_t part : {30, 70}) {
    t.addKernel("part", "tiny_part", {whole}, {artifact::Access::Write});
    t.root.kernels.back()->part = part;
  }
  for (uint32_t kernel : kernels)
    t.addDispatch(kernel, {whole});
  addCopy(t, artifact::Stream::Compute, whole, copy);
}

TEST(Artifact, TakesABufferThatKernelsWriteTogether) {
  EXPECT_EQ(messageAfter([](TinyArtifact &t) { writeInParts(t, {3, 4}); }), "");
  EXPECT_EQ(messageAfter([](TinyArtifact &t) { writeInParts(t, {4, 3}); }), "");
}

static const FaultCase faultCases[] = {
    {"Version", [](TinyArtifact &t) { t.root.version = 1; }, "compile the model again"},
    {"MonitorWithoutGoal",
     [](TinyArtifact &t) {
       t.root.training = std::make_unique<artifact::TrainingT>();
       t.root.training->monitor = "loss";
     },
     "monitor 'loss' without a goal"},
    {"MonitorOfNothing",
     [](TinyArtifact &t) {
       t.root.training = std::make_unique<artifact::TrainingT>();
       t.root.training->monitor = "dice";
       t.root.training->goal = artifact::Goal::Max;
     },
     "monitor 'dice' is no metric of eval"},
    {"FormulaWithoutMeans", [](TinyArtifact &t) { addFormula(t, "psnr", 1, "m0"); },
     "formula 'psnr' lacks its mean 0"},
    {"FormulaOfNothing", [](TinyArtifact &t) { addFormula(t, "psnr", 0, "1"); },
     "formula 'psnr' has no means"},
    {"FormulaThatIsNone", [](TinyArtifact &t) { addFormula(t, "psnr", 1, "m1"); },
     "formula 'psnr' cannot be evaluated"},
    {"FormulaOfTheLoss", [](TinyArtifact &t) { addFormula(t, "loss", 1, "m0"); },
     "formula 'loss' has the name of another result"},
    {"RangeOfOthersAlone", [](TinyArtifact &t) { t.root.inputs[0]->others = {255}; },
     "none besides a range"},
    {"ArenaSize", [](TinyArtifact &t) { t.root.arenas[0]->bytes = 1000; }, "multiple of 64"},
    {"WorkspaceAlignment",
     [](TinyArtifact &t) {
       // Of a library kernel, in bytes: the image, and behind its first element the workspace.
       uint32_t whole = t.addBuffer("x", 2, 128, {256}, 0, 0, 20);
       uint32_t workspace = t.addBuffer("workspace", 2, 144, {32}, 0, 0, 20);
       t.root.buffers[whole]->type->dtype = t.root.buffers[workspace]->type->dtype = DType::U8;
       t.root.buffers[workspace]->alias_of = static_cast<int32_t>(whole);
       t.root.arenas[2]->bytes = 384;
       t.addKernel("library", "", {workspace}, {artifact::Access::Write});
       t.root.kernels.back()->kind = artifact::KernelKind::Library;
       t.root.kernels.back()->plan = {1};
       t.addDispatch(3, {workspace});
     },
     "is at no multiple of 64 bytes"},
    {"ArenaOfBuffer", [](TinyArtifact &t) { t.root.buffers[0]->arena = 9; }, "no arena 9"},
    {"Alignment", [](TinyArtifact &t) { t.root.buffers[1]->offset = 452; }, "not aligned"},
    {"ArenaTooLarge", [](TinyArtifact &t) { t.root.arenas[2]->bytes *= 512; },
     "has 65536 bytes, but what lies in it ends at 128"},
    {"BeyondArena", [](TinyArtifact &t) { t.root.buffers[0]->offset = 960; }, "exceeds its arena"},
    {"NegativeExtent", [](TinyArtifact &t) { t.root.buffers[0]->type->shape = {-1}; },
     "malformed type"},
    {"HugeExtent",
     [](TinyArtifact &t) { t.root.buffers[0]->type->shape = {1 << 30, 1 << 30, 1 << 30}; },
     "malformed type"},
    {"UnknownType", [](TinyArtifact &t) { t.root.buffers[0]->type->dtype = DType(77); },
     "malformed type"},
    {"LayoutNoPermutation",
     [](TinyArtifact &t) {
       t.root.buffers[0]->type->layout = std::make_unique<artifact::LayoutT>();
       t.root.buffers[0]->type->layout->order = {3};
     },
     "malformed type"},
    {"LayoutHugeBlocks",
     [](TinyArtifact &t) {
       auto layout = std::make_unique<artifact::LayoutT>();
       layout->order = {0};
       layout->block_dims.assign(40, 0);
       layout->block_sizes.assign(40, 60000);
       t.root.buffers[0]->type->layout = std::move(layout);
     },
     "malformed type"},
    {"EmptyRange",
     [](TinyArtifact &t) { t.root.inputs[0]->range = std::make_unique<artifact::Range>(1, 0); },
     "its range is empty"},
    {"LivesBackwards",
     [](TinyArtifact &t) { t.root.buffers[2]->live_end = 0, t.root.buffers[2]->live_begin = 1; },
     "lives backwards"},
    {"Overlap", [](TinyArtifact &t) { t.root.buffers[3]->offset = 64; }, "shares memory"},
    {"OverlapWithVariable", [](TinyArtifact &t) { t.addBuffer("x", 0, 384, {}, 0, 0, 0); },
     "shares memory"},
    {"AliasOutside",
     [](TinyArtifact &t) { t.root.buffers[t.addBuffer("x", 2, 64, {}, 0, 0, 0)]->alias_of = 3; },
     "exceeds the buffer"},
    {"AliasOutlives",
     [](TinyArtifact &t) { t.root.buffers[t.addBuffer("x", 2, 0, {}, 0, 0, 21)]->alias_of = 3; },
     "outlives"},
    {"AliasCycle",
     [](TinyArtifact &t) { t.root.buffers[3]->alias_of = 4, t.root.buffers[4]->alias_of = 3; },
     "alias of an alias"},
    {"VariableTwice", [](TinyArtifact &t) { t.root.variables[1]->name = "weight"; },
     "defined twice"},
    {"VariableBuffer", [](TinyArtifact &t) { t.root.variables[1]->buffer = 99; }, "no buffer 99"},
    {"VariableOfProgram", [](TinyArtifact &t) { t.root.variables[1]->buffer = 3; },
     "belongs to one program"},
    {"NoProgramsTransient",
     [](TinyArtifact &t) { t.root.buffers[1]->arena = 2, t.root.buffers[1]->offset = 64; },
     "belongs to no program, but lies in no arena of variables"},
    {"VariablesOverlap",
     [](TinyArtifact &t) {
       t.root.buffers[1]->alias_of = 0;
       t.root.buffers[1]->offset = 8;
       t.root.arenas[0]->bytes = 448;
     },
     "shares memory with variable 0 'weight'"},
    {"ScalarOfSeveral", [](TinyArtifact &t) { t.root.buffers[1]->type->shape = {2}; },
     "a scalar of several elements"},
    {"CopyOfNothing", [](TinyArtifact &t) { t.addCopy(0).parameter = -1; }, "no narrower copy"},
    {"CopyOfScalar", [](TinyArtifact &t) { t.addCopy(0).parameter = 1; }, "no narrower copy"},
    {"CopyInIntegers",
     [](TinyArtifact &t) { t.root.buffers[t.addCopy(0).buffer]->type->dtype = DType::I8; },
     "no narrower copy"},
    {"CopyOfAnotherShape",
     [](TinyArtifact &t) { t.root.buffers[t.addCopy(0).buffer]->type->shape = {10, 10}; },
     "no narrower copy"},
    {"ModuleEmpty", [](TinyArtifact &t) { t.code.clear(); }, "its code is not in the file"},
    {"KernelModule", [](TinyArtifact &t) { t.root.kernels[0]->module_ = 3; }, "without code"},
    {"KernelChunk", [](TinyArtifact &t) { t.root.kernels[0]->chunk = 0; }, "must be positive"},
    {"KernelPlan", [](TinyArtifact &t) { t.root.kernels[0]->kind = artifact::KernelKind::Library; },
     "without plan"},
    {"KernelAccess", [](TinyArtifact &t) { t.root.kernels[0]->access[0] = artifact::Access(9); },
     "unknown access"},
    {"Math", [](TinyArtifact &t) { t.root.target->math = "fasu"; },
     "target: math 'fasu', expected strict or fast"},
    {"LaunchOnACpu", [](TinyArtifact &t) { t.launch(0, 32); }, "has a launch, but is not for a GPU"},
    {"NoLaunch",
     [](TinyArtifact &t) {
       t.root.target->name = "cuda:h200";
       t.launch(0, 32);
     },
     "kernel 1 'update': has no launch"},
    {"LaunchOfNoThreads",
     [](TinyArtifact &t) {
       t.root.target->name = "cuda:h200";
       for (size_t i = 0; i < t.root.kernels.size(); ++i)
         t.launch(i, i == 1 ? 0 : 1024);
     },
     "kernel 1 'update': its launch is more than a GPU can do"},
    {"LaunchOfTooManyThreads",
     [](TinyArtifact &t) {
       t.root.target->name = "cuda:h200";
       for (size_t i = 0; i < t.root.kernels.size(); ++i)
         t.launch(i, i == 2 ? 1025 : 1024);
     },
     "kernel 2 'accumulate': its launch is more than a GPU can do"},
    {"Batch", [](TinyArtifact &t) { t.program().batch = 0; }, "batch 0"},
    {"BatchOfMoreRows", [](TinyArtifact &t) { t.program().batch = 4096; },
     "input 'image' has no rows of its own for a batch of 4096"},
    {"InputsOfTwoBatches",
     [](TinyArtifact &t) {
       t.program().inputs.push_back(std::make_unique<artifact::ProgramInputT>());
       t.program().inputs[1]->name = "second";
       t.program().inputs[1]->buffer = t.addBuffer("second", 1, 448, {5}, 0, 0, 20);
       t.root.arenas[1]->bytes = 512;
     },
     "input 'second' has no rows"},
    {"InputInTransient",
     [](TinyArtifact &t) {
       t.root.buffers[2]->arena = 3;
       t.root.buffers[2]->offset = 448;
       t.root.arenas[1]->bytes = 0;
       t.root.arenas[3]->bytes = 896;
     },
     "does not lie in the arena of inputs"},
    {"InputTwice",
     [](TinyArtifact &t) {
       t.program().inputs.push_back(
           std::make_unique<artifact::ProgramInputT>(*t.program().inputs[0]));
     },
     "input 'image' is defined twice"},
    {"InputOfAnotherType", [](TinyArtifact &t) { t.root.inputs[0]->type->dtype = DType::I64; },
     "another type than the model's input"},
    {"OutputOfNoRows", [](TinyArtifact &t) { giveOutput(t, 3); }, "result 'y' has no rows"},
    {"OutputsOfOneName", [](TinyArtifact &t) { giveOutput(t, 2), giveOutput(t, 2); },
     "result 'y' is defined twice"},
    {"ResultWeight",
     [](TinyArtifact &t) {
       t.program().results[0]->weight = std::numeric_limits<double>::quiet_NaN();
     },
     "a weight that is not finite"},
    {"NoInstructions", [](TinyArtifact &t) { t.program().instructions.clear(); },
     "has no instructions"},
    {"ProgramTwice",
     [](TinyArtifact &t) {
       t.root.programs.push_back(std::make_unique<artifact::ProgramT>());
       t.root.programs[1]->name = "train";
     },
     "defined twice"},
    {"Threads", [](TinyArtifact &t) { t.root.target->threads = 0; },
     "planned for 0 threads, expected a number from 1 to 1024"},
    {"LinkOfNothing",
     [](TinyArtifact &t) { t.root.target->link = std::make_unique<artifact::LinkT>(); },
     "a link of 0.000000"},
    {"Validation",
     [](TinyArtifact &t) {
       t.root.data = std::make_unique<artifact::DataPipelineT>();
       t.root.data->validation = 5;
     },
     "data.validation: is 5.000000, expected a number from 0 to below 1"},
    {"ValidationNan",
     [](TinyArtifact &t) {
       t.root.data = std::make_unique<artifact::DataPipelineT>();
       t.root.data->validation = std::numeric_limits<double>::quiet_NaN();
     },
     "data.validation: is nan"},
    {"Epochs",
     [](TinyArtifact &t) {
       t.root.training = std::make_unique<artifact::TrainingT>();
       t.root.training->epochs = 4'000'000'000;
     },
     "train.epochs: is 4000000000.000000, expected a number from 0 to 1000000000"},
    {"Momentum", [](TinyArtifact &t) { giveOptimizer(t, "momentum", 1); },
     "train.optimizer.momentum: is 1.000000, expected a number from 0 to below 1"},
    {"LearningRate", [](TinyArtifact &t) { giveOptimizer(t, "lr", 1e300); }, "train.optimizer.lr"},
    {"ResultPair", [](TinyArtifact &t) { t.program().results[0]->buffers = {3}; },
     "wrong number of buffers"},
    {"ResultType", [](TinyArtifact &t) { t.program().results[0]->buffers = {3, 2}; },
     "pair of f32 scalars"},
    {"ResultDies", [](TinyArtifact &t) { t.root.buffers[4]->live_end = 3; },
     "does not live to the end"},
    {"InputBornLate", [](TinyArtifact &t) { t.root.buffers[2]->live_begin = 1; },
     "does not live from the start"},
    {"CollectiveSize", [](TinyArtifact &t) { t.program().collectives[0]->elements = 101; },
     "not as large as its buffer"},
    {"CollectiveElsewhere",
     [](TinyArtifact &t) {
       t.root.buffers[5]->arena = 2;
       t.root.buffers[5]->offset = 128;
       t.root.arenas[2]->bytes = 576;
       t.root.arenas[3]->bytes = 0;
     },
     "is not of a whole buffer in the arena of gradients"},
    {"CollectiveWire", [](TinyArtifact &t) { t.program().collectives[0]->wire = DType::I64; },
     "wire type"},
    {"DispatchKernel", [](TinyArtifact &t) { t.addDispatch(7, {}); }, "no kernel 7"},
    {"DispatchCount", [](TinyArtifact &t) { t.addDispatch(0, {0, 2}); }, "takes 3 buffers"},
    {"DispatchBuffer", [](TinyArtifact &t) { t.addDispatch(0, {0, 2, 99}); }, "no buffer 99"},
    {"DispatchType", [](TinyArtifact &t) { t.addDispatch(0, {0, 1, 5}); }, "not of the type"},
    {"DispatchDead", [](TinyArtifact &t) { t.root.buffers[2]->live_end = 1; }, "not live"},
    {"UseInFlight",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       std::swap(list[11], list[12]);
     },
     "in flight"},
    {"StartTwice",
     [](TinyArtifact &t) {
       t.addInstruction(artifact::Stream::Comm, artifact::CollectiveStartT());
     },
     "started before"},
    {"WaitBeforeStart",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       std::swap(list[10], list[11]);
     },
     "not under way"},
    {"NeverCompleted",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       list.erase(list.begin() + 11, list.begin() + 13);
     },
     "never completed"},
    {"EventOrder",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       std::swap(list[8], list[9]);
     },
     "before it is recorded"},
    {"EventUnknown", [](TinyArtifact &t) { t.program().events = 0; }, "records event 1"},
    {"EventNeverRecorded", [](TinyArtifact &t) { t.program().events = 4000000000; },
     "has 4000000000 events and records "},
    {"CopyTypes",
     [](TinyArtifact &t) {
       t.root.arenas[2]->bytes = 192;
       addCopy(t, artifact::Stream::Compute, 2, t.addBuffer("scalar", 2, 128, {}, 0, 0, 20));
     },
     "different types"},
    {"CopyBesideItsReader", [](TinyArtifact &t) { addCopy(t, artifact::Stream::Copy, 2, 2); },
     "buffer 2 meets memory of instruction 6, and nothing orders the two"},
    {"NothingWaitsForTheGradient",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       list.erase(list.begin() + 9);
     },
     "buffer 5 meets memory of instruction 7, and nothing orders the two"},
    {"GradientAfterTheEvent",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       std::swap(list[7], list[8]);
     },
     "buffer 5 meets memory of instruction 8, and nothing orders the two"},
    {"UpdateBesideTheWait",
     [](TinyArtifact &t) { t.program().instructions[11]->stream = artifact::Stream::Copy; },
     "buffer 5 meets memory of instruction 11, and nothing orders the two"},
    {"ResultReadBesideItsWriter",
     [](TinyArtifact &t) { t.program().instructions[13]->stream = artifact::Stream::Copy; },
     "buffer 3 meets memory of instruction 2, and nothing orders the two"},
    {"UsedAfterItsSum",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       list.insert(list.begin() + 8, std::make_unique<artifact::InstructionT>(*list[6]));
     },
     "buffer 5 is used after it was added to its sum"},
    {"SumThatDoesNotLiveThroughout", [](TinyArtifact &t) { t.root.buffers[6]->live_end = 9; },
     "adds up in buffer 6, which does not live throughout"},
    {"SumAfterTheCollective",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       std::rotate(list.begin() + 7, list.begin() + 8, list.begin() + 12);
     },
     "buffer 5 is used after it was added to its sum"},
    {"SumWithoutCollective",
     [](TinyArtifact &t) {
       uint32_t sum = t.addBuffer("", 4, 448, {tinyElements}, 0, 0, 20);
       t.root.arenas[4]->bytes = 896;
       t.addAccumulate(2, 5, sum);
     },
     "buffer 5 is added up, but no collective of it starts afterwards"},
    {"SumInAnotherArena",
     [](TinyArtifact &t) { t.program().instructions[7]->operation.AsAccumulate()->sum = 2; },
     "adds up in buffer 2, which is no sum of its own"},
    {"SumOfNoBucket", [](TinyArtifact &t) { t.addAccumulate(2, 2, 6); },
     "adds up buffer 2, which is no bucket"},
    {"SumOfTwo", [](TinyArtifact &t) { t.addAccumulate(2, 5, 6); },
     "adds up in buffer 6, which is no sum of its own"},
    {"SumUsedOtherwise", [](TinyArtifact &t) { t.addDispatch(0, {0, 6, 5}); },
     "buffer 6 is a sum's, of which not every run has one"},
    {"SumByAnotherKernel",
     [](TinyArtifact &t) { t.program().instructions[7]->operation.AsAccumulate()->kernel = 1; },
     "adds up by kernel 'update', which does not take buffer 5 and its sum"},
    {"SumByNoKernel",
     [](TinyArtifact &t) { t.program().instructions[7]->operation.AsAccumulate()->kernel = 9; },
     "no kernel 9"},
    {"TwoInputsOfOneBuffer",
     [](TinyArtifact &t) {
       t.program().inputs.push_back(
           std::make_unique<artifact::ProgramInputT>(*t.program().inputs[0]));
       t.program().inputs[1]->name = "second";
     },
     "input 'second' has the buffer of another one"},
    {"ReadBeforeItsWriter",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       std::rotate(list.begin() + 2, list.end() - 1, list.end());
     },
     "reads buffer 3, which nothing has written"},
    {"HalfOfItWritten",
     [](TinyArtifact &t) {
       t.root.arenas[2]->bytes = 1024;
       uint32_t whole = t.addBuffer("", 2, 128, {tinyElements}, 0, 0, 20);
       uint32_t copy = t.addBuffer("", 2, 576, {tinyElements}, 0, 0, 20);
       uint32_t half = t.addBuffer("", 2, 128, {tinyElements / 2}, 0, 0, 20);
       uint32_t value = t.addBuffer("", 0, 0, {tinyElements / 2}, -1, 0, 0);
       t.root.buffers[half]->alias_of = static_cast<int32_t>(whole);
       t.root.buffers[value]->alias_of = 0;
       addCopy(t, artifact::Stream::Compute, value, half);
       addCopy(t, artifact::Stream::Compute, whole, copy);
     },
     "reads buffer 7, which nothing has written"},
    {"APartIsMissing", [](TinyArtifact &t) { writeInParts(t, {3}); },
     "reads buffer 7, which nothing has written"},
    {"APartIsWrittenTwice", [](TinyArtifact &t) { writeInParts(t, {3, 3}); },
     "reads buffer 7, which nothing has written"},
    {"PartOfALibraryKernel",
     [](TinyArtifact &t) {
       t.root.kernels[0]->kind = artifact::KernelKind::Library;
       t.root.kernels[0]->plan = {1};
       t.root.kernels[0]->part = 1;
     },
     "writes a part, but not of one buffer"},
    {"PartBeyondTheBuffer", [](TinyArtifact &t) { t.root.kernels[0]->part = tinyElements; },
     "writes a part, but not of one buffer"},
    {"PartInPlace", [](TinyArtifact &t) { t.root.kernels[1]->part = 1; },
     "writes a part, but not of one buffer"},
    {"UpdateInBackward",
     [](TinyArtifact &t) { t.program().instructions[12]->phase = artifact::Phase::Backward; },
     "writes buffer 0, a variable's that the optimizer alone may change"},
    {"UpdatedTwice",
     [](TinyArtifact &t) {
       t.addDispatch(1, {0, 5, 1});
       t.program().instructions.back()->phase = artifact::Phase::Optimizer;
     },
     "writes buffer 0, a variable's, a second time in a step"},
    {"LibraryInPlace",
     [](TinyArtifact &t) {
       t.root.kernels[0]->kind = artifact::KernelKind::Library;
       t.root.kernels[0]->plan = {1};
       t.addDispatch(0, {0, 5, 5});
     },
     "kernel 'gradient' writes buffer 5 over buffer 5, which it uses otherwise"},
    {"PartlyInPlace",
     [](TinyArtifact &t) {
       uint32_t first = t.addBuffer("", 3, 0, {50}, 0, 0, 20);
       uint32_t shifted = t.addBuffer("", 3, 100, {50}, 0, 0, 20);
       t.root.buffers[first]->alias_of = t.root.buffers[shifted]->alias_of = 5;
       t.addKernel("shift", "shift", {first, shifted},
                   {artifact::Access::Read, artifact::Access::Write});
       t.addDispatch(3, {first, shifted});
     },
     "writes buffer 8 over buffer 7, which it uses otherwise"},
    {"ReadsWhatItWrites",
     [](TinyArtifact &t) {
       uint32_t fresh = t.addBuffer("", 3, 448, {tinyElements}, 0, 0, 20);
       t.root.arenas[3]->bytes = 896;
       t.addKernel("late", "late", {fresh, fresh},
                   {artifact::Access::Write, artifact::Access::Read});
       t.addDispatch(3, {fresh, fresh});
     },
     "reads buffer 7, which nothing has written"},
    {"ViewInsideOfAMember",
     [](TinyArtifact &t) {
       uint32_t first = t.addBuffer("", 3, 0, {}, 0, 0, 20);
       t.root.buffers[first]->alias_of = 5;
       artifact::CopyT copy;
       copy.source = 1;
       copy.destination = first;
       t.program().instructions[6]->operation.Set(copy);
     },
     "sums 4 bytes over ranks for members of 400"},
    {"NoVariablesBuffer",
     [](TinyArtifact &t) {
       t.root.buffers[5]->program = -1;
       t.program().instructions.erase(t.program().instructions.begin() + 6);
     },
     "belongs to no program, but lies in no arena of variables"},
    {"SumOverRanksOfNothing",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       list.erase(list.begin() + 6, list.begin() + 8);
     },
     "reads buffer 5, which nothing has written"},
    {"WrittenAfterItsDownload",
     [](TinyArtifact &t) { addCopy(t, artifact::Stream::Compute, 1, 3); },
     "writes buffer 3, which the host has taken"},
    {"NothingWaitsForTheUpload",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       list.erase(list.begin() + 5);
     },
     "buffer 2 meets memory of instruction 0, and nothing orders the two"},
    {"UsedBeforeItsUpload",
     [](TinyArtifact &t) {
       auto &list = t.program().instructions;
       std::swap(list[1], list[2]);
     },
     "buffer 1 is used before the host's value is there"},
    {"NeverUploaded",
     [](TinyArtifact &t) { t.program().instructions[0]->operation.AsUpload()->buffers.clear(); },
     "buffer 2 is used before the host's value is there"},
    {"UploadOfAWeight", [](TinyArtifact &t) { t.addUpload({0}); },
     "uploads buffer 0, which holds nothing of the host's"},
    {"UploadOfNothing", [](TinyArtifact &t) { t.addUpload({99}); }, "uploads buffer 99"},
    {"UploadTwice", [](TinyArtifact &t) { t.addUpload({1}); }, "or was uploaded before"},
    {"UploadOfBoth",
     [](TinyArtifact &t) {
       t.program().instructions[0]->operation.AsUpload()->buffers = {2, 1};
       t.program().instructions[1]->operation.AsUpload()->buffers.clear();
     },
     "uploads inputs and scalars in one"},
    {"Download",
     [](TinyArtifact &t) { t.program().instructions.back()->operation.AsDownload()->result = 9; },
     "no such result"},
    {"DownloadTwice",
     [](TinyArtifact &t) { t.addInstruction(artifact::Stream::Compute, artifact::DownloadT()); },
     "downloads result 0 a second time"},
    {"LossOfAnotherName", [](TinyArtifact &t) { t.program().results[0]->name = "l"; },
     "result 'l' is a loss"},
    {"MetricCalledLoss",
     [](TinyArtifact &t) { t.program().results[0]->kind = artifact::ResultKind::Metric; },
     "result 'loss' is none, but a loss's name"},
    {"MetricTwice",
     [](TinyArtifact &t) {
       for (int times = 0; times < 2; ++times) {
         auto metric = std::make_unique<artifact::ResultT>(*t.program().results[0]);
         metric->name = "m";
         metric->kind = artifact::ResultKind::Metric;
         t.program().results.push_back(std::move(metric));
       }
     },
     "result 'm' is defined twice"},
    {"NoLoss",
     [](TinyArtifact &t) {
       t.program().results[0]->kind = artifact::ResultKind::Metric;
       t.program().results[0]->name = "m";
     },
     "has no loss, which training watches"},
    {"NeverDownloaded", [](TinyArtifact &t) { t.program().instructions.pop_back(); },
     "result 0 is never downloaded"},
    {"TilingOfNoImage",
     [](TinyArtifact &t) {
       t.program().tiling = std::make_unique<artifact::TilingT>();
       t.program().tiling->alignment = {2};
       t.program().tiling->overlap = {4};
     },
     "tiling that does not fit"},
    {"TilingOfTooManyAxes", [](TinyArtifact &t) { giveTiling(t, {2}, {4}); },
     "tiling that does not fit"},
    {"TilingAlignment", [](TinyArtifact &t) { giveTiling(t, {2, 2}, {4, 3}); },
     "tiling that does not fit"},
    {"TilingZero", [](TinyArtifact &t) { giveTiling(t, {2, 0}, {4, 0}); },
     "tiling that does not fit"},
};

INSTANTIATE_TEST_SUITE_P(All, ArtifactFault, ::testing::ValuesIn(faultCases),
                         [](const auto &info) { return info.param.name; });
