// dlc-verify-nn: what the later stages rely on, checked once. Numbers are those of the pass's
// description; that variables exist and have the types they are used with is the ops' own
// invariant.

#include "passes/Passes.h"
#include "passes/Scalars.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_VERIFYNN
#include "passes/Passes.h.inc"
} // namespace dlc

static LogicalResult verifyVariable(VariableOp variable) {
  const ScalarInfo *info = lookupScalar(variable.getSymName());
  if (variable.getKind() != VariableKind::Scalar) {
    if (info)
      return variable.emitOpError("has the name of a scalar that the host writes, but kind ")
             << stringifyVariableKind(variable.getKind());
    return success();
  }
  if (!info) {
    std::string known;
    llvm::raw_string_ostream os(known);
    llvm::interleaveComma(wellKnownScalars(), os, [&](const ScalarInfo &s) { os << s.name; });
    return variable.emitOpError(
               "is of kind scalar, which the host writes, but the host knows only ")
           << known;
  }
  if (Type type = scalarType(variable.getContext(), *info); variable.getType() != type)
    return variable.emitOpError("must be a ") << type << ", got " << variable.getType();
  return success();
}

/// Constraints 4 to 6 for one op of a program.
static LogicalResult verifyOp(ModelOp model, ProgramOp program, Operation *op) {
  if (!isa<NNDialect>(op->getDialect()))
    return op->emitOpError("is no nn op; stage nn has only those");
  if (isa<FusedOp, ReorderOp, GradientOp>(op))
    return op->emitOpError("belongs to a later stage than nn");
  for (Type type : op->getResultTypes())
    if (!cast<RankedTensorType>(type).hasStaticShape())
      return op->emitOpError("has a result of type ") << type << "; shapes are static";
  StringRef name = program.getSymName();
  if (isa<AssignOp>(op) && name != "train")
    return op->emitOpError("is in @") << name << "; only @train changes variables";
  if (isa<LossOp, MetricOp>(op) && name == "predict")
    return op->emitOpError("is in @predict, which has outputs only");
  if (isa<OutputOp>(op) && name != "predict")
    return op->emitOpError("is in @") << name << "; only @predict has outputs";
  if (auto assign = dyn_cast<AssignOp>(op)) {
    auto variable = cast<VariableOp>(SymbolTable::lookupSymbolIn(model, assign.getVariable()));
    if (variable.getKind() == VariableKind::Scalar)
      return assign.emitOpError("changes a scalar, which only the host writes");
  }
  return success();
}

namespace {
class VerifyNNPass : public dlc::impl::VerifyNNBase<VerifyNNPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    auto models = getOperation().getOps<ModelOp>();
    size_t count = llvm::range_size(models);
    if (count != 1) {
      getOperation().emitError("expected exactly one nn.model, found ") << count;
      return signalPassFailure();
    }
    if (failed(verifyModel(*models.begin())))
      signalPassFailure();
  }

private:
  LogicalResult verifyModel(ModelOp model) {
    inputTypes.clear();
    if (model.getBody().getOps<ProgramOp>().empty())
      return model.emitOpError("has no program");
    auto batch = model->getAttrOfType<IntegerAttr>("batch");
    if (!batch || batch.getInt() < 1)
      return model.emitOpError("needs the attribute `batch`, the rows per rank, at least 1");
    for (Operation &op : model.getBody().front()) {
      LogicalResult ok =
          TypeSwitch<Operation *, LogicalResult>(&op)
              .Case([](VariableOp variable) { return verifyVariable(variable); })
              .Case(
                  [&](ProgramOp program) { return verifyProgram(model, program, batch.getInt()); })
              .Default([](Operation *other) {
                return other->emitOpError("is neither nn.variable nor nn.program of a model");
              });
      if (failed(ok))
        return failure();
    }
    return success();
  }

  LogicalResult verifyProgram(ModelOp model, ProgramOp program, int64_t batch) {
    for (BlockArgument input : program.getBody().getArguments())
      if (failed(verifyInput(program, input, batch)))
        return failure();
    for (Operation &op : program.getBody().front())
      if (failed(verifyOp(model, program, &op)))
        return failure();
    if (program.getSymName() == "train" && program.getBody().getOps<LossOp>().empty())
      return program.emitOpError("has no nn.loss, so there is nothing to train");
    return success();
  }

  LogicalResult verifyInput(ProgramOp program, BlockArgument input, int64_t batch) {
    StringRef name = program.getInputName(input.getArgNumber());
    auto type = tensorType(input);
    bool sized = program.getSymName() != "predict"; // predict may have a size of its own
    if (type.getRank() == 0 || (sized && type.getDimSize(0) != batch)) // 2.
      return program.emitOpError("has input '")
             << name << "' of type " << type << "; dimension 0 must be the batch of " << batch;
    for (auto [other, otherName, otherType, otherSized] : inputTypes) { // 3.
      if (otherName != name)
        continue;
      if (other == program)
        return program.emitOpError("has two inputs '") << name << "'";
      bool same = sized && otherSized ? type == otherType
                                      : type.getRank() == otherType.getRank() &&
                                            type.getElementType() == otherType.getElementType();
      if (!same)
        return program.emitOpError("has input '")
               << name << "' of type " << type << ", but @" << other.getSymName() << " has it as "
               << otherType;
    }
    inputTypes.push_back({program, name, type, sized});
    return success();
  }

  struct Input {
    ProgramOp program;
    StringRef name;
    RankedTensorType type;
    bool sized;
  };
  SmallVector<Input> inputTypes;
};
} // namespace
