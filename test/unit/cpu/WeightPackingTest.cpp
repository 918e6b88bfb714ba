// Weights packed in lines and in pairs: beside TensorIo's loops, bit by bit, padding included.

#include "test/unit/cpu/KernelFixture.h"

#include "runtime/artifact/Error.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/cpu/kernels/WeightPacking.h"

using namespace dlc::rt;
using test::Tensor;

namespace {

struct Packed {
  std::vector<int64_t> shape;
  const char *from, *to;
  DType dtype = DType::BF16;
};

// Extents that fill the packed blocks and others, windows of any rank, both sides in pairs, blocks
// in either order, and pairs of more than one block (as tiles want them).
const Packed cases[] = {
    {{64, 32, 3, 3}, "NChw16c16n", "NhwC64n2c"},
    {{80, 48, 1, 1}, "NChw16c16n", "NhwC64n2c"},
    {{112, 16, 1, 7}, "NChw16c16n", "NhwC48n2c"},
    {{32, 160, 3, 2}, "NChw16c16n", "NhwC32n2c"},
    {{48, 64, 3, 3}, "NChw16c16n", "NChw8c16n2c"},
    {{48, 64, 3, 3}, "NChw16c16n", "CNhw8n16c2n"},
    {{16, 16, 2, 5}, "NChw16c16n", "NChw8n16c2n"},
    {{48, 80, 1, 1}, "NChw16n16c", "NhwC64n2c"},
    {{48, 80, 1, 1}, "NChw16n16c", "CNhw8n16c2n"},
    {{80, 48, 2, 2}, "NChw16c16n", "NChw16c64n2c"},
    {{48, 80, 2, 2}, "NChw16c16n", "CNhw16n64c2n"},
    {{32, 64, 3, 2, 3}, "NCdhw16c16n", "NdhwC64n2c"},
    {{32, 64, 3, 2, 3}, "NCdhw16c16n", "NCdhw8n16c2n"},
    {{272, 144}, "NC16c16n", "NC64n2c"},
    // Rows of matrices.
    {{80, 48, 1, 1}, "nchw", "NhwC64n2c"},
    {{48, 80, 1, 1}, "nchw", "CNhw8n16c2n"},
    {{32, 64, 1, 1, 1}, "ncdhw", "NCdhw8n16c2n"},
    {{272, 144}, "nc", "NC64n2c"},
    // Columns in f32, and blocks of more lines than there are.
    {{64, 32, 3, 3}, "NChw16c16n", "CNhw16n16c", DType::F32},
    {{48, 80, 1, 7}, "NChw16n16c", "NChw16c16n", DType::F32},
    {{80, 48, 3, 3}, "NChw16n16c", "Nhwc64n", DType::F32},
    {{48, 80, 1, 1}, "NChw16n16c", "CNhw16c64n", DType::F32},
    {{32, 64, 3, 2, 3}, "NCdhw16c16n", "CNdhw16n16c", DType::F32},
    {{80, 48, 1, 1}, "nchw", "NChw16c16n", DType::F32},
    {{272, 144}, "nc", "CN16c16n", DType::F32},
};

KernelRequest requestOf(const Packed &packed) {
  KernelRequest request;
  request.op = KernelOp::Reorder;
  request.operands = {{DType::F32, packed.shape, Layout::parse(packed.from)},
                      {packed.dtype, packed.shape, Layout::parse(packed.to)}};
  request.threads = test::teamThreads;
  return request;
}

std::vector<std::byte> memoryOf(DType dtype, const Tensor &tensor, const char *layout) {
  PhysicalType type(dtype, tensor.shape, *Layout::parse(layout));
  std::vector<std::byte> memory(type.bytes());
  writeTensor(type, tensor.values, memory);
  return memory;
}

} // namespace

class WeightPackingTest : public test::KernelFixture {
protected:
  bool canPack(const Packed &packed) const {
    return packed.dtype == DType::BF16 ? planner->target().multiplies(DType::BF16)
                                       : planner->target().vectorBits >= 512;
  }
  void SetUp() override {
    if (planner->target().vectorBits < 512)
      GTEST_SKIP() << "the processor has no AVX-512";
  }
};

TEST_F(WeightPackingTest, PacksAsLoopsDoForEveryTeam) {
  for (const Packed &packed : cases)
    for (unsigned threads = 1; canPack(packed) && threads <= test::teamThreads; ++threads) {
      SCOPED_TRACE(std::string(packed.from) + " " + packed.to);
      setTeamSize(threads);
      std::unique_ptr<const WeightPacking> packing = WeightPacking::of(requestOf(packed));
      ASSERT_TRUE(packing);
      Tensor weight = Tensor::random(packed.shape, 7);
      std::vector<std::byte> from = memoryOf(DType::F32, weight, packed.from),
                             expected = memoryOf(packed.dtype, weight, packed.to),
                             to(expected.size() + 64, std::byte{0x55});
      packing->run(std::vector<void *>{from.data(), to.data()});
      expected.resize(to.size(), std::byte{0x55}); // nothing behind is written
      EXPECT_EQ(to, expected);
    }
}

TEST_F(WeightPackingTest, IsWhatIsPlannedAndRunsOnTheDevice) {
  for (const Packed &packed : cases) {
    if (!canPack(packed))
      continue;
    SCOPED_TRACE(std::string(packed.from) + " " + packed.to);
    KernelRequest request = requestOf(packed);
    CandidateList list = planner->candidates(request);
    ASSERT_FALSE(list.candidates.empty()) << list.reason;
    EXPECT_EQ(list.candidates.front().implementation, WeightPacking::nameFor(packed.dtype));
    Tensor weight = Tensor::random(packed.shape, 8);
    std::vector<Tensor> tensors{weight, Tensor(packed.shape)};
    runCandidate(request, list.candidates.front(), tensors, 1);
    EXPECT_EQ(memoryOf(packed.dtype, tensors[1], packed.to),
              memoryOf(packed.dtype, weight, packed.to));
  }
}

TEST_F(WeightPackingTest, LeavesTheRestToTheLibrary) {
  const Packed others[] = {
      {{72, 32, 3, 3}, "NChw16c16n", "NhwC64n2c"},  // blocks that are not whole
      {{64, 40, 3, 3}, "NChw16c16n", "NhwC64n2c"},  //
      {{64, 32, 3, 3}, "NChw16c16n", "NChw16c16n"}, // no pairs
      {{64, 32, 3, 3}, "NChw16c16n", "NhwC24n2c"},  // no lines of 16
      {{64, 32, 3, 3}, "NChw16c16n", "NhwC64n4c"},  // pairs of four
      {{64, 32, 3, 3}, "NChw8c16n", "NhwC64n2c"},   // other blocks
      {{64, 32, 3, 3}, "nhwc", "NhwC64n2c"},        // none
      {{64, 32, 3, 3}, "nchw", "NhwC64n2c"},        // rows of windows
      {{72, 32, 1, 1}, "nchw", "NhwC64n2c"},        // a matrix of blocks that are not whole
      {{64, 32, 3, 3}, "NChw16c16n", "nhwc", DType::F32},
      {{64, 32, 3, 3}, "NChw16c16n", "NhwC24n", DType::F32},
      {{72, 32, 3, 3}, "NChw16c16n", "CNhw16n16c", DType::F32},
      {{64, 32, 3, 3}, "NChw16c16n", "CNhw16c16n", DType::F32}, // rows, not columns
  };
  for (const Packed &other : others)
    EXPECT_FALSE(WeightPacking::of(requestOf(other))) << other.from << " " << other.to;
  auto expectNone = [](auto &&change) {
    KernelRequest request = requestOf(cases[0]);
    change(request);
    EXPECT_FALSE(WeightPacking::of(request));
  };
  expectNone([](KernelRequest &request) { request.operands[0].dtype = DType::BF16; });
  expectNone([](KernelRequest &request) { request.operands[1].dtype = DType::F16; });
  expectNone([](KernelRequest &request) { request.operands[1].shape[0] *= 2; });
  expectNone([](KernelRequest &request) { request.operands[1].layout.reset(); });
  expectNone([](KernelRequest &request) { request.op = KernelOp::Conv; });
}

// What a damaged artifact may ask for.
TEST_F(WeightPackingTest, PlansThatItCannotPackAreRefused) {
  KernelRequest request = requestOf({{72, 32, 3, 3}, "NChw16c16n", "NhwC64n2c"});
  CpuPlan plan{request, WeightPacking::nameFor(DType::BF16), 0};
  Artifact artifact = wrap(plan.serialize(), plan.implementation, plan);
  try {
    device->load(artifact, *artifact->kernels()->Get(0));
    FAIL();
  } catch (const Error &error) {
    std::string message = error.what();
    EXPECT_NE(message.find("conv.1"), std::string::npos) << message;
    EXPECT_NE(message.find(plan.implementation), std::string::npos) << message;
  }
}
