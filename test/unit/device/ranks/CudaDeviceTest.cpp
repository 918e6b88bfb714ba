// The conformance suite of GPUs, on stand-ins for NVIDIA's libraries. Ranks are processes, each
// with a GPU of its own.

#include "test/unit/comm/ranks/RankTests.h"
#include "test/unit/comm/ranks/World.h"
#include "test/unit/device/Conformance.h"

#include "runtime/cuda/CudaDevice.h"

namespace dlc::rt::test {
namespace {

ControlPlane *processes = nullptr; // before the tests run

constexpr uint32_t threads = 16; // as many as TinyArtifact's kernels have elements in a chunk

/// A thread's elements of three operands, the values of two of them; the third one may be a scalar.
constexpr const char *prologue = R"((
  .param .u64 .ptr .global .align 4 operand0,
  .param .u64 .ptr .global .align 4 operand1,
  .param .u64 .ptr .global .align 4 operand2
)
{
  .reg .pred isOutside;
  .reg .b32 %r<3>;
  .reg .b32 %f<3>;
  .reg .b64 offset;
  .reg .b64 first;
  .reg .b64 second;
  .reg .b64 third;
  .reg .b64 scalar;

  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r0, %r2, %r1, %r0;
  setp.ge.u32 isOutside, %r0, 100;
  @isOutside bra $END;
  mul.wide.u32 offset, %r0, 4;
  ld.param.b64 first, [operand0];
  ld.param.b64 second, [operand1];
  ld.param.b64 scalar, [operand2];
  add.u64 first, first, offset;
  add.u64 second, second, offset;
  add.u64 third, scalar, offset;
  ld.global.b32 %f0, [first];
  ld.global.b32 %f1, [second];
)";
constexpr const char *gradient = R"(
  mul.rn.f32 %f2, %f0, %f1;
  st.global.b32 [third], %f2;)";
constexpr const char *update = R"(
  ld.global.b32 %f2, [scalar];
  mul.rn.f32 %f1, %f1, %f2;
  sub.rn.f32 %f0, %f0, %f1;
  st.global.b32 [first], %f0;)";
constexpr const char *add = R"(
  add.rn.f32 %f2, %f0, %f1;
  st.global.b32 [third], %f2;)";
constexpr const char *epilogue = R"(
$END:
  ret;
}
)";
static_assert(tinyElements == 100, "the number in the prologue");

Artifact loadForGpu() {
  TinyArtifact tiny;
  tiny.root.target->name = "cuda:test";
  tiny.root.target->features = {"sm_90"};
  tiny.root.modules[0]->architecture = "compute_80";
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n";
  size_t kernel = 0;
  for (const char *body : {gradient, update, add}) {
    text += "\n.visible .entry " + tiny.root.kernels[kernel]->symbol + prologue + body + epilogue;
    tiny.launch(kernel++, threads);
  }
  tiny.code.assign(text.begin(), text.end());
  return Artifact(tiny.pack(), "tiny.dlx");
}

DeviceKind cudaDevice() {
  return {"cuda", [](const artifact::Target &target, unsigned, ControlPlane &control) {
            return std::make_unique<CudaDevice>(target, control);
          }};
}

void runInProcesses(int ranks, const std::function<void(ControlPlane &)> &body) {
  if (ranks == 1)
    return body(*makeSingleControlPlane());
  ASSERT_EQ(ranks, processes->size());
  body(*processes);
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceTest,
                         testing::Values(DeviceWorld{cudaDevice(), loadForGpu, runInProcesses}),
                         worldName);

} // namespace
} // namespace dlc::rt::test

int main(int argc, char **argv) {
  auto control = dlc::rt::test::joinRanks(0);
  dlc::rt::test::processes = control.get();
  return dlc::rt::test::runRankTests(*control, argc, argv);
}
