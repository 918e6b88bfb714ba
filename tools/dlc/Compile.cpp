// Loads the model, runs the pipelines of the stages it has not passed yet, and writes what was
// asked for.

#include "tools/dlc/Compile.h"

#include "frontend/Frontend.h"
#include "passes/Passes.h"
#include "passes/codegen/cpu/GenerateKernels.h"
#include "passes/exec/Export.h"
#include "passes/nn/ModelChecks.h"
#include "passes/planning/BatchSearch.h"
#include "passes/planning/Decisions.h"
#include "passes/planning/PlanningTarget.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/Writer.h"
#include "tools/dlc/Diagnostics.h"
#include "tools/dlc/DumpPasses.h"
#include "tools/dlc/InspectModel.h"
#include "tools/dlc/Progress.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ToolOutputFile.h"

#include <iostream>
#include <thread>

using namespace mlir;
using namespace dlc;

namespace {
constexpr const char *stages[] = {"nn", "train", "schedule", "exec"};

/// Position of a stage in the pipeline; what follows exec needs all four.
size_t stageNumber(llvm::StringRef name) {
  size_t number = 0;
  while (number < std::size(stages) - 1 && name != stages[number])
    ++number;
  return number;
}

/// What generated code may use: exactly the instruction sets that the target's artifacts demand of
/// their host.
CodeTarget codeTarget(const rt::PlannerTarget &target) {
  CodeTarget code;
  code.cpu = "x86-64";
  for (const std::string &feature : target.features)
    code.features += (code.features.empty() ? "+" : ",+") + feature;
  code.vectorBytes = target.vectorBits / 8;
  code.loops = target.loops;
  return code;
}

class Compilation {
public:
  /// Errors go to `errors`, one line each.
  Compilation(const CompileOptions &options, llvm::raw_ostream &errors);
  int run();
  /// Bytes that the memory plan gives a rank; nothing if there is no plan.
  std::optional<uint64_t> plan();

private:
  friend int dlc::inspectModel(const CompileOptions &, bool);
  int fail(const llvm::Twine &message) {
    errors << "dlc: " << message << "\n";
    return 1;
  }
  bool load();
  bool lower();
  int writeText();
  int writeCode(bool linalg);
  int writeArtifact();
  int writeTo(llvm::StringRef path, llvm::StringRef text);
  bool emitCode(std::string &code, llvm::raw_ostream *linalg, llvm::raw_ostream *llvmText);
  uint64_t plannedBytes();
  int checkMemory();

  CompileOptions options;
  llvm::raw_ostream &errors;
  Progress progress;
  MLIRContext context;
  OneLineDiagnostics diagnostics;
  OwningOpRef<ModuleOp> module;
  nn::ModelOp model;
};
} // namespace

Compilation::Compilation(const CompileOptions &given, llvm::raw_ostream &errors)
    : options(given), errors(errors), progress(errors),
      context(registryOfDialects(), MLIRContext::Threading::DISABLED),
      diagnostics(context, errors) {
  // A table of costs is a CPU's.
  if (options.target && StringRef(*options.target).ends_with(".json") &&
      !StringRef(*options.target).contains(':'))
    options.target = "cpu:" + *options.target;
}

//===- Loading and lowering -------------------------------------------------------------------===//

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
  if (options.threads)
    given.push_back({"threads", std::to_string(*options.threads)});
  if (options.bucketSize)
    given.push_back({"bucket-size", std::to_string(*options.bucketSize)});
  if (options.noOverlap)
    given.push_back({"no-overlap", *options.noOverlap ? "true" : "false"});
  return given;
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
  schedule.threads = options.threads.value_or(std::max(1u, std::thread::hardware_concurrency()));
}

bool Compilation::load() {
  if (!llvm::sys::fs::exists(options.input)) {
    fail("cannot find the model '" + options.input + "'");
    return false;
  }
  llvm::StringRef extension = llvm::sys::path::extension(options.input);
  if (extension == ".dl") {
    fe::Options frontend;
    frontend.sets = options.sets;
    module = fe::elaborateFile(options.input, frontend, context, errors);
  } else if (extension == ".mlir") {
    if (!options.sets.empty()) {
      fail("--set changes parameters of a .dl model; '" + options.input + "' has none");
      return false;
    }
    module = parseSourceFile<ModuleOp>(options.input, &context);
  } else {
    fail("'" + options.input + "' is no model: expected .dl or .mlir");
    return false;
  }
  if (!module)
    return false;
  auto models = module->getOps<nn::ModelOp>();
  if (std::distance(models.begin(), models.end()) != 1) {
    fail("'" + options.input + "' holds " +
         llvm::Twine(std::distance(models.begin(), models.end())) +
         " models, expected one nn.model");
    return false;
  }
  model = *models.begin();
  return true;
}

bool Compilation::lower() {
  size_t present = stageNumber(model.getStage()), wanted = stageNumber(options.emit);
  if (present > wanted) {
    fail("'" + options.input + "' is at stage " + model.getStage() + " already, past " +
         options.emit);
    return false;
  }
  if (failed(verifyAttributes(model)))
    return false;
  if (std::string reason = findContradiction(model, givenOptions(options)); !reason.empty()) {
    fail("'" + options.input + "' " + reason);
    return false;
  }
  ScheduleOptions schedule;
  setOptions(schedule, options);
  PassManager manager(&context);
#ifdef NDEBUG
  // Each stage ends with a verification. One after each pass takes half as long as the passes, and
  // is for those who look for the pass at fault.
  manager.enableVerifier(!options.dumpPasses.empty());
#endif
  if (!options.dumpPasses.empty()) {
    if (std::error_code error = llvm::sys::fs::create_directories(options.dumpPasses)) {
      fail("cannot make the directory '" + options.dumpPasses + "': " + error.message());
      return false;
    }
    manager.addInstrumentation(std::make_unique<DumpPasses>(options.dumpPasses));
  }
  manager.addInstrumentation(std::make_unique<PassProgress>(progress));
  addStagesUpTo(manager, stages[wanted], schedule);
  return succeeded(manager.run(*module));
}

//===- Writing --------------------------------------------------------------------------------===//

int Compilation::writeTo(llvm::StringRef path, llvm::StringRef text) {
  std::error_code error;
  llvm::ToolOutputFile file(path.empty() ? "-" : path, error, llvm::sys::fs::OF_None);
  if (error)
    return fail("cannot write '" + path + "': " + error.message());
  file.os() << text;
  file.os().flush();
  if (file.os().has_error()) {
    file.os().clear_error();
    return fail("cannot write '" + path + "': the disk may be full");
  }
  file.keep();
  return 0;
}

int Compilation::writeText() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // Locations carry the layers' names, which later stages report.
  module->print(stream, OpPrintingFlags().enableDebugInfo(true, false));
  return writeTo(options.output, text);
}

bool Compilation::emitCode(std::string &code, llvm::raw_ostream *linalg,
                           llvm::raw_ostream *llvmText) {
  std::shared_ptr<rt::KernelPlanner> planner = openPlanner(model);
  return planner &&
         succeeded(emitClusters(model, codeTarget(planner->target()), code, linalg, llvmText));
}

int Compilation::writeCode(bool linalg) {
  std::string code, text;
  llvm::raw_string_ostream stream(text);
  if (!emitCode(code, linalg ? &stream : nullptr, linalg ? nullptr : &stream))
    return 1;
  return writeTo(options.output, text);
}

//===- Memory ---------------------------------------------------------------------------------===//

std::string sizeText(uint64_t bytes) {
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  constexpr const char *units[] = {"bytes", "KiB", "MiB", "GiB"};
  for (; size >= 1024 && unit + 1 < std::size(units); ++unit)
    size /= 1024;
  return llvm::formatv(unit ? "{0:f2} {1}" : "{0:f0} {1}", size, units[unit]).str();
}

CompileOptions withBatch(CompileOptions options, const std::string &batch) {
  std::erase_if(options.sets, [](llvm::StringRef set) { return set.starts_with("batch="); });
  options.sets.push_back("batch=" + batch);
  return options;
}

/// The largest batch below `most` within the limit, 0 if there is none; nothing if the model cannot
/// be planned at some batch, whose errors go to `errors`.
std::optional<int64_t> fittingBatch(const CompileOptions &options, int64_t most,
                                    llvm::raw_ostream &errors) {
  auto bytesOf = [&](int64_t batch) {
    CompileOptions trial = withBatch(options, std::to_string(batch));
    trial.emit = "exec";
    trial.dumpPasses.clear();
    return Compilation(trial, errors).plan();
  };
  return largestBatch(bytesOf, options.memoryLimit, most);
}

/// What to do about a plan that is too large, as the end of a message.
std::string adviceOnMemory(const CompileOptions &options, int64_t batch) {
  std::optional<int64_t> fits;
  if (llvm::StringRef(options.input).ends_with(".dl"))
    fits = batch > 1 ? fittingBatch(options, batch - 1, llvm::nulls()) : 0;
  if (!fits)
    return "reduce the batch or the size of the model";
  if (*fits == 0)
    return "not even batch 1 fits, reduce the size of the model";
  return "the largest batch that fits is " + std::to_string(*fits) +
         " (--set batch=" + std::to_string(*fits) + ")";
}

uint64_t Compilation::plannedBytes() {
  uint64_t bytes = 0;
  for (auto arena : model.getBody().getOps<exec::ArenaOp>())
    bytes += arena.getBytes().value_or(0) * (arena.getKind() == exec::ArenaKind::Inputs ? 2 : 1);
  return bytes;
}

std::optional<uint64_t> Compilation::plan() {
  return load() && lower() ? std::optional(plannedBytes()) : std::nullopt;
}

/// Refuses a plan that exceeds --memory-limit.
int Compilation::checkMemory() {
  uint64_t bytes = plannedBytes();
  if (options.memoryLimit == 0 || bytes <= options.memoryLimit)
    return 0;
  auto batch = model->getAttrOfType<IntegerAttr>("batch");
  return fail("the plan" + (batch ? " of batch " + std::to_string(batch.getInt()) : std::string()) +
              " needs " + sizeText(bytes) + " per rank, --memory-limit allows " +
              sizeText(options.memoryLimit) + ": " +
              adviceOnMemory(options, batch ? batch.getInt() : 1));
}

int Compilation::writeArtifact() {
  if (int code = checkMemory())
    return code;
  progress.show("compiling: code");
  std::shared_ptr<rt::KernelPlanner> planner = openPlanner(model);
  std::string code;
  if (!planner || !emitCode(code, nullptr, nullptr))
    return 1;
  FailureOr<std::vector<uint8_t>> file = exportArtifact(model, code, planner->target());
  if (failed(file))
    return 1;
  std::string path = options.output.empty() ? model.getSymName().str() + ".dlx" : options.output;
  try {
    rt::Artifact artifact(*file, path); // as dlc-run will verify it
    std::string reason = rt::ArtifactWriter::writeFile(path, *file);
    if (!reason.empty())
      return fail(reason);
    progress.show("");
    llvm::outs() << closingLine(artifact) << "\n";
    return 0;
  } catch (const rt::Error &error) {
    return fail("dlc-run would refuse it, so it is not written: " + std::string(error.what()) +
                "; mend the text if it was edited, else this is a fault of dlc");
  }
}

int Compilation::run() {
  if (!load() || !lower())
    return 1;
  if (options.emit == "dlx")
    return writeArtifact();
  if (options.emit == "linalg" || options.emit == "llvm")
    return writeCode(options.emit == "linalg");
  return writeText();
}

int dlc::compile(const CompileOptions &options) {
  if (llvm::find(options.sets, "batch=max") == options.sets.end())
    return Compilation(options, llvm::errs()).run();
  if (options.memoryLimit == 0) {
    llvm::errs() << "dlc: batch=max takes what --memory-limit=BYTES allows, and none was given\n";
    return 1;
  }
  constexpr int64_t most = 1 << 20;
  std::optional<int64_t> batch = fittingBatch(options, most, llvm::errs());
  if (!batch)
    return 1;
  if (*batch > 0)
    llvm::errs() << "dlc: the largest batch in " << sizeText(options.memoryLimit) << " is "
                 << *batch << "\n";
  return Compilation(withBatch(options, std::to_string(std::max(*batch, int64_t{1}))), llvm::errs())
      .run();
}

//===- Inspecting a model ---------------------------------------------------------------------===//

int dlc::inspectModel(const CompileOptions &options, bool json) {
  Compilation compilation(options, llvm::errs());
  if (!compilation.load())
    return 1;
  if (compilation.model.getBody().getOps<nn::ProgramOp>().empty())
    return compilation.fail("'" + options.input + "' has no program of nn ops to inspect");
  nlohmann::ordered_json description = describeModel(compilation.model);
  compilation.options.emit = "nn";
  if (compilation.model.getStage() == "nn" && !compilation.lower())
    return 1;
  describeTiling(compilation.model, description);
  if (json)
    std::cout << description.dump(2) << "\n";
  else
    printModel(description, std::cout);
  return 0;
}
