// The smallest artifact that has one of everything: a training step on one weight vector.
//
// gradient = weight * image (a generated kernel), all-reduced, then weight -= rate * gradient. The
// loss is the rate over itself.
// Tests change the object form and pack it again.
#pragma once

#include "runtime/artifact/Writer.h"

#include <memory>
#include <string>
#include <vector>

namespace dlc::rt::test {

inline constexpr int64_t tinyElements = 100;

struct TinyArtifact {
  artifact::ArtifactT root;
  std::vector<uint8_t> code{0x7f, 'E', 'L', 'F'};

  TinyArtifact() {
    using namespace artifact;
    root.version = artifactVersion;
    root.model = "tiny";
    root.producer = "test";
    root.schedule_hash = 1;
    root.target = std::make_unique<TargetT>();
    root.target->name = "cpu:avx2";
    root.target->features = {"avx2"};
    root.target->threads = 2;
    addArena(ArenaKind::Variables, 512);
    addArena(ArenaKind::Inputs, 448);
    addArena(ArenaKind::Transient, 128);
    addArena(ArenaKind::Gradients, 448);
    addArena(ArenaKind::Sums, 448);
    addBuffer("weight", 0, 0, {tinyElements}, -1, 0, 0);
    addBuffer("lr", 0, 448, {}, -1, 0, 0);
    addBuffer("image", 1, 0, {tinyElements}, 0, 0, 20);
    addBuffer("loss.sum", 2, 0, {}, 0, 0, 20);
    addBuffer("loss.count", 2, 64, {}, 0, 0, 20);
    addBuffer("gradient", 3, 0, {tinyElements}, 0, 0, 20);
    addBuffer("sum", 4, 0, {tinyElements}, 0, 0, 20);
    addVariable("weight", VariableKind::Parameter, 0, InitializerKind::Normal, 0.0, 1.0);
    addVariable("lr", VariableKind::Scalar, 1, InitializerKind::Constant, 0.5, 0.0);
    root.modules.push_back(std::make_unique<CodeModuleT>());
    addKernel("gradient", "tiny_gradient", {0, 2, 5}, {Access::Read, Access::Read, Access::Write});
    addKernel("update", "tiny_update", {0, 5, 1}, {Access::ReadWrite, Access::Read, Access::Read});
    addKernel("accumulate", "tiny_add", {5, 5, 5}, {Access::Read, Access::Read, Access::Write});
    auto input = std::make_unique<InputSignatureT>();
    input->name = "image";
    input->type = copy(*root.buffers[2]->type);
    root.inputs.push_back(std::move(input));
    addProgram();
  }

  std::vector<uint8_t> pack() const {
    ArtifactWriter writer;
    root.modules[0]->code = std::make_unique<artifact::Span>(writer.addData(code));
    return writer.finish(artifact::Artifact::Pack(writer.builder(), &root));
  }

  artifact::ProgramT &program() { return *root.programs[0]; }
  /// Says how a kernel is launched on a GPU.
  void launch(size_t kernel, uint32_t threads) {
    root.kernels[kernel]->launch = std::make_unique<artifact::LaunchT>();
    root.kernels[kernel]->launch->threads = threads;
  }
  template <typename T> void addInstruction(artifact::Stream stream, T operation) {
    auto instruction = std::make_unique<artifact::InstructionT>();
    instruction->stream = stream;
    instruction->operation.Set(std::move(operation));
    program().instructions.push_back(std::move(instruction));
  }
  void addDispatch(uint32_t kernel, std::vector<uint32_t> buffers) {
    artifact::DispatchT dispatch;
    dispatch.kernel = kernel;
    dispatch.buffers = std::move(buffers);
    addInstruction(artifact::Stream::Compute, dispatch);
  }
  void addAccumulate(uint32_t kernel, uint32_t bucket, uint32_t sum) {
    artifact::AccumulateT accumulate;
    accumulate.kernel = kernel;
    accumulate.bucket = bucket;
    accumulate.sum = sum;
    addInstruction(artifact::Stream::Compute, accumulate);
  }
  void addUpload(std::vector<uint32_t> buffers,
                 artifact::Stream stream = artifact::Stream::Compute) {
    artifact::UploadT upload;
    upload.buffers = std::move(buffers);
    addInstruction(stream, upload);
  }
  void addArena(artifact::ArenaKind kind, uint64_t bytes) {
    auto arena = std::make_unique<artifact::ArenaT>();
    arena->kind = kind;
    arena->bytes = arena->lower_bound = bytes;
    root.arenas.push_back(std::move(arena));
  }
  uint32_t addBuffer(std::string name, uint32_t arena, uint64_t offset, std::vector<int64_t> shape,
                     int32_t program, uint32_t liveBegin, uint32_t liveEnd) {
    auto buffer = std::make_unique<artifact::BufferT>();
    buffer->name = std::move(name);
    buffer->arena = arena;
    buffer->offset = offset;
    buffer->type = std::make_unique<artifact::TensorTypeT>();
    buffer->type->shape = std::move(shape);
    buffer->program = program;
    buffer->live_begin = liveBegin;
    buffer->live_end = liveEnd;
    root.buffers.push_back(std::move(buffer));
    return static_cast<uint32_t>(root.buffers.size() - 1);
  }
  void addVariable(std::string name, artifact::VariableKind kind, uint32_t buffer,
                   artifact::InitializerKind start, double a, double b) {
    auto variable = std::make_unique<artifact::VariableT>();
    variable->name = std::move(name);
    variable->kind = kind;
    variable->buffer = buffer;
    variable->initializer = std::make_unique<artifact::InitializerT>();
    variable->initializer->kind = start;
    variable->initializer->a = a;
    variable->initializer->b = b;
    root.variables.push_back(std::move(variable));
  }
  /// A parameter's copy in bf16, in 256 more bytes of variables.
  artifact::VariableT &addCopy(int32_t parameter) {
    const artifact::BufferT &whole = *root.buffers[root.variables[size_t(parameter)]->buffer];
    uint32_t buffer = addBuffer("copy", 0, 512, whole.type->shape, -1, 0, 0);
    root.arenas[0]->bytes = 768;
    root.buffers[buffer]->type =
        copy(*root.buffers[root.variables[size_t(parameter)]->buffer]->type);
    root.buffers[buffer]->type->dtype = artifact::DType::BF16;
    addVariable("copy", artifact::VariableKind::Copy, buffer, artifact::InitializerKind::Constant,
                0, 0);
    root.variables.back()->parameter = parameter;
    return *root.variables.back();
  }
  void addKernel(std::string name, std::string symbol, const std::vector<uint32_t> &buffers,
                 std::vector<artifact::Access> access) {
    auto kernel = std::make_unique<artifact::KernelT>();
    kernel->name = std::move(name);
    kernel->kind = artifact::KernelKind::Generated;
    kernel->implementation = "generated";
    kernel->symbol = std::move(symbol);
    kernel->extent = tinyElements;
    kernel->chunk = 16;
    for (uint32_t buffer : buffers)
      kernel->operands.push_back(copy(*root.buffers[buffer]->type));
    kernel->access = std::move(access);
    root.kernels.push_back(std::move(kernel));
  }
  static std::unique_ptr<artifact::TensorTypeT> copy(const artifact::TensorTypeT &type) {
    auto result = std::make_unique<artifact::TensorTypeT>();
    result->dtype = type.dtype;
    result->shape = type.shape;
    if (type.layout)
      result->layout = std::make_unique<artifact::LayoutT>(*type.layout);
    return result;
  }

  /// Sums the image over micro-batches and ranks ahead of all else, in bucket 7 with sum 8, and
  /// copies the bucket. Its instructions are 14 copy, 15 accumulate, 16 record, 17 wait, 18 start,
  /// 19 wait, 20 recall and 21 copy.
  void countAhead() {
    using namespace artifact;
    for (uint32_t arena : {2u, 3u, 4u})
      root.arenas[arena]->bytes += 448;
    for (auto &buffer : root.buffers)
      buffer->live_end = 30;
    addBuffer("count", 3, 448, {tinyElements}, 0, 0, 30);
    addBuffer("counted", 4, 448, {tinyElements}, 0, 0, 30);
    addBuffer("seen", 2, 128, {tinyElements}, 0, 0, 30);
    auto message = std::make_unique<CollectiveT>();
    message->buffer = 7;
    message->elements = tinyElements;
    message->members = {"loss"};
    program().collectives.push_back(std::move(message));
    auto counts = [&] { program().instructions.back()->phase = Phase::Count; };
    uint32_t event = program().events++;
    RecordEventT record;
    record.event = event;
    WaitEventT wait;
    wait.event = event;
    CollectiveStartT start;
    start.collective = 1;
    CollectiveWaitT finish;
    finish.collective = 1;
    RecallT recall;
    recall.bucket = 7;
    recall.sum = 8;
    CopyT image, count;
    image.source = 2;
    image.destination = count.source = 7;
    count.destination = 9;
    addInstruction(Stream::Compute, image);
    counts();
    addAccumulate(2, 7, 8);
    counts();
    addInstruction(Stream::Compute, record);
    addInstruction(Stream::Comm, wait);
    addInstruction(Stream::Comm, start);
    counts();
    addInstruction(Stream::Compute, finish);
    counts();
    addInstruction(Stream::Compute, recall);
    counts();
    addInstruction(Stream::Compute, count);
  }

private:
  void addProgram() {
    using namespace artifact;
    root.programs.push_back(std::make_unique<ProgramT>());
    program().name = "train";
    program().batch = tinyElements;
    program().events = 2;
    auto input = std::make_unique<ProgramInputT>();
    input->name = "image";
    input->buffer = 2;
    program().inputs.push_back(std::move(input));
    auto loss = std::make_unique<ResultT>();
    loss->name = "loss";
    loss->kind = ResultKind::Loss;
    loss->buffers = {3, 4};
    program().results.push_back(std::move(loss));
    auto bucket = std::make_unique<CollectiveT>();
    bucket->buffer = 5;
    bucket->elements = tinyElements;
    bucket->members = {"weight"};
    program().collectives.push_back(std::move(bucket));
    addUpload({2}, Stream::Copy);
    addUpload({1});
    for (uint32_t buffer : {3u, 4u}) {
      CopyT rate;
      rate.source = 1;
      rate.destination = buffer;
      addInstruction(Stream::Compute, rate);
    }
    RecordEventT uploaded;
    uploaded.event = 1;
    addInstruction(Stream::Copy, uploaded);
    WaitEventT wait;
    wait.event = 1;
    addInstruction(Stream::Compute, wait);
    addDispatch(0, {0, 2, 5});
    addAccumulate(2, 5, 6);
    addInstruction(Stream::Compute, RecordEventT());
    addInstruction(Stream::Comm, WaitEventT());
    addInstruction(Stream::Comm, CollectiveStartT());
    addInstruction(Stream::Compute, CollectiveWaitT());
    addDispatch(1, {0, 5, 1});
    program().instructions.back()->phase = Phase::Optimizer;
    addInstruction(Stream::Compute, DownloadT());
  }
};

} // namespace dlc::rt::test
