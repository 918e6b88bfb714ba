// Tables are built bottom-up, as FlatBuffers wants it: arenas, buffers, variables, kernels,
// programs, then the root. Indices are those of the order in which symbols appear in the model;
// buffers are numbered variables first, then program by program.

#include "passes/Export.h"

#include "passes/Liveness.h"
#include "runtime/artifact/Hash.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/artifact/Writer.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;
namespace fb = flatbuffers;

namespace {
artifact::DType dtypeOf(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    switch (integer.getWidth()) {
    case 1:
      return artifact::DType::Bool;
    case 8:
      return integer.isUnsigned() ? artifact::DType::U8 : artifact::DType::I8;
    case 32:
      return artifact::DType::I32;
    default:
      return artifact::DType::I64;
    }
  return element.isF64()    ? artifact::DType::F64
         : element.isBF16() ? artifact::DType::BF16
         : element.isF16()  ? artifact::DType::F16
                            : artifact::DType::F32;
}

class Exporter {
public:
  Exporter(nn::ModelOp model, const rt::PlannerTarget &target, const ExportOptions &options)
      : model(model), planned(target), options(options), builder(writer.builder()) {}

  std::vector<uint8_t> run(const std::string &code);

private:
  fb::Offset<artifact::TensorType> type(RankedTensorType tensor);
  fb::Offset<artifact::Argument> argument(NamedAttribute attribute);
  fb::Offset<artifact::Call> call(DictionaryAttr dictionary);
  fb::Offset<fb::Vector<fb::Offset<artifact::Call>>> calls(Attribute array);
  fb::Offset<fb::Vector<fb::Offset<fb::String>>> strings(Attribute array);

  void exportArenas();
  llvm::StringMap<uint32_t> exportRanges();
  void exportVariables();
  void exportKernels();
  void exportBuffers(exec::ProgramOp program, int32_t number, const Liveness &liveness);
  fb::Offset<artifact::Tiling> tiling(exec::ProgramOp program);
  void exportProgram(exec::ProgramOp program, int32_t number);
  fb::Offset<artifact::Instruction> instruction(Operation *op);
  std::pair<artifact::Operation, fb::Offset<void>> operation(Operation *op);
  std::pair<artifact::Operation, fb::Offset<void>> dispatch(exec::DispatchOp op);
  fb::Offset<artifact::Result> hostRead(exec::HostReadOp op);
  fb::Offset<artifact::DataPipeline> data();
  fb::Offset<artifact::Training> training();
  fb::Offset<artifact::Target> target();
  fb::Offset<fb::Vector<fb::Offset<artifact::InputSignature>>> inputs();
  uint64_t scheduleHash(const std::string &code);
  uint32_t indexOf(Value buffer) { return bufferIndex.lookup(buffer); }

  nn::ModelOp model;
  const rt::PlannerTarget &planned;
  const ExportOptions &options;
  rt::ArtifactWriter writer;
  fb::FlatBufferBuilder &builder;

  std::vector<fb::Offset<artifact::Arena>> arenas;
  std::vector<fb::Offset<artifact::Buffer>> buffers;
  std::vector<fb::Offset<artifact::Variable>> variables;
  std::vector<fb::Offset<artifact::Kernel>> kernels;
  std::vector<fb::Offset<artifact::Program>> programs;
  DenseMap<exec::ArenaKind, uint32_t> arenaIndex;
  llvm::StringMap<uint32_t> variableBuffer, kernelIndex;
  DenseMap<Operation *, uint32_t> rangeBuffer; // exec.buffers of several variables
  DenseMap<Value, uint32_t> bufferIndex;       // of the program being exported
  std::vector<fb::Offset<artifact::Result>> results;
  std::vector<fb::Offset<artifact::Collective>> collectives;
  uint32_t events = 0;
};
} // namespace

//===- Types and constant arguments -----------------------------------------------------------===//

fb::Offset<artifact::TensorType> Exporter::type(RankedTensorType tensor) {
  return rt::writeTensorType(builder, dtypeOf(tensor.getElementType()), tensor.getShape().vec(),
                             nn::layoutOf(tensor));
}

fb::Offset<artifact::Argument> Exporter::argument(NamedAttribute attribute) {
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::string text;
  std::function<void(Attribute)> add = [&](Attribute value) {
    llvm::TypeSwitch<Attribute>(value)
        .Case<BoolAttr>([&](BoolAttr flag) { ints.push_back(flag.getValue()); })
        .Case<IntegerAttr>([&](IntegerAttr number) { ints.push_back(number.getInt()); })
        .Case<FloatAttr>([&](FloatAttr number) { floats.push_back(number.getValueAsDouble()); })
        .Case<StringAttr>(
            [&](StringAttr string) { text += (text.empty() ? "" : ",") + string.str(); })
        .Case<ArrayAttr>([&](ArrayAttr array) { llvm::for_each(array, add); });
  };
  add(attribute.getValue());
  return artifact::CreateArgumentDirect(builder, attribute.getName().str().c_str(), &ints, &floats,
                                        text.c_str());
}

/// {name = "adam", lr = ...}
fb::Offset<artifact::Call> Exporter::call(DictionaryAttr dictionary) {
  if (!dictionary)
    return {};
  std::vector<fb::Offset<artifact::Argument>> arguments;
  for (NamedAttribute attribute : dictionary)
    if (attribute.getName() != "name")
      arguments.push_back(argument(attribute));
  auto name = dictionary.getAs<StringAttr>("name");
  return artifact::CreateCallDirect(builder, name ? name.str().c_str() : "", &arguments);
}

fb::Offset<fb::Vector<fb::Offset<artifact::Call>>> Exporter::calls(Attribute array) {
  std::vector<fb::Offset<artifact::Call>> list;
  if (auto entries = dyn_cast_if_present<ArrayAttr>(array))
    for (auto entry : entries.getAsRange<DictionaryAttr>())
      list.push_back(call(entry));
  return builder.CreateVector(list);
}

fb::Offset<fb::Vector<fb::Offset<fb::String>>> Exporter::strings(Attribute array) {
  std::vector<std::string> list;
  if (auto entries = dyn_cast_if_present<ArrayAttr>(array))
    for (auto entry : entries.getAsRange<StringAttr>())
      list.push_back(entry.str());
  return builder.CreateVectorOfStrings(list);
}

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
    buffers.push_back(
        artifact::CreateBufferDirect(builder, "", arenaIndex.lookup(buffer.getArena()),
                                     *buffer.getOffset(), type(buffer.getType().getTensor())));
  });
  return rangeOf;
}

void Exporter::exportVariables() {
  llvm::StringMap<uint32_t> rangeOf = exportRanges();
  llvm::StringMap<int32_t> index;
  for (auto [number, variable] : llvm::enumerate(model.getBody().getOps<nn::VariableOp>()))
    index[variable.getSymName()] = static_cast<int32_t>(number);
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
    buffers.push_back(artifact::CreateBufferDirect(builder, name.c_str(), arena, offset,
                                                   type(cast<RankedTensorType>(variable.getType())),
                                                   alias));
    nn::InitializerAttr init = variable.getInit();
    auto start = artifact::CreateInitializer(
        builder, static_cast<artifact::InitializerKind>(init.getKind()), init.getA(), init.getB());
    int32_t owner = variable.getOwner() ? index.lookup(*variable.getOwner()) : -1;
    std::string slot = variable.getSlot().value_or("").str();
    variables.push_back(artifact::CreateVariableDirect(
        builder, name.c_str(), static_cast<artifact::VariableKind>(variable.getKind()), number,
        start, owner, slot.c_str()));
  }
}

void Exporter::exportKernels() {
  for (auto kernel : model.getBody().getOps<exec::KernelOp>()) {
    kernelIndex[kernel.getSymName()] = static_cast<uint32_t>(kernels.size());
    std::vector<fb::Offset<artifact::TensorType>> types;
    for (auto operand : kernel.getTypes().getAsValueRange<TypeAttr>())
      types.push_back(type(cast<RankedTensorType>(operand)));
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
    kernels.push_back(artifact::CreateKernel(
        builder, name, kind, implementation, planBytes, /*module=*/0, symbol, kernel.getExtent(),
        kernel.getChunk(), operands, accesses, kernel.getFlops(), kernel.getBytes(),
        kernel.getNanoseconds(), category));
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
        type(cast<exec::BufferType>(buffer.getType()).getTensor()), alias, number,
        static_cast<uint32_t>(live->second.begin), static_cast<uint32_t>(live->second.end)));
  }
}

std::pair<artifact::Operation, fb::Offset<void>> Exporter::dispatch(exec::DispatchOp op) {
  std::vector<uint32_t> operands;
  for (Value buffer : op.getBuffers())
    operands.push_back(indexOf(buffer));
  auto table =
      artifact::CreateDispatchDirect(builder, kernelIndex.lookup(op.getKernel()), &operands);
  return {artifact::Operation::Dispatch, table.Union()};
}

std::pair<artifact::Operation, fb::Offset<void>> Exporter::operation(Operation *op) {
  using Result = std::pair<artifact::Operation, fb::Offset<void>>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<exec::DispatchOp>([&](exec::DispatchOp d) { return dispatch(d); })
      .Case<exec::StartOp>([&](exec::StartOp start) {
        int64_t elements = start.getBucket().getType().getTensor().getNumElements();
        collectives.push_back(
            artifact::CreateCollective(builder, artifact::CollectiveKind::AllReduceSum,
                                       indexOf(start.getBucket()), static_cast<uint64_t>(elements),
                                       dtypeOf(start.getWire()), strings(start.getMembers())));
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
      .Case<exec::FillOp>([&](exec::FillOp fill) {
        return Result(
            artifact::Operation::Fill,
            artifact::CreateFill(builder, indexOf(fill.getBuffer()), fill.getValue()).Union());
      })
      .Case<exec::HostReadOp>([&](exec::HostReadOp read) {
        results.push_back(hostRead(read));
        auto number = static_cast<uint32_t>(results.size() - 1);
        return Result(artifact::Operation::HostRead,
                      artifact::CreateHostRead(builder, number).Union());
      });
}

fb::Offset<artifact::Result> Exporter::hostRead(exec::HostReadOp read) {
  std::vector<uint32_t> places;
  for (Value buffer : read.getBuffers())
    places.push_back(indexOf(buffer));
  return artifact::CreateResultDirect(builder, read.getResult().str().c_str(),
                                      static_cast<artifact::ResultKind>(read.getKind()), &places,
                                      read.getWeight().convertToDouble(), read.getHigherIsBetter());
}

fb::Offset<artifact::Instruction> Exporter::instruction(Operation *op) {
  auto [kind, table] = operation(op);
  auto stream =
      static_cast<artifact::Stream>(op->getAttrOfType<exec::StreamAttr>("stream").getValue());
  auto phase = artifact::Phase::Communication;
  if (auto attribute = op->getAttrOfType<exec::PhaseAttr>("phase"))
    phase = static_cast<artifact::Phase>(attribute.getValue());
  auto location = builder.CreateString(nn::layerName(op->getLoc()).str());
  return artifact::CreateInstruction(builder, stream, kind, table, location, phase);
}

fb::Offset<artifact::Tiling> Exporter::tiling(exec::ProgramOp program) {
  auto found = model->getAttrOfType<DictionaryAttr>("tiling");
  if (!found || program.getSymName() != "predict")
    return {};
  auto numbers = [&](StringRef name) {
    ArrayRef<int64_t> list = found.getAs<DenseI64ArrayAttr>(name).asArrayRef();
    return std::vector<uint64_t>(list.begin(), list.end());
  };
  std::vector<uint64_t> overlap = numbers("overlap"), alignment = numbers("alignment");
  return artifact::CreateTilingDirect(builder, &overlap, &alignment);
}

void Exporter::exportProgram(exec::ProgramOp program, int32_t number) {
  results.clear();
  collectives.clear();
  events = 0;
  Liveness liveness(program);
  exportBuffers(program, number, liveness);
  std::vector<fb::Offset<artifact::ProgramInput>> programInputs;
  uint32_t batch = 0;
  for (auto buffer : program.getBody().getOps<exec::BufferOp>()) {
    if (!buffer.getInput() || !bufferIndex.contains(buffer.getBuffer()))
      continue;
    batch = static_cast<uint32_t>(buffer.getType().getTensor().getDimSize(0));
    programInputs.push_back(artifact::CreateProgramInputDirect(
        builder, buffer.getInput()->str().c_str(), indexOf(buffer.getBuffer())));
  }
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
  programs.push_back(artifact::CreateProgramDirect(
      builder, program.getSymName().str().c_str(), batch, &programInputs, &results, &instructions,
      &collectives, events, forecast, tiling(program)));
}

//===- Model, data, training ------------------------------------------------------------------===//

fb::Offset<artifact::DataPipeline> Exporter::data() {
  auto block = model->getAttrOfType<DictionaryAttr>("data");
  if (!block)
    return {};
  std::vector<fb::Offset<artifact::DataSource>> sources;
  if (auto list = block.getAs<ArrayAttr>("sources"))
    for (auto source : list.getAsRange<DictionaryAttr>()) {
      auto axes = source.getAs<StringAttr>("axes");
      sources.push_back(artifact::CreateDataSourceDirect(
          builder, source.getAs<StringAttr>("name").str().c_str(), axes ? axes.str().c_str() : ""));
    }
  std::vector<fb::Offset<artifact::DataChain>> chains;
  if (auto list = block.getAs<ArrayAttr>("chains"))
    for (auto chain : list.getAsRange<DictionaryAttr>()) {
      auto from = strings(chain.get("inputs"));
      auto steps = calls(chain.get("steps"));
      auto to = strings(chain.get("outputs"));
      chains.push_back(artifact::CreateDataChain(builder, from, steps, to));
    }
  auto validation = block.getAs<FloatAttr>("validation");
  return artifact::CreateDataPipelineDirect(builder, &sources, &chains,
                                            validation ? validation.getValueAsDouble() : 0.0);
}

fb::Offset<artifact::Training> Exporter::training() {
  auto block = model->getAttrOfType<DictionaryAttr>("train");
  if (!block)
    return {};
  auto integer = [&](StringRef name) {
    auto attribute = block.getAs<IntegerAttr>(name);
    return attribute ? static_cast<uint32_t>(attribute.getInt()) : 0;
  };
  auto optimizer = call(block.getAs<DictionaryAttr>("optimizer"));
  auto schedule = calls(block.get("schedule"));
  auto earlyStop = call(block.getAs<DictionaryAttr>("early_stop"));
  auto monitor = block.getAs<StringAttr>("monitor");
  auto monitorName = builder.CreateString(monitor ? monitor.str() : "loss");
  return artifact::CreateTraining(builder, optimizer, integer("epochs"), integer("steps_per_epoch"),
                                  schedule, earlyStop, monitorName);
}

fb::Offset<artifact::Target> Exporter::target() {
  auto link = artifact::CreateLink(builder, options.linkGbit, options.linkMicroseconds);
  auto name = builder.CreateString(planned.name);
  auto features = builder.CreateVectorOfStrings(planned.features);
  auto library = builder.CreateString(planned.library);
  auto math = builder.CreateString(options.math);
  auto precision = builder.CreateString(options.precision);
  std::vector<fb::Offset<artifact::LayoutCost>> layouts;
  if (auto costs = model->getAttrOfType<ArrayAttr>("layouts"))
    for (auto cost : costs.getAsRange<DictionaryAttr>())
      layouts.push_back(artifact::CreateLayoutCostDirect(
          builder, cost.getAs<StringAttr>("family").str().c_str(),
          static_cast<uint64_t>(cost.getAs<IntegerAttr>("nanoseconds").getInt()),
          static_cast<uint32_t>(cost.getAs<IntegerAttr>("exceptions").getInt())));
  return artifact::CreateTarget(builder, name, features, library, options.threads, math, precision,
                                link, builder.CreateVector(layouts));
}

fb::Offset<fb::Vector<fb::Offset<artifact::InputSignature>>> Exporter::inputs() {
  std::vector<fb::Offset<artifact::InputSignature>> list;
  if (auto entries = model->getAttrOfType<ArrayAttr>("inputs"))
    for (auto entry : entries.getAsRange<DictionaryAttr>()) {
      auto range = entry.getAs<IntegerAttr>("label_range");
      auto predict = entry.getAs<BoolAttr>("needed_by_predict");
      list.push_back(artifact::CreateInputSignatureDirect(
          builder, entry.getAs<StringAttr>("name").str().c_str(),
          type(cast<RankedTensorType>(entry.getAs<TypeAttr>("type").getValue())),
          range ? range.getInt() : 0, predict && predict.getValue()));
    }
  return builder.CreateVector(list);
}

/// Everything that ranks must agree on: the whole program text and the code.
uint64_t Exporter::scheduleHash(const std::string &code) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  model.print(stream, OpPrintingFlags().useLocalScope());
  text += code;
  return rt::hash64({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

std::vector<uint8_t> Exporter::run(const std::string &code) {
  exportArenas();
  exportVariables();
  exportKernels();
  int32_t number = 0;
  for (auto program : model.getBody().getOps<exec::ProgramOp>())
    exportProgram(program, number++);
  std::vector<fb::Offset<artifact::CodeModule>> modules;
  if (!code.empty()) {
    artifact::Span span =
        writer.addData({reinterpret_cast<const uint8_t *>(code.data()), code.size()});
    modules.push_back(artifact::CreateCodeModule(builder, &span));
  }
  std::vector<fb::Offset<artifact::Argument>> configuration;
  if (auto config = model->getAttrOfType<DictionaryAttr>("config"))
    for (NamedAttribute attribute : config)
      configuration.push_back(argument(attribute));
  auto signature = inputs();
  auto pipeline = data();
  auto trainingTable = training();
  auto targetTable = target();
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
  root.add_training(trainingTable);
  return writer.finish(root.Finish());
}

std::vector<uint8_t> dlc::exportArtifact(nn::ModelOp model, const std::string &code,
                                         const rt::PlannerTarget &target,
                                         const ExportOptions &options) {
  return Exporter(model, target, options).run(code);
}
