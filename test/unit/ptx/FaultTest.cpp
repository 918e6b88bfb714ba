// Each fault that the emulator is for, planted and found; and what is right but close to it, let
// through.

#include "test/unit/ptx/Kernels.h"

#include <gmock/gmock.h>

using namespace dlc::ptx;
using namespace dlc::ptx::test;
using testing::HasSubstr;

namespace {

/// %rd4 = %rd1 + 4 thread and %rd5 = %rd2 + 4 thread.
const std::string places = R"(
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
)";

} // namespace

TEST(PtxFault, CopyHasNone) {
  KernelRun run(kernel(places + "ld.global.b32 %r3, [%rd4]; st.global.b32 [%rd5], %r3;"));
  EXPECT_EQ(run.fault(), "");
  EXPECT_EQ(run.result<uint32_t>(1), 0x07060504U);
}

TEST(PtxFault, OutOfBounds) {
  EXPECT_THAT(KernelRun(kernel("ld.global.b32 %r3, [%rd1+4096];")).fault(),
              HasSubstr("k, line 19, block 0, thread 0: a load is out of bounds of input, which "
                        "has 4096 bytes: from 4096 on"));
  EXPECT_THAT(KernelRun(kernel("ld.global.b32 %r3, [%rd1+-4];")).fault(), HasSubstr("from -4 on"));
  EXPECT_THAT(KernelRun(kernel("mov.b64 %rd3, 0; ld.global.b32 %r3, [%rd3];")).fault(),
              HasSubstr("no memory is there"));
}

TEST(PtxFault, OffsetThatOverflowsIn32Bits) {
  // Block 3 begins 3 * 805306368 bytes on, beyond 2^31; wrapped, before all memory.
  const std::string begin = "add.s32 %r3, %r2, 3;",
                    end = "add.s64 %rd4, %rd1, %rd3; ld.global.b32 %r5, [%rd4];";
  const std::string wraps = begin + "mul.lo.s32 %r4, %r3, 805306368; cvt.s64.s32 %rd3, %r4;" + end;
  EXPECT_THAT(KernelRun(kernel(wraps)).fault(), HasSubstr("out of bounds: no memory is there"));
  EXPECT_THAT(KernelRun(kernel(begin + "mul.wide.u32 %rd3, %r3, 805306368;" + end)).fault(),
              HasSubstr("out of bounds of input, which has 4096 bytes: from 2415919104 on"));
}

TEST(PtxFault, Misaligned) {
  EXPECT_THAT(KernelRun(kernel("ld.global.b32 %r3, [%rd1+2];")).fault(),
              HasSubstr("is not aligned"));
  EXPECT_THAT(KernelRun(kernel("ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd1+8];")).fault(),
              HasSubstr("a load of 16 bytes is not aligned"));
  EXPECT_EQ(KernelRun(kernel("ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd1+16];")).fault(), "");
}

TEST(PtxFault, Uninitialised) {
  EXPECT_THAT(KernelRun(kernel("ld.global.b32 %r3, [%rd2];")).fault(),
              HasSubstr("reads what was never written, byte 0 of output"));
  EXPECT_THAT(KernelRun(kernel("add.s32 %r3, %r4, 1;")).fault(), HasSubstr("never written"));
  EXPECT_THAT(KernelRun(kernel("@%p1 add.s32 %r3, %r1, 1;")).fault(), HasSubstr("never written"));
  EXPECT_THAT(KernelRun(kernel("ld.shared.b32 %r3, [m];", ".shared .align 4 .b8 m[128];")).fault(),
              HasSubstr("never written"));
}

TEST(PtxFault, WriteToReadOnly) {
  EXPECT_THAT(KernelRun(kernel("st.global.b32 [%rd1], %r1;"), 1, 1).fault(),
              HasSubstr("writes to input, which is read only"));
}

TEST(PtxFault, UnwrittenElements) {
  KernelRun run(kernel(places + "st.global.b32 [%rd5], %r1;"));
  EXPECT_EQ(run.memory.writtenIn(run.output), 128U);
  EXPECT_EQ(run.memory.writtenBytes(), 128U);
}

TEST(PtxFault, RaceInGlobalMemory) {
  EXPECT_THAT(KernelRun(kernel("st.global.b32 [%rd2], %r1;")).fault(),
              HasSubstr("thread 1: a store writes what another thread writes meanwhile"));
  const std::string ofNeighbour = places + R"(
    st.global.b32 [%rd5], %r1;
    bar.sync 0;
    xor.b32 %r3, %r1, 1;
    mul.wide.u32 %rd6, %r3, 4;
    add.s64 %rd7, %rd2, %rd6;
    ld.global.b32 %r4, [%rd7];
  )";
  EXPECT_EQ(KernelRun(kernel(ofNeighbour)).fault(), "");
  std::string without = ofNeighbour;
  without.erase(without.find("bar.sync 0;"), 11);
  // Whether the neighbour ran before.
  EXPECT_THAT(KernelRun(kernel(without)).fault(), HasSubstr("never written"));
  without.replace(without.find("xor"), 20, "min.u32 %r3, %r1, 0;");
  EXPECT_THAT(KernelRun(kernel(without)).fault(),
              HasSubstr("thread 1: a load reads what another thread writes meanwhile"));
}

TEST(PtxFault, RaceBetweenBlocks) {
  // A barrier orders the threads of one block alone.
  EXPECT_THAT(KernelRun(kernel(places + "st.global.b32 [%rd5], %r2; bar.sync 0;"), 2).fault(),
              HasSubstr("block 1, thread 0: a store writes what another thread writes"));
  const std::string first = "setp.ne.b32 %p1, %r2, 0; @%p1 bra $L1;" + places +
                            "st.global.b32 [%rd5], %r1; bra $L2; $L1: " + places +
                            "ld.global.b32 %r3, [%rd5]; $L2:";
  EXPECT_THAT(KernelRun(kernel(first), 2).fault(), HasSubstr("meanwhile"));
  EXPECT_THAT(KernelRun(kernel(first), 2, 32, {1, 0}).fault(), HasSubstr("never written"))
      << "in the other order";
}

TEST(PtxFault, WriteAfterReadOfAnotherBlock) {
  const std::string body =
      "mov.b32 %r3, 5; setp.eq.b32 %p1, %r2, 0; @%p1 st.global.b32 [%rd2], %r3;"
      "@%p1 ld.global.b32 %r4, [%rd2]; @!%p1 st.global.b32 [%rd2], %r3;";
  EXPECT_THAT(KernelRun(kernel(body), 2, 1).fault(), HasSubstr("block 1"));
}

// What was written ahead of a barrier is another thread's to read, or to replace, not both.
TEST(PtxFault, WriteAfterReadOfAnotherThread) {
  auto body = [](const std::string &between) {
    return "setp.eq.b32 %p1, %r1, 0; mov.b32 %r3, 5; @%p1 st.global.b32 [%rd2], %r3; bar.sync 0;"
           "@%p1 ld.global.b32 %r4, [%rd2];" +
           between + "@!%p1 st.global.b32 [%rd2], %r3;";
  };
  EXPECT_THAT(KernelRun(kernel(body("")), 1, 2).fault(),
              HasSubstr("thread 1: a store writes what another thread reads meanwhile"));
  EXPECT_EQ(KernelRun(kernel(body("bar.sync 0;")), 1, 2).fault(), "");
}

TEST(PtxFault, RaceInSharedMemory) {
  const std::string memory = ".shared .align 4 .b8 m[128];";
  const std::string exchange = R"(
    mov.b32 %r3, m;
    shl.b32 %r4, %r1, 2;
    add.s32 %r5, %r3, %r4;
    st.shared.b32 [%r5], %r1;
    bar.sync 0;
    xor.b32 %r6, %r4, 4;
    add.s32 %r7, %r3, %r6;
    ld.shared.b32 %r8, [%r7];
  )";
  EXPECT_EQ(KernelRun(kernel(exchange, memory)).fault(), "");
  // Lanes of one warp are not synchronised either.
  std::string without = exchange;
  without.erase(without.find("bar.sync 0;"), 11);
  EXPECT_THAT(KernelRun(kernel(without, memory), 1, 2).fault(), HasSubstr("shared memory"));
  EXPECT_THAT(KernelRun(kernel(exchange + "st.shared.b32 [%r5], %r8;", memory)).fault(),
              HasSubstr("meanwhile"));
  EXPECT_THAT(KernelRun(kernel("mov.b32 %r3, m; st.shared.b32 [%r3], %r1;", memory)).fault(),
              HasSubstr("meanwhile"));
  EXPECT_THAT(KernelRun(kernel("st.shared.b32 [m+128], %r1;", memory)).fault(),
              HasSubstr("out of bounds of shared memory"));
}

TEST(PtxFault, DivergentBarrier) {
  EXPECT_THAT(KernelRun(kernel("setp.eq.b32 %p1, %r1, 3; @%p1 bra $L1; bar.sync 0; $L1:")).fault(),
              HasSubstr("waits at a barrier that not all threads reach"));
  EXPECT_THAT(KernelRun(kernel("setp.eq.b32 %p1, %r1, 0; @%p1 bra $L1; bar.sync 0; bra $L2; $L1: "
                               "bar.sync 0; $L2:"))
                  .fault(),
              HasSubstr("waits at a barrier that not all threads reach"));
  EXPECT_EQ(KernelRun(kernel("bar.sync 0; bar.sync 0;")).report.counts.barriers, 2U);
}

TEST(PtxFault, LaunchBeyondLimits) {
  EXPECT_THAT(KernelRun(kernel(""), 1, 1025).fault(),
              HasSubstr("cannot be launched with a block of 1025"));
  EXPECT_THAT(KernelRun(kernel(""), 0, 32).fault(), HasSubstr("with 0 blocks"));
  EXPECT_THAT(KernelRun(kernel(""), 1U << 31, 32, {0}).fault(),
              HasSubstr("with 2147483648 blocks"));
  EXPECT_EQ(KernelRun(kernel(""), (1U << 31) - 1, 32, {0, (1U << 31) - 2}).fault(), "");
  EXPECT_THAT(KernelRun(kernel("", ".shared .align 4 .b8 m[49156];")).fault(),
              HasSubstr("49156 bytes of shared memory"));
  std::string demanding = kernel("");
  demanding.insert(demanding.find(")\n{") + 2, ".reqntid 64\n");
  EXPECT_THAT(KernelRun(demanding).fault(), HasSubstr("32 threads where the text demands 64"));
  EXPECT_EQ(KernelRun(demanding, 1, 64).fault(), "");
}

TEST(PtxFault, RegistersBeyondLimits) {
  auto given = [](uint32_t threads, uint32_t registers, const std::string &text = kernel("")) {
    return KernelRun(text, 1, threads, {}, registers).fault();
  };
  EXPECT_EQ(given(256, 255), "") << "rounded up to 256 for each of 256 threads: all there are";
  EXPECT_THAT(given(257, 255), HasSubstr("cannot be launched with 73728 registers per block"))
      << "the last warp has registers for 32 threads";
  EXPECT_EQ(given(1024, 64), "");
  EXPECT_THAT(given(1024, 65), HasSubstr("with 73728 registers per block"));
  EXPECT_THAT(given(32, 256), HasSubstr("with 256 registers per thread"));
  std::string limited = kernel("");
  limited.insert(limited.find(")\n{") + 2, ".maxnreg 128\n");
  EXPECT_EQ(given(512, 0, limited), "");
  EXPECT_THAT(given(513, 0, limited), HasSubstr("registers per block"));
  EXPECT_EQ(given(1024, 64, limited), "") << "which is less";
  EXPECT_THAT(given(32, 129, limited),
              HasSubstr("129 registers per thread where the text allows 128"));
}

TEST(PtxFault, UnknownTextIsRefused) {
  EXPECT_EQ(refusal(kernel("atom.global.add.u32 %r3, [%rd1], 1;")),
            "line 19: 'atom.global.add.u32' is not executed here");
  EXPECT_THAT(refusal(kernel("st.local.b32 [%rd1], %r1;")), HasSubstr("unknown modifier 'local'"));
  EXPECT_THAT(refusal(kernel("", ".local .align 4 .b8 d[16];")),
              HasSubstr("unknown directive '.local'"));
  EXPECT_THAT(refusal(kernel("shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;")),
              HasSubstr("is not executed here"));
  EXPECT_THAT(refusal(kernel("ex2.approx.ftz.f32 %r3, %r1;")), HasSubstr("is not executed here"));
  EXPECT_THAT(refusal(kernel("div.full.ftz.f32 %r3, %r1, %r2;")),
              HasSubstr("unknown modifier 'full'"));
  EXPECT_THAT(refusal(kernel("add.f32 %r3, %r1, %r2;")), HasSubstr("does not say how it rounds"));
  EXPECT_THAT(refusal(kernel("shl.f32 %r3, %r1, 2; popc.pred %p1, %p2; rem.f32 %r3, %r1, %r2;")),
              HasSubstr("this type is not one of the instruction's"));
  EXPECT_THAT(refusal(kernel("bra $L9;")), HasSubstr("which is no label"));
  EXPECT_THAT(refusal(kernel("mov.b32 %r99, 1;")), HasSubstr("is no register"));
}

TEST(PtxFault, DivisionByZero) {
  EXPECT_THAT(KernelRun(kernel("mov.b32 %r3, 0; div.u32 %r4, %r1, %r3;"), 1, 1).fault(),
              HasSubstr("divides by zero"));
  EXPECT_THAT(KernelRun(kernel("mov.b32 %r3, 0; rem.s32 %r4, %r1, %r3;"), 1, 1).fault(),
              HasSubstr("divides by zero"));
}

TEST(PtxFault, EndlessLoop) {
  EXPECT_THAT(KernelRun(kernel("$L1: bra $L1;"), 1, 1).fault(), HasSubstr("does not end"));
}

TEST(PtxFault, NonCoherentLoadOfOrdinaryMemory) {
  EXPECT_THAT(KernelRun(kernel("ld.global.nc.b32 %r3, [%rd1];")).fault(),
              HasSubstr("of tables alone"));
  std::string withTable = ".version 8.0\n.global .align 4 .b8 t[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n" +
                          kernel("mov.b64 %rd3, t; ld.global.nc.b32 %r3, [%rd3+4];"
                                 "st.global.b32 [%rd2], %r3;");
  KernelRun run(withTable, 1, 1);
  EXPECT_EQ(run.fault(), "");
  EXPECT_EQ(run.result<uint32_t>(0), 0x08070605U);
}
