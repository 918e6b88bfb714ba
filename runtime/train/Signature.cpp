#include "runtime/train/Signature.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"

#include <utility>

namespace dlc::rt {

const artifact::Program &requireProgram(const Artifact &artifact, const std::string &name) {
  if (const artifact::Program *program = artifact.program(name))
    return *program;
  throw Error(ErrorCode::Artifact, "'" + artifact.name() + "' has no " + name + " program");
}

static const artifact::Buffer &bufferOf(const Artifact &artifact, uint32_t index) {
  return *artifact->buffers()->Get(index);
}

static bool hasLossOrMetric(const artifact::Program &program) {
  if (program.results())
    for (const artifact::Result *result : *program.results())
      if (result->kind() != artifact::ResultKind::Output)
        return true;
  return false;
}

std::vector<InputSpec> inputSpecs(const Artifact &artifact, const std::string &program) {
  std::vector<InputSpec> specs;
  const auto *inputs = requireProgram(artifact, program).inputs();
  if (!inputs)
    return specs;
  bool isJudged = hasLossOrMetric(requireProgram(artifact, program));
  for (const artifact::ProgramInput *input : *inputs) {
    const artifact::TensorType &type = *bufferOf(artifact, input->buffer()).type();
    InputSpec spec{input->name()->str(), type.dtype(), readShape(type), {}, false};
    if (input->shift() >= 0) {
      spec.shift = static_cast<size_t>(input->shift());
      spec.scale = static_cast<size_t>(input->scale());
    }
    if (artifact->inputs())
      for (const artifact::InputSignature *signature : *artifact->inputs())
        if (signature->name()->str() == spec.name) {
          if (signature->type()->dtype() != spec.dtype)
            spec.stored = std::exchange(spec.dtype, signature->type()->dtype());
          if (const artifact::Range *range = signature->range(); range && isJudged) {
            spec.range = ValueRange{range->low(), range->high()};
            if (const auto *others = signature->others())
              spec.range->others.assign(others->begin(), others->end());
          }
          spec.sumsToOne = isJudged && signature->sums_to_one();
          spec.neededByPredict = signature->needed_by_predict();
        }
    specs.push_back(std::move(spec));
  }
  for (const InputSpec &spec : specs)
    if (spec.shift)
      specs[*spec.shift].isOfNormalize = specs[*spec.scale].isOfNormalize = true;
  return specs;
}

std::vector<std::string> inputNames(const Artifact &artifact) {
  std::vector<std::string> names;
  if (artifact->inputs())
    for (const artifact::InputSignature *signature : *artifact->inputs())
      names.push_back(signature->name()->str());
  return names;
}

artifact::DataPipelineT dataPipeline(const Artifact &artifact) {
  artifact::DataPipelineT pipeline;
  if (artifact->data())
    artifact->data()->UnPackTo(&pipeline);
  return pipeline;
}

Destinations destinationsOf(Session &session, const std::string &program,
                            const std::vector<InputSpec> &inputs) {
  const Artifact &artifact = session.artifact();
  Destinations result(inputs.size());
  const auto *programInputs = requireProgram(artifact, program).inputs();
  for (size_t i = 0; programInputs && i < inputs.size(); ++i)
    for (const artifact::ProgramInput *input : *programInputs)
      if (input->name()->str() == inputs[i].name) {
        const artifact::TensorType &type = *bufferOf(artifact, input->buffer()).type();
        const std::string &name = inputs[i].name;
        result[i] =
            InputDestination{TensorWriter(type.dtype(), readShape(type), *readLayout(type)),
                             {session.input(program, name, 0), session.input(program, name, 1)}};
        if (result[i]->writer.takesViews())
          result[i]->rows = {session.rows(program, name, 0), session.rows(program, name, 1)};
      }
  return result;
}

std::vector<VariableInfo> variablesOf(const Artifact &artifact) {
  std::vector<VariableInfo> infos;
  if (!artifact->variables())
    return infos;
  for (const artifact::Variable *variable : *artifact->variables()) {
    if (variable->kind() == artifact::VariableKind::Scalar)
      continue;
    VariableInfo info{variable->name()->str(), variable->name()->str(),
                      readShape(*bufferOf(artifact, variable->buffer()).type()), variable->kind()};
    if (variable->kind() == artifact::VariableKind::Slot && variable->parameter() >= 0)
      info.tensor =
          "optimizer." + (variable->slot() ? variable->slot()->str() : std::string("slot")) + "." +
          artifact->variables()->Get(static_cast<uint32_t>(variable->parameter()))->name()->str();
    infos.push_back(std::move(info));
  }
  return infos;
}

} // namespace dlc::rt
