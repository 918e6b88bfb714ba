#include "tools/driver/Compile.h"

#include "passes/planning/BatchSearch.h"
#include "passes/planning/Decisions.h"
#include "passes/planning/PlanningTarget.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace dlc;

std::vector<std::string> dlc::outputNames() {
  static_assert(std::size(nn::stageNames) == static_cast<size_t>(Output::Linalg));
  std::vector<std::string> names(std::begin(nn::stageNames), std::end(nn::stageNames));
  names.insert(names.end(), {"linalg", "llvm", "ptx", "dlx"});
  return names;
}

std::optional<Output> dlc::outputNamed(llvm::StringRef name) {
  std::vector<std::string> names = outputNames();
  auto found = llvm::find(names, name);
  if (found == names.end())
    return std::nullopt;
  return static_cast<Output>(found - names.begin());
}

nn::Stage dlc::stageFor(Output output) {
  return output < Output::Linalg ? static_cast<nn::Stage>(output) : nn::Stage::Exec;
}

//===- Memory ---------------------------------------------------------------------------------===//

static std::string sizeText(uint64_t bytes) {
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  constexpr const char *units[] = {"bytes", "KiB", "MiB", "GiB"};
  for (; size >= 1024 && unit + 1 < std::size(units); ++unit)
    size /= 1024;
  return llvm::formatv(unit ? "{0:f2} {1}" : "{0:f0} {1}", size, units[unit]).str();
}

static CompileOptions withBatch(CompileOptions options, const std::string &batch) {
  std::erase_if(options.sets, [](llvm::StringRef set) { return set.starts_with("batch="); });
  options.sets.push_back("batch=" + batch);
  return options;
}

namespace {
/// What bounds the bytes of a plan, and how messages say it.
struct MemoryLimit {
  uint64_t bytes = 0; // 0: nothing does
  std::string text;
};
} // namespace

/// The lower one of the user's limit and what a device has.
static MemoryLimit memoryLimit(const rt::PlannerTarget &target, const CompileOptions &options) {
  bool isOfDevice = target.memoryBytes > 0 &&
                    (options.memoryLimit == 0 || target.memoryBytes < options.memoryLimit);
  if (isOfDevice)
    return {target.memoryBytes, target.name + " has " + sizeText(target.memoryBytes) + " beside " +
                                    target.besideMemory};
  return {options.memoryLimit, "--memory-limit allows " + sizeText(options.memoryLimit)};
}

/// The limit for a model that is not planned yet.
static std::optional<MemoryLimit> limitBeforePlanning(const CompileOptions &options,
                                                      llvm::raw_ostream &errors) {
  MLIRContext context;
  std::string reason;
  std::shared_ptr<rt::KernelPlanner> planner =
      openPlanner(&context, options.target.value_or(DefaultDecisions::target),
                  options.threads.value_or(1), reason);
  if (planner)
    return memoryLimit(planner->target(), options);
  errors << "dlc: " << reason << "\n";
  return std::nullopt;
}

/// The largest batch below `most` within the limit, 0 if there is none; nothing if the model cannot
/// be planned at some batch, whose errors go to `errors`.
static std::optional<int64_t> fittingBatch(const ModelSource &source, const CompileOptions &options,
                                           uint64_t limit, int64_t most,
                                           llvm::raw_ostream &errors) {
  auto bytesOf = [&](int64_t batch) -> std::optional<uint64_t> {
    CompileOptions trial = withBatch(options, std::to_string(batch));
    trial.dumpPasses.clear();
    Compilation compilation(trial, errors);
    if (!compilation.load(source) || !compilation.lower(nn::Stage::Exec))
      return std::nullopt;
    return compilation.plannedBytes();
  };
  return largestBatch(bytesOf, limit, most);
}

/// What to do about a plan that is too large, as the end of a message.
static std::string adviceOnMemory(const ModelSource &source, const CompileOptions &options,
                                  uint64_t limit, int64_t batch) {
  std::optional<int64_t> fits;
  if (source.hasParameters)
    fits = batch > 1 ? fittingBatch(source, options, limit, batch - 1, llvm::nulls()) : 0;
  if (!fits)
    return "reduce the batch or the size of the model";
  if (*fits == 0)
    return "not even batch 1 fits, reduce the size of the model";
  return "the largest batch that fits is " + std::to_string(*fits) +
         " (--set batch=" + std::to_string(*fits) + ")";
}

/// Refuses a plan that exceeds the memory limit.
static bool checkMemory(Compilation &compilation, const ModelSource &source,
                        const CompileOptions &options) {
  std::shared_ptr<rt::KernelPlanner> planner = openPlanner(compilation.model());
  if (!planner)
    return false;
  MemoryLimit limit = memoryLimit(planner->target(), options);
  uint64_t bytes = compilation.plannedBytes();
  if (limit.bytes == 0 || bytes <= limit.bytes)
    return true;
  auto batch = compilation.model()->getAttrOfType<IntegerAttr>("batch");
  return compilation.fail("the plan" +
                          (batch ? " of batch " + std::to_string(batch.getInt()) : std::string()) +
                          " needs " + sizeText(bytes) + " per rank, " + limit.text + ": " +
                          adviceOnMemory(source, options, limit.bytes, batch ? batch.getInt() : 1));
}

//===- Compiling ------------------------------------------------------------------------------===//

static std::optional<Compiled> compileOnce(const ModelSource &source, const CompileOptions &options,
                                           llvm::raw_ostream &errors,
                                           const ProgressListener &progress) {
  Compilation compilation(options, errors, progress);
  if (!compilation.load(source) || !compilation.lower(stageFor(options.output)))
    return std::nullopt;
  Compiled compiled{compilation.model().getSymName().str(), "", std::nullopt};
  llvm::raw_string_ostream text(compiled.text);
  EmittedCode code;
  bool isDone = true;
  switch (options.output) {
  case Output::Artifact:
    if (checkMemory(compilation, source, options))
      compiled.artifact = compilation.emitArtifact();
    isDone = compiled.artifact.has_value();
    break;
  case Output::Linalg:
    isDone = compilation.emitCode(code, {.linalg = &text});
    break;
  case Output::Llvm:
    isDone = compilation.emitCode(code, {.llvm = &text});
    break;
  case Output::Ptx:
    isDone = compilation.emitCode(code, {.ptx = &text});
    break;
  default:
    text << compilation.text();
  }
  return isDone ? std::optional(std::move(compiled)) : std::nullopt;
}

std::optional<Compiled> dlc::compile(const ModelSource &source, const CompileOptions &options,
                                     llvm::raw_ostream &errors, const ProgressListener &progress) {
  if (!llvm::is_contained(options.sets, "batch=max"))
    return compileOnce(source, options, errors, progress);
  std::optional<MemoryLimit> limit = limitBeforePlanning(options, errors);
  if (!limit)
    return std::nullopt;
  if (limit->bytes == 0) {
    errors << "dlc: batch=max takes what --memory-limit=BYTES allows, and none was given\n";
    return std::nullopt;
  }
  constexpr int64_t most = 1 << 20;
  std::optional<int64_t> batch = fittingBatch(source, options, limit->bytes, most, errors);
  if (!batch)
    return std::nullopt;
  if (*batch > 0)
    errors << "dlc: the largest batch in " << sizeText(limit->bytes) << " is " << *batch << "\n";
  std::string chosen = std::to_string(std::max(*batch, int64_t{1}));
  return compileOnce(source, withBatch(options, chosen), errors, progress);
}
