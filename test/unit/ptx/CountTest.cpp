// What the emulator counts of memory, and that orders of blocks do not matter where they must not.

#include "test/unit/ptx/Kernels.h"

using namespace dlc::ptx;
using namespace dlc::ptx::test;

namespace {

/// Thread t copies the element at `stride` t.
std::string copyWithStride(int bytes) {
  return kernel("mul.wide.u32 %rd3, %r1, " + std::to_string(bytes) +
                "; add.s64 %rd4, %rd1, %rd3; ld.global.b32 %r3, [%rd4];");
}

} // namespace

TEST(PtxCounts, SectorsOfAWarp) {
  Counts dense = KernelRun(copyWithStride(4)).report.counts;
  EXPECT_EQ(dense.bytes, 128U);
  EXPECT_EQ(dense.sectors, 4U);
  EXPECT_EQ(dense.leastSectors, 4U);
  Counts sparse = KernelRun(copyWithStride(64)).report.counts;
  EXPECT_EQ(sparse.sectors, 32U);
  EXPECT_EQ(sparse.leastSectors, 4U);
  // What all lanes ask for is there once.
  Counts shared = KernelRun(copyWithStride(0)).report.counts;
  EXPECT_EQ(shared.sectors, 1U);
  EXPECT_EQ(shared.bytes, 128U);
  EXPECT_EQ(shared.leastSectors, 1U);
  EXPECT_EQ(shared.usedBytes, 4U);
  EXPECT_EQ(shared.wideBytes, 0U);
  // Warps do not share accesses.
  EXPECT_EQ(KernelRun(copyWithStride(0), 1, 64).report.counts.sectors, 2U);
  Counts wide = KernelRun(kernel("mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd1, %rd3;"
                                 "ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd4];"))
                    .report.counts;
  EXPECT_EQ(wide.bytes, 512U);
  EXPECT_EQ(wide.sectors, 16U);
  EXPECT_EQ(wide.leastSectors, 16U);
  EXPECT_EQ(wide.wideBytes, 512U);
}

TEST(PtxCounts, IterationsOfALoopAreAccessesOfTheirOwn) {
  Counts counts =
      KernelRun(kernel("mov.b32 %r3, 0; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3;"
                       "$L1: ld.global.b32 %r4, [%rd4]; add.s32 %r3, %r3, 1;"
                       "setp.lt.u32 %p1, %r3, 3; @%p1 bra $L1;"))
          .report.counts;
  EXPECT_EQ(counts.bytes, 384U);
  EXPECT_EQ(counts.sectors, 12U);
}

TEST(PtxCounts, DistinctBytes) {
  KernelRun run(copyWithStride(0));
  EXPECT_EQ(run.memory.readBytes(), 4U);
  EXPECT_EQ(run.memory.touchedIn(run.input), 4U);
  EXPECT_EQ(run.memory.touchedIn(run.output), 0U);
  // Read after it was written, and written after it was read.
  KernelRun both(kernel("st.global.b32 [%rd2], %r1; ld.global.b32 %r3, [%rd2];"
                        "st.global.b32 [%rd2], %r3; st.global.b16 [%rd2+8], 1;"),
                 1, 1);
  EXPECT_EQ(both.fault(), "");
  EXPECT_EQ(both.memory.touchedIn(both.output), 6U);
}

TEST(PtxCounts, BankConflicts) {
  auto rounds = [](int shift) {
    return KernelRun(
               kernel("shl.b32 %r3, %r1, " + std::to_string(shift) +
                          "; mov.b32 %r4, m; add.s32 %r5, %r4, %r3; st.shared.b32 [%r5], %r1;",
                      ".shared .align 4 .b8 m[4096];"))
        .report.counts;
  };
  EXPECT_EQ(rounds(2).sharedRounds, 1U);
  EXPECT_EQ(rounds(3).sharedRounds, 2U);
  EXPECT_EQ(rounds(7).sharedRounds, 32U);
  EXPECT_EQ(rounds(7).leastSharedRounds, 1U);
}

TEST(PtxCounts, Instructions) {
  // Two parameters, two special registers and the end.
  EXPECT_EQ(KernelRun(kernel(""), 3, 2).report.counts.instructions, 5U * 3 * 2);
}

// Some blocks of many, in whatever order, do what they do among all.
TEST(PtxBlocks, RunInAnyOrder) {
  const std::string numbers = kernel("mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd2, %rd3;"
                                     "mul.lo.s32 %r3, %r2, 3; st.global.b32 [%rd4], %r3;");
  KernelRun all(numbers, 5, 1), some(numbers, 5, 1, {4, 0, 2});
  EXPECT_EQ(all.fault(), "");
  EXPECT_EQ(some.fault(), "");
  EXPECT_EQ(some.memory.writtenBytes(), 12U);
  for (uint32_t block : {0U, 2U, 4U})
    EXPECT_EQ(some.result<uint32_t>(block), all.result<uint32_t>(block));
}
