// dlc-reference: evaluates a program of a model in f64 on simulated ranks and writes loss,
// gradients and results.
//
// A model at stage nn is differentiated first, its types promoted to f64, so that no rounding to
// f32 is left but that of the weights and constants given. Gradients are those of the global loss.

#include "frontend/Frontend.h"
#include "passes/Passes.h"
#include "runtime/artifact/Error.h"
#include "test/reference/Evaluator.h"
#include "test/reference/Promote.h"
#include "test/reference/TensorFiles.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;
using namespace dlc::reference;
using rt::Error;
using rt::ErrorCode;

static llvm::cl::opt<std::string> modelPath(llvm::cl::Positional, llvm::cl::Required,
                                            llvm::cl::desc("MODEL.dl|MODEL.mlir"));
static llvm::cl::list<std::string> sets("set", llvm::cl::desc("model parameter NAME=VALUE"));
static llvm::cl::list<std::string> inputPaths("input",
                                              llvm::cl::desc("NAME=FILE.npy, global batches"));
static llvm::cl::list<std::string> scalars("scalar", llvm::cl::desc("NAME=VALUE: lr, step, seed"));
static llvm::cl::opt<std::string> weights("weights", llvm::cl::desc("W.safetensors"));
static llvm::cl::opt<std::string> programName("program", llvm::cl::init("train"));
static llvm::cl::opt<unsigned> ranks("ranks", llvm::cl::init(1));
static llvm::cl::opt<bool> update("update", llvm::cl::desc("apply the optimizer"));
static llvm::cl::opt<unsigned> steps("steps", llvm::cl::init(1),
                                     llvm::cl::desc("with --update: that many, a batch each"));
static llvm::cl::opt<double> noise("noise",
                                   llvm::cl::desc("relative size of random errors, as f32 makes"));
static llvm::cl::opt<uint64_t> noiseSeed("noise-seed", llvm::cl::desc("which random errors"));
static llvm::cl::opt<bool>
    isTf32("tf32", llvm::cl::desc("round factors of f32 as tensor cores do; of stages behind nn"));
static llvm::cl::opt<std::string> output("o", llvm::cl::desc("OUT.safetensors, in f64"));

static std::pair<std::string, std::string> splitPair(StringRef text) {
  auto [name, value] = text.split('=');
  if (value.empty())
    throw Error(ErrorCode::BadInput, "'" + text.str() + "' is not of the form NAME=VALUE");
  return {name.str(), value.str()};
}

static OwningOpRef<ModuleOp> load(MLIRContext &context) {
  fe::Options options;
  options.sets = sets;
  OwningOpRef<ModuleOp> module = StringRef(modelPath).ends_with(".mlir")
                                     ? parseSourceFile<ModuleOp>(modelPath, &context)
                                     : fe::elaborateFile(modelPath, options, context, llvm::errs());
  if (!module || module->getOps<ModelOp>().empty())
    throw Error(ErrorCode::BadInput, "cannot read a model from '" + modelPath + "'");
  return module;
}

/// At stage nn: promotion to f64, then as far into stage train as asked for. What passes add may be
/// f32 beside f64, which no verifier would let through; the evaluator does not look at types.
static void prepare(ModuleOp module, ModelOp model) {
  if (model.getStage() != "nn")
    return;
  promoteToF64(model);
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  manager.addNestedPass<ModelOp>(createDifferentiate());
  manager.addNestedPass<ModelOp>(createInsertAllReduce());
  if (update)
    manager.addNestedPass<ModelOp>(createApplyOptimizer());
  if (failed(manager.run(module)))
    throw Error(ErrorCode::BadInput, "cannot differentiate '" + modelPath + "'");
}

/// Of the global batch at `index`, rank by rank.
static std::vector<Tensors> readInputs(ProgramOp program, unsigned index) {
  std::map<std::string, std::string> paths;
  for (const std::string &text : inputPaths)
    paths.insert(splitPair(text));
  std::vector<Tensors> inputs(ranks);
  for (BlockArgument argument : program.getBody().getArguments()) {
    std::string name = program.getInputName(argument.getArgNumber()).str();
    auto path = paths.find(name);
    if (path == paths.end())
      throw Error(ErrorCode::BadInput, "no --input for '" + name + "'");
    ArrayRef<int64_t> shape = tensorType(argument).getShape();
    for (auto [rank, rankInputs] : llvm::enumerate(inputs)) {
      int64_t first = static_cast<int64_t>(index * ranks + rank) * shape[0];
      Tensor rows = readRows(path->second, first, shape[0]);
      if (rows.size() == llvm::product_of(shape))
        rows.shape = Shape(shape);
      rankInputs[name] = std::move(rows);
    }
  }
  return inputs;
}

static Tensors readVariables() {
  Tensors variables;
  if (!weights.empty())
    variables = readWeights(weights);
  for (const std::string &text : scalars) {
    auto [name, value] = splitPair(text);
    variables[name] = Tensor({}, std::stod(value));
  }
  return variables;
}

/// What leaves the program: of gradients (sums over ranks) the mean, of assigned values those of
/// rank 0 (all are equal), of outputs the concatenation.
static Tensors collect(const std::vector<Outcome> &outcomes) {
  Tensors result;
  result["loss"] = Tensor({}, totalLoss(outcomes));
  for (const auto &[name, value] : outcomes.front().assigned)
    result["assigned." + name] = value;
  for (const auto &[name, sum] : outcomes.front().gradients) {
    Tensor &mean = result["gradient." + name] = sum;
    for (double &value : mean.data)
      value /= double(outcomes.size());
  }
  for (const Outcome &rank : outcomes)
    for (const auto &[name, value] : rank.outputs) {
      auto [rows, isNew] = result.try_emplace("output." + name, value);
      if (isNew)
        continue;
      rows->second.shape[0] += value.shape[0];
      llvm::append_range(rows->second.data, value.data);
    }
  return result;
}

static void printSummary(const std::vector<Outcome> &outcomes) {
  llvm::outs() << llvm::format("{\"loss\": %.17g", totalLoss(outcomes));
  for (size_t i = 0; i < outcomes.front().metrics.size(); ++i) {
    double sum = 0, count = 0;
    for (const Outcome &rank : outcomes) {
      sum += rank.metrics[i].sum;
      count += rank.metrics[i].count;
    }
    llvm::outs() << ", \"" << outcomes.front().metrics[i].name
                 << "\": " << llvm::format("%.17g", sum / count);
  }
  llvm::outs() << "}\n";
}

static void run() {
  MLIRContext context;
  context.loadDialect<NNDialect, comm::CommDialect>();
  OwningOpRef<ModuleOp> module = load(context);
  ModelOp model = *module->getOps<ModelOp>().begin();
  prepare(*module, model);
  auto program = dyn_cast_or_null<ProgramOp>(SymbolTable::lookupSymbolIn(model, programName));
  if (!program)
    throw Error(ErrorCode::BadInput, "the model has no program '" + programName + "'");
  Tensors variables = readVariables();
  for (unsigned step = 0; step < steps; ++step) {
    FailureOr<std::vector<Outcome>> outcomes =
        evaluate(program, variables, readInputs(program, step), {noise, noiseSeed, isTf32});
    if (failed(outcomes))
      throw Error(ErrorCode::BadInput, "cannot evaluate '" + programName + "'");
    printSummary(*outcomes);
    if (step + 1 == steps && !output.empty())
      writeTensors(output, collect(*outcomes));
    for (auto &[name, value] : outcomes->front().assigned)
      variables[name] = std::move(value);
    if (auto number = variables.find("step"); number != variables.end())
      number->second.data[0] += 1;
  }
}

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "reference evaluation of a model in f64\n");
  try {
    run();
    return 0;
  } catch (const std::exception &error) {
    llvm::errs() << "dlc-reference: " << error.what() << '\n';
    return 1;
  }
}
