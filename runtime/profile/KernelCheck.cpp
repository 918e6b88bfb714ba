#include "runtime/profile/KernelCheck.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/ReplacePlans.h"
#include "runtime/core/Philox.h"
#include "runtime/core/PlacedKernel.h"
#include "runtime/core/TensorIo.h"
#include "runtime/profile/KernelReference.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

namespace dlc::rt {
namespace {

using Bytes = std::vector<std::byte>;

/// What operands are filled with.
enum class Numbers : uint8_t { Fractions, Whole };

constexpr std::byte notANumber{0xff};

/// Uniform in [-1, 1), or whole numbers from -2 to 2, by the operand. An index of a pooling, which
/// is the library's own, is 0.
Bytes drawn(const OperandType &operand, size_t number, Numbers numbers) {
  PhysicalType type(operand.dtype, operand.shape, *operand.layout);
  Bytes bytes(type.bytes());
  if (!isFloating(operand.dtype))
    return bytes;
  writeTensor(
      type,
      [&](size_t first, std::span<float> values) {
        for (size_t i = 0; i < values.size(); ++i) {
          uint32_t bits = philoxBits(0, static_cast<uint32_t>(number), 0, first + i);
          values[i] = numbers == Numbers::Whole ? static_cast<float>(static_cast<int>(bits % 5) - 2)
                                                : uniform01(bits) * 2 - 1;
        }
      },
      bytes);
  return bytes;
}

/// Of a type, relative to what is rounded.
double roundoff(DType dtype) {
  return dtype == DType::BF16 ? 0x1p-8 : dtype == DType::F16 ? 0x1p-11 : 0x1p-24;
}

/// What may lie between a sum and its result. Terms have random signs, so that partial sums are
/// near the root of the sum of their squares; an accumulator that cuts off errs to one side. Tiles
/// that are transformed err by what is in all of their elements, of which `mostSquares` tells.
double allowed(const ExactSum &sum, double mostSquares, const StoredKernel &stored,
               const StoredKernel::Plan &plan) {
  const KernelRequest &request = stored.request;
  double norm = std::sqrt(sum.squares), value = std::fabs(sum.value);
  double most = 0x1p-24 * (4 * sum.magnitudes + static_cast<double>(sum.terms) * norm / 4);
  DType factors = request.operands[0].dtype;
  if (stored.roundsFactors && factors == DType::F32)
    most += 0x1p-10 * (value + 4 * norm);
  if (!plan.isDirect)
    most += 32 * roundoff(factors) * std::sqrt(mostSquares);
  double smallest = request.operands.back().dtype == DType::F16 ? 0x1p-25 : 0; // half of it
  return most + roundoff(request.operands[firstResult(request)].dtype) * (value + most) + smallest;
}

/// The first and the last index of a shape, then drawn ones.
std::vector<int64_t> sample(const std::vector<int64_t> &shape, uint32_t number) {
  std::vector<int64_t> index;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    uint32_t bits = philoxBits(1, number, 0, dim);
    index.push_back(number == 0   ? 0
                    : number == 1 ? shape[dim] - 1
                                  : static_cast<int64_t>(bits % static_cast<uint64_t>(shape[dim])));
  }
  return index;
}

std::string textOf(const char *format, double first, double second) {
  char text[128];
  std::snprintf(text, sizeof text, format, first, second);
  return text;
}

/// One kernel with its plans, those that are loaded.
class Checked {
public:
  /// `nothing` is memory of the host for what results are ahead of a run.
  Checked(const artifact::Kernel &definition, const StoredKernel &stored, DeviceSpan memory,
          Device &device, Bytes &nothing)
      : stored(stored), placed(definition, memory), device(device), nothing(nothing),
        result(firstResult(stored.request)) {}

  void add(const StoredKernel::Plan &plan, Device::Kernel kernel) {
    plans.push_back({&plan, device.prepare(placed.launches(kernel, 1))});
  }

  void run(const std::string &name, KernelCheck &found);

private:
  struct Loaded {
    const StoredKernel::Plan *plan;
    std::unique_ptr<Executable> executable;
    std::string fault = "";
  };
  struct Element {
    int64_t position;
    std::string index;
    ExactSum sum;
  };

  std::vector<Element> expected(const std::vector<Bytes> &operands) const;
  Bytes resultOf(Executable &executable);
  void compare(Loaded &loaded, Numbers numbers, const std::vector<Element> &elements,
               const std::string &name, KernelCheck &found);

  const StoredKernel &stored;
  PlacedKernel placed;
  Device &device;
  Bytes &nothing;
  size_t result; // operand
  std::vector<Loaded> plans;
};

/// Fewer elements of longer sums.
std::vector<Checked::Element> Checked::expected(const std::vector<Bytes> &operands) const {
  constexpr uint32_t least = 8, most = 64;
  constexpr uint64_t mostTerms = 1 << 20;
  KernelReference reference(stored.request, {operands.begin(), operands.end()});
  const std::vector<int64_t> &shape = stored.request.operands[result].shape;
  std::vector<Element> elements;
  uint64_t terms = 0;
  for (uint32_t i = 0; i < least || (i < most && terms < mostTerms); ++i) {
    std::vector<int64_t> index = sample(shape, i);
    std::optional<ExactSum> sum = reference.at(index);
    if (!sum)
      break;
    terms += sum->terms;
    std::string text;
    for (int64_t each : index)
      text += (text.empty() ? "" : ", ") + std::to_string(each);
    elements.push_back({reference.positionOf(index), text, *sum});
  }
  return elements;
}

/// All results' bytes, one after the other.
Bytes Checked::resultOf(Executable &executable) {
  size_t operands = stored.request.operands.size();
  for (size_t i = result; i < placed.operands().size(); ++i) { // and the workspace
    DeviceSpan operand = placed.operands()[i];
    nothing.resize(std::max(nothing.size(), operand.bytes), notANumber);
    device.upload(std::span(nothing).first(operand.bytes), operand);
  }
  executable.run({});
  Bytes bytes;
  for (size_t i = result; i < operands; ++i) {
    size_t at = bytes.size();
    bytes.resize(at + placed.operands()[i].bytes);
    device.download(placed.operands()[i], std::span(bytes).subspan(at));
  }
  return bytes;
}

void Checked::compare(Loaded &loaded, Numbers numbers, const std::vector<Element> &elements,
                      const std::string &name, KernelCheck &found) {
  Bytes bytes = resultOf(*loaded.executable);
  if (numbers == Numbers::Fractions && resultOf(*loaded.executable) != bytes)
    loaded.fault = "gives other bits when it runs again";
  DType dtype = stored.request.operands[result].dtype;
  double mostSquares = 0;
  for (const Element &element : elements)
    mostSquares = std::max(mostSquares, element.sum.squares);
  for (const Element &element : elements) {
    double got =
        readScalar(dtype, bytes.data() + static_cast<size_t>(element.position) * sizeOf(dtype));
    double most = numbers == Numbers::Whole && loaded.plan->isDirect
                      ? roundoff(dtype) * std::fabs(element.sum.value)
                      : allowed(element.sum, mostSquares, stored, *loaded.plan);
    double off = std::fabs(got - element.sum.value);
    if (!(off <= most) && loaded.fault.empty())
      loaded.fault = textOf("gives %.9g where f64 gives %.9g", got, element.sum.value) +
                     ", of element " + element.index;
    if (numbers == Numbers::Fractions && off > found.error * most) {
      found.error = off / most;
      found.kernel = name;
    }
  }
}

void Checked::run(const std::string &name, KernelCheck &found) {
  for (Numbers numbers : {Numbers::Fractions, Numbers::Whole}) {
    std::vector<Bytes> operands;
    for (size_t i = 0; i < result; ++i) {
      operands.push_back(drawn(stored.request.operands[i], i, numbers));
      device.upload(operands.back(), placed.operands()[i]);
    }
    std::vector<Element> elements = expected(operands);
    for (Loaded &loaded : plans)
      compare(loaded, numbers, elements, name, found);
  }
  for (const Loaded &loaded : plans) {
    ++found.plans;
    if (!loaded.fault.empty())
      found.faults.push_back(name + " by " + loaded.plan->implementation + " " + loaded.fault);
  }
}

class Checker {
public:
  Checker(const Artifact &artifact, const BackEnd &backEnd, Device &device)
      : artifact(artifact), backEnd(backEnd), device(device) {}

  KernelCheck run(const std::function<void(const std::string &)> &progress);

private:
  void read();
  void check(uint32_t index, DeviceSpan memory);
  const Artifact &with(size_t alternative);

  const Artifact &artifact;
  const BackEnd &backEnd;
  Device &device;
  std::vector<std::pair<uint32_t, StoredKernel>> kernels; // by index
  std::vector<Artifact> alternatives; // with the second plans, the third ones, ...
  KernelCheck found;
};

void Checker::read() {
  for (uint32_t i = 0; artifact->kernels() && i < artifact->kernels()->size(); ++i) {
    const artifact::Kernel &kernel = *artifact->kernels()->Get(i);
    if (kernel.kind() == artifact::KernelKind::Library)
      kernels.emplace_back(i, backEnd.readKernel(kernel, *artifact->target()));
  }
  for (size_t place = 1;; ++place) {
    std::vector<NewPlan> plans;
    for (const auto &[index, stored] : kernels)
      if (place < stored.plans.size())
        plans.push_back({index, stored.plans[place].implementation, stored.plans[place].bytes, 0});
    if (plans.empty())
      return;
    alternatives.emplace_back(replacePlans(artifact, plans, artifact->target()->library()->str()),
                              artifact.name());
  }
}

KernelCheck Checker::run(const std::function<void(const std::string &)> &progress) {
  read();
  size_t most = 0;
  for (const auto &[index, stored] : kernels)
    most = std::max(most, PlacedKernel::bytesOf(*artifact->kernels()->Get(index)));
  if (most == 0)
    return found;
  DeviceSpan memory = device.allocate(artifact::ArenaKind::Transient, most);
  Bytes nothing;
  for (const auto &[index, stored] : kernels) {
    const artifact::Kernel &kernel = *artifact->kernels()->Get(index);
    std::string name = kernel.name()->str();
    progress("kernel " + std::to_string(++found.kernels) + " of " + std::to_string(kernels.size()) +
             ": " + name);
    Checked checked(kernel, stored, memory, device, nothing);
    for (size_t i = 0; i < stored.plans.size(); ++i)
      try {
        const Artifact &holder = i == 0 ? artifact : alternatives[i - 1];
        checked.add(stored.plans[i], device.load(holder, *holder->kernels()->Get(index)));
      } catch (const Error &error) {
        if (error.code != ErrorCode::Artifact)
          throw;
        ++found.plans;
        found.faults.push_back(name + " by " + stored.plans[i].implementation + ": " +
                               error.what());
      }
    checked.run(name, found);
  }
  return found;
}

} // namespace

KernelCheck checkKernels(const Artifact &artifact, const BackEnd &backEnd, Device &device,
                         const std::function<void(const std::string &)> &progress) {
  return Checker(artifact, backEnd, device).run(progress);
}

} // namespace dlc::rt
