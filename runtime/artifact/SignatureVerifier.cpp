// What the host sees of a program: inputs, results, and how images larger than its inputs are put
// together.

#include "runtime/artifact/Faults.h"
#include "runtime/artifact/Formula.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/artifact/Ranges.h"

#include <algorithm>
#include <optional>
#include <set>

namespace dlc::rt {
namespace {

class SignatureVerifier {
public:
  SignatureVerifier(const artifact::Artifact &root, const std::vector<CheckedBuffer> &buffers,
                    uint32_t index, Faults &faults)
      : root(root), program(*root.programs()->Get(index)), buffers(buffers),
        index(static_cast<int32_t>(index)), faults(faults) {}

  void run() {
    if (program.batch() < 1)
      fault("batch 0");
    if (countOf(program.instructions()) == 0)
      fault("has no instructions");
    verifyInputs();
    verifyResults();
    verifyTiling();
  }

private:
  void verifyInputs();
  bool isStored(const artifact::ProgramInput &input) const;
  void verifyNormalization(const artifact::ProgramInput &input, const std::string &name);
  bool isOfNormalize(uint32_t number) const;
  void verifyResults();
  void verifyFormulas(const std::set<std::string_view> &metrics);
  void verifyTiling();

  std::optional<int64_t> rowsOf(uint32_t buffer) const;
  const artifact::TensorType &typeOf(uint32_t buffer) const {
    return *root.buffers()->Get(buffer)->type();
  }
  const artifact::InputSignature *signatureOf(const artifact::ProgramInput &input) const;
  bool isVisible(uint32_t buffer) const { return isVisibleIn(index, buffers, buffer); }
  void fault(const std::string &what) {
    faults.add("program '" + program.name()->str() + "'", what);
  }

  const artifact::Artifact &root;
  const artifact::Program &program;
  const std::vector<CheckedBuffer> &buffers;
  int32_t index;
  Faults &faults;
};

/// Rows of a tensor, nothing if it has no dimensions.
std::optional<int64_t> SignatureVerifier::rowsOf(uint32_t buffer) const {
  const auto *shape = typeOf(buffer).shape();
  return countOf(shape) > 0 ? std::optional(shape->Get(0)) : std::nullopt;
}

void SignatureVerifier::verifyInputs() {
  std::set<std::string_view> names;
  std::set<uint32_t> places;
  for (uint32_t i = 0; i < countOf(program.inputs()); ++i) {
    const artifact::ProgramInput *input = program.inputs()->Get(i);
    std::string name = "input '" + input->name()->str() + "'";
    if (!names.insert(input->name()->string_view()).second)
      fault(name + " is defined twice");
    if (!isVisible(input->buffer())) {
      fault(name + " has no buffer");
      continue;
    }
    if (!places.insert(input->buffer()).second)
      fault(name + " has the buffer of another one");
    const CheckedBuffer &buffer = buffers[input->buffer()];
    if (buffer.liveBegin > 0)
      fault(name + " does not live from the start");
    if (root.arenas()->Get(buffer.arena)->kind() != artifact::ArenaKind::Inputs)
      fault(name + " does not lie in the arena of inputs");
    if (rowsOf(input->buffer()) != program.batch())
      fault(name + " has no rows of its own for a batch of " + std::to_string(program.batch()));
    const artifact::InputSignature *known = signatureOf(*input);
    const artifact::TensorType &type = typeOf(input->buffer());
    if (known && ((known->type()->dtype() != type.dtype() && !isStored(*input)) ||
                  countOf(known->type()->shape()) != countOf(type.shape())))
      fault(name + " has another type than the model's input of that name");
    if (input->shift() != -1 || input->scale() != -1)
      verifyNormalization(*input, name);
  }
}

/// The model's input of that name; null if it has none.
const artifact::InputSignature *
SignatureVerifier::signatureOf(const artifact::ProgramInput &input) const {
  for (uint32_t i = 0; i < countOf(root.inputs()); ++i)
    if (root.inputs()->Get(i)->name()->string_view() == input.name()->string_view())
      return root.inputs()->Get(i);
  return nullptr;
}

/// True of an f32 input of the model that comes as files hold it. Predictions take any file.
bool SignatureVerifier::isStored(const artifact::ProgramInput &input) const {
  const artifact::InputSignature *known = signatureOf(input);
  artifact::DType type = typeOf(input.buffer()).dtype();
  return known && known->type()->dtype() == artifact::DType::F32 &&
         (type == artifact::DType::U8 || type == artifact::DType::U16) &&
         program.name()->string_view() != "predict";
}

/// Two inputs of the program bring a number for each row and channel.
void SignatureVerifier::verifyNormalization(const artifact::ProgramInput &input,
                                            const std::string &name) {
  const auto *shape = typeOf(input.buffer()).shape();
  bool good = isStored(input) && countOf(shape) > 1 && input.shift() != input.scale();
  for (int32_t number : {input.shift(), input.scale()}) {
    good = good && number >= 0 && static_cast<uint32_t>(number) < countOf(program.inputs());
    if (!good)
      break;
    const artifact::ProgramInput *factor = program.inputs()->Get(static_cast<uint32_t>(number));
    good = isVisible(factor->buffer()) && factor->shift() == -1 && !signatureOf(*factor);
    const artifact::TensorType *type = good ? &typeOf(factor->buffer()) : nullptr;
    good = good && type->dtype() == artifact::DType::F32 && countOf(type->shape()) == 2 &&
           type->shape()->Get(1) == shape->Get(1);
  }
  if (!good)
    fault(name + " has no shift and scale of its channels");
}

/// True of an input that is no image, but belongs to one.
bool SignatureVerifier::isOfNormalize(uint32_t number) const {
  auto own = static_cast<int32_t>(number);
  for (uint32_t i = 0; i < countOf(program.inputs()); ++i)
    if (const artifact::ProgramInput *input = program.inputs()->Get(i);
        input->shift() == own || input->scale() == own)
      return true;
  return false;
}

void SignatureVerifier::verifyResults() {
  std::set<std::string_view> outputs, metrics;
  bool hasLoss = false;
  for (uint32_t i = 0; i < countOf(program.results()); ++i) {
    const artifact::Result *result = program.results()->Get(i);
    std::string name = "result '" + result->name()->str() + "'";
    if (result->kind() > artifact::ResultKind::MAX) {
      fault(name + " has an unknown kind");
      continue;
    }
    bool output = result->kind() == artifact::ResultKind::Output;
    bool isLoss = result->kind() == artifact::ResultKind::Loss;
    hasLoss |= isLoss;
    if (!output && isLoss != (result->name()->string_view() == "loss"))
      fault(name + (isLoss ? " is a loss" : " is none, but a loss's name"));
    if (!output && !isLoss && !metrics.insert(result->name()->string_view()).second)
      fault(name + " is defined twice");
    if (countOf(result->buffers()) != (output ? 1u : 2u)) {
      fault(name + " has the wrong number of buffers");
      continue;
    }
    if (!ranges::finite.contains(result->weight()))
      fault(name + " has a weight that is not finite");
    if (output && !outputs.insert(result->name()->string_view()).second)
      fault(name + " is defined twice");
    for (uint32_t buffer : *result->buffers())
      if (!isVisible(buffer))
        fault(name + " has no buffer");
      else if (uint64_t{buffers[buffer].liveEnd} + 1 < countOf(program.instructions()))
        fault(name + " does not live to the end");
      else if (output && rowsOf(buffer) != program.batch())
        fault(name + " has no rows of its own for a batch of " + std::to_string(program.batch()));
      else if (!output &&
               (buffers[buffer].elements != 1 || typeOf(buffer).dtype() != artifact::DType::F32))
        fault(name + " is not a pair of f32 scalars");
  }
  if (program.name()->string_view() != "predict" && !hasLoss)
    fault("has no loss, which training watches");
  verifyFormulas(metrics);
}

/// A formula is one of metrics of the program, and none itself.
void SignatureVerifier::verifyFormulas(const std::set<std::string_view> &metrics) {
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < countOf(program.formulas()); ++i) {
    const artifact::Formula *formula = program.formulas()->Get(i);
    std::string name = formula->name()->str(), what = "formula '" + name + "'";
    if (name == "loss" || metrics.contains(name) ||
        !names.insert(formula->name()->string_view()).second)
      fault(what + " has the name of another result");
    if (formula->means() < 1 || formula->means() > Formula::maxMeans) {
      fault(what + " has no means, or too many");
      continue;
    }
    if (!Formula::parse(formula->expression()->string_view(), formula->means()))
      fault(what + " cannot be evaluated");
    for (uint32_t mean = 0; mean < formula->means(); ++mean)
      if (!metrics.contains(name + "." + std::to_string(mean)))
        fault(what + " lacks its mean " + std::to_string(mean));
  }
}

/// Tiles of all inputs lie alike, and every one begins with a whole element of every output.
void SignatureVerifier::verifyTiling() {
  const artifact::Tiling *tiling = program.tiling();
  if (!tiling)
    return;
  constexpr int64_t most = int64_t{1} << 31;
  uint32_t spatial = countOf(tiling->alignment());
  bool good = spatial > 0 && countOf(tiling->overlap()) == spatial &&
              countOf(program.inputs()) > 0 && !isOfNormalize(0);
  auto extent = [&](uint32_t buffer, uint32_t dim) -> uint64_t {
    const auto *shape = isVisible(buffer) ? typeOf(buffer).shape() : nullptr;
    // All but the spatial dimensions: the batch and perhaps channels.
    uint32_t leading = countOf(shape) - std::min(countOf(shape), spatial);
    int64_t found = leading == 1 || leading == 2 ? shape->Get(dim + leading) : 0;
    good = good && found > 0 && found < most;
    return good ? static_cast<uint64_t>(found) : 1;
  };
  for (uint32_t dim = 0; good && dim < spatial; ++dim) {
    uint64_t alignment = tiling->alignment()->Get(dim), overlap = tiling->overlap()->Get(dim);
    good = alignment > 0 && alignment < most && overlap < most && overlap % alignment == 0;
    uint64_t tile = extent(program.inputs()->Get(0)->buffer(), dim);
    for (uint32_t i = 1; i < countOf(program.inputs()); ++i)
      if (!isOfNormalize(i))
        good = extent(program.inputs()->Get(i)->buffer(), dim) == tile && good;
    for (uint32_t i = 0; i < countOf(program.results()); ++i)
      if (const auto *buffers = program.results()->Get(i)->buffers(); countOf(buffers) == 1)
        good = alignment * extent(buffers->Get(0), dim) % tile == 0 && good;
  }
  if (!good)
    fault("has a tiling that does not fit its inputs and outputs");
}

} // namespace

void verifySignature(const artifact::Artifact &root, const std::vector<CheckedBuffer> &buffers,
                     uint32_t index, Faults &faults) {
  SignatureVerifier(root, buffers, index, faults).run();
}

} // namespace dlc::rt
