#include "tools/driver/Compilation.h"

#include "passes/codegen/cpu/GenerateKernels.h"
#include "passes/codegen/gpu/GenerateKernels.h"
#include "passes/exec/Export.h"
#include "passes/nn/ModelChecks.h"
#include "passes/planning/Decisions.h"
#include "passes/planning/PlanningTarget.h"
#include "runtime/artifact/Error.h"
#include "tools/driver/DumpPasses.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <thread>

using namespace mlir;
using namespace dlc;

static DialectRegistry dialects() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

Compilation::Compilation(const CompileOptions &options, llvm::raw_ostream &errors,
                         ProgressListener progress)
    : options(options), errors(errors), progress(std::move(progress)),
      context(dialects(), MLIRContext::Threading::DISABLED), diagnostics(context, errors) {}

bool Compilation::fail(const llvm::Twine &message) {
  errors << "dlc: " << message << "\n";
  return false;
}

bool Compilation::load(const ModelSource &source) {
  name = source.name;
  module = source.build(context, options.sets, errors);
  if (!module)
    return false;
  auto models = module->getOps<nn::ModelOp>();
  auto count = std::distance(models.begin(), models.end());
  if (count != 1)
    return fail("'" + name + "' holds " + llvm::Twine(count) + " models, expected one nn.model");
  loaded = *models.begin();
  return true;
}

//===- Lowering -------------------------------------------------------------------------------===//

static std::vector<GivenOption> givenOptions(const CompileOptions &options) {
  std::vector<GivenOption> given;
  auto addText = [&](const char *name, const std::optional<std::string> &value) {
    if (value)
      given.push_back({name, *value});
  };
  addText("precision", options.precision);
  addText("wire", options.wire);
  addText("target", options.target);
  addText("math", options.math);
  addText("link", options.link);
  if (!options.sources.empty())
    given.push_back({"source", llvm::join(options.sources, ",")});
  if (options.threads)
    given.push_back({"threads", std::to_string(*options.threads)});
  if (options.bucketSize)
    given.push_back({"bucket-size", std::to_string(*options.bucketSize)});
  if (options.noOverlap)
    given.push_back({"no-overlap", *options.noOverlap ? "true" : "false"});
  return given;
}

static bool isForGpu(const CompileOptions &options) {
  return llvm::StringRef(options.target.value_or("")).starts_with("cuda:");
}

static void setOptions(ScheduleOptions &schedule, const CompileOptions &options) {
  auto set = [](auto &option, const auto &given) {
    if (given)
      option = *given;
  };
  set(schedule.target, options.target);
  set(schedule.math, options.math);
  set(schedule.precision, options.precision);
  set(schedule.link, options.link);
  set(schedule.bucketSize, options.bucketSize);
  set(schedule.noOverlap, options.noOverlap);
  set(schedule.wire, options.wire);
  schedule.sources = llvm::join(options.sources, ",");
  schedule.memoryLimit = options.memoryLimit;
  schedule.threads =
      isForGpu(options)
          ? 1
          : options.threads.value_or(std::max(1u, std::thread::hardware_concurrency()));
}

namespace {
/// Tells each pass with the stage that the model has reached.
class PassProgress : public PassInstrumentation {
public:
  explicit PassProgress(const ProgressListener &progress) : progress(progress) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    // Passes without a name only run others.
    if (pass->getArgument().empty())
      return;
    while (Operation *parent = op->getParentOp())
      op = parent;
    llvm::StringRef stage;
    if (auto module = dyn_cast<ModuleOp>(op))
      for (auto model : module.getOps<nn::ModelOp>())
        stage = model.getStage();
    progress((stage + ": " + pass->getArgument()).str());
  }

private:
  const ProgressListener &progress;
};
} // namespace

bool Compilation::lower(nn::Stage stage) {
  if (std::optional<nn::Stage> present = nn::stageNamed(loaded.getStage());
      !present || *present > stage)
    return fail("'" + name + "' is at stage " + loaded.getStage() + " already, past " +
                nn::nameOf(stage));
  if (failed(verifyAttributes(loaded)))
    return false;
  if (std::string reason = findContradiction(loaded, givenOptions(options)); !reason.empty())
    return fail("'" + name + "' " + reason);
  if (isForGpu(options) && options.threads)
    return fail("--threads plans for the cores of a CPU; leave it out for " + *options.target);
  ScheduleOptions schedule;
  setOptions(schedule, options);
  PassManager manager(&context);
#ifdef NDEBUG
  // Each stage ends with a verification. One after each pass takes half as long as the passes, and
  // is for those who look for the pass at fault.
  manager.enableVerifier(!options.dumpPasses.empty());
#endif
  if (!options.dumpPasses.empty()) {
    if (std::error_code error = llvm::sys::fs::create_directories(options.dumpPasses))
      return fail("cannot make the directory '" + options.dumpPasses + "': " + error.message());
    manager.addInstrumentation(std::make_unique<DumpPasses>(options.dumpPasses));
  }
  if (progress)
    manager.addInstrumentation(std::make_unique<PassProgress>(progress));
  addStagesUpTo(manager, stage, schedule);
  return succeeded(manager.run(*module));
}

//===- Results --------------------------------------------------------------------------------===//

std::string Compilation::text() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.get()->print(stream, OpPrintingFlags().enableDebugInfo(true, false));
  return text;
}

uint64_t Compilation::plannedBytes() const {
  uint64_t bytes = 0;
  for (auto arena : model().getBody().getOps<exec::ArenaOp>())
    bytes += arena.getBytes().value_or(0) * (arena.getKind() == exec::ArenaKind::Inputs ? 2 : 1);
  std::shared_ptr<rt::KernelPlanner> planner = openPlanner(loaded);
  uint64_t largest = 0;
  if (planner && planner->target().memoryBytes > 0)
    model().walk([&](exec::StartOp start) {
      ShapedType bucket = start.getBucket().getType().getTensor();
      if (!start.getWire().isF32())
        largest = std::max(largest, static_cast<uint64_t>(bucket.getNumElements()) * sizeof(float));
    });
  return bytes + largest;
}

namespace {
/// Who emits kernels: a folder of passes/codegen/, by which a target's description names it.
struct Emitter {
  llvm::StringLiteral name;
  decltype(&emitCpuKernels) emit;
};
} // namespace
static constexpr Emitter emitters[] = {{"cpu", emitCpuKernels}, {"gpu", emitGpuKernels}};

bool Compilation::emitCode(EmittedCode &code, const CodeText &text) {
  if (progress)
    progress("code");
  std::shared_ptr<rt::KernelPlanner> planner = openPlanner(loaded);
  if (!planner)
    return false;
  const rt::PlannerTarget &target = planner->target();
  const auto *emitter =
      llvm::find_if(emitters, [&](const Emitter &it) { return it.name == target.emitter; });
  if (emitter == std::end(emitters))
    return fail("kernels of target " + target.name + " are emitted by '" + target.emitter +
                "', which this build does not have");
  return succeeded(emitter->emit(loaded, target, code, text));
}

std::optional<rt::Artifact> Compilation::emitArtifact() {
  EmittedCode code;
  if (!emitCode(code))
    return std::nullopt;
  FailureOr<std::vector<uint8_t>> file =
      exportArtifact(loaded, code, openPlanner(loaded)->target());
  if (failed(file))
    return std::nullopt;
  try {
    return rt::Artifact(std::move(*file), loaded.getSymName().str());
  } catch (const rt::Error &error) {
    fail("dlc-run would refuse it, so it is not written: " + llvm::Twine(error.what()) +
         "; mend the text if it was edited, else this is a fault of dlc");
    return std::nullopt;
  }
}
