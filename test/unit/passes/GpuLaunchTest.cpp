// Launches of the models' own sizes on the emulator: the first block, the last and some between,
// over memory of which only what they touch is there. Offsets that leave 32 bits show here alone.

#include "runtime/cuda/CudaTarget.h"
#include "test/unit/passes/GpuModels.h"

#include "mlir/Parser/Parser.h"

#include <cmath>
#include <iostream>
#include <random>

using namespace mlir;
using namespace dlc;
using namespace dlc::test;

namespace {
struct Case : GpuCase {
  double used; // of sectors, at least
  double most; // sectors, in terms of what is touched by plan: some is asked for more than once, an
               // element of an image for each tap of a filter
  double wide; // of bytes, in accesses of 16, at least
};

void PrintTo(const Case &test, std::ostream *os) {
  PrintTo(static_cast<const GpuCase &>(test), os);
}

class GpuLaunch : public GpuModelFixture<Case> {};

/// Floats from 1 to 2, small integers; whatever the order in which pages appear.
ptx::Memory::Fill valuesOf(Type element) {
  int64_t bytes = nn::elementBytes(element);
  return [=](uint64_t offset) -> uint8_t {
    uint64_t index = offset / bytes, byte = offset % bytes, noise = index * 0x9E3779B97F4A7C15;
    if (!isa<FloatType>(element))
      return byte == 0 ? noise >> 63 : 0;
    uint64_t one = element.isF64()    ? 0x3FF0000000000000
                   : element.isF32()  ? 0x3F800000
                   : element.isBF16() ? 0x3F80
                                      : 0x3C00;
    return (one | (byte < 2 && bytes > 2 ? noise >> 48 : noise >> 60)) >> (8 * byte);
  };
}

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

std::vector<uint32_t> someOf(uint32_t blocks, std::mt19937 &random) {
  std::vector<uint32_t> chosen{0};
  for (int i = 0; i < 3 && blocks > 2; ++i)
    chosen.push_back(1 + random() % (blocks - 2));
  if (blocks > 1)
    chosen.push_back(blocks - 1);
  llvm::sort(chosen);
  chosen.erase(llvm::unique(chosen), chosen.end());
  return chosen;
}

/// Bytes of the sectors of 32 that would hold what accesses of warps ask for, of those that they
/// need for it, and what launches touch by plan; bytes that they ask for, and of accesses of 16.
struct Traffic {
  double least = 0, moved = 0, planned = 0, asked = 0, wide = 0;
  double instructions = 0; // of threads
  double used() const { return least / moved; }
};

/// Of the sectors of a cluster's kernels, the share that is used, at least.
double leastUsed(exec::ClusterOp cluster) {
  Block &body = cluster.getBody().front();
  // Planes of an odd number of pixels begin inside of sectors.
  if (auto reorder = dyn_cast<nn::ReorderOp>(body.front())) {
    auto type = nn::tensorType(reorder.getX());
    if (!type.getEncoding() && type.getRank() == 4 && type.getDimSize(2) * type.getDimSize(3) % 8)
      return 0.9;
  }
  // Rows of a depthwise convolution begin and end inside of sectors where taps leave the image.
  return body.getOps<nn::ConvOp>().empty() ? 0.95 : 0.92;
}

/// The stages of one cluster.
class Launches {
public:
  Launches(exec::ClusterOp cluster, const ptx::Module &code, std::mt19937 &random)
      : cluster(cluster), kernel(*GeneratedKernel::of(cluster)), code(code), random(random) {
    Block &body = cluster.getBody().front();
    for (BlockArgument argument : body.getArguments())
      add(nn::tensorType(argument), ptx::Use::Read);
    for (Value result : body.getTerminator()->getOperands())
      add(nn::tensorType(result), ptx::Use::ReadWrite);
    for (RankedTensorType type : kernel.scratch)
      add(type, ptx::Use::ReadWrite);
  }

  /// Adds up what all blocks would do as the chosen ones did, of kernels above a megabyte, each of
  /// which uses that share of sectors, at least.
  void run(const llvm::StringMap<Launch> &launches, Traffic &traffic, double least) {
    for (auto [index, stage] : llvm::enumerate(kernel.stages)) {
      ptx::Launch launch =
          launchOf(cluster, static_cast<unsigned>(index), stage, launches, addresses);
      launch.order = someOf(launch.blocks, random);
      ptx::Report report = ptx::Emulator(code, memory).run(launch);
      for (const std::string &fault : report.faults)
        ADD_FAILURE() << fault;
      EXPECT_GT(memory.writtenBytes(), 0U) << launch.entry;
      if (stage.bytes > 1000000)
        addTo(traffic, launch, report.counts, static_cast<double>(stage.bytes), least);
    }
  }

  /// An element of f32 of a buffer.
  float valueAt(unsigned buffer, uint64_t index) {
    float value = 0;
    memory.read(addresses[buffer] + index * sizeof value, &value, sizeof value);
    return value;
  }

private:
  void add(RankedTensorType type, ptx::Use use) {
    addresses.push_back(memory.add("buffer " + std::to_string(addresses.size()),
                                   nn::physicalBytes(type), use, valuesOf(type.getElementType())));
  }

  static void addTo(Traffic &traffic, const ptx::Launch &launch, const ptx::Counts &counts,
                    double planned, double least) {
    Traffic own{32 * static_cast<double>(counts.leastSectors),
                32 * static_cast<double>(counts.sectors)};
    double blocks = static_cast<double>(launch.blocks) / static_cast<double>(launch.order.size());
    traffic.least += blocks * own.least;
    traffic.moved += blocks * own.moved;
    traffic.planned += planned;
    traffic.asked += blocks * static_cast<double>(counts.usedBytes);
    traffic.wide += blocks * static_cast<double>(counts.wideBytes);
    traffic.instructions += blocks * static_cast<double>(counts.instructions);
    double all = blocks * static_cast<double>(counts.bytes);
    if (std::fabs(all / planned - 1) > 0.01)
      std::cout << launch.entry << " asks for " << percent(all / planned) << " of "
                << std::llround(planned / 1e6) << " MB\n";
    EXPECT_GE(own.used(), least) << launch.entry << ", planned " << std::llround(planned / 1e3)
                                 << " kB";
    double byBlocks =
        static_cast<double>(counts.blockBytes) / (32 * static_cast<double>(counts.blockSectors));
    EXPECT_GE(byBlocks, 0.95) << launch.entry;
    if (own.used() < 0.95)
      std::cout << launch.entry << ": " << percent(own.used()) << " of "
                << std::llround(blocks * own.moved / 1e6) << " MB, of what blocks touch "
                << percent(byBlocks) << "\n";
  }

  exec::ClusterOp cluster;
  GeneratedKernel kernel;
  const ptx::Module &code;
  std::mt19937 &random;
  ptx::Memory memory;
  std::vector<uint64_t> addresses;
};

/// The model's kernels, and how they are launched.
void emit(nn::ModelOp model, llvm::StringMap<Launch> &launches, ptx::Module &code) {
  FailureOr<std::string> text = emitGpuClusters(model, launches);
  ASSERT_TRUE(succeeded(text));
  std::string reason;
  code = ptx::parse(*text, reason);
  ASSERT_EQ(reason, "");
}
} // namespace

TEST_P(GpuLaunch, TouchesWhatIsThereInWholeSectors) {
  llvm::StringMap<Launch> launches;
  ptx::Module code;
  ASSERT_NO_FATAL_FAILURE(emit(model(), launches, code));
  std::mt19937 random(1);
  Traffic traffic;
  for (auto cluster : model().getOps<exec::ClusterOp>())
    Launches(cluster, code, random).run(launches, traffic, leastUsed(cluster));
  std::cout << GetParam().model << " " << GetParam().precision << ": " << percent(traffic.used())
            << " of " << std::llround(traffic.moved / 1e6) << " MB, by plan "
            << std::llround(traffic.planned / 1e6) << " MB; "
            << percent(traffic.wide / traffic.asked) << " in accesses of 16 bytes\n";
  EXPECT_GE(traffic.used(), GetParam().used);
  EXPECT_LE(traffic.moved, GetParam().most * traffic.planned);
  EXPECT_GE(traffic.wide, GetParam().wide * traffic.asked);
}

/// One cluster over a shape, whose loops are planned.
class OneCluster {
public:
  OneCluster(const std::string &shape, const std::string &body) {
    context.loadDialect<nn::NNDialect, exec::ExecDialect>();
    module = parseSourceString<ModuleOp>("!t = tensor<" + shape + R"(xf32>
      nn.model @m attributes {stage = "exec", batch = 1 : i64} {
        exec.cluster @c {)" + body + "}}",
                                         ParserConfig(&context));
    nn::ModelOp model = *module->getOps<nn::ModelOp>().begin();
    cluster = model.lookupSymbol<exec::ClusterOp>("c");
    FailureOr<GeneratedKernel> plan =
        planGeneratedKernel(cluster.getBody().front(), rt::CudaTarget::loops());
    EXPECT_TRUE(succeeded(plan));
    plan->writeTo(cluster);
    emit(model, launches, code);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  exec::ClusterOp cluster;
  llvm::StringMap<Launch> launches;
  ptx::Module code;
};

// A channel's value is added to 65536 x 257 x 16 x 16 elements: more than 2^32, of more than 2^34
// bytes. Addresses computed in 32 bits would be those of what is not there, or of other elements.
TEST(GpuOffsets, LeaveThirtyTwoBits) {
  constexpr uint64_t elements = 65536ULL * 257 * 16 * 16;
  OneCluster one("65536x257x16x16", R"(
    ^bb0(%x: !t, %b: tensor<257xf32>):
      %c = nn.broadcast %b {dims = array<i64: 1>} : (tensor<257xf32>) -> !t
      %y = nn.add %x, %c : (!t, !t) -> !t
      nn.yield %y : !t)");
  std::mt19937 random(1);
  Launches run(one.cluster, one.code, random);
  Traffic traffic;
  run.run(one.launches, traffic, leastUsed(one.cluster));
  for (uint64_t index : {uint64_t{0}, elements - 1})
    EXPECT_EQ(run.valueAt(2, index), run.valueAt(0, index) + run.valueAt(1, index / 256 % 257))
        << "element " << index;
}

/// What kernels of a cluster do, as the chosen blocks did.
Traffic trafficOf(const std::string &shape, const std::string &body, double leastUsed = 0.95) {
  OneCluster one(shape, body);
  std::mt19937 random(1);
  Traffic traffic;
  Launches(one.cluster, one.code, random).run(one.launches, traffic, leastUsed);
  return traffic;
}

constexpr const char *sum = R"(
  ^bb0(%x: !t, %z: !t):
    %y = nn.add %x, %z : (!t, !t) -> !t
    nn.yield %y : !t)";

// 40009 is prime: the last of the items of 8192 elements is shorter. What exists is asked once an
// item, and accesses are as wide as in items without such a one.
TEST(GpuMasks, WholeItemsHaveNone) {
  Traffic shorter = trafficOf("1x40009x16", sum), whole = trafficOf("1x40960x16", sum);
  EXPECT_LE(shorter.instructions / shorter.asked, 1.1 * whole.instructions / whole.asked);
  EXPECT_EQ(shorter.wide, shorter.asked);
  Traffic odd = trafficOf("400009", sum);
  EXPECT_GE(odd.wide, 0.75 * odd.asked); // the last one of five blocks has an odd number
}

// Rows of a prime number of elements begin anywhere: each lane has an access of its own, side by
// side with the next one's.
TEST(GpuMasks, RowsAreReadSideBySide) {
  // A warp's 32 elements are in five sectors where they do not begin at one.
  Traffic rows = trafficOf("64x21841", R"(
    ^bb0(%x: !t, %b: tensor<64xf32>):
      %c = nn.broadcast %b {dims = array<i64: 0>} : (tensor<64xf32>) -> !t
      %y = nn.add %x, %c : (!t, !t) -> !t
      nn.yield %y : !t)",
                           4 / 5.0);
  EXPECT_GT(rows.planned, 0); // is a kernel of which that is asked
}

INSTANTIATE_TEST_SUITE_P(
    Models, GpuLaunch,
    testing::Values(Case{{"mnist_cnn", {}, "f32"}, 0.98, 1.3, 0.88},
                    Case{{"mnist_cnn", {}, "f16"}, 0.98, 1.25, 0.87},
                    Case{{"unet2d", {}, "bf16"}, 0.98, 1.2, 0.38},
                    Case{{"unet3d", {}, "f16"}, 0.98, 1.35, 0.2},
                    Case{{"n2v3d", {}, "bf16"}, 0.98, 1.3, 0.3},
                    Case{{"vgg16", {}, "f16"}, 0.98, 1.05, 0.92},
                    Case{{"resnet50", {}, "bf16"}, 0.98, 1.3, 0.38},
                    Case{{"inception_v3", {}, "f16"}, 0.98, 1.65, 0.55},
                    Case{{"n2v2d", {}, "bf16"}, 0.98, 1.4, 0.59},
                    Case{{"resnet50_svhn", {}, "f32"}, 0.98, 1.4, 0.97},
                    Case{{"resnet101", {}, "f16"}, 0.98, 1.4, 0.44},
                    Case{{"../test/networks/mobilenetv2", {}, "bf16"}, 0.98, 2.7, 0.57}));
