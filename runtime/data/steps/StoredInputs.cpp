#include "runtime/data/steps/StoredInputs.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/steps/Steps.h"

#include <set>

namespace dlc::rt {
namespace {

class OriginTracer {
public:
  InputOrigins run(const artifact::DataPipelineT &pipeline) {
    for (const auto &source : pipeline.sources)
      origins.emplace(source->name, InputOrigin{source->name});
    for (size_t chain = 0; chain < pipeline.chains.size(); ++chain)
      follow(*pipeline.chains[chain], chain);
    for (auto &[name, origin] : origins)
      if (origin.normalize && computed.contains(*origin.normalize))
        origin.isStored = false;
    return std::move(origins);
  }

private:
  void follow(const artifact::DataChainT &chain, size_t number) {
    std::vector<InputOrigin> members;
    for (const std::string &name : chain.inputs)
      members.push_back(originOf(origins, name));
    for (size_t i = 0; i < chain.steps.size() && !members.empty(); ++i) {
      if (chain.steps[i]->name == "denormalize")
        return; // of an output
      DataStep step = makeStep(*chain.steps[i]);
      InputOrigin target = members.front(), mask{target.source};
      for (InputOrigin &member : members)
        apply(step, {number, i}, member);
      if (std::holds_alternative<BlindSpot>(step))
        members = {members.front(), target, mask};
    }
    for (size_t i = 0; i < chain.outputs.size() && !members.empty(); ++i)
      origins[chain.outputs[i]] = members[std::min(i, members.size() - 1)];
  }

  void apply(const DataStep &step, StepPlace place, InputOrigin &origin) {
    if (isNormalize(step) && origin.isStored && !origin.normalize)
      origin.normalize = place;
    else if (isNormalize(step) || !movesValues(step, origin.normalize.has_value()))
      compute(origin);
  }

  /// What is left of a step for the program would not be what it computes with.
  void compute(InputOrigin &origin) {
    origin.isStored = false;
    if (origin.normalize)
      computed.insert(*origin.normalize);
  }

  InputOrigins origins;
  std::set<StepPlace> computed;
};

} // namespace

InputOrigins inputOrigins(const artifact::DataPipelineT &pipeline) {
  return OriginTracer().run(pipeline);
}

std::optional<InputOrigins> inputOrigins(const artifact::DataPipelineT &pipeline,
                                         std::string &reason) {
  try {
    return inputOrigins(pipeline);
  } catch (const Error &error) {
    reason = error.what();
    return std::nullopt;
  }
}

InputOrigin originOf(const InputOrigins &origins, const std::string &input) {
  auto found = origins.find(input);
  return found == origins.end() ? InputOrigin{input} : found->second;
}

} // namespace dlc::rt
