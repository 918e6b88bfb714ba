// Steps of every program of an artifact, as a run would make them.
#pragma once

#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/Accumulation.h"
#include "runtime/core/Session.h"

namespace dlc::rt::test {

/// A step of three micro-batches: what is counted ahead runs through all of them first.
inline void runMicroBatches(Session &session, const artifact::Program &program) {
  std::string name = program.name()->str();
  session.accumulate(name);
  constexpr int64_t count = 3; // a first, a last and one between
  int64_t batches = 0;
  auto run = [&](bool counts) {
    for (int64_t i = 0; i < count; ++i)
      session.run(name, static_cast<unsigned>(batches++ % 2), 2, {i, count, counts});
  };
  if (countsAhead(program))
    run(true);
  run(false);
}

/// A step of one batch for each slot, and, of training, one of several. Inputs are zero. Throws
/// what the runtime throws.
inline void runPrograms(const Artifact &artifact, const SessionOptions &options) {
  std::unique_ptr<ControlPlane> single = makeSingleControlPlane();
  Session session(artifact, *single, options);
  session.setScalar("lr", 0.5);
  session.setScalar("step", int64_t{1});
  session.setScalar("valid_rows", int64_t{1});
  session.setScalar("inverse_world", 1.0);
  for (uint32_t i = 0; artifact->programs() && i < artifact->programs()->size(); ++i) {
    const artifact::Program &program = *artifact->programs()->Get(i);
    std::string name = program.name()->str();
    for (uint32_t k = 0; program.inputs() && k < program.inputs()->size(); ++k)
      for (unsigned slot : {0u, 1u}) {
        std::span<std::byte> memory =
            session.input(name, program.inputs()->Get(k)->name()->str(), slot);
        std::fill(memory.begin(), memory.end(), std::byte{0});
      }
    for (unsigned slot : {0u, 1u})
      session.run(name, slot, slot);
    if (name == "train")
      runMicroBatches(session, program);
    (void)session.results(name, 0);
    for (uint32_t k = 0; program.results() && k < program.results()->size(); ++k)
      if (const artifact::Result &result = *program.results()->Get(k);
          result.kind() == artifact::ResultKind::Output)
        (void)session.output(name, result.name()->str());
  }
  for (uint32_t i = 0; artifact->variables() && i < artifact->variables()->size(); ++i)
    (void)session.read(artifact->variables()->Get(i)->name()->str());
}

} // namespace dlc::rt::test
