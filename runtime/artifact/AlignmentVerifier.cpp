// FlatBuffers' verifier checks that a vector lies inside of the file, not that its elements are
// aligned. Those of eight bytes are checked here, before anything reads them.

#include "runtime/artifact/Align.h"
#include "runtime/artifact/Faults.h"

namespace dlc::rt {
namespace {

class AlignmentVerifier {
public:
  void artifact(const artifact::Artifact &root) {
    each(root.configuration(), [&](const auto &entry) { argument(entry); });
    each(root.buffers(), [&](const auto &buffer) { type(*buffer.type()); });
    each(root.kernels(), [&](const auto &kernel) {
      each(kernel.operands(), [&](const auto &operand) { type(operand); });
    });
    each(root.inputs(), [&](const auto &input) { type(*input.type()); });
    each(root.programs(), [&](const auto &program) {
      if (program.tiling()) {
        numbers(program.tiling()->overlap());
        numbers(program.tiling()->alignment());
      }
    });
    if (root.data())
      each(root.data()->chains(),
           [&](const auto &chain) { each(chain.steps(), [&](const auto &step) { call(step); }); });
    if (root.training())
      training(*root.training());
  }
  bool isGood() const { return good; }

private:
  template <typename Vector, typename Visit> static void each(const Vector *vector, Visit visit) {
    for (uint32_t i = 0; i < countOf(vector); ++i)
      visit(*vector->Get(i));
  }
  template <typename Number> void numbers(const flatbuffers::Vector<Number> *vector) {
    good = good && (!vector || isAligned(*vector));
  }
  void type(const artifact::TensorType &type) { numbers(type.shape()); }
  void argument(const artifact::Argument &argument) {
    numbers(argument.ints());
    numbers(argument.floats());
  }
  void call(const artifact::Call &call) {
    each(call.arguments(), [&](const auto &entry) { argument(entry); });
  }
  void training(const artifact::Training &training) {
    each(training.schedule(), [&](const auto &entry) { call(entry); });
    if (training.optimizer())
      call(*training.optimizer());
    if (training.early_stop())
      call(*training.early_stop());
    if (training.updates())
      call(*training.updates());
  }

  bool good = true;
};

} // namespace

bool numbersAreAligned(const artifact::Artifact &root) {
  AlignmentVerifier verifier;
  verifier.artifact(root);
  return verifier.isGood();
}

} // namespace dlc::rt
