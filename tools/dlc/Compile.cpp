// Loads the model, runs the pipelines of the stages it has not passed yet, and writes what was
// asked for.

#include "tools/dlc/Compile.h"

#include "frontend/Frontend.h"
#include "passes/Export.h"
#include "passes/GeneratedKernels.h"
#include "passes/KernelRequests.h"
#include "passes/Passes.h"
#include "runtime/artifact/Writer.h"
#include "tools/dlc/Diagnostics.h"
#include "tools/dlc/DumpPasses.h"
#include "tools/dlc/InspectModel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
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
  return code;
}

int fail(const llvm::Twine &message) {
  llvm::errs() << "dlc: " << message << "\n";
  return 1;
}

class Compilation {
public:
  explicit Compilation(const CompileOptions &options);
  int run();

private:
  friend int dlc::inspectModel(const CompileOptions &, bool);
  bool load();
  bool lower();
  int writeText();
  int writeCode(bool linalg);
  int writeArtifact();
  int writeTo(llvm::StringRef path, llvm::StringRef text);
  bool emitCode(std::string &code, llvm::raw_ostream *linalg, llvm::raw_ostream *llvmText);
  int checkMemory();

  CompileOptions options;
  MLIRContext context;
  OneLineDiagnostics diagnostics;
  OwningOpRef<ModuleOp> module;
  nn::ModelOp model;
};
} // namespace

Compilation::Compilation(const CompileOptions &given)
    : options(given), context(registryOfDialects(), MLIRContext::Threading::DISABLED),
      diagnostics(context) {
  if (options.threads == 0)
    options.threads = std::max(1u, std::thread::hardware_concurrency());
}

//===- Loading and lowering -------------------------------------------------------------------===//

bool Compilation::load() {
  if (!llvm::sys::fs::exists(options.input)) {
    fail("cannot find the model '" + options.input + "'");
    return false;
  }
  llvm::StringRef extension = llvm::sys::path::extension(options.input);
  if (extension == ".dl") {
    fe::Options frontend;
    frontend.sets = options.sets;
    module = fe::elaborateFile(options.input, frontend, context, llvm::errs());
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
  if (present > stageNumber("nn") && options.wire != "f32") {
    fail("'" + options.input + "' is at stage " + model.getStage() +
         " already: --wire is decided before that");
    return false;
  }
  ScheduleOptions schedule;
  schedule.target = options.target;
  schedule.threads = options.threads;
  schedule.math = options.math;
  schedule.link = options.link;
  schedule.bucketSize = options.bucketSize;
  schedule.noOverlap = options.noOverlap;
  schedule.wire = options.wire;
  PassManager manager(&context);
  if (!options.dumpPasses.empty()) {
    if (std::error_code error = llvm::sys::fs::create_directories(options.dumpPasses)) {
      fail("cannot make the directory '" + options.dumpPasses + "': " + error.message());
      return false;
    }
    manager.addInstrumentation(std::make_unique<DumpPasses>(options.dumpPasses));
  }
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
  std::unique_ptr<rt::KernelPlanner> planner = openPlanner(model);
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

/// Refuses a plan that exceeds --memory-limit.
int Compilation::checkMemory() {
  uint64_t bytes = 0;
  for (auto arena : model.getBody().getOps<exec::ArenaOp>())
    bytes += arena.getBytes().value_or(0) * (arena.getKind() == exec::ArenaKind::Inputs ? 2 : 1);
  if (options.memoryLimit == 0 || bytes <= options.memoryLimit)
    return 0;
  return fail("the plan needs " + llvm::Twine(bytes) + " bytes per rank, --memory-limit allows " +
              llvm::Twine(options.memoryLimit) + ": reduce the batch or the size of the model");
}

int Compilation::writeArtifact() {
  if (int code = checkMemory())
    return code;
  std::unique_ptr<rt::KernelPlanner> planner = openPlanner(model);
  std::string code;
  if (!planner || !emitCode(code, nullptr, nullptr))
    return 1;
  ExportOptions how;
  how.threads = options.threads;
  how.math = options.math;
  if (std::optional<Link> link = Link::parse(options.link)) {
    how.linkGbit = link->gbitPerSecond;
    how.linkMicroseconds = link->latencyMicroseconds;
  }
  std::vector<uint8_t> file = exportArtifact(model, code, planner->target(), how);
  std::string path = options.output.empty() ? model.getSymName().str() + ".dlx" : options.output;
  std::string reason = rt::ArtifactWriter::writeFile(path, file);
  return reason.empty() ? 0 : fail(reason);
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

int dlc::compile(const CompileOptions &options) { return Compilation(options).run(); }

//===- Inspecting a model ---------------------------------------------------------------------===//

int dlc::inspectModel(const CompileOptions &options, bool json) {
  Compilation compilation(options);
  if (!compilation.load())
    return 1;
  if (compilation.model.getBody().getOps<nn::ProgramOp>().empty())
    return fail("'" + options.input + "' has no program of nn ops to inspect");
  nlohmann::ordered_json description = describeModel(compilation.model);
  if (json)
    std::cout << description.dump(2) << "\n";
  else
    printModel(description, std::cout);
  return 0;
}
