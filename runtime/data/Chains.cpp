#include "runtime/data/Chains.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/SourceNames.h"
#include "runtime/data/steps/StoredInputs.h"

#include <algorithm>

namespace dlc::rt {

Chains::Chains(const artifact::DataPipelineT &pipeline, const std::vector<InputSpec> &inputs,
               const std::vector<std::string> &knownInputs) {
  for (const auto &source : pipeline.sources)
    addValue(source->name);
  for (size_t number = 0; number < pipeline.chains.size(); ++number)
    if (const auto &chain = *pipeline.chains[number]; !addRestoration(chain))
      addChain(chain, number);
  leaveNormalize(pipeline, inputs);
  for (const std::string &name : knownInputs)
    addValue(name);
  for (const InputSpec &spec : inputs)
    addValue(spec.name);
}

size_t Chains::addValue(const std::string &name) {
  size_t value = valueOf(name);
  if (value == names.size())
    names.push_back(name);
  return value;
}

void Chains::addChain(const artifact::DataChainT &from, size_t number) {
  Chain &chain = chains.emplace_back();
  chain.number = number;
  for (const std::string &name : from.inputs)
    chain.inputs.push_back(addValue(name));
  for (const std::string &name : from.outputs)
    chain.outputs.push_back(addValue(name));
  std::string path = "data." + std::to_string(chains.size() - 1);
  for (const auto &call : from.steps) {
    chain.streams.push_back(
        randomStream(path + "." + std::to_string(chain.steps.size()) + "." + call->name));
    chain.steps.push_back(makeStep(*call));
    chain.isLeft.push_back(false);
  }
  if (chain.inputs.empty() || outputsOf(chain.steps, chain.inputs.size()) != chain.outputs.size())
    throw Error(ErrorCode::Artifact, "data chain of " + joined(from.inputs) + " makes " +
                                         std::to_string(chain.inputs.size()) +
                                         " arrays, but does not end in as many names");
}

bool Chains::addRestoration(const artifact::DataChainT &chain) {
  if (!isRestoration(chain))
    return false;
  if (chain.inputs.size() != 1 || chain.outputs != chain.inputs || chain.steps.size() != 1 ||
      chain.steps[0]->arguments.size() != 1)
    throw Error(ErrorCode::Artifact,
                "data step denormalize has a chain of its own: OUTPUT -> denormalize(SOURCE) -> "
                "OUTPUT");
  restored[chain.inputs[0]] = chain.steps[0]->arguments[0]->text;
  return true;
}

/// Notes which steps the program has in place of the data block.
void Chains::leaveNormalize(const artifact::DataPipelineT &pipeline,
                            const std::vector<InputSpec> &inputs) {
  InputOrigins origins = inputOrigins(pipeline);
  auto isLeft = [&](StepPlace place) -> std::vector<bool>::reference {
    return std::ranges::find(chains, place.chain, &Chain::number)->isLeft[place.step];
  };
  for (const InputSpec &spec : inputs) {
    InputOrigin origin = originOf(origins, spec.name);
    if (spec.stored && (!origin.isStored || origin.normalize.has_value() != spec.shift.has_value()))
      throw Error(ErrorCode::Artifact, "the program takes input " + spec.name +
                                           " as its files hold it, but the data block computes it");
    if (spec.shift)
      isLeft(*origin.normalize) = true;
  }
  for (const InputSpec &spec : inputs)
    if (InputOrigin origin = originOf(origins, spec.name);
        !spec.stored && origin.normalize && isLeft(*origin.normalize))
      throw Error(ErrorCode::Artifact, "input " + spec.name +
                                           " is normalised neither by the data "
                                           "block nor by the program");
}

size_t Chains::valueOf(const std::string &name) const {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

const std::string *Chains::unitsOf(const std::string &output) const {
  auto entry = restored.find(output);
  return entry == restored.end() ? nullptr : &entry->second;
}

std::vector<bool> Chains::reachedFrom(size_t source) const {
  std::vector<bool> reached(names.size(), false);
  reached[source] = true;
  for (const Chain &chain : chains) {
    const std::vector<bool> before = reached;
    for (size_t i = 0; i < chain.outputs.size(); ++i)
      if (size_t input = chain.inputs[std::min(i, chain.inputs.size() - 1)];
          input != chain.outputs[i])
        reached[chain.outputs[i]] = before[input];
  }
  return reached;
}

std::pair<const Chain *, const DataStep *> Chains::normalizeOf(size_t source) const {
  for (const Chain &chain : chains)
    if (std::find(chain.inputs.begin(), chain.inputs.end(), source) != chain.inputs.end())
      for (const DataStep &step : chain.steps)
        if (isNormalize(step))
          return {&chain, &step};
  return {};
}

Chains::Shapes Chains::shapesBehindSteps(Shapes shapes, Use use) const {
  for (const Chain &chain : chains) {
    Shapes members;
    for (size_t input : chain.inputs)
      members.push_back(shapes[input]);
    for (const DataStep &step : chain.steps) {
      std::vector<Extents> known;
      for (const std::optional<Extents> &member : members)
        if (member)
          known.push_back(*member);
      requireOneSize(step, known);
      for (std::optional<Extents> &member : members)
        if (member)
          member = resultShape(step, *member, use);
    }
    members.resize(chain.outputs.size(), members.front());
    for (size_t i = 0; i < members.size(); ++i)
      shapes[chain.outputs[i]] = std::move(members[i]);
  }
  return shapes;
}

} // namespace dlc::rt
