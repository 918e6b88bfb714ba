// Walks a program op by op, each on all ranks before the next.

#include "test/reference/Evaluator.h"

#include "runtime/core/Bf16.h"

#include "mlir/IR/SymbolTable.h"

#include <array>
#include <cmath>
#include <random>

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;
using namespace dlc::reference;

namespace {
class Run {
public:
  Run(ProgramOp program, const Tensors &variables, ArrayRef<Tensors> inputs, Arithmetic arithmetic)
      : program(program), model(program->getParentOfType<ModelOp>()), variables(variables),
        inputs(inputs), arithmetic(arithmetic), generator(arithmetic.noiseSeed),
        values(inputs.size()), outcomes(inputs.size()) {}

  FailureOr<std::vector<Outcome>> run() {
    Block &body = program.getBody().front();
    for (BlockArgument argument : body.getArguments())
      if (failed(setInput(argument)))
        return failure();
    for (Operation &op : body) {
      if (failed(evaluateOp(op)))
        return failure();
      release(op);
    }
    return std::move(outcomes);
  }

private:
  LogicalResult setInput(BlockArgument argument) {
    StringRef name = program.getInputName(argument.getArgNumber());
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      auto input = inputs[rank].find(name.str());
      if (input == inputs[rank].end())
        return program.emitError("no value for input '") << name << "' on rank " << rank;
      if (failed(checkShape(argument, input->second, "input '" + name.str() + "'")))
        return failure();
      values[rank][argument] = input->second;
    }
    return success();
  }

  LogicalResult checkShape(Value value, const Tensor &tensor, const std::string &what) {
    if (ArrayRef<int64_t>(tensor.shape) == tensorType(value).getShape())
      return success();
    return emitError(value.getLoc(), what) << " has shape [" << ArrayRef<int64_t>(tensor.shape)
                                           << "], expected " << value.getType();
  }

  LogicalResult evaluateOp(Operation &op) {
    if (auto reduce = dyn_cast<comm::AllReduceOp>(op))
      return sumOverRanks(reduce.getInputs(), reduce.getOutputs()), success();
    if (isa<comm::StartOp>(op))
      return success();
    if (auto wait = dyn_cast<comm::WaitOp>(op)) {
      auto start = wait.getFuture().getDefiningOp<comm::StartOp>();
      return sumOverRanks(start.getInputs(), wait.getOutputs()), success();
    }
    for (size_t rank = 0; rank < inputs.size(); ++rank)
      if (failed(evaluateOnRank(op, rank)))
        return failure();
    return success();
  }

  void sumOverRanks(ValueRange operands, ValueRange results) {
    for (auto [operand, result] : llvm::zip(operands, results)) {
      Tensor sum = zerosFor(operand);
      for (auto &rankValues : values)
        for (auto [total, part] : llvm::zip(sum.data, rankValues[operand].data))
          total += part;
      for (auto &rankValues : values)
        rankValues[result] = sum;
    }
  }

  LogicalResult evaluateOnRank(Operation &op, size_t rank) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      FailureOr<Tensor> value = readVariable(read, rank);
      if (failed(value))
        return failure();
      if (read.getRow())
        value = rowsOf(*value, *read.getRow(), tensorType(read.getValue()).getShape());
      values[rank][read.getValue()] = std::move(*value);
      return success();
    }
    return isSink(op, rank) ? success() : compute(op, values[rank]);
  }

  LogicalResult compute(Operation &op, llvm::DenseMap<Value, Tensor> &known) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&known.find(operand)->second);
    if (auto fused = dyn_cast<FusedOp>(op))
      return computeFused(fused, operands, known);
    std::array<Tensor, 2> factors;
    if (arithmetic.isTf32 && isProduct(op))
      for (auto [i, factor] : llvm::enumerate(factors)) {
        factor = roundedToTf32(*operands[i], op.getOperand(i));
        operands[i] = &factor;
      }
    Results results = evaluateElementwise(&op, operands);
    if (!results)
      results = evaluateShape(&op, operands);
    if (!results)
      results = evaluateNetwork(&op, operands);
    if (!results)
      return op.emitOpError("has no reference semantics");
    for (auto [result, tensor] : llvm::zip(op.getResults(), *results)) {
      if (arithmetic.noise > 0 && isa<FloatType>(tensorType(result).getElementType()))
        addNoise(op, tensor);
      known[result] = rounded(std::move(tensor), result);
    }
    return success();
  }

  /// The tensor as a value's type stores it.
  static Tensor rounded(Tensor tensor, Value value) {
    Type type = tensorType(value).getElementType();
    for (double &element : tensor.data)
      if (type.isBF16())
        element = rt::floatFromBf16(rt::bf16FromFloat(static_cast<float>(element)));
      else if (type.isF16())
        element = static_cast<double>(static_cast<_Float16>(element));
    return tensor;
  }

  static bool isProduct(Operation &op) {
    return isa<ConvOp, ConvTransposeOp, ConvGradDataOp, ConvGradFilterOp, MatmulOp>(op);
  }

  /// A factor of f32 with 10 bits behind the point; ties go away from zero.
  static Tensor roundedToTf32(Tensor tensor, Value value) {
    if (tensorType(value).getElementType().isF32())
      for (double &element : tensor.data) {
        int exponent = 0;
        double fraction = std::frexp(static_cast<float>(element), &exponent);
        element = std::ldexp(std::round(std::ldexp(fraction, 11)), exponent - 11);
      }
    return tensor;
  }

  void addNoise(Operation &op, Tensor &tensor) {
    bool sums =
        isProduct(op) || isa<ReduceSumOp, AvgPoolOp, AvgPoolGradOp, UpsampleOp, UpsampleGradOp,
                             BatchNormOp, BatchNormGradOp, GroupNormOp, GroupNormGradOp>(op);
    double squares = 0;
    for (double value : tensor.data)
      squares += value * value;
    double scale = sums ? std::sqrt(squares / double(tensor.size())) : 0;
    for (double &value : tensor.data) {
      double share = 2 * (double(generator() >> 11) * 0x1p-53) - 1;
      if (!std::isfinite(value) || value == double(float(value)))
        continue;
      value = float(value + arithmetic.noise * share * std::max(std::abs(value), scale));
    }
  }

  LogicalResult computeFused(FusedOp fused, ArrayRef<const Tensor *> operands,
                             llvm::DenseMap<Value, Tensor> &known) {
    Block &body = fused.getBody().front();
    llvm::DenseMap<Value, Tensor> inner;
    for (auto [argument, operand] : llvm::zip(body.getArguments(), operands))
      inner[argument] = *operand;
    for (Operation &op : body.without_terminator())
      if (failed(compute(op, inner)))
        return failure();
    auto yield = cast<YieldOp>(body.getTerminator());
    for (auto [result, value] : llvm::zip(fused.getResults(), yield.getValues()))
      known[result] = inner[value];
    return success();
  }

  FailureOr<Tensor> readVariable(ReadOp read, size_t rank) {
    StringRef name = read.getVariable();
    if (auto variable = variables.find(name.str()); variable != variables.end()) {
      if (!read.getRow() &&
          failed(checkShape(read.getValue(), variable->second, "variable @" + name.str())))
        return failure();
      return variable->second;
    }
    auto batch = model->getAttrOfType<IntegerAttr>("batch");
    double rows = batch ? double(batch.getInt()) : 0;
    if (name == "inverse_world")
      return Tensor({}, 1 / double(inputs.size()));
    if (name == "first_row")
      return Tensor({}, rows * double(rank));
    if (name == "valid_rows")
      return Tensor({}, rows);
    auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(read, read.getVariableAttr());
    if (variable.getKind() == VariableKind::Copy)
      if (auto owner = variables.find(variable.getOwner()->str()); owner != variables.end())
        return rounded(owner->second, read.getValue());
    if (variable.getInit().getKind() != InitializerKind::Constant)
      return read.emitError("no value for variable @") << name;
    return Tensor(cast<RankedTensorType>(variable.getType()).getShape(), variable.getInit().getA());
  }

  static Tensor rowsOf(const Tensor &whole, uint64_t row, ArrayRef<int64_t> shape) {
    Tensor part(shape);
    auto begin = whole.data.begin() + static_cast<int64_t>(row) * (part.size() / shape.front());
    std::copy_n(begin, part.size(), part.data.begin());
    return part;
  }

  /// All rows of an assigned variable have to be assigned, in whatever order.
  void assign(AssignOp op, const Tensor &value, Tensors &assigned) {
    if (!op.getRow()) {
      assigned[op.getVariable().str()] = value;
      return;
    }
    auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(op, op.getVariableAttr());
    Tensor &whole = assigned[op.getVariable().str()];
    if (whole.shape.empty())
      whole = Tensor(cast<RankedTensorType>(variable.getType()).getShape(),
                     std::numeric_limits<double>::quiet_NaN());
    int64_t begin = static_cast<int64_t>(*op.getRow()) * (value.size() / value.shape.front());
    std::ranges::copy(value.data, whole.data.begin() + begin);
  }

  /// Stores what leaves the program; false if the op computes something.
  bool isSink(Operation &op, size_t rank) {
    Outcome &outcome = outcomes[rank];
    auto &known = values[rank];
    if (auto loss = dyn_cast<LossOp>(op))
      outcome.losses.push_back({"", loss.getWeight().convertToDouble(),
                                known[loss.getSum()].scalar(), known[loss.getCount()].scalar()});
    else if (auto metric = dyn_cast<MetricOp>(op))
      outcome.metrics.push_back({metric.getMetric().str(), 1, known[metric.getSum()].scalar(),
                                 known[metric.getCount()].scalar()});
    else if (auto output = dyn_cast<OutputOp>(op))
      outcome.outputs[output.getOutput().str()] = known[output.getValue()];
    else if (auto gradient = dyn_cast<GradientOp>(op))
      outcome.gradients[gradient.getVariable().str()] = known[gradient.getValue()];
    else if (auto assignment = dyn_cast<AssignOp>(op))
      assign(assignment, known[assignment.getValue()], outcome.assigned);
    else
      return false;
    return true;
  }

  /// Frees values whose last user was this op. A bucket's operands are needed until its wait.
  void release(Operation &op) {
    if (isa<comm::StartOp>(op))
      return;
    auto isDone = [&](Value value) {
      return llvm::all_of(value.getUsers(), [&](Operation *user) {
        return user->isBeforeInBlock(&op) || user == &op;
      });
    };
    for (Value operand : op.getOperands())
      if (isDone(operand))
        for (auto &rankValues : values)
          rankValues.erase(operand);
  }

  ProgramOp program;
  ModelOp model;
  const Tensors &variables;
  ArrayRef<Tensors> inputs;
  Arithmetic arithmetic;
  std::mt19937_64 generator;
  std::vector<llvm::DenseMap<Value, Tensor>> values; // by rank
  std::vector<Outcome> outcomes;
};
} // namespace

FailureOr<std::vector<Outcome>> reference::evaluate(ProgramOp program, const Tensors &variables,
                                                    ArrayRef<Tensors> inputs,
                                                    Arithmetic arithmetic) {
  return Run(program, variables, inputs, arithmetic).run();
}

double reference::totalLoss(ArrayRef<Outcome> ranks) {
  double total = 0;
  for (size_t i = 0; i < ranks.front().losses.size(); ++i) {
    double sum = 0, count = 0;
    for (const Outcome &rank : ranks) {
      sum += rank.losses[i].sum;
      count += rank.losses[i].count;
    }
    total += ranks.front().losses[i].weight * sum / count;
  }
  return total;
}
