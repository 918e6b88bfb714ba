#include "test/unit/passes/ClusterRunner.h"
#include "test/unit/passes/Elements.h"

#include "dialects/Exec/Exec.h"
#include "runtime/core/ParallelFor.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace dlc;
using namespace dlc::test;
using reference::Tensor;

CodeTarget dlc::test::hostCodeTarget() {
  CodeTarget target;
  target.cpu = llvm::sys::getHostCPUName().str();
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> list;
  for (const auto &feature : features)
    list.push_back((feature.second ? "+" : "-") + feature.first().str());
  llvm::sort(list);
  target.features = llvm::join(list, ",");
  target.vectorBytes = features.lookup("avx512f") ? 64 : 32;
  return target;
}

static std::string programText(const std::vector<Argument> &arguments, const std::string &ops,
                               const std::vector<std::pair<std::string, std::string>> &results,
                               const std::string &beside) {
  std::string inputs, blockArguments, outputs, names, types;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    std::string separator = i ? ", " : "", name = std::to_string(i);
    blockArguments += separator + "%" + name + ": " + argument.type;
    inputs += separator + "%" + name + ": " + argument.type + " {nn.input = \"" + name + "\"}";
  }
  for (auto [i, result] : llvm::enumerate(results)) {
    std::string separator = i ? ", " : "";
    outputs +=
        "nn.output \"" + std::to_string(i) + "\", " + result.first + " : " + result.second + "\n";
    names += separator + result.first;
    types += separator + result.second;
  }
  return "nn.model @m attributes {stage = \"nn\", batch = 2 : i64} {\nnn.program @predict(" +
         inputs + ") {\n" + ops + "\n" + outputs + "}\n" + beside + "exec.cluster @c {\n^bb0(" +
         blockArguments + "):\n" + ops + "\nnn.yield " + names + " : " + types + "\n}\n}\n";
}

ClusterRunner::ClusterRunner(Aliases aliases, std::vector<Argument> arguments, std::string ops,
                             std::vector<std::pair<std::string, std::string>> results,
                             CodeTarget target, const std::string &beside,
                             const rt::LoopLimits &limits)
    : limits(limits), arguments(arguments), results(results) {
  context.loadDialect<nn::NNDialect, comm::CommDialect, exec::ExecDialect>();
  std::string text;
  for (auto &[name, type] : aliases)
    text += name + " = " + type + "\n";
  text += programText(arguments, ops, results, beside);
  module = parseSourceString<ModuleOp>(text, ParserConfig(&context)).release().getOperation();
  EXPECT_TRUE(module) << text;
  if (module)
    compile(target);
}

OwningOpRef<Operation *> ClusterRunner::moduleOf(Region &body) {
  OpBuilder builder(body.getContext());
  Location loc = body.getLoc();
  auto module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module.getBody());
  auto model = nn::ModelOp::create(builder, loc, "m", "exec");
  builder.setInsertionPointToEnd(&model.getBody().emplaceBlock());
  auto clusterOp =
      exec::ClusterOp::create(builder, loc, builder.getStringAttr("c"), DenseI64ArrayAttr());
  IRMapping mapping;
  body.cloneInto(&clusterOp.getBody(), mapping);
  return module.getOperation();
}

ClusterRunner::ClusterRunner(Region &body)
    : limits(rt::CpuTarget::loops()), module(moduleOf(body)) {
  compile(hostCodeTarget());
}

static nn::ModelOp modelOf(Operation *module) {
  return *cast<ModuleOp>(module).getOps<nn::ModelOp>().begin();
}

static exec::ClusterOp clusterOf(Operation *module) {
  return modelOf(module).lookupSymbol<exec::ClusterOp>("c");
}

Region &ClusterRunner::bodyIn(Operation *module) { return clusterOf(module).getBody(); }

Block &ClusterRunner::cluster() { return bodyIn(*module).front(); }

GeneratedKernel ClusterRunner::plan() { return *GeneratedKernel::of(clusterOf(*module)); }

void ClusterRunner::compile(const CodeTarget &target) {
  for (auto cluster : modelOf(*module).getOps<exec::ClusterOp>()) {
    FailureOr<GeneratedKernel> plan = planGeneratedKernel(cluster.getBody().front(), limits);
    ASSERT_TRUE(succeeded(plan));
    plan->writeTo(cluster);
  }
  std::string object;
  llvm::raw_string_ostream linalg(linalgText), llvm(llvmText);
  ASSERT_TRUE(succeeded(emitClusters(modelOf(*module), target, object, {&linalg, &llvm})))
      << linalgText;
  const auto *bytes = reinterpret_cast<const uint8_t *>(object.data());
  code = std::make_unique<rt::GeneratedCode>(std::span(bytes, object.size()));
}

const rt::KernelRecord &ClusterRunner::kernel(unsigned stage) {
  return code->kernel("c_" + std::to_string(stage));
}

//===- Memory ---------------------------------------------------------------------------------===//

namespace {
enum class Placement { AtEnd, AtStart };

/// Memory between pages that nobody may touch: it ends where those behind it begin, or begins where
/// those before it end.
class GuardedMemory {
public:
  GuardedMemory(size_t bytes, Placement placement) : bytes(bytes) {
    size_t page = sysconf(_SC_PAGESIZE);
    size_t own = llvm::alignTo(bytes, page), guard = 64 * page;
    mapped = own + 2 * guard;
    base =
        static_cast<char *>(mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(base + guard, own, PROT_READ | PROT_WRITE), 0);
    begin = base + guard + (placement == Placement::AtEnd ? own - bytes : 0);
  }
  GuardedMemory(GuardedMemory &&other)
      : begin(other.begin), bytes(other.bytes), base(std::exchange(other.base, nullptr)),
        mapped(other.mapped) {}
  ~GuardedMemory() {
    if (base)
      munmap(base, mapped);
  }
  char *begin;
  size_t bytes;

private:
  char *base;
  size_t mapped;
};
} // namespace

static GuardedMemory physical(RankedTensorType type, const Tensor *values, Placement placement) {
  rt::Layout layout = nn::layoutOf(type);
  std::vector<int64_t> shape = type.getShape().vec();
  GuardedMemory memory(nn::physicalBytes(type), placement);
  std::memset(memory.begin, values ? 0 : 0xff, memory.bytes);
  if (values)
    reference::forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
      storeElement(type.getElementType(),
                   memory.begin + layout.offsetOf(shape, index.vec()) *
                                      nn::elementBytes(type.getElementType()),
                   values->at(index));
    });
  return memory;
}

/// The logical tensor; everything else in memory must be zero.
static Tensor logical(RankedTensorType type, GuardedMemory &memory) {
  rt::Layout layout = nn::layoutOf(type);
  std::vector<int64_t> shape = type.getShape().vec();
  unsigned bytes = nn::elementBytes(type.getElementType());
  Tensor values(type.getShape());
  reference::forEachIndex(type.getShape(), [&](ArrayRef<int64_t> index) {
    char *place = memory.begin + layout.offsetOf(shape, index.vec()) * bytes;
    values.at(index) = loadElement(type.getElementType(), place);
    std::memset(place, 0, bytes);
  });
  EXPECT_TRUE(std::all_of(memory.begin, memory.begin + memory.bytes, [](char c) { return c == 0; }))
      << "padding is not zero";
  return values;
}

/// Runs the stages, chunks last to first.
static std::vector<Tensor> runPlaced(ClusterRunner &runner, const std::vector<Tensor> &operands,
                                     Placement placement) {
  GeneratedKernel kernel = runner.plan();
  std::vector<GuardedMemory> memory;
  for (auto [argument, operand] : llvm::zip(runner.cluster().getArguments(), operands))
    memory.push_back(physical(nn::tensorType(argument), &operand, placement));
  auto yield = cast<nn::YieldOp>(runner.cluster().getTerminator());
  for (Value value : yield.getValues())
    memory.push_back(physical(nn::tensorType(value), nullptr, placement));
  for (RankedTensorType type : kernel.scratch)
    memory.push_back(physical(type, nullptr, placement));
  for (auto [index, stage] : llvm::enumerate(kernel.stages)) {
    std::vector<void *> buffers;
    for (unsigned buffer : stage.buffers)
      buffers.push_back(memory[buffer].begin);
    int64_t chunks = llvm::divideCeil(stage.extent, stage.chunk);
    for (int64_t chunk = chunks - 1; chunk >= 0; --chunk)
      runner.kernel(index).run(buffers.data(), chunk * stage.chunk,
                               std::min(stage.extent, (chunk + 1) * stage.chunk));
  }
  std::vector<Tensor> outcome;
  for (auto [i, value] : llvm::enumerate(yield.getValues()))
    outcome.push_back(logical(nn::tensorType(value), memory[operands.size() + i]));
  return outcome;
}

/// Denormals are flushed while kernels run, as the runtime has it.
std::vector<Tensor> ClusterRunner::run(const std::vector<Tensor> &operands) {
  unsigned before = _mm_getcsr();
  llvm::scope_exit restore([&] { _mm_setcsr(before); });
  rt::prepareTeam();
  std::vector<Tensor> outcome = runPlaced(*this, operands, Placement::AtEnd),
                      moved = runPlaced(*this, operands, Placement::AtStart);
  for (auto [one, other] : llvm::zip(outcome, moved))
    EXPECT_EQ(std::memcmp(one.data.data(), other.data.data(), one.size() * sizeof(double)), 0)
        << "results depend on where memory lies";
  return outcome;
}

//===- Reference ------------------------------------------------------------------------------===//

/// Of a program whose inputs and outputs are numbered.
static std::vector<Tensor> outputsOf(nn::ProgramOp program, const std::vector<Tensor> &operands) {
  reference::Tensors inputs;
  for (auto [i, operand] : llvm::enumerate(operands))
    inputs[std::to_string(i)] = operand;
  FailureOr<std::vector<reference::Outcome>> outcome = reference::evaluate(program, {}, {inputs});
  std::vector<Tensor> tensors;
  EXPECT_TRUE(succeeded(outcome));
  if (succeeded(outcome))
    for (size_t i = 0; i < (*outcome)[0].outputs.size(); ++i)
      tensors.push_back((*outcome)[0].outputs.at(std::to_string(i)));
  return tensors;
}

std::vector<Tensor> ClusterRunner::expected(const std::vector<Tensor> &operands) {
  return outputsOf(*modelOf(*module).getOps<nn::ProgramOp>().begin(), operands);
}

std::vector<Tensor> ClusterRunner::evaluate(Region &body, const std::vector<Tensor> &operands) {
  OwningOpRef<Operation *> module = moduleOf(body);
  auto cluster = clusterOf(*module);
  OpBuilder builder(cluster);
  auto type = builder.getFunctionType(cluster.getBody().getArgumentTypes(), {});
  auto program =
      nn::ProgramOp::create(builder, body.getLoc(), "predict", type, ArrayAttr(), ArrayAttr());
  program.getBody().takeBody(cluster.getBody());
  for (unsigned i = 0; i < type.getNumInputs(); ++i)
    program.setArgAttr(i, "nn.input", builder.getStringAttr(std::to_string(i)));
  auto yield = cast<nn::YieldOp>(program.getBody().front().getTerminator());
  builder.setInsertionPoint(yield);
  for (auto [i, value] : llvm::enumerate(yield.getValues()))
    nn::OutputOp::create(builder, yield.getLoc(), std::to_string(i), value);
  yield.erase();
  return outputsOf(program, operands);
}

std::vector<Tensor> ClusterRunner::randomOperands(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Tensor> operands;
  for (auto [argument, value] : llvm::zip(arguments, cluster().getArguments())) {
    auto type = nn::tensorType(value);
    Tensor tensor(type.getShape());
    std::uniform_real_distribution<double> draw(argument.low, argument.high);
    char stored[8];
    for (double &element : tensor.data) {
      element = draw(random);
      if (!isa<FloatType>(type.getElementType()))
        element = std::floor(element);
      storeElement(type.getElementType(), stored, element);
      element = loadElement(type.getElementType(), stored);
    }
    operands.push_back(std::move(tensor));
  }
  return operands;
}

void ClusterRunner::compare(const std::vector<Tensor> &got, const std::vector<Tensor> &want,
                            double ulps, double absolute) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t result = 0; result < want.size(); ++result) {
    ASSERT_EQ(got[result].size(), want[result].size());
    int64_t wrong = 0;
    for (int64_t i = 0; i < want[result].size(); ++i) {
      double a = got[result].data[i], b = want[result].data[i];
      double tolerance = ulps * std::fabs(b) * 0x1p-24 + absolute;
      bool same = std::isnan(b) ? std::isnan(a) : a == b || std::fabs(a - b) <= tolerance;
      if (!same && wrong++ < 3)
        ADD_FAILURE() << "result " << result << " element " << i << ": got " << a << ", want " << b
                      << "\n"
                      << (wrong == 1 ? linalgText : "");
    }
    EXPECT_EQ(wrong, 0);
  }
}

void ClusterRunner::check(double ulps, double absolute) {
  ASSERT_TRUE(code);
  std::vector<Tensor> operands = randomOperands(1), got = run(operands), want = expected(operands);
  compare(got, want, ulps, absolute);
  checkOnGpu(operands, got, want, ulps, absolute);
}
