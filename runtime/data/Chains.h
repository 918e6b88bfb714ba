// The chains of a data block, and the values between which they lie: sources, inputs of the model
// and what chains make of them, by number.
#pragma once

#include "runtime/data/InputSpec.h"
#include "runtime/data/steps/Steps.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace dlc::rt {

/// Steps that move values from inputs to outputs, position by position or one input to all outputs.
struct Chain {
  size_t number = 0;                   // in the data block
  std::vector<size_t> inputs, outputs; // values
  std::vector<DataStep> steps;
  std::vector<uint32_t> streams; // random stream of each step
  std::vector<bool> isLeft;      // steps, to the program
};

class Chains {
public:
  /// `inputs` are those that a pass needs, `knownInputs` all of the model. Throws Error(Artifact)
  /// for steps and chains that this runtime does not know, or if another step is left to the
  /// program than the inputs are for.
  Chains(const artifact::DataPipelineT &pipeline, const std::vector<InputSpec> &inputs,
         const std::vector<std::string> &knownInputs);

  // In the order of the data block.
  auto begin() const { return chains.begin(); }
  auto end() const { return chains.end(); }

  size_t values() const { return names.size(); }
  const std::string &nameOf(size_t value) const { return names[value]; }
  /// values() if no value has the name.
  size_t valueOf(const std::string &name) const;
  /// The source whose normalize is undone in an output, null if none is.
  const std::string *unitsOf(const std::string &output) const;

  /// Values that a source ends in.
  std::vector<bool> reachedFrom(size_t source) const;
  /// The chain, and its step, of the first normalize that a source goes through; null if none.
  std::pair<const Chain *, const DataStep *> normalizeOf(size_t source) const;

  /// Shapes by value, if known.
  using Shapes = std::vector<std::optional<Extents>>;
  /// The shapes in which samples come to the inputs. Throws Error(BadInput) for samples that a step
  /// cannot take.
  Shapes shapesBehindSteps(Shapes shapes, Use use) const;

  /// Calls `visit(normalize, step, source)` for each normalize(dataset), `normalize` being what the
  /// step holds, whose statistics may be set.
  template <typename Visitor> void visitMeasured(Visitor visit) {
    for (Chain &chain : chains)
      for (DataStep &step : chain.steps)
        if (auto *normalize = std::get_if<NormalizeChannels>(&step);
            normalize && normalize->measured)
          visit(*normalize, step, chain.inputs[0]);
  }

private:
  size_t addValue(const std::string &name);
  void addChain(const artifact::DataChainT &from, size_t number);
  bool addRestoration(const artifact::DataChainT &chain);
  void leaveNormalize(const artifact::DataPipelineT &pipeline,
                      const std::vector<InputSpec> &inputs);

  std::vector<std::string> names; // of values
  std::vector<Chain> chains;
  std::map<std::string, std::string> restored; // sources of the units of outputs
};

} // namespace dlc::rt
