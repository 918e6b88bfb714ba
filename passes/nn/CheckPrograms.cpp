// Checks variables, inputs and kinds of ops. The ops' own verifiers check that variables exist and
// have the types with which they are used, and that tensors are static and bounded.

#include "passes/nn/ModelChecks.h"

#include "dialects/Comm/Comm.h"
#include "dialects/NN/Role.h"
#include "dialects/NN/Scalars.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

//===- Variables ------------------------------------------------------------------------------===//

static LogicalResult verifyScalar(VariableOp variable) {
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

/// A copy is of a parameter's shape and of a narrower type.
static LogicalResult verifyCopy(VariableOp copy, VariableOp owner) {
  auto type = cast<RankedTensorType>(copy.getType()),
       whole = cast<RankedTensorType>(owner.getType());
  if (owner.getKind() == VariableKind::Parameter && type.getShape() == whole.getShape() &&
      isa<FloatType>(type.getElementType()) &&
      elementBytes(type.getElementType()) < elementBytes(whole.getElementType()))
    return success();
  return copy.emitOpError("is of kind copy and type ")
         << type << ", which is no narrower form of a parameter's, @" << owner.getSymName() << ", "
         << whole;
}

LogicalResult dlc::verifyVariables(ModelOp model) {
  SymbolTableCollection symbols;
  for (auto variable : model.getBody().getOps<VariableOp>()) {
    if (failed(verifyScalar(variable)))
      return failure();
    VariableKind kind = variable.getKind();
    auto type = cast<RankedTensorType>(variable.getType());
    if ((kind == VariableKind::Parameter || kind == VariableKind::Slot) &&
        !type.getElementType().isF32())
      return variable.emitOpError("is of kind ")
             << stringifyVariableKind(kind) << " and type " << type
             << "; optimizers update f32, so store it in f32 and read it through nn.cast";
    // Passes create a scalar where they need it, so no other variable may have its name.
    FlatSymbolRefAttr owner = variable.getOwnerAttr();
    auto owning =
        owner ? symbols.lookupNearestSymbolFrom<VariableOp>(variable, owner) : VariableOp();
    if (owner && !owning)
      return variable.emitOpError("belongs to ") << owner << ", which is no variable of the model";
    if (kind == VariableKind::Copy && failed(verifyCopy(variable, owning)))
      return failure();
  }
  for (const ScalarInfo &info : wellKnownScalars())
    if (Operation *op = SymbolTable::lookupSymbolIn(model, info.name); op && !isa<VariableOp>(op))
      return op->emitOpError("has the name of a scalar that the host writes");
  return success();
}

//===- Programs -------------------------------------------------------------------------------===//

/// Stage schedule makes it: also reads and assignments of some rows.
static bool isOfSchedule(Operation *op) {
  bool takesRows = isa<ReadOp, AssignOp>(op) && op->hasAttr("row");
  return takesRows || isa<FusedOp, ReorderOp, comm::StartOp, comm::WaitOp>(op);
}

/// What the host reads as sums, and what holds gradients.
static bool addsUp(Operation *op) {
  return isa<LossOp, MetricOp, comm::AllReduceOp, comm::StartOp, comm::WaitOp>(op);
}

namespace {
class ProgramChecker {
public:
  ProgramChecker(ModelOp model, ProgramForm form) : model(model), form(form), symbols(model) {}

  LogicalResult run() {
    if (model.getBody().getOps<ProgramOp>().empty())
      return model.emitOpError("has no program");
    auto attribute = model->getAttrOfType<IntegerAttr>("batch");
    // Behind stage train, only the extents of the inputs count.
    if (attribute ? attribute.getInt() < 1 : form != ProgramForm::Schedule)
      return model.emitOpError("needs the attribute `batch`, the rows per rank, at least 1");
    if (attribute)
      batch = attribute.getInt();
    for (Operation &op : model.getBody().front()) {
      if (!isa<VariableOp, ProgramOp>(op))
        return op.emitOpError("is neither nn.variable nor nn.program of a model");
      if (auto program = dyn_cast<ProgramOp>(op); program && failed(verifyProgram(program)))
        return failure();
    }
    return success();
  }

private:
  bool isNN() const { return form == ProgramForm::Written || form == ProgramForm::Derived; }

  LogicalResult verifyProgram(ProgramOp program) {
    for (BlockArgument input : program.getBody().getArguments())
      if (failed(verifyInput(program, input)))
        return failure();
    outputNames.clear();
    for (Operation &op : program.getBody().front()) {
      if (failed(verifyKind(&op)) || failed(verifySink(program, &op)) || failed(verifyRole(&op)))
        return failure();
      if (auto output = dyn_cast<OutputOp>(op); output && failed(verifyOutput(program, output)))
        return failure();
    }
    if (isNN() && program.getSymName() == "train" && program.getBody().getOps<LossOp>().empty())
      return program.emitOpError("has no nn.loss, so there is nothing to train");
    return verifyCopies(program);
  }

  /// Copies are assigned with their parameters: the same rows.
  LogicalResult verifyCopies(ProgramOp program) {
    llvm::StringMap<SmallVector<std::optional<uint64_t>>> rows;
    for (auto assign : program.getBody().getOps<AssignOp>())
      rows[assign.getVariable()].push_back(assign.getRow());
    for (auto variable : model.getBody().getOps<VariableOp>()) {
      if (variable.getKind() != VariableKind::Copy)
        continue;
      auto own = rows.lookup(variable.getSymName()), owners = rows.lookup(*variable.getOwner());
      llvm::sort(own);
      llvm::sort(owners);
      if (own != owners)
        return variable.emitOpError("is a copy of @")
               << *variable.getOwner() << ", but @" << program.getSymName()
               << " does not assign the same of both";
    }
    return success();
  }

  /// The op is of this stage.
  LogicalResult verifyKind(Operation *op) {
    if (isNN() && !isa<NNDialect>(op->getDialect()))
      return op->emitOpError("is no nn op; stage nn has only those");
    if (!isa<NNDialect, comm::CommDialect>(op->getDialect()))
      return op->emitOpError("is neither an nn nor a comm op");
    if (isNN() && (isOfSchedule(op) || isa<GradientOp>(op)))
      return op->emitOpError("belongs to a later stage than nn");
    if (form == ProgramForm::Train && isOfSchedule(op))
      return op->emitOpError("belongs to a later stage than train");
    if (isa<YieldOp, ModelOp>(op))
      return op->emitOpError("does not belong into a program");
    if (addsUp(op))
      for (Type type : llvm::concat<Type>(op->getOperandTypes(), op->getResultTypes()))
        if (auto tensor = dyn_cast<RankedTensorType>(type);
            tensor && !tensor.getElementType().isF32())
          return op->emitOpError("adds up f32, got ") << type << "; convert by nn.cast";
    return success();
  }

  LogicalResult verifySink(ProgramOp program, Operation *op) {
    StringRef name = program.getSymName();
    if (isa<AssignOp>(op) && name != "train")
      return op->emitOpError("is in @") << name << "; only @train changes variables";
    if (isa<LossOp, MetricOp>(op) && name == "predict")
      return op->emitOpError("is in @predict, which has outputs only");
    bool mayHaveOutputs = form == ProgramForm::Written || form == ProgramForm::Schedule;
    if (isa<OutputOp>(op) && name != "predict" && !mayHaveOutputs)
      return op->emitOpError("is in @") << name << "; only @predict has outputs";
    if (auto assign = dyn_cast<AssignOp>(op)) {
      auto variable = symbols.lookup<VariableOp>(assign.getVariable());
      if (variable.getKind() == VariableKind::Scalar)
        return assign.emitOpError("changes a scalar, which only the host writes");
    }
    return success();
  }

  /// Variables change in updates, behind all communication. What updates compute comes too late for
  /// the rest of the step.
  LogicalResult verifyRole(Operation *op) {
    Role role = roleOf(op);
    if (role.variable && !symbols.lookup<VariableOp>(role.variable.getAttr()))
      return op->emitOpError("is for ") << role.variable << ", which is no variable";
    if (isNN())
      return success();
    if (isa<AssignOp>(op) && role.phase != Phase::Update)
      return op->emitOpError("changes a variable, but is of the ")
             << stringifyPhase(role.phase) << " pass and no update";
    if (failed(verifySums(op)))
      return failure();
    if (role.phase != Phase::Update)
      return success();
    if (isa<comm::CommDialect>(op->getDialect()))
      return op->emitOpError("is a part of an update; ranks meet before");
    for (Operation *user : op->getUsers())
      if (phaseOf(user) != Phase::Update)
        return user->emitOpError("reads what an update computes, but is of the ")
               << stringifyPhase(phaseOf(user)) << " pass";
    return success();
  }

  /// What ranks sum up for a variable is whole once a step: a step of several micro-batches has it
  /// in its updates alone.
  LogicalResult verifySums(Operation *op) {
    SmallVector<Attribute> members(op->getNumResults(), roleOf(op).variable);
    if (auto wait = dyn_cast<comm::WaitOp>(op)) {
      auto start = wait.getFuture().getDefiningOp<comm::StartOp>();
      if (!start || !start.getMembers())
        return success();
      members = llvm::to_vector(*start.getMembers());
    } else if (!isa<comm::AllReduceOp>(op)) {
      return success();
    }
    for (auto [sum, member] : llvm::zip(op->getResults(), members))
      for (Operation *user : sum.getUsers())
        if (isa_and_present<FlatSymbolRefAttr>(member) && phaseOf(user) != Phase::Update)
          return user->emitOpError("reads what ranks have summed up for ")
                 << member << ", but its " << roleName << " is of the "
                 << stringifyPhase(phaseOf(user)) << " pass and no update";
    return success();
  }

  LogicalResult verifyInput(ProgramOp program, BlockArgument input) {
    StringRef name = program.getInputName(input.getArgNumber());
    auto type = tensorType(input);
    bool sized = program.getSymName() != "predict"; // predict may have a size of its own
    if (type.getRank() == 0 || (sized && type.getDimSize(0) != batch.value_or(type.getDimSize(0))))
      return program.emitOpError("has input '")
             << name << "' of type " << type << "; dimension 0 must be the batch"
             << (batch ? " of " + std::to_string(*batch) : std::string());
    auto first = tensorType(program.getBody().getArgument(0));
    if (type.getDimSize(0) != first.getDimSize(0))
      return program.emitOpError("has input '")
             << name << "' of type " << type << ", but input '" << program.getInputName(0)
             << "' of " << first << "; dimension 0 of all inputs must be the batch";
    for (auto [other, otherName, otherType, otherSized] : inputTypes) {
      if (otherName != name)
        continue;
      if (other == program)
        return program.emitOpError("has two inputs '") << name << "'";
      bool same = sized && otherSized ? type == otherType
                                      : type.getRank() == otherType.getRank() &&
                                            inputType(type).getElementType() ==
                                                inputType(otherType).getElementType();
      if (!same)
        return program.emitOpError("has input '")
               << name << "' of type " << type << ", but @" << other.getSymName() << " has it as "
               << otherType;
    }
    inputTypes.push_back({program, name, type, sized});
    return success();
  }

  /// Outputs are taken apart by rows, and told apart by name.
  LogicalResult verifyOutput(ProgramOp program, OutputOp output) {
    auto type = tensorType(output.getValue());
    if (!outputNames.insert(output.getOutput()).second)
      return output.emitOpError("is the second one of @") << program.getSymName();
    if (program.getBody().getNumArguments() == 0)
      return success();
    int64_t rows = tensorType(program.getBody().getArgument(0)).getDimSize(0);
    if (type.getRank() > 0 && type.getDimSize(0) == rows)
      return success();
    return output.emitOpError("has type ") << type << "; dimension 0 must be the batch of @"
                                           << program.getSymName() << ", " << rows;
  }

  struct Input {
    ProgramOp program;
    StringRef name;
    RankedTensorType type;
    bool sized;
  };
  ModelOp model;
  ProgramForm form;
  SymbolTable symbols;
  std::optional<int64_t> batch;
  SmallVector<Input> inputTypes;
  llvm::StringSet<> outputNames; // of the program being checked
};
} // namespace

LogicalResult dlc::verifyPrograms(ModelOp model, ProgramForm form) {
  return ProgramChecker(model, form).run();
}
