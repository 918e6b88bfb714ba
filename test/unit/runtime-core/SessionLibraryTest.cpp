// A session that runs a library kernel: planned through the back end's module, written to an
// artifact with whatever layouts and workspace the library wants, rebuilt and run.

#include "test/unit/artifact/TinyArtifact.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/BackEnd.h"
#include "runtime/core/Session.h"
#include "runtime/core/TensorIo.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace dlc::rt;
using dlc::rt::test::TinyArtifact;
namespace artifact = dlc::artifact;

static std::unique_ptr<artifact::TensorTypeT> typeOf(DType dtype, const std::vector<int64_t> &shape,
                                                     const Layout &layout) {
  auto type = std::make_unique<artifact::TensorTypeT>();
  type->dtype = dtype;
  type->shape = shape;
  type->layout = std::make_unique<artifact::LayoutT>();
  type->layout->order = layout.order;
  for (Layout::Block block : layout.blocks) {
    type->layout->block_dims.push_back(block.dim);
    type->layout->block_sizes.push_back(block.size);
  }
  return type;
}

/// An artifact whose program `predict` is one kernel: operand 0 is its input "x", operand 1 the
/// variable "w", the last its output "y".
static Artifact wrap(const KernelRequest &request, const KernelCandidate &candidate,
                     std::vector<uint8_t> plan) {
  TinyArtifact tiny;
  tiny.root.programs.clear();
  tiny.root.kernels.clear();
  tiny.root.programs.push_back(std::make_unique<artifact::ProgramT>());
  tiny.program().name = "predict";
  tiny.program().batch = 2;
  artifact::KernelT kernel;
  kernel.name = "conv";
  kernel.implementation = candidate.implementation;
  kernel.plan = std::move(plan);
  std::vector<uint32_t> buffers;
  auto operand = [&](const char *name, artifact::ArenaKind kind, int32_t program,
                     std::unique_ptr<artifact::TensorTypeT> type, uint64_t bytes) {
    auto arena = static_cast<uint32_t>(tiny.root.arenas.size());
    tiny.addArena(kind, (bytes + 63) / 64 * 64);
    uint32_t buffer = tiny.addBuffer(name, arena, 0, {}, program, 0, 9);
    kernel.operands.push_back(TinyArtifact::copy(*type));
    kernel.access.push_back(buffers.size() < 2 ? artifact::Access::Read : artifact::Access::Write);
    tiny.root.buffers[buffer]->type = std::move(type);
    buffers.push_back(buffer);
  };
  constexpr artifact::ArenaKind kinds[] = {
      artifact::ArenaKind::Inputs, artifact::ArenaKind::Variables, artifact::ArenaKind::Transient};
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<int64_t> &shape = request.operands[i].shape;
    operand("", kinds[i], i == 1 ? -1 : 0, typeOf(DType::F32, shape, candidate.layouts[i]),
            physicalBytes(DType::F32, shape, candidate.layouts[i]));
  }
  if (auto bytes = static_cast<int64_t>(candidate.workspaceBytes); bytes > 0)
    operand("workspace", artifact::ArenaKind::Transient, 0,
            typeOf(DType::U8, {bytes}, Layout::rowMajor(1)), candidate.workspaceBytes);
  tiny.addVariable("w", artifact::VariableKind::Parameter, buffers[1],
                   artifact::InitializerKind::Uniform, -1, 1);
  tiny.root.kernels.push_back(std::make_unique<artifact::KernelT>(kernel));
  auto input = std::make_unique<artifact::ProgramInputT>();
  input->name = "x";
  input->buffer = buffers[0];
  tiny.program().inputs.push_back(std::move(input));
  auto output = std::make_unique<artifact::ResultT>();
  output->name = "y";
  output->kind = artifact::ResultKind::Output;
  output->buffers = {buffers[2]};
  tiny.program().results.push_back(std::move(output));
  tiny.addUpload({buffers[0]});
  tiny.addDispatch(0, buffers);
  tiny.addInstruction(artifact::Stream::Compute, artifact::DownloadT());
  return Artifact(tiny.pack(), "library.dlx");
}

TEST(SessionWithLibraryKernels, RunsEveryCandidate) {
  std::string reason;
  const BackEnd *backEnd = findBackEnd("cpu:avx2", reason);
  ASSERT_NE(backEnd, nullptr) << reason;
  std::unique_ptr<KernelPlanner> planner = backEnd->makePlanner("cpu:avx2", 2, reason);
  ASSERT_NE(planner, nullptr) << reason;
  KernelRequest request;
  request.threads = 2;
  request.strides = request.dilations = {1, 1};
  request.paddingLow = request.paddingHigh = {0, 0};
  request.operands = {{DType::F32, {2, 3, 5, 4}, {}},
                      {DType::F32, {6, 3, 1, 1}, {}},
                      {DType::F32, {2, 6, 5, 4}, {}}};
  CandidateList list = planner->candidates(request);
  ASSERT_FALSE(list.candidates.empty()) << list.reason;
  std::unique_ptr<ControlPlane> single = makeSingleControlPlane();
  for (const KernelCandidate &candidate : list.candidates) {
    SCOPED_TRACE(candidate.implementation + " " + candidate.layouts[0].toString());
    std::vector<uint8_t> plan = planner->finalise(request, candidate, reason);
    ASSERT_FALSE(plan.empty()) << reason;
    Artifact file = wrap(request, candidate, std::move(plan));
    Session session(file, *single, {2, 1});
    std::vector<float> x(2 * 3 * 5 * 4);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = std::sin(static_cast<float>(i));
    writeTensor({DType::F32, request.operands[0].shape, candidate.layouts[0]}, x,
                session.input("predict", "x", 1));
    session.run("predict", 1, 0);
    std::vector<float> w = session.read("w"), y = session.output("predict", "y");
    ASSERT_EQ(y.size(), 2u * 6 * 20);
    for (size_t i = 0; i < y.size(); ++i) {
      size_t at = i % 20, o = i / 20 % 6, n = i / 120;
      float expected = 0;
      for (size_t c = 0; c < 3; ++c)
        expected += w[o * 3 + c] * x[(n * 3 + c) * 20 + at];
      ASSERT_NEAR(y[i], expected, 1e-5) << i;
    }
  }
}
