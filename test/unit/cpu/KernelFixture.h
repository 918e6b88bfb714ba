// Runs candidates of the CPU planner: finalised, rebuilt by the device and launched on memory that
// holds large numbers wherever the kernel has to write first.
#pragma once

#include "test/unit/cpu/ReferenceKernels.h"

#include "runtime/artifact/LayoutIo.h"
#include "runtime/artifact/Writer.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/TensorIo.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cpu/CpuPlan.h"
#include "runtime/cpu/CpuPlanner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace dlc::rt::test {

inline constexpr unsigned teamThreads = 2;

class KernelFixture : public ::testing::Test {
protected:
  KernelFixture() {
    std::string reason;
    planner = makeCpuPlanner("cpu:native", teamThreads, reason);
    EXPECT_NE(planner, nullptr) << reason;
    dlc::artifact::TargetT target;
    target.name = planner->target().name;
    target.features = planner->target().features;
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(dlc::artifact::Target::Pack(builder, &target));
    device = std::make_unique<CpuDevice>(
        *flatbuffers::GetRoot<dlc::artifact::Target>(builder.GetBufferPointer()), teamThreads,
        control->hostCollectives());
  }

  static void giveOperands(dlc::artifact::KernelT &kernel, const CpuPlan &plan) {
    std::vector<OperandType> buffers = plan.buffers();
    auto results = plan.request.op == KernelOp::MaxPool ? 2u : 1u;
    for (size_t i = 0; i < buffers.size(); ++i) {
      flatbuffers::FlatBufferBuilder builder;
      builder.Finish(
          writeTensorType(builder, buffers[i].dtype, buffers[i].shape, *buffers[i].layout));
      kernel.operands.emplace_back(
          flatbuffers::GetRoot<dlc::artifact::TensorType>(builder.GetBufferPointer())->UnPack());
      kernel.access.push_back(i < plan.request.operands.size() - results
                                  ? dlc::artifact::Access::Read
                                  : dlc::artifact::Access::Write);
    }
  }

  /// An artifact with this one kernel.
  static Artifact wrap(const std::vector<uint8_t> &plan, const std::string &implementation,
                       const CpuPlan &operandsOf) {
    ArtifactWriter writer;
    dlc::artifact::ArtifactT root;
    root.version = artifactVersion;
    root.model = "kernel";
    root.target = std::make_unique<dlc::artifact::TargetT>();
    root.target->name = "cpu:native";
    root.target->threads = teamThreads;
    root.kernels.push_back(std::make_unique<dlc::artifact::KernelT>());
    root.kernels[0]->name = "conv.1";
    root.kernels[0]->plan = plan;
    root.kernels[0]->implementation = implementation;
    giveOperands(*root.kernels[0], operandsOf);
    return Artifact(writer.finish(dlc::artifact::Artifact::Pack(writer.builder(), &root)), "test");
  }

  /// Runs one candidate; `tensors` are the request's operands in logical form, results are
  /// overwritten.
  void runCandidate(const KernelRequest &request, const KernelCandidate &candidate,
                    std::vector<Tensor> &tensors, size_t firstResult) {
    std::string reason;
    std::vector<uint8_t> plan = planner->finalise(request, candidate, reason);
    ASSERT_FALSE(plan.empty()) << reason;
    Artifact artifact = wrap(plan, candidate.implementation, CpuPlan::deserialize(plan, "conv.1"));
    Device::Kernel kernel = device->load(artifact, *artifact->kernels()->Get(0));
    std::vector<DeviceSpan> buffers;
    std::vector<PhysicalType> types;
    auto allocate = [&](size_t bytes) {
      buffers.push_back(device->allocate(dlc::artifact::ArenaKind::Transient, bytes));
      return bytesAt(buffers.back());
    };
    for (size_t i = 0; i < tensors.size(); ++i) {
      types.emplace_back(request.operands[i].dtype, request.operands[i].shape,
                         candidate.layouts[i]);
      std::span<std::byte> memory = allocate(types[i].bytes());
      if (i < firstResult)
        writeTensor(types[i], tensors[i].values, memory);
      else
        std::ranges::fill(memory, std::byte{0x55});
    }
    if (candidate.workspaceBytes > 0) // large numbers of whatever type
      std::ranges::fill(allocate(candidate.workspaceBytes), std::byte{0x55});
    ResolvedProgram program;
    ResolvedProgram::Launch launch{kernel, {}};
    for (DeviceSpan buffer : buffers)
      launch.operands.push_back({buffer, buffer});
    program.instructions.push_back({dlc::artifact::Stream::Compute, std::move(launch)});
    device->prepare(std::move(program))->run({});
    for (size_t i = firstResult; i < tensors.size(); ++i) {
      std::span<std::byte> memory = bytesAt(buffers[i]);
      readTensor(types[i], memory, tensors[i].values);
      std::vector<std::byte> zeroPadded(memory.size());
      writeTensor(types[i], tensors[i].values, zeroPadded);
      if (types[i].dtype == DType::F32)
        EXPECT_TRUE(std::ranges::equal(memory, zeroPadded)) << "padding lanes are not zero";
    }
  }

  /// All candidates against `expected`, the request's last operand.
  void expectResult(KernelRequest request, const std::vector<Tensor> &inputs,
                    const Tensor &expected, const char *title) {
    SCOPED_TRACE(title);
    request.threads = teamThreads;
    CandidateList list = planner->candidates(request);
    ASSERT_FALSE(list.candidates.empty()) << list.reason;
    for (const KernelCandidate &candidate : list.candidates) {
      SCOPED_TRACE(candidate.implementation + " " + candidate.layouts[0].toString());
      EXPECT_GT(candidate.nanoseconds, 0);
      std::vector<Tensor> tensors = inputs;
      tensors.emplace_back(expected.shape);
      runCandidate(request, candidate, tensors, inputs.size());
      // Winograd loses a few bits.
      double tolerance = candidate.implementation.find("wino") != std::string::npos ? 1e-3 : 1e-5;
      EXPECT_LT(relativeError(tensors.back(), expected), tolerance);
    }
  }

  std::unique_ptr<ControlPlane> control = makeSingleControlPlane();
  std::unique_ptr<KernelPlanner> planner;
  std::unique_ptr<CpuDevice> device;
};

} // namespace dlc::rt::test
