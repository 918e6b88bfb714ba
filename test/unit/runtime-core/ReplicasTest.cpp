// The invariant of data-parallel training: after every step each variable is bitwise equal on all
// ranks, though every rank trains on rows of its own. Shown on compiled models.

#include "test/unit/CompiledModel.h"

#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/Philox.h"
#include "runtime/core/Session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

using namespace dlc;
using namespace dlc::rt;

namespace {
/// Fills an input with numbers of this rank and step; integers are classes 0..9.
void fill(std::span<std::byte> memory, artifact::DType dtype, uint32_t stream, uint32_t step) {
  for (size_t i = 0; i < memory.size() / 4; ++i) {
    uint32_t bits = philoxBits(1, stream, step, i);
    float real = uniform01(bits);
    auto whole = static_cast<int32_t>(bits % 10);
    std::memcpy(&memory[i * 4], dtype == artifact::DType::F32 ? static_cast<void *>(&real) : &whole,
                4);
  }
}

using Variables = std::vector<std::vector<float>>;

Variables trainedOn(const Artifact &artifact, ControlPlane &control) {
  Session session(artifact, control, {1, 3});
  int64_t batch = artifact.program("train")->batch();
  session.setScalar("lr", 0.01);
  session.setScalar("seed", int64_t{3});
  session.setScalar("inverse_world", 1.0 / control.size());
  session.setScalar("first_row", control.rank() * batch);
  session.setScalar("valid_rows", batch);
  for (uint32_t step = 0; step < 3; ++step) {
    session.setScalar("step", int64_t{step});
    for (const artifact::InputSignature *input : *artifact->inputs())
      fill(session.input("train", input->name()->str(), step % 2), input->type()->dtype(),
           static_cast<uint32_t>(control.rank()), step);
    session.run("train", step % 2, step);
  }
  Variables variables;
  for (const artifact::Variable *variable : *artifact->variables())
    if (variable->kind() != artifact::VariableKind::Scalar)
      variables.push_back(session.read(variable->name()->str()));
  return variables;
}

void expectEqualReplicas(const std::string &model, const std::string &options) {
  if (!test::hasCompiler())
    GTEST_SKIP() << "this build has no compiler";
  Artifact artifact(test::compiledModel(test::models / model, options));
  for (int ranks : {2, 3}) {
    std::vector<Variables> all(static_cast<size_t>(ranks));
    runInProcess(ranks, [&](ControlPlane &control) {
      all[static_cast<size_t>(control.rank())] = trainedOn(artifact, control);
    });
    for (int rank = 1; rank < ranks; ++rank)
      for (size_t i = 0; i < all[0].size(); ++i)
        EXPECT_EQ(0, std::memcmp(all[0][i].data(), all[static_cast<size_t>(rank)][i].data(),
                                 all[0][i].size() * 4))
            << model << ", " << ranks << " ranks: variable " << i << " differs on rank " << rank;
  }
}
} // namespace

TEST(Replicas, AreEqualWithDropout) { expectEqualReplicas("mnist_cnn.dl", "--set batch=2"); }

TEST(Replicas, AreEqualWithBatchNorm) {
  expectEqualReplicas(
      "unet2d.dl", "--set base=6 --set depth=2 --set size=32 --set batch=2 --set predict.size=32");
}
