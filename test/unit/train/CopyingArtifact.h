// An artifact whose training step copies its input, summed over ranks, into its only parameter: no
// kernels but for sums over micro-batches, and the parameter tells which samples came last. The
// loss is the input `loss` over the scalar valid_rows.
#pragma once

#include "test/unit/artifact/TinyArtifact.h"

#include <fstream>
#include <iterator>

namespace dlc::rt::test {

inline constexpr int64_t copiedElements = 4;

/// Diverging: a wrong artifact, in which each rank keeps its own sample. Counted: the loss is the
/// input `loss` over itself, a mean of nothing where it is 0. Summed: the loss is the parameter's
/// first element, which overflows where the ranks' inputs are large. Accumulated: steps may have
/// several micro-batches, by generated code.
enum class Copying { Reduced, Diverging, Counted, Summed, Accumulated };

class CopyingArtifact {
public:
  explicit CopyingArtifact(double validation = 0, Copying how = Copying::Reduced) {
    using namespace artifact;
    root.root = ArtifactT();
    ArtifactT &content = root.root;
    content.model = "copying";
    content.producer = "test";
    content.version = artifactVersion;
    content.schedule_hash = 1;
    content.target = std::make_unique<TargetT>();
    content.target->name = "cpu:avx2";
    content.target->threads = 1;
    root.addArena(ArenaKind::Variables, 256);
    root.addArena(ArenaKind::Inputs, 128);
    root.addArena(ArenaKind::Gradients, how == Copying::Diverging ? 0 : 64);
    root.addArena(ArenaKind::Sums, how == Copying::Accumulated ? 64 : 0);
    root.addBuffer("weight", 0, 0, {1, copiedElements}, -1, 0, 0);
    root.addBuffer("slot", 0, 64, {1, copiedElements}, -1, 0, 0);
    root.addBuffer("lr", 0, 128, {}, -1, 0, 0);
    root.addVariable("weight", VariableKind::Parameter, 0, InitializerKind::Normal, 0, 1);
    root.addVariable("weight.m", VariableKind::Slot, 1, InitializerKind::Constant, 0, 0);
    content.variables.back()->parameter = 0;
    content.variables.back()->slot = "m";
    root.addVariable("lr", VariableKind::Scalar, 2, InitializerKind::Constant, 0, 0);
    root.addBuffer("valid_rows", 0, 192, {}, -1, 0, 0);
    root.addVariable("valid_rows", VariableKind::Scalar, 3, InitializerKind::Constant, 0, 0);
    content.modules.push_back(std::make_unique<CodeModuleT>());
    addInputSignature("x", {1, copiedElements});
    addInputSignature("loss", {1});
    content.data = std::make_unique<DataPipelineT>();
    content.data->validation = validation;
    content.training = std::make_unique<TrainingT>();
    content.training->epochs = 2;
    addProgram("train");
    if (how == Copying::Diverging) {
      addCopy(4, 0);
      content.programs.back()->instructions.back()->phase = Phase::Optimizer;
    } else {
      addReducingCopy(how == Copying::Accumulated);
    }
    addInstruction(DownloadT());
    if (how == Copying::Counted)
      content.programs.back()->results.back()->buffers[1] =
          content.programs.back()->results.back()->buffers[0];
    if (how == Copying::Summed) {
      uint32_t first = root.addBuffer("first", 0, 0, {}, 0, 0, lastInstruction);
      content.buffers[first]->alias_of = 0;
      content.programs.back()->results.back()->buffers[0] = first;
    }
    addProgram("eval");
    addInstruction(DownloadT());
  }

  std::vector<uint8_t> pack() const {
    ArtifactWriter writer;
    std::ifstream file(DLC_TINY_KERNELS, std::ios::binary);
    std::vector<uint8_t> code(std::istreambuf_iterator<char>(file), {});
    root.root.modules[0]->code = std::make_unique<artifact::Span>(writer.addData(code));
    return writer.finish(artifact::Artifact::Pack(writer.builder(), &root.root));
  }

  TinyArtifact root;

private:
  static constexpr uint32_t lastInstruction = 10; // of the longest program, and a metric's

  void addInputSignature(const std::string &name, std::vector<int64_t> shape) {
    auto input = std::make_unique<artifact::InputSignatureT>();
    input->name = name;
    input->type = std::make_unique<artifact::TensorTypeT>();
    input->type->shape = std::move(shape);
    root.root.inputs.push_back(std::move(input));
  }

  template <typename T>
  void addInstruction(T operation, artifact::Stream stream = artifact::Stream::Compute) {
    auto instruction = std::make_unique<artifact::InstructionT>();
    instruction->stream = stream;
    instruction->operation.Set(std::move(operation));
    root.root.programs.back()->instructions.push_back(std::move(instruction));
  }

  void addCopy(uint32_t from, uint32_t to) {
    artifact::CopyT copy;
    copy.source = from;
    copy.destination = to;
    addInstruction(copy);
  }

  /// From x through a bucket to the weight.
  void addReducingCopy(bool accumulates) {
    using namespace artifact;
    uint32_t bucket = root.addBuffer("bucket", 2, 0, {1, copiedElements}, 0, 0, lastInstruction);
    auto collective = std::make_unique<CollectiveT>();
    collective->buffer = bucket;
    collective->elements = copiedElements;
    collective->members = {"weight"};
    root.root.programs.back()->collectives.push_back(std::move(collective));
    root.root.programs.back()->events = 1;
    addCopy(4, bucket);
    if (accumulates) {
      uint32_t sum = root.addBuffer("sum", 3, 0, {1, copiedElements}, 0, 0, lastInstruction);
      root.addKernel("accumulate", "tiny_add", {bucket, bucket, bucket},
                     {Access::Read, Access::Read, Access::Write});
      root.root.kernels.back()->extent = root.root.kernels.back()->chunk = copiedElements;
      root.addAccumulate(0, bucket, sum);
    }
    addInstruction(RecordEventT());
    addInstruction(WaitEventT(), Stream::Comm);
    addInstruction(CollectiveStartT(), Stream::Comm);
    addInstruction(CollectiveWaitT());
    addCopy(bucket, 0);
    root.root.programs.back()->instructions.back()->phase = Phase::Optimizer;
  }

  void addProgram(const std::string &name) {
    using namespace artifact;
    auto index = static_cast<int32_t>(root.root.programs.size());
    root.root.programs.push_back(std::make_unique<ProgramT>());
    ProgramT &program = *root.root.programs.back();
    program.name = name;
    program.batch = 1;
    uint32_t x = root.addBuffer("x", 1, 0, {1, copiedElements}, index, 0, lastInstruction);
    uint32_t loss = root.addBuffer("loss", 1, 64, {1}, index, 0, lastInstruction);
    for (auto [input, buffer] : {std::pair("x", x), {"loss", loss}}) {
      program.inputs.push_back(std::make_unique<ProgramInputT>());
      program.inputs.back()->name = input;
      program.inputs.back()->buffer = buffer;
    }
    auto result = std::make_unique<ResultT>();
    result->name = "loss";
    result->kind = ResultKind::Loss;
    uint32_t sum = root.addBuffer("sum", 1, 64, {}, index, 0, lastInstruction);
    root.root.buffers[sum]->alias_of = static_cast<int32_t>(loss);
    result->buffers = {sum, 3};
    program.results.push_back(std::move(result));
    for (const std::vector<uint32_t> &buffers : {std::vector{x, loss}, {3u}}) {
      UploadT upload;
      upload.buffers = buffers;
      addInstruction(upload);
    }
  }
};

} // namespace dlc::rt::test
