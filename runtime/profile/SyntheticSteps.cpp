#include "runtime/profile/SyntheticSteps.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/core/Philox.h"
#include "runtime/record/ChromeTrace.h"
#include "runtime/record/ProcessTime.h"
#include "runtime/train/Evaluate.h"
#include "runtime/train/Signature.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dlc::rt {

SyntheticSteps::SyntheticSteps(Session &session)
    : session(session), program(requireProgram(session.artifact(), "train")), profile(program) {
  for (unsigned slot : {0u, 1u})
    fillInputs(slot);
  session.setScalar("lr", 1e-6); // weights stay where they are, figures finite
}

void SyntheticSteps::run(int64_t count, Record record) {
  for (int64_t i = 0; i < count; ++i, ++step) {
    events.clear();
    int64_t begin = nowNanoseconds();
    setStepScalars(session, 0, step, program.batch(), program.batch());
    session.trace(record == Record::Nothing ? nullptr : &events);
    session.run("train", static_cast<unsigned>(step % 2), static_cast<uint64_t>(step));
    session.trace(nullptr);
    if (step == 0) {
      session.results("train", 0); // waits
      firstStep = secondsOfProcess();
    }
    if (record == Record::Figures)
      add(begin, nowNanoseconds());
  }
  session.results("train", static_cast<unsigned>((step + 1) % 2)); // of the last one
}

double SyntheticSteps::wireBytes() const {
  double bytes = 0, ranks = session.control().size();
  if (program.collectives())
    for (const artifact::Collective *collective : *program.collectives())
      bytes += static_cast<double>(collective->elements() * sizeOf(collective->wire()));
  return bytes * 2 * (ranks - 1) / ranks;
}

void SyntheticSteps::add(int64_t begin, int64_t end) {
  StepTimes of = profile.measure(events);
  for (size_t i = 0; i < of.phases.size(); ++i)
    times.phases[i] += of.phases[i];
  times.exposed += of.exposed;
  times.communication += of.communication;
  MeasuredStep &measured = steps.emplace_back();
  measured.seconds = static_cast<double>(end - begin) * 1e-9;
  measured.instructions.resize(program.instructions()->size());
  // The event of a start lasts until completion; what it held up lasts until the next instruction,
  // and where that is under way already, on another stream, it held up nothing.
  std::ranges::sort(events, {}, &TraceEvent::instruction);
  for (size_t i = 0; i < events.size(); ++i) {
    const TraceEvent &event = events[i];
    bool isStart = program.instructions()->Get(event.instruction)->operation_type() ==
                   artifact::Operation::CollectiveStart;
    int64_t next = i + 1 < events.size() ? events[i + 1].begin : end;
    int64_t held = std::max<int64_t>(0, (isStart ? next : event.end) - event.begin);
    measured.instructions[event.instruction] = static_cast<double>(held) * 1e-9;
  }
}

/// Normal numbers for images, 0 and 1 for targets, labels over their range; for images as files
/// hold them, any element, and what is subtracted from it and multiplied with it.
static float draw(const InputSpec &spec, uint32_t stream, uint64_t element) {
  float uniform = uniform01(philoxBits(0, stream, 0, element));
  if (spec.stored && spec.neededByPredict)
    return std::floor(uniform * (spec.stored == artifact::DType::U8 ? 256.0f : 65536.0f));
  if (spec.isOfNormalize)
    return 1.0f / 64;
  if (spec.dtype != artifact::DType::F32)
    return std::floor(uniform *
                      static_cast<float>(spec.range ? std::min(spec.range->high, 1e6) + 1 : 2));
  if (!spec.neededByPredict)
    return uniform < 0.5f ? 0.0f : 1.0f;
  float other = uniform01(philoxBits(0, stream, 1, element));
  return std::sqrt(-2 * std::log(1 - uniform)) * std::cos(2 * std::numbers::pi_v<float> * other);
}

void SyntheticSteps::fillInputs(unsigned slot) {
  for (const InputSpec &spec : inputSpecs(session.artifact(), "train")) {
    std::optional<InputDestination> to = destinationsOf(session, "train", {spec})[0];
    if (!to)
      continue;
    uint32_t stream = randomStream("bench." + spec.name);
    auto elements = static_cast<uint64_t>(to->writer.rowElements());
    parallelFor(to->writer.rows(), 1, [&](int64_t row, int64_t) {
      std::vector<float> values(elements);
      for (uint64_t i = 0; i < elements; ++i)
        values[i] = draw(spec, stream, static_cast<uint64_t>(row) * elements + i);
      to->writer.writeRow(row, values, to->slots[slot]);
    });
  }
}

} // namespace dlc::rt
