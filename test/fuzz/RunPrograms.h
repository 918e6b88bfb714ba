// One step of every program of an artifact, as a run would make it.
#pragma once

#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/Session.h"

namespace dlc::rt::test {

/// Inputs are zero. Throws what the runtime throws.
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
    (void)session.results(name);
    for (uint32_t k = 0; program.results() && k < program.results()->size(); ++k)
      if (const artifact::Result &result = *program.results()->Get(k);
          result.kind() == artifact::ResultKind::Output)
        (void)session.output(name, result.name()->str());
  }
  for (uint32_t i = 0; artifact->variables() && i < artifact->variables()->size(); ++i)
    (void)session.read(artifact->variables()->Get(i)->name()->str());
}

} // namespace dlc::rt::test
