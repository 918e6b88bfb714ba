// Gradients that travel as bf16 between GPUs, on stand-ins for NVIDIA's libraries: the bits are
// those of ranks of CPUs, and equal on all ranks.
#include "runtime/cuda/NcclGroup.h"
#include "test/unit/comm/Values.h"
#include "test/unit/comm/ranks/RankTests.h"
#include "test/unit/comm/ranks/World.h"

#include <cstring>
#include <immintrin.h>
#include <stdexcept>

namespace dlc::rt::test {
namespace {

ControlPlane *control = nullptr; // before the tests run

CollectiveOperation rounded(DeviceSpan memory) {
  CollectiveOperation operation;
  operation.memory = memory;
  operation.wire = artifact::DType::BF16;
  return operation;
}

class WireTest : public testing::Test {
protected:
  WireTest() : context(control->localRank()), cuda(context.cuda()), group(*control, context) {
    check(cuda.eventCreateWithFlags(&over, cudart::eventWithoutTime));
    work = allocate(group.workBytes(mostElements, artifact::DType::BF16));
    group.workIn(work);
  }
  ~WireTest() override {
    cuda.deviceSynchronize();
    cuda.eventDestroy(over);
  }

  void check(cudart::Status status) const { cuda.require(status, "run the test"); }
  cudart::Stream stream() const { return context.stream(artifact::Stream::Comm); }

  DeviceSpan allocate(size_t bytes) {
    allocated.push_back(context.allocate(bytes));
    return {reinterpret_cast<uintptr_t>(allocated.back().get()), bytes};
  }
  void write(DeviceSpan memory, std::span<const float> values) const {
    check(cuda.memcpy(pointerTo(memory), values.data(), memory.bytes,
                      cudart::CopyKind::HostToDevice));
    check(cuda.deviceSynchronize());
  }
  /// What is there when all that was started is over.
  std::vector<float> read(DeviceSpan memory) {
    check(cuda.eventRecord(over, stream()));
    if (!group.await(over, "run the test")) {
      group.abandon();
      throw std::runtime_error("a peer is late");
    }
    std::vector<float> values(memory.bytes / sizeof(float));
    check(cuda.memcpy(values.data(), pointerTo(memory), memory.bytes,
                      cudart::CopyKind::DeviceToHost));
    return values;
  }

  static constexpr size_t mostElements = 40'003;
  CudaContext context;
  const cudart::Functions &cuda;
  std::vector<Owned<void *>> allocated;
  NcclGroup group; // which has memory registered
  DeviceSpan work;
  cudart::Event over = nullptr;
};

/// Of special numbers as well, by the collectives of the host, whose threads flush denormals.
std::vector<float> summedByHost(std::span<const float> values) {
  HostCollectives &collectives = control->hostCollectives();
  DeviceSpan memory = collectives.allocateShared(values.size_bytes());
  std::span<float> data(reinterpret_cast<float *>(memory.address), values.size());
  std::ranges::copy(values, data.begin());
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 1U << 15 | 1U << 6);
  collectives.wait(collectives.start(rounded(memory), {}));
  _mm_setcsr(before);
  std::vector<float> sum(data.begin(), data.end());
  control->barrier("end of a sum"); // before memory goes that others read
  collectives.unregisterMemory(memory);
  return sum;
}

void expectEqualOnAllRanks(std::span<const float> values) {
  for (const std::vector<std::byte> &other :
       control->allGather(std::as_bytes(values), "comparison of sums"))
    EXPECT_EQ(std::memcmp(other.data(), values.data(), values.size_bytes()), 0);
}

TEST_F(WireTest, SumsAreThoseOfCpus) {
  for (size_t elements :
       {size_t{1}, size_t{2}, size_t{15}, size_t{64}, size_t{65}, size_t{1000}, mostElements}) {
    DeviceSpan memory = allocate(elements * sizeof(float));
    std::vector<float> values(elements);
    fillOperand(values, control->rank());
    write(memory, values);
    group.start(rounded(memory), stream());
    std::vector<float> sum = read(memory);
    EXPECT_EQ(firstDifference(sum, serialBf16Sum(elements, control->size())), elements);
    EXPECT_EQ(firstDifference(sum, summedByHost(values)), elements);
  }
}

TEST_F(WireTest, SumsOfSpecialNumbersAreThoseOfCpus) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {0x1p-130F, -0x1p-149F, 0.0F,    -0.0F, infinity,
                           -infinity, NAN,        3.4e38F, 1.0F,  -3.4e38F};
  std::vector<float> values(1000);
  size_t group = 1; // of elements that have the same number, so that each meets all others
  for (int rank = 0; rank < control->rank(); ++rank)
    group *= std::size(special);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = special[i / group % std::size(special)];
  DeviceSpan memory = allocate(values.size() * sizeof(float));
  write(memory, values);
  this->group.start(rounded(memory), stream());
  std::vector<float> sum = read(memory), wanted = summedByHost(values);
  expectEqualOnAllRanks(sum);
  for (size_t i = 0; i < sum.size(); ++i)
    if (!std::isnan(sum[i]) || !std::isnan(wanted[i]))
      EXPECT_EQ(std::bit_cast<uint32_t>(sum[i]), std::bit_cast<uint32_t>(wanted[i])) << i;
}

TEST_F(WireTest, BucketsFollowEachOtherInAGraph) {
  std::vector<DeviceSpan> buckets;
  for (size_t elements : {5000, 17, 3001})
    buckets.push_back(allocate(elements * sizeof(float)));
  cudart::Graph graph = nullptr;
  cudart::GraphExec executable = nullptr;
  check(cuda.streamBeginCapture(stream(), cudart::CaptureMode::ThreadLocal));
  for (DeviceSpan bucket : buckets)
    group.start(rounded(bucket), stream());
  check(cuda.streamEndCapture(stream(), &graph));
  check(cuda.graphInstantiate(&executable, graph, 0));
  check(cuda.graphDestroy(graph));
  for (int run = 0; run < 2; ++run) {
    for (DeviceSpan bucket : buckets) {
      std::vector<float> values(bucket.bytes / sizeof(float));
      fillOperand(values, control->rank() + run);
      write(bucket, values);
    }
    check(cuda.graphLaunch(executable, stream()));
    for (DeviceSpan bucket : buckets) {
      std::vector<float> values(bucket.bytes / sizeof(float));
      fillOperand(values, control->rank() + run);
      std::vector<float> sum = read(bucket);
      EXPECT_EQ(firstDifference(sum, summedByHost(values)), sum.size());
    }
  }
  check(cuda.graphExecDestroy(executable));
}

} // namespace
} // namespace dlc::rt::test

int main(int argc, char **argv) {
  auto control = dlc::rt::test::joinRanks(0);
  control->setTimeout(30);
  dlc::rt::test::control = control.get();
  return dlc::rt::test::runRankTests(*control, argc, argv);
}
