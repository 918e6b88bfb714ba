// The numbers of the blocks data and train: each in the range in which the runtime can follow it.
// The names of calls are checked by the runtime, which knows them.

#include "runtime/artifact/Faults.h"
#include "runtime/artifact/Ranges.h"

namespace dlc::rt {
namespace {

class ConfigurationVerifier {
public:
  explicit ConfigurationVerifier(Faults &faults) : faults(faults) {}

  void verify(const artifact::DataPipeline &data) {
    number("data.validation", data.validation(), ranges::share);
    for (uint32_t i = 0; i < countOf(data.chains()); ++i)
      calls("data.chains[" + std::to_string(i) + "].steps", data.chains()->Get(i)->steps());
  }

  void verify(const artifact::Training &training) {
    number("train.epochs", training.epochs(), ranges::count);
    number("train.steps_per_epoch", training.steps_per_epoch(), ranges::count);
    calls("train.schedule", training.schedule());
    if (training.optimizer())
      call("train.optimizer", *training.optimizer());
    if (training.early_stop())
      call("train.early_stop", *training.early_stop());
    if (training.updates())
      call("train.updates", *training.updates());
  }

private:
  void number(const std::string &where, double value, const Range &range) {
    if (!range.contains(value))
      faults.add(where, "is " + std::to_string(value) + ", expected a number " + range.text());
  }

  template <typename Calls> void calls(const std::string &where, const Calls *list) {
    for (uint32_t i = 0; i < countOf(list); ++i)
      call(where + "[" + std::to_string(i) + "]", *list->Get(i));
  }

  void call(const std::string &where, const artifact::Call &call) {
    for (uint32_t i = 0; i < countOf(call.arguments()); ++i) {
      const artifact::Argument &argument = *call.arguments()->Get(i);
      std::string name = argument.name() ? argument.name()->str() : "";
      Range range = rangeOf(call.name()->string_view(), name);
      for (uint32_t k = 0; k < countOf(argument.floats()); ++k)
        number(where + "." + name, argument.floats()->Get(k), range);
      for (uint32_t k = 0; k < countOf(argument.ints()); ++k)
        number(where + "." + name, static_cast<double>(argument.ints()->Get(k)), range);
    }
  }

  Faults &faults;
};

} // namespace

void verifyConfiguration(const artifact::Artifact &root, Faults &faults) {
  ConfigurationVerifier verifier(faults);
  if (root.data())
    verifier.verify(*root.data());
  if (root.training())
    verifier.verify(*root.training());
}

} // namespace dlc::rt
