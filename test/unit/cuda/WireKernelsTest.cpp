// The kernels of --wire=bf16 on the emulator, which finds accesses out of bounds and races, beside
// what CPUs compute of the same contributions.
#include "runtime/cuda/WireKernels.h"

#include "runtime/comm/SliceSum.h"
#include "test/ptx/Emulator.h"
#include "test/unit/comm/Values.h"
#include "test/unit/cuda/Assembler.h"

#include <gtest/gtest.h>

#include <immintrin.h>

namespace dlc::rt::test {
namespace {

using Words = std::vector<uint16_t>;

class Kernels {
public:
  explicit Kernels(uint32_t blocks) : blocks(blocks) {
    std::string reason;
    module = ptx::parse(WireKernels::text(), reason);
    EXPECT_EQ(reason, "");
  }

  /// Over memory of its own; what it has written.
  template <typename To, typename From>
  std::vector<To> run(const char *kernel, const std::vector<From> &from, size_t size,
                      uint64_t elements, uint64_t ranks = 1) {
    ptx::Memory memory;
    uint64_t source = memory.add("from", from.size() * sizeof(From), ptx::Use::Read),
             target = memory.add("to", size * sizeof(To), ptx::Use::Write);
    memory.write(source, from.data(), from.size() * sizeof(From));
    ptx::Launch launch{kernel, blocks, 32, {source, target, elements, ranks}, {}};
    ptx::Report report = ptx::Emulator(module, memory).run(launch);
    for (const std::string &fault : report.faults)
      ADD_FAILURE() << fault;
    EXPECT_EQ(memory.writtenBytes(), size * sizeof(To)) << kernel;
    counts = report.counts;
    std::vector<To> result(size);
    memory.read(target, result.data(), size * sizeof(To));
    return result;
  }

  ptx::Counts counts;

private:
  uint32_t blocks;
  ptx::Module module;
};

/// Numbers of all kinds, in each rank beside others of each.
std::vector<float> contribution(int rank, size_t elements) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {0x1p-130F, -0x1p-149F, 0x1.8p-127F, 0.0F, -0.0F, infinity,  -infinity,
                           NAN,       3.4e38F,    -3.4e38F,    1.0F, -1.0F, 0x1.01p0F, 0x1.03p0F};
  constexpr size_t count = std::size(special);
  std::vector<float> values(elements);
  fillOperand(values, rank);
  for (size_t i = 0; i < elements; i += 3)
    values[i] = rank == 0 ? special[i / 3 % count] : special[i / 3 / count % count];
  return values;
}

/// As ranks of CPUs add them.
std::vector<float> summedByCpus(const std::vector<std::vector<float>> &contributions) {
  std::vector<Contribution> all;
  for (const std::vector<float> &each : contributions)
    all.push_back({each.data(), nullptr});
  std::vector<float> sum(contributions[0].size());
  float *destination = sum.data();
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | 1U << 15 | 1U << 6); // flushes denormals, as every team of threads
  sumContributions(all, {&destination, 1}, 0, sum.size(), artifact::DType::BF16);
  _mm_setcsr(before);
  return sum;
}

/// Which NaN a sum gives is the machine's matter.
void expectSame(const std::vector<float> &got, const std::vector<float> &wanted) {
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_TRUE(std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(wanted[i]) ||
                (std::isnan(got[i]) && std::isnan(wanted[i])))
        << "element " << i << " of " << wanted.size() << ": " << got[i] << ", by CPUs "
        << wanted[i];
}

TEST(WireKernels, GiveTheBitsOfCpus) {
  for (int ranks : {2, 3, 5})
    for (size_t elements : {1, 3, 4, 5, 64, 255, 1000, 1023})
      for (uint32_t blocks : {1, 3}) {
        Kernels kernels(blocks);
        size_t padded = (elements + 7) / 8 * 8;
        std::vector<std::vector<float>> values;
        Words contributions;
        for (int rank = 0; rank < ranks; ++rank) {
          values.push_back(contribution(rank, elements));
          Words narrowed = kernels.run<uint16_t>("narrow", values.back(), elements, elements);
          contributions.insert(contributions.end(), narrowed.begin(), narrowed.end());
          contributions.resize(contributions.size() + padded - elements);
        }
        Words sum = kernels.run<uint16_t>("add", contributions, padded, padded,
                                          static_cast<uint64_t>(ranks));
        sum.resize(elements);
        expectSame(kernels.run<float>("widen", sum, elements, elements), summedByCpus(values));
      }
}

TEST(WireKernels, UseAllOfTheSectorsThatTheyTouch) {
  Kernels kernels(2);
  auto expectAll = [&](const char *kernel) {
    EXPECT_EQ(32 * kernels.counts.sectors, kernels.counts.bytes) << kernel;
  };
  constexpr size_t elements = 4096;
  Words narrowed = kernels.run<uint16_t>("narrow", contribution(0, elements), elements, elements);
  expectAll("narrow");
  kernels.run<float>("widen", narrowed, elements, elements);
  expectAll("widen");
  kernels.run<uint16_t>("add", narrowed, elements / 2, elements / 2, 2);
  expectAll("add");
}

TEST(WireKernels, Assemble) { expectAssembles(WireKernels::text()); }

} // namespace
} // namespace dlc::rt::test
