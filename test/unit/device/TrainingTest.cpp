// Whole trainings on a device whose streams run late, bit for bit those on the CPU, and the faults
// that such a device has to find. Shown on compiled models.

#include "test/unit/CompiledModel.h"
#include "test/unit/device/Devices.h"

#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/Philox.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace dlc::rt::test {
namespace {

/// Numbers of this rank and step; integers are classes 0..9.
void fill(std::span<std::byte> memory, artifact::DType dtype, uint32_t stream, uint32_t step) {
  for (size_t i = 0; i < memory.size() / 4; ++i) {
    uint32_t bits = philoxBits(1, stream, step, i);
    float real = uniform01(bits);
    auto whole = static_cast<int32_t>(bits % 10);
    std::memcpy(&memory[i * 4], dtype == artifact::DType::F32 ? static_cast<void *>(&real) : &whole,
                4);
  }
}

/// A compiled model, its tensors in plain layouts' sizes; none if this build has no compiler.
std::optional<Artifact> compile(const std::string &model, const std::string &options) {
  if (!test::hasCompiler())
    return std::nullopt;
  return Artifact(test::compiledModel(test::models / model, options));
}

constexpr const char *mnist = "mnist_cnn.dl", *mnistOptions = "--set batch=2 --bucket-size=65536";
constexpr const char *unet = "unet2d.dl",
                     *unetOptions = "--set base=6 --set depth=2 --set size=32 --set batch=2 --set "
                                    "predict.size=32 --bucket-size=65536";

/// What a training leaves: all figures and all variables.
struct Outcome {
  std::vector<std::vector<float>> values;

  bool operator==(const Outcome &other) const {
    auto equalBits = [](const std::vector<float> &a, const std::vector<float> &b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
    };
    return std::ranges::equal(values, other.values, equalBits);
  }
};

struct Course {
  uint32_t steps = 3;
  int64_t microBatches = 1;
  bool resumes = false; // after the first step, in a new session
};

class Training {
public:
  Training(const Artifact &artifact, ControlPlane &control, const DeviceKind &kind)
      : artifact(artifact), control(control) {
    options.threads = 1;
    options.seed = 3;
    options.makeDevice = kind.make;
    session = std::make_unique<Session>(artifact, control, options);
  }

  Outcome run(const Course &course) {
    if (course.microBatches > 1)
      session->accumulate("train");
    for (uint32_t step = 0; step < course.steps; ++step) {
      for (int64_t part = 0; part < course.microBatches; ++part)
        runPart(step, {part, course.microBatches});
      if (course.resumes && step == 0)
        resume();
    }
    runProgram("eval", 8, {}); // a slot whose last step was waited for
    for (std::vector<float> &values : variables())
      outcome.values.push_back(std::move(values));
    return outcome;
  }

private:
  void runPart(uint32_t step, MicroBatch part) {
    runProgram("train", step * part.count + part.index, part);
  }

  void runProgram(const std::string &name, uint32_t batch, MicroBatch part) {
    const artifact::Program &program = *artifact.program(name);
    session->setScalar("lr", 0.01);
    session->setScalar("seed", int64_t{3});
    session->setScalar("step", int64_t{batch});
    session->setScalar("inverse_world", 1.0 / static_cast<double>(control.size() * part.count));
    session->setScalar("first_row",
                       (control.rank() * part.count + part.index) * int64_t{program.batch()});
    session->setScalar("valid_rows", int64_t{program.batch()});
    for (const artifact::ProgramInput *input : *program.inputs()) {
      artifact::DType dtype = artifact->buffers()->Get(input->buffer())->type()->dtype();
      fill(session->input(name, input->name()->str(), batch % 2), dtype,
           static_cast<uint32_t>(control.rank()), batch);
    }
    session->run(name, batch % 2, batch, part);
    // Not each time: runs may be pending together.
    if (batch % 2 == 0 || name != "train")
      for (const Pair &pair : session->results(name, batch % 2))
        outcome.values.push_back({static_cast<float>(pair.sum), static_cast<float>(pair.count)});
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const artifact::Variable *variable : *artifact->variables())
      if (variable->kind() != artifact::VariableKind::Scalar)
        names.push_back(variable->name()->str());
    return names;
  }
  std::vector<std::vector<float>> variables() const {
    std::vector<std::vector<float>> values;
    for (const std::string &name : names())
      values.push_back(session->read(name));
    return values;
  }
  void resume() {
    std::vector<std::vector<float>> values = variables();
    options.seed = 4;
    session = nullptr;
    session = std::make_unique<Session>(artifact, control, options);
    for (size_t i = 0; i < values.size(); ++i)
      session->write(names()[i], values[i]);
  }

  const Artifact &artifact;
  ControlPlane &control;
  SessionOptions options;
  std::unique_ptr<Session> session;
  Outcome outcome;
};

std::vector<Outcome> train(const Artifact &artifact, const DeviceKind &kind, int ranks,
                           const Course &course) {
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  runInProcess(ranks, [&](ControlPlane &control) {
    control.setTimeout(60);
    outcomes[static_cast<size_t>(control.rank())] = Training(artifact, control, kind).run(course);
  });
  return outcomes;
}

void expectTheCpusBits(const char *model, const char *options, int ranks, const Course &course) {
  std::optional<Artifact> artifact = compile(model, options);
  if (!artifact)
    GTEST_SKIP() << "this build has no compiler";
  std::vector<Outcome> wanted = train(*artifact, cpuDevice(), ranks, course);
  for (uint64_t seed = 0; seed < 4; ++seed)
    EXPECT_TRUE(train(*artifact, asynchronousDevice(seed), ranks, course) == wanted)
        << "seed " << seed;
}

TEST(AsynchronousTraining, OfMnistIsTheCpus) { expectTheCpusBits(mnist, mnistOptions, 1, {}); }
TEST(AsynchronousTraining, OfUnetIsTheCpus) { expectTheCpusBits(unet, unetOptions, 1, {}); }
TEST(AsynchronousTraining, OfTwoRanksIsTheCpus) {
  expectTheCpusBits(mnist, mnistOptions, 2, {});
  expectTheCpusBits(unet, unetOptions, 2, {});
}
TEST(AsynchronousTraining, ResumedIsTheCpus) {
  Course course;
  course.resumes = true;
  expectTheCpusBits(mnist, mnistOptions, 1, course);
  expectTheCpusBits(unet, unetOptions, 2, course);
}
TEST(AsynchronousTraining, OfMicroBatchesIsTheCpus) {
  Course course;
  course.microBatches = 3;
  expectTheCpusBits(mnist, mnistOptions, 2, course);
}

/// Whether some order of streams shows a fault as bits that are not the CPU's.
bool isFound(const Artifact &artifact, AsynchronousOptions faulty) {
  Course course;
  course.steps = 2;
  std::vector<Outcome> wanted = train(artifact, cpuDevice(), 1, course);
  for (faulty.seed = 0; faulty.seed < 24; ++faulty.seed)
    if (train(artifact, asynchronousDevice(faulty), 1, course) != wanted)
      return true;
  return false;
}

bool isWait(const ResolvedProgram::Instruction &instruction) {
  return std::holds_alternative<ResolvedProgram::Wait>(instruction.operation) ||
         std::holds_alternative<ResolvedProgram::WaitEvent>(instruction.operation);
}

/// Every wait of a training step, one after the other; the first is for its inputs.
TEST(AsynchronousDevice, FindsEveryWaitThatIsMissing) {
  std::optional<Artifact> artifact = compile(mnist, mnistOptions);
  if (!artifact)
    GTEST_SKIP() << "this build has no compiler";
  for (size_t removed = 0;; ++removed) {
    size_t waits = 0;
    std::string what;
    AsynchronousOptions options;
    options.edit = [&](ResolvedProgram &program) {
      if (program.collectives.empty()) // eval, predict
        return;
      waits = 0;
      for (size_t i = 0; i < program.instructions.size(); ++i)
        if (isWait(program.instructions[i]) && waits++ == removed) {
          what = std::to_string(i);
          program.instructions[i].operation = ResolvedProgram::RecordEvent{program.events};
          break;
        }
    };
    bool found = isFound(*artifact, options);
    if (what.empty()) {
      EXPECT_FALSE(found) << "nothing was removed";
      EXPECT_GT(removed, 2u);
      return;
    }
    EXPECT_TRUE(found) << "instruction " << what;
  }
}

TEST(AsynchronousDevice, FaultsWhereTheHostTouchesAnArena) {
  std::optional<Artifact> artifact = compile(mnist, mnistOptions);
  if (!artifact)
    GTEST_SKIP() << "this build has no compiler";
  std::unique_ptr<ControlPlane> control = makeSingleControlPlane();
  for (artifact::ArenaKind kind : artifact::EnumValuesArenaKind()) {
    auto touch = [&](bool writes) {
      AsynchronousDevice device(cpuDevice().make(*(*artifact)->target(), 1, *control));
      auto *memory = reinterpret_cast<volatile char *>(device.allocate(kind, 64).address);
      std::signal(SIGSEGV, SIG_DFL); // sanitizers end the process in another way
      if (writes)
        *memory = 0;
      else
        (void)*memory;
      std::exit(0);
    };
    EXPECT_EXIT(touch(false), testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(touch(true), testing::KilledBySignal(SIGSEGV), "");
  }
}

} // namespace
} // namespace dlc::rt::test
