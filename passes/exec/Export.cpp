// Tables are built bottom-up, as FlatBuffers wants it: arenas, buffers, variables, kernels,
// programs, then the root. Indices are those of the order in which symbols appear in the model;
// buffers are numbered variables first, then program by program.

#include "passes/exec/Export.h"

#include "dialects/NN/ElementType.h"
#include "passes/exec/AttributeTables.h"
#include "passes/exec/InstructionPhase.h"
#include "passes/exec/Liveness.h"
#include "runtime/artifact/Hash.h"
#include "runtime/artifact/Writer.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;
namespace fb = flatbuffers;

namespace {
class Exporter {
public:
  Exporter(nn::ModelOp model, const rt::PlannerTarget &target)
      : model(model), target(target), builder(writer.builder()), tables(builder) {}

  FailureOr<std::vector<uint8_t>> run(const EmittedCode &code);

private:
  void exportArenas();
  llvm::StringMap<uint32_t> exportRanges();
  void exportVariables();
  void exportKernels(const llvm::StringMap<Launch> &launches);
  void exportBuffers(exec::ProgramOp program, int32_t number, const Liveness &liveness);
  fb::Offset<artifact::Tiling> tiling(exec::ProgramOp program);
  fb::Offset<artifact::ProgramInput> input(exec::BufferOp buffer, ArrayRef<exec::BufferOp> all);
  LogicalResult exportProgram(exec::ProgramOp program, int32_t number);
  fb::Offset<artifact::Instruction> instruction(Operation *op);
  std::pair<artifact::Operation, fb::Offset<void>> operation(Operation *op);
  std::pair<artifact::Operation, fb::Offset<void>> dispatch(exec::DispatchOp op);
  fb::Offset<artifact::Result> result(exec::DownloadOp download);
  uint64_t scheduleHash(const EmittedCode &code);
  uint32_t indexOf(Value buffer) { return bufferIndex.lookup(buffer); }
  std::vector<uint32_t> indicesOf(ValueRange places) {
    std::vector<uint32_t> indices;
    for (Value place : places)
      indices.push_back(indexOf(place));
    return indices;
  }

  nn::ModelOp model;
  const rt::PlannerTarget &target;
  rt::ArtifactWriter writer;
  fb::FlatBufferBuilder &builder;
  AttributeTables tables;

  std::vector<fb::Offset<artifact::Arena>> arenas;
  std::vector<fb::Offset<artifact::Buffer>> buffers;
  std::vector<fb::Offset<artifact::Variable>> variables;
  std::vector<fb::Offset<artifact::Kernel>> kernels;
  std::vector<fb::Offset<artifact::Program>> programs;
  DenseMap<exec::ArenaKind, uint32_t> arenaIndex;
  llvm::StringMap<uint32_t> variableIndex, variableBuffer, kernelIndex;
  DenseMap<Operation *, uint32_t> rangeBuffer; // exec.buffers of several variables
  DenseMap<Value, uint32_t> bufferIndex;       // of the program being exported
  std::vector<fb::Offset<artifact::Result>> results;
  std::vector<fb::Offset<artifact::Collective>> collectives;
  uint32_t events = 0;
};
} // namespace

//===- Arenas, variables, kernels -------------------------------------------------------------===//

void Exporter::exportArenas() {
  for (auto arena : model.getBody().getOps<exec::ArenaOp>()) {
    arenaIndex[arena.getKind()] = static_cast<uint32_t>(arenas.size());
    arenas.push_back(
        artifact::CreateArena(builder, static_cast<artifact::ArenaKind>(arena.getKind()),
                              arena.getBytes().value_or(0), arena.getLowerBound().value_or(0)));
  }
}

/// Buffers of several variables; returns which buffer each of those is a part of.
llvm::StringMap<uint32_t> Exporter::exportRanges() {
  llvm::StringMap<uint32_t> rangeOf;
  model.walk([&](exec::BufferOp buffer) {
    if (!buffer.getVariables())
      return;
    auto number = static_cast<uint32_t>(buffers.size());
    rangeBuffer[buffer] = number;
    for (auto name : buffer.getVariables()->getAsRange<FlatSymbolRefAttr>())
      rangeOf[name.getValue()] = number;
    buffers.push_back(artifact::CreateBufferDirect(
        builder, "", arenaIndex.lookup(buffer.getArena()), *buffer.getOffset(),
        tables.type(buffer.getType().getTensor())));
  });
  return rangeOf;
}

void Exporter::exportVariables() {
  llvm::StringMap<uint32_t> rangeOf = exportRanges();
  for (auto [number, variable] : llvm::enumerate(model.getBody().getOps<nn::VariableOp>()))
    variableIndex[variable.getSymName()] = static_cast<uint32_t>(number);
  for (auto variable : model.getBody().getOps<nn::VariableOp>()) {
    bool isSlot = variable.getKind() == nn::VariableKind::Slot;
    uint32_t arena =
        arenaIndex.lookup(isSlot ? exec::ArenaKind::Slots : exec::ArenaKind::Variables);
    auto offset = static_cast<uint64_t>(variable->getAttrOfType<IntegerAttr>("offset").getInt());
    auto number = static_cast<uint32_t>(buffers.size());
    variableBuffer[variable.getSymName()] = number;
    std::string name = variable.getSymName().str();
    auto range = rangeOf.find(name);
    int32_t alias = range == rangeOf.end() ? -1 : static_cast<int32_t>(range->second);
    buffers.push_back(artifact::CreateBufferDirect(
        builder, name.c_str(), arena, offset,
        tables.type(cast<RankedTensorType>(variable.getType())), alias));
    nn::InitializerAttr init = variable.getInit();
    auto start = artifact::CreateInitializer(
        builder, static_cast<artifact::InitializerKind>(init.getKind()), init.getA(), init.getB());
    int32_t owner =
        variable.getOwner() ? static_cast<int32_t>(variableIndex.lookup(*variable.getOwner())) : -1;
    std::string slot = variable.getSlot().value_or("").str();
    variables.push_back(artifact::CreateVariableDirect(
        builder, name.c_str(), static_cast<artifact::VariableKind>(variable.getKind()), number,
        start, owner, slot.c_str()));
  }
}

void Exporter::exportKernels(const llvm::StringMap<Launch> &launches) {
  for (auto kernel : model.getBody().getOps<exec::KernelOp>()) {
    kernelIndex[kernel.getSymName()] = static_cast<uint32_t>(kernels.size());
    std::vector<fb::Offset<artifact::TensorType>> types;
    for (auto operand : kernel.getTypes().getAsValueRange<TypeAttr>())
      types.push_back(tables.type(cast<RankedTensorType>(operand)));
    std::vector<uint8_t> access(kernel.getAccess().begin(), kernel.getAccess().end());
    std::vector<uint8_t> plan;
    if (auto bytes = kernel.getPlan())
      plan.assign(bytes->begin(), bytes->end());
    auto kind = kernel.getPlan() ? artifact::KernelKind::Library : artifact::KernelKind::Generated;
    auto name = builder.CreateString(kernel.getSymName().str());
    auto implementation = builder.CreateString(kernel.getImplementation().str());
    auto planBytes = builder.CreateVector(plan);
    auto symbol = builder.CreateString(kernel.getFunction().value_or("").str());
    auto operands = builder.CreateVector(types);
    auto accesses = builder.CreateVector(reinterpret_cast<const artifact::Access *>(access.data()),
                                         access.size());
    auto category = builder.CreateString(kernel.getCategory().str());
    fb::Offset<artifact::Launch> launch;
    if (auto known = launches.find(kernel.getFunction().value_or("")); known != launches.end())
      launch = artifact::CreateLaunch(builder, known->second.threads, known->second.sharedBytes,
                                      known->second.registers);
    kernels.push_back(artifact::CreateKernel(
        builder, name, kind, implementation, planBytes, /*module=*/0, symbol, kernel.getExtent(),
        kernel.getChunk(), operands, accesses, kernel.getFlops(), kernel.getBytes(),
        kernel.getNanoseconds(), category, kernel.getPart(), launch));
  }
}

//===- Programs -------------------------------------------------------------------------------===//

void Exporter::exportBuffers(exec::ProgramOp program, int32_t number, const Liveness &liveness) {
  bufferIndex.clear();
  for (Operation &op : program.getBody().front()) {
    if (!isa<exec::BufferOp, exec::ViewOp>(op))
      continue;
    Value buffer = op.getResult(0);
    exec::Root root = exec::rootOf(buffer);
    auto live = liveness.intervals().find(root.buffer);
    if (live == liveness.intervals().end())
      continue; // nothing touches it
    if (auto variable = root.buffer.getVariable(); variable && buffer == root.buffer.getBuffer()) {
      bufferIndex[buffer] = variableBuffer.lookup(*variable);
      continue;
    }
    if (auto range = rangeBuffer.find(&op); range != rangeBuffer.end()) {
      bufferIndex[buffer] = range->second;
      continue;
    }
    bool isView = buffer != root.buffer.getBuffer();
    std::string name = root.buffer.getInput().value_or(root.buffer.getLabel().value_or("")).str();
    int32_t alias = isView ? static_cast<int32_t>(indexOf(root.buffer.getBuffer())) : -1;
    auto offset =
        static_cast<uint64_t>(*root.buffer.getOffset()) + static_cast<uint64_t>(root.offset);
    bufferIndex[buffer] = static_cast<uint32_t>(buffers.size());
    buffers.push_back(artifact::CreateBufferDirect(
        builder, name.c_str(), arenaIndex.lookup(root.buffer.getArena()), offset,
        tables.type(cast<exec::BufferType>(buffer.getType()).getTensor()), alias, number,
        static_cast<uint32_t>(live->second.begin), static_cast<uint32_t>(live->second.end)));
  }
}

std::pair<artifact::Operation, fb::Offset<void>> Exporter::dispatch(exec::DispatchOp op) {
  std::vector<uint32_t> operands = indicesOf(op.getBuffers());
  std::vector<uint32_t> forVariables;
  if (op.getVariables())
    for (auto name : op.getVariables()->getAsRange<FlatSymbolRefAttr>())
      forVariables.push_back(variableIndex.lookup(name.getValue()));
  auto table =
      artifact::CreateDispatchDirect(builder, kernelIndex.lookup(op.getKernel()), &operands,
                                     static_cast<uint64_t>(op.getRecomputed().value_or(0)),
                                     op.getVariables() ? &forVariables : nullptr);
  return {artifact::Operation::Dispatch, table.Union()};
}

std::pair<artifact::Operation, fb::Offset<void>> Exporter::operation(Operation *op) {
  using Result = std::pair<artifact::Operation, fb::Offset<void>>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<exec::DispatchOp>([&](exec::DispatchOp d) { return dispatch(d); })
      .Case<exec::StartOp>([&](exec::StartOp start) {
        int64_t elements = start.getBucket().getType().getTensor().getNumElements();
        collectives.push_back(artifact::CreateCollective(
            builder, artifact::CollectiveKind::AllReduceSum, indexOf(start.getBucket()),
            static_cast<uint64_t>(elements), nn::dtypeOf(start.getWire()),
            tables.strings(start.getMembers())));
        return Result(artifact::Operation::CollectiveStart,
                      artifact::CreateCollectiveStart(builder, start.getCollective()).Union());
      })
      .Case<exec::WaitOp>([&](exec::WaitOp wait) {
        return Result(artifact::Operation::CollectiveWait,
                      artifact::CreateCollectiveWait(builder, wait.getCollective()).Union());
      })
      .Case<exec::RecordOp>([&](exec::RecordOp record) {
        events = std::max<uint32_t>(events, record.getEvent() + 1);
        return Result(artifact::Operation::RecordEvent,
                      artifact::CreateRecordEvent(builder, record.getEvent()).Union());
      })
      .Case<exec::WaitEventOp>([&](exec::WaitEventOp wait) {
        return Result(artifact::Operation::WaitEvent,
                      artifact::CreateWaitEvent(builder, wait.getEvent()).Union());
      })
      .Case<exec::CopyOp>([&](exec::CopyOp copy) {
        return Result(
            artifact::Operation::Copy,
            artifact::CreateCopy(builder, indexOf(copy.getSource()), indexOf(copy.getDestination()))
                .Union());
      })
      .Case<exec::AccumulateOp>([&](exec::AccumulateOp add) {
        return Result(artifact::Operation::Accumulate,
                      artifact::CreateAccumulate(builder, kernelIndex.lookup(add.getKernel()),
                                                 indexOf(add.getBucket()), indexOf(add.getSum()))
                          .Union());
      })
      .Case<exec::RecallOp>([&](exec::RecallOp recall) {
        return Result(
            artifact::Operation::Recall,
            artifact::CreateRecall(builder, indexOf(recall.getBucket()), indexOf(recall.getSum()))
                .Union());
      })
      .Case<exec::UploadOp>([&](exec::UploadOp upload) {
        std::vector<uint32_t> places = indicesOf(upload.getBuffers());
        return Result(artifact::Operation::Upload,
                      artifact::CreateUploadDirect(builder, &places).Union());
      })
      .Case<exec::DownloadOp>([&](exec::DownloadOp download) {
        results.push_back(result(download));
        auto number = static_cast<uint32_t>(results.size() - 1);
        return Result(artifact::Operation::Download,
                      artifact::CreateDownload(builder, number).Union());
      });
}

fb::Offset<artifact::Result> Exporter::result(exec::DownloadOp download) {
  std::vector<uint32_t> places = indicesOf(download.getBuffers());
  return artifact::CreateResultDirect(builder, download.getResult().str().c_str(),
                                      static_cast<artifact::ResultKind>(download.getKind()),
                                      &places, download.getWeight().convertToDouble());
}

fb::Offset<artifact::Instruction> Exporter::instruction(Operation *op) {
  auto [kind, table] = operation(op);
  auto stream =
      static_cast<artifact::Stream>(op->getAttrOfType<exec::StreamAttr>("stream").getValue());
  auto location = builder.CreateString(nn::layerName(op->getLoc()).str());
  return artifact::CreateInstruction(builder, stream, kind, table, location, phaseOf(op));
}

fb::Offset<artifact::Tiling> Exporter::tiling(exec::ProgramOp program) {
  StringRef name = program.getSymName();
  auto found = name == "predict" ? model->getAttrOfType<DictionaryAttr>("tiling")
               : name == "eval"  ? model->getAttrOfType<DictionaryAttr>("eval_tiling")
                                 : DictionaryAttr();
  if (!found)
    return {};
  auto numbers = [&](StringRef entry) {
    ArrayRef<int64_t> list = found.getAs<DenseI64ArrayAttr>(entry).asArrayRef();
    return std::vector<uint64_t>(list.begin(), list.end());
  };
  std::vector<uint64_t> overlap = numbers("overlap"), alignment = numbers("alignment");
  auto parameters = tables.strings(found.get("parameters"));
  return artifact::CreateTiling(builder, builder.CreateVector(overlap),
                                builder.CreateVector(alignment), parameters);
}

fb::Offset<artifact::ProgramInput> Exporter::input(exec::BufferOp buffer,
                                                   ArrayRef<exec::BufferOp> all) {
  StringRef name = *buffer.getInput();
  bool isStored = buffer.getType().getTensor().getElementType().isUnsignedInteger();
  auto numberOf = [&](StringRef suffix) {
    const auto *found = llvm::find_if(
        all, [&](exec::BufferOp other) { return *other.getInput() == (name + suffix).str(); });
    return isStored && found != all.end() ? static_cast<int32_t>(found - all.begin()) : -1;
  };
  return artifact::CreateProgramInputDirect(builder, name.str().c_str(),
                                            indexOf(buffer.getBuffer()), numberOf(nn::shiftSuffix),
                                            numberOf(nn::scaleSuffix));
}

LogicalResult Exporter::exportProgram(exec::ProgramOp program, int32_t number) {
  results.clear();
  collectives.clear();
  events = 0;
  Liveness liveness(program);
  exportBuffers(program, number, liveness);
  SmallVector<exec::BufferOp> inputs;
  for (auto buffer : program.getBody().getOps<exec::BufferOp>())
    if (buffer.getInput() && bufferIndex.contains(buffer.getBuffer()))
      inputs.push_back(buffer);
  if (inputs.empty())
    return program.emitError("@") << program.getSymName()
                                  << " reads no input: nothing says how many samples it takes";
  auto batch = static_cast<uint32_t>(inputs.front().getType().getTensor().getDimSize(0));
  std::vector<fb::Offset<artifact::ProgramInput>> programInputs;
  for (exec::BufferOp input : inputs)
    programInputs.push_back(this->input(input, inputs));
  std::vector<fb::Offset<artifact::Instruction>> instructions;
  for (Operation *op : liveness.instructions())
    instructions.push_back(instruction(op));
  auto times = program->getAttrOfType<DictionaryAttr>("forecast");
  auto nanoseconds = [&](StringRef name) -> uint64_t {
    auto attribute = times ? times.getAs<IntegerAttr>(name) : IntegerAttr();
    return attribute ? static_cast<uint64_t>(attribute.getInt()) : 0;
  };
  auto forecast =
      artifact::CreateForecast(builder, nanoseconds("compute_ns"), nanoseconds("communication_ns"),
                               nanoseconds("exposed_ns"));
  std::vector<fb::Offset<artifact::Formula>> formulas;
  if (auto list = program->getAttrOfType<ArrayAttr>("formulas"))
    for (auto formula : list.getAsRange<DictionaryAttr>())
      formulas.push_back(artifact::CreateFormulaDirect(
          builder, formula.getAs<StringAttr>("name").str().c_str(),
          static_cast<uint32_t>(formula.getAs<IntegerAttr>("means").getInt()),
          formula.getAs<StringAttr>("expression").str().c_str()));
  auto obstacle = model->getAttrOfType<StringAttr>("untiled");
  std::string untiled = obstacle && program.getSymName() == "predict" ? obstacle.str() : "";
  programs.push_back(artifact::CreateProgramDirect(
      builder, program.getSymName().str().c_str(), batch, &programInputs, &results, &instructions,
      &collectives, events, forecast, tiling(program), &formulas, untiled.c_str()));
  return success();
}

//===- The whole file -------------------------------------------------------------------------===//

/// Everything that ranks must agree on: the whole program text and the code.
uint64_t Exporter::scheduleHash(const EmittedCode &code) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  model.print(stream, OpPrintingFlags().useLocalScope());
  for (const EmittedCode::Module &module : code.modules)
    text += module.code;
  return rt::hash64({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

FailureOr<std::vector<uint8_t>> Exporter::run(const EmittedCode &code) {
  exportArenas();
  exportVariables();
  exportKernels(code.launches);
  int32_t number = 0;
  for (auto program : model.getBody().getOps<exec::ProgramOp>())
    if (failed(exportProgram(program, number++)))
      return failure();
  std::vector<fb::Offset<artifact::CodeModule>> modules;
  for (const auto &[architecture, bytes] : code.modules) {
    artifact::Span span =
        writer.addData({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
    auto device =
        architecture.empty() ? fb::Offset<fb::String>() : builder.CreateString(architecture);
    modules.push_back(artifact::CreateCodeModule(builder, &span, device));
  }
  std::vector<fb::Offset<artifact::Argument>> configuration;
  if (auto config = model->getAttrOfType<DictionaryAttr>("config"))
    for (NamedAttribute attribute : config)
      configuration.push_back(tables.argument(attribute));
  auto signature = tables.inputs(model->getAttrOfType<ArrayAttr>("inputs"));
  auto pipeline = tables.data(model->getAttrOfType<DictionaryAttr>("data"));
  auto training = tables.training(model->getAttrOfType<DictionaryAttr>("train"));
  auto targetTable = tables.target(target, model);
  auto producer = builder.CreateString("dlc 0.1");
  auto name = builder.CreateString(model.getSymName().str());
  auto config = builder.CreateVector(configuration);
  auto arenaList = builder.CreateVector(arenas);
  auto bufferList = builder.CreateVector(buffers);
  auto variableList = builder.CreateVector(variables);
  auto moduleList = builder.CreateVector(modules);
  auto kernelList = builder.CreateVector(kernels);
  auto programList = builder.CreateVector(programs);
  artifact::ArtifactBuilder root(builder);
  root.add_version(rt::artifactVersion);
  root.add_schedule_hash(scheduleHash(code));
  root.add_producer(producer);
  root.add_model(name);
  root.add_configuration(config);
  root.add_target(targetTable);
  root.add_arenas(arenaList);
  root.add_buffers(bufferList);
  root.add_variables(variableList);
  root.add_modules(moduleList);
  root.add_kernels(kernelList);
  root.add_inputs(signature);
  root.add_programs(programList);
  root.add_data(pipeline);
  root.add_training(training);
  return writer.finish(root.Finish());
}

FailureOr<std::vector<uint8_t>> dlc::exportArtifact(nn::ModelOp model, const EmittedCode &code,
                                                    const rt::PlannerTarget &target) {
  return Exporter(model, target).run(code);
}
