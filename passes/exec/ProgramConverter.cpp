// Places are decided before anything is emitted: gradients in their bucket's slice, new values of
// variables in the variable where no later reader wants the old one. Then ops are converted in
// program order; every other value gets a transient buffer, or that of an operand that dies in an
// elementwise cluster.

#include "passes/exec/ProgramConverter.h"

#include "dialects/NN/Role.h"
#include "passes/codegen/GeneratedKernel.h"
#include "passes/planning/BucketLayout.h"
#include "passes/planning/KernelRequests.h"
#include "passes/planning/PlannedKernel.h"

using namespace mlir;
using namespace dlc;
using exec::ArenaKind;
using exec::Phase;

ProgramConverter::ProgramConverter(nn::ProgramOp program, KernelTable &kernels,
                                   const SymbolTable &symbols)
    : program(program), counting(program.getBody().front()), kernels(kernels), symbols(symbols),
      buffers(program), instructions(program) {
  for (auto read : program.getBody().getOps<nn::ReadOp>())
    reads[read.getVariable()].push_back(read);
}

LogicalResult ProgramConverter::convert() {
  result = exec::ProgramOp::create(buffers, program.getLoc(), program.getSymNameAttr());
  Block &block = result.getBody().emplaceBlock();
  // An anchor keeps buffers ahead of instructions; it is erased at the end.
  buffers.setInsertionPointToEnd(&block);
  Operation *anchor = exec::RecordOp::create(buffers, program.getLoc(), 0, exec::Stream::Compute);
  buffers.setInsertionPoint(anchor);
  instructions.setInsertionPointToEnd(&block);
  placeInputs();
  placeBuckets();
  placeAssigned();
  sharing.emplace(program.getBody().front(), [&](Value value) { return placed.contains(value); });
  upload();
  for (Operation &op : program.getBody().front())
    if (failed(convertOp(&op)))
      return failure();
  keepOldValues();
  assignRemaining();
  for (Operation &op : program.getBody().front())
    download(&op);
  for (StringRef name : {"forecast", "formulas"})
    if (Attribute attribute = program->getAttr(name))
      result->setAttr(name, attribute);
  anchor->erase();
  return success();
}

//===- Places ---------------------------------------------------------------------------------===//

Value ProgramConverter::newBuffer(RankedTensorType type, ArenaKind arena, Location loc) {
  StringRef layer = nn::layerName(loc);
  return exec::BufferOp::create(buffers, loc, exec::BufferType::get(type.getContext(), type), arena,
                                IntegerAttr(),
                                layer.empty() ? StringAttr() : buffers.getStringAttr(layer),
                                FlatSymbolRefAttr(), StringAttr(), ArrayAttr());
}

void ProgramConverter::placeInputs() {
  for (BlockArgument argument : program.getArguments()) {
    if (argument.use_empty())
      continue;
    Value buffer = newBuffer(nn::tensorType(argument), ArenaKind::Inputs, program.getLoc());
    buffer.getDefiningOp<exec::BufferOp>().setInput(program.getInputName(argument.getArgNumber()));
    placed[argument] = buffer;
  }
}

Phase ProgramConverter::phaseOf(Operation *op) const {
  if (counting.contains(op))
    return Phase::Count;
  switch (nn::phaseOf(op)) {
  case nn::Phase::Forward:
    return Phase::Forward;
  case nn::Phase::Backward:
    return Phase::Backward;
  case nn::Phase::Update:
    return Phase::Optimizer;
  }
  llvm_unreachable("no such phase");
}

/// A kernel can write its result anywhere.
void ProgramConverter::placeBuckets() {
  for (auto start : program.getBody().getOps<comm::StartOp>()) {
    Value bucket =
        newBuffer(BucketLayout::of(start.getInputs()).type(), ArenaKind::Gradients, start.getLoc());
    buckets[start] = bucket;
    auto wait = cast<comm::WaitOp>(*start.getFuture().getUsers().begin());
    BucketLayout layout(cast<exec::BufferType>(bucket.getType()).getTensor().getElementType());
    for (auto [input, output] : llvm::zip(start.getInputs(), wait.getOutputs())) {
      auto slice = exec::ViewOp::create(
          buffers, start.getLoc(), exec::BufferType::get(start.getContext(), nn::tensorType(input)),
          bucket, layout.add(nn::tensorType(input)), StringAttr());
      placed[output] = slice;
      if (isKernelResult(input) && !placed.contains(input))
        placed[input] = slice;
    }
  }
}

Value ProgramConverter::variableBuffer(StringRef name) {
  Value &buffer = variables[name];
  if (!buffer) {
    auto variable = symbols.lookup<nn::VariableOp>(name);
    ArenaKind arena =
        variable.getKind() == nn::VariableKind::Slot ? ArenaKind::Slots : ArenaKind::Variables;
    buffer = newBuffer(cast<RankedTensorType>(variable.getType()), arena, variable.getLoc());
    buffer.getDefiningOp<exec::BufferOp>().setVariable(name);
  }
  return buffer;
}

Value ProgramConverter::variablePlace(StringRef name, std::optional<uint64_t> row,
                                      RankedTensorType type, Location loc) {
  Value whole = variableBuffer(name);
  if (!row)
    return whole;
  RankedTensorType wholeType = cast<exec::BufferType>(whole.getType()).getTensor();
  Value &rows = variableRows[{whole, *row, type}];
  if (!rows)
    rows = exec::ViewOp::create(buffers, loc, exec::BufferType::get(type.getContext(), type), whole,
                                *nn::rowOffset(wholeType, static_cast<int64_t>(*row), type),
                                StringAttr());
  return rows;
}

Value ProgramConverter::assignedPlace(nn::AssignOp assign) {
  return variablePlace(assign.getVariable(), assign.getRow(), nn::tensorType(assign.getValue()),
                       assign.getLoc());
}

/// True if both, of one variable, have rows in common.
static bool meet(nn::ReadOp read, nn::AssignOp assign) {
  if (!read.getRow() || !assign.getRow())
    return true;
  auto rows = [](Value value) {
    return static_cast<uint64_t>(nn::tensorType(value).getDimSize(0));
  };
  return *read.getRow() < *assign.getRow() + rows(assign.getValue()) &&
         *assign.getRow() < *read.getRow() + rows(read.getValue());
}

void ProgramConverter::placeAssigned() {
  for (auto assign : program.getBody().getOps<nn::AssignOp>()) {
    auto producer = assign.getValue().getDefiningOp<nn::FusedOp>();
    if (!producer || placed.contains(assign.getValue()))
      continue;
    unsigned index = cast<OpResult>(assign.getValue()).getResultNumber();
    if (!canUpdateInPlace(producer, index, assign))
      continue;
    placed[assign.getValue()] = assignedPlace(assign);
    inPlaceAssigns.insert(assign);
  }
}

/// Every other reader of the old value is ordered before the producer, and the producer reads it
/// elementwise. Values that alias the variable (reshapes) count as readers of it: conservative.
bool ProgramConverter::canUpdateInPlace(nn::FusedOp producer, unsigned index, nn::AssignOp assign) {
  for (nn::ReadOp read : reads.lookup(assign.getVariable())) {
    if (!meet(read, assign))
      continue;
    for (OpOperand &use : read.getValue().getUses()) {
      Operation *user = use.getOwner();
      if (user == producer) {
        if (read.getRow() != assign.getRow() || !canShare(producer, use.getOperandNumber(), index))
          return false;
        continue;
      }
      bool readsLater = user->hasTrait<nn::ReadByHost>() || isa<nn::AssignOp, nn::ReshapeOp>(user);
      if (readsLater || !user->isBeforeInBlock(producer))
        return false;
    }
  }
  return true;
}

Value ProgramConverter::bufferOf(Value value) {
  if (Value known = placed.lookup(value))
    return known;
  Value buffer;
  if (auto read = value.getDefiningOp<nn::ReadOp>())
    buffer = variablePlace(read.getVariable(), read.getRow(), nn::tensorType(value), read.getLoc());
  else
    buffer = newBuffer(nn::tensorType(value), ArenaKind::Transient, value.getLoc());
  placed[value] = buffer;
  return buffer;
}

//===- Instructions ---------------------------------------------------------------------------===//

/// Inputs apart from scalars, since their buffers are free earlier.
void ProgramConverter::upload() {
  SmallVector<Value> inputs, scalars;
  for (BlockArgument argument : program.getArguments())
    if (Value buffer = placed.lookup(argument))
      inputs.push_back(buffer);
  DenseSet<StringRef> seen;
  for (auto read : program.getBody().getOps<nn::ReadOp>()) {
    auto variable = symbols.lookup<nn::VariableOp>(read.getVariable());
    if (variable.getKind() == nn::VariableKind::Scalar && seen.insert(read.getVariable()).second)
      scalars.push_back(variableBuffer(read.getVariable()));
  }
  for (ValueRange host : {ValueRange(inputs), ValueRange(scalars)})
    if (!host.empty())
      exec::UploadOp::create(instructions, program.getLoc(), host, exec::StreamAttr());
}

LogicalResult ProgramConverter::convertOp(Operation *op) {
  if (op->hasTrait<nn::ReadByHost>() || isa<nn::ReadOp, nn::AssignOp>(op))
    return success();
  if (auto fused = dyn_cast<nn::FusedOp>(op)) {
    FailureOr<KernelUse> use = kernels.generated(fused);
    return failed(use) ? failure() : dispatch(op, *use);
  }
  if (isa<comm::StartOp>(op)) {
    start(op);
    return success();
  }
  if (auto wait = dyn_cast<comm::WaitOp>(op)) {
    auto origin = wait.getFuture().getDefiningOp<comm::StartOp>();
    exec::WaitOp::create(instructions, op->getLoc(), origin.getBucket(), collectivePhase(origin),
                         exec::StreamAttr());
    return success();
  }
  if (auto count = dyn_cast<nn::CountNonfiniteOp>(op))
    return check(count);
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op)) {
    if (!nn::layoutOf(nn::tensorType(reshape.getX())).isRowMajor() ||
        !nn::layoutOf(reshape.getType()).isRowMajor())
      return op->emitOpError("moves elements; dlc-assign-layouts should have reordered ")
             << reshape.getX().getType();
    view(op, reshape.getX(), reshape.getY());
    return success();
  }
  if (hasRequest(op)) {
    FailureOr<KernelUse> use = kernels.library(op);
    return failed(use) ? failure() : dispatch(op, *use);
  }
  return op->emitOpError("has no kernel: neither a library nor a cluster runs it");
}

LogicalResult ProgramConverter::check(nn::CountNonfiniteOp op) {
  SmallVector<Value> slices;
  for (Value gradient : op.getGradients()) {
    slices.push_back(bufferOf(gradient));
    if (exec::rootOf(slices.back()).buffer.getArena() != ArenaKind::Gradients)
      return op.emitOpError("reads ") << gradient << ", which lies in no bucket";
  }
  exec::CheckOp::create(instructions, op.getLoc(), slices, bufferOf(op.getScale()),
                        bufferOf(op.getCount()));
  return success();
}

LogicalResult ProgramConverter::dispatch(Operation *op, const KernelUse &use) {
  SmallVector<Value> all;
  for (Value operand : op->getOperands())
    all.push_back(bufferOf(operand));
  for (OpResult value : op->getResults()) {
    if (Value operand = sharing->operandSharedBy(value))
      placed[value] = placed.lookup(operand);
    all.push_back(bufferOf(value));
  }
  for (RankedTensorType type : use.scratch)
    all.push_back(newBuffer(type, ArenaKind::Transient, op->getLoc()));
  for (const KernelUse::Stage &stage : use.stages) {
    SmallVector<Value> arguments;
    for (unsigned index : stage.buffers)
      arguments.push_back(all[index]);
    auto phase = exec::PhaseAttr::get(op->getContext(), phaseOf(op));
    FlatSymbolRefAttr variable = nn::roleOf(op).variable;
    exec::DispatchOp::create(instructions, op->getLoc(), stage.kernel, arguments, phase,
                             exec::StreamAttr(), op->getAttrOfType<IntegerAttr>(recomputedName),
                             variable ? instructions.getArrayAttr(variable) : ArrayAttr());
  }
  return success();
}

/// Null for the phase of collectives.
exec::PhaseAttr ProgramConverter::collectivePhase(comm::StartOp start) const {
  return counting.contains(start) ? exec::PhaseAttr::get(start.getContext(), Phase::Count)
                                  : exec::PhaseAttr();
}

void ProgramConverter::start(Operation *op) {
  auto start = cast<comm::StartOp>(op);
  auto wait = cast<comm::WaitOp>(*start.getFuture().getUsers().begin());
  SmallVector<Attribute> layers;
  for (auto [input, output] : llvm::zip(start.getInputs(), wait.getOutputs())) {
    layers.push_back(instructions.getStringAttr(nn::layerName(input.getLoc())));
    if (Value buffer = bufferOf(input), slice = placed.lookup(output); buffer != slice)
      exec::CopyOp::create(instructions, op->getLoc(), buffer, slice,
                           counting.contains(op) ? Phase::Count : Phase::Backward,
                           exec::StreamAttr());
  }
  Type wire = start.getWire().value_or(Float32Type::get(op->getContext()));
  exec::StartOp::create(instructions, op->getLoc(), buckets.lookup(op), start.getBucket(), wire,
                        start.getMembers().value_or(instructions.getArrayAttr(layers)),
                        collectivePhase(start), exec::StreamAttr());
}

void ProgramConverter::view(Operation *op, Value source, Value value) {
  // A bucket's slice or a variable is placed already: then the result is copied there.
  auto type = exec::BufferType::get(op->getContext(), nn::tensorType(value));
  OpBuilder after(op->getContext());
  Value from = bufferOf(source);
  after.setInsertionPointAfterValue(from);
  Value alias = exec::ViewOp::create(after, op->getLoc(), type, from, 0, StringAttr());
  if (Value destination = placed.lookup(value))
    exec::CopyOp::create(instructions, op->getLoc(), alias, destination, phaseOf(op),
                         exec::StreamAttr());
  else
    placed[value] = alias;
}

/// The variable's value that a value is, whatever its shape, or null.
static nn::ReadOp readBehind(Value value) {
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getX();
  return value.getDefiningOp<nn::ReadOp>();
}

/// The host reads when the program has run. If it reads a variable's old value, that is copied
/// before the new one is written.
void ProgramConverter::keepOldValues() {
  DenseSet<StringRef> assigned;
  for (auto assign : program.getBody().getOps<nn::AssignOp>())
    assigned.insert(assign.getVariable());
  for (Operation &op : program.getBody().front()) {
    if (!op.hasTrait<nn::ReadByHost>())
      continue;
    for (Value value : op.getOperands()) {
      nn::ReadOp read = readBehind(value);
      if (!read || !assigned.contains(read.getVariable()) ||
          !exec::rootOf(bufferOf(value)).buffer.getVariable())
        continue;
      Value copy = newBuffer(nn::tensorType(value), ArenaKind::Transient, op.getLoc());
      exec::CopyOp::create(instructions, op.getLoc(), placed.lookup(value), copy, phaseOf(&op),
                           exec::StreamAttr());
      placed[value] = copy;
    }
  }
}

/// Assignments that are not in place: through a temporary if the source is itself a variable (a
/// swap), then into the variable.
void ProgramConverter::assignRemaining() {
  SmallVector<std::pair<nn::AssignOp, Value>> pending;
  for (auto assign : program.getBody().getOps<nn::AssignOp>()) {
    if (inPlaceAssigns.contains(assign))
      continue;
    Value source = bufferOf(assign.getValue());
    if (exec::rootOf(source).buffer.getVariable()) {
      Value temporary =
          newBuffer(nn::tensorType(assign.getValue()), ArenaKind::Transient, assign.getLoc());
      exec::CopyOp::create(instructions, assign.getLoc(), source, temporary, Phase::Optimizer,
                           exec::StreamAttr());
      source = temporary;
    }
    pending.push_back({assign, source});
  }
  for (auto [assign, source] : pending)
    exec::CopyOp::create(instructions, assign.getLoc(), source, assignedPlace(assign),
                         Phase::Optimizer, exec::StreamAttr());
}

void ProgramConverter::download(Operation *op) {
  auto create = [&](StringRef name, exec::ResultKind kind, ValueRange values, double weight) {
    SmallVector<Value> places =
        llvm::map_to_vector(values, [&](Value value) { return bufferOf(value); });
    exec::DownloadOp::create(instructions, op->getLoc(), name, kind, places, llvm::APFloat(weight),
                             exec::StreamAttr());
  };
  if (auto loss = dyn_cast<nn::LossOp>(op))
    create("loss", exec::ResultKind::Loss, {loss.getSum(), loss.getCount()},
           loss.getWeight().convertToDouble());
  else if (auto metric = dyn_cast<nn::MetricOp>(op))
    create(metric.getMetric(), exec::ResultKind::Metric, {metric.getSum(), metric.getCount()}, 1.0);
  else if (auto output = dyn_cast<nn::OutputOp>(op))
    create(output.getOutput(), exec::ResultKind::Output, {output.getValue()}, 1.0);
}
