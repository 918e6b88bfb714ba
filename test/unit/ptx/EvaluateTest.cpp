// Bits of results, worked out by hand from IEEE 754 and the PTX manual.

#include "test/ptx/Evaluate.h"
#include "test/ptx/Opcode.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

using namespace dlc::ptx;

namespace {

uint64_t result(const std::string &opcode, uint64_t x, uint64_t y = 0, uint64_t z = 0) {
  Instruction in;
  EXPECT_EQ(decodeOpcode(opcode, in), "");
  const uint64_t operands[3] = {x, y, z};
  return evaluate(in, operands);
}

uint64_t of(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t of(double value) { return std::bit_cast<uint64_t>(value); }

constexpr uint64_t infinity = 0x7F800000, notANumber = 0x7FC00000;

} // namespace

TEST(PtxEvaluate, SumsAndProducts) {
  EXPECT_EQ(result("add.rn.f32", of(1.5F), of(2.25F)), of(3.75F));
  EXPECT_EQ(result("add.rn.f32", 0x3F800000, 0x33800000), 0x3F800000U) << "1 + 2^-24: to even";
  EXPECT_EQ(result("add.rn.f32", 0x3F800001, 0x33800000), 0x3F800002U) << "to even, upwards";
  EXPECT_EQ(result("sub.rn.f64", of(1.0), of(0x1p-53)), of(1 - 0x1p-53));
  EXPECT_EQ(result("mul.rn.f32", of(3.0F), of(-0.5F)), of(-1.5F));
  EXPECT_EQ(result("div.rn.f32", of(1.0F), of(3.0F)), 0x3EAAAAABU);
  EXPECT_EQ(result("sqrt.rn.f32", of(2.0F)), 0x3FB504F3U);
  EXPECT_EQ(result("rcp.rn.f64", of(4.0)), of(0.25));
  // (1 + 2^-12)^2 - 1 - 2^-11 = 2^-24, which a product rounded to f32 would lose.
  EXPECT_EQ(result("fma.rn.f32", of(1 + 0x1p-12F), of(1 + 0x1p-12F), of(-1 - 0x1p-11F)),
            of(0x1p-24F));
}

TEST(PtxEvaluate, SubnormalsAreFlushedWhereAsked) {
  EXPECT_EQ(result("add.rn.f32", 1, 0), 1U);
  EXPECT_EQ(result("add.rn.ftz.f32", 1, 0), 0U);
  EXPECT_EQ(result("mul.rn.ftz.f32", 0x80000001, of(1.0F)), 0x80000000U) << "keeps the sign";
  EXPECT_EQ(result("mul.rn.ftz.f32", of(0x1p-100F), of(0x1p-40F)), 0U) << "results, too";
  EXPECT_EQ(result("setp.gt.ftz.f32", 1, 0), 0U);
  // What flushes f16's computes in f16.
  EXPECT_EQ(result("setp.lt.f16", 0x8001, 0), 1U);
  EXPECT_EQ(result("setp.lt.ftz.f16", 0x8001, 0), 0U);
  EXPECT_EQ(result("abs.f16", 0x8001), 0x0001U);
  EXPECT_EQ(result("abs.ftz.f16", 0x8001), 0x0000U);
  EXPECT_EQ(result("neg.ftz.f16", 0x0001), 0x8000U);
  EXPECT_EQ(result("max.ftz.f16", 0x0001, 0x8000), 0x0000U);
  EXPECT_EQ(result("setp.gt.f32", 1, 0), 1U);
  EXPECT_EQ(result("cvt.ftz.f64.f32", 1), 0U);
}

TEST(PtxEvaluate, NotANumber) {
  EXPECT_EQ(result("max.f32", notANumber, of(1.0F)), of(1.0F));
  EXPECT_EQ(result("max.NaN.f32", notANumber, of(1.0F)), 0x7FC00000U);
  EXPECT_EQ(result("max.f32", 0x80000000, 0), 0U) << "zero is more than minus zero";
  EXPECT_EQ(result("min.f32", 0, 0x80000000), 0x80000000U);
  EXPECT_EQ(result("max.NaN.bf16", 0x3F80, 0x4000), 0x4000U);
  EXPECT_EQ(result("setp.lt.f32", notANumber, notANumber), 0U);
  EXPECT_EQ(result("setp.ltu.f32", notANumber, of(1.0F)), 1U);
  EXPECT_EQ(result("setp.ne.f32", notANumber, notANumber), 0U);
  EXPECT_EQ(result("setp.neu.f32", notANumber, notANumber), 1U);
  EXPECT_EQ(result("setp.nan.f64", of(std::nan("")), of(1.0)), 1U);
  EXPECT_EQ(result("setp.num.f64", of(std::nan("")), of(1.0)), 0U);
  EXPECT_EQ(result("setp.num.f32", of(1.0F), of(2.0F)), 1U);
}

TEST(PtxEvaluate, Integers) {
  EXPECT_EQ(result("add.s32", 0xFFFFFFFF, 1), 0U);
  EXPECT_EQ(result("sub.s16", 0, 1), 0xFFFFU);
  EXPECT_EQ(result("mul.lo.s64", ~uint64_t{0}, 3), ~uint64_t{2});
  EXPECT_EQ(result("mul.wide.s32", 0xFFFFFFFF, 4), ~uint64_t{3});
  EXPECT_EQ(result("mul.wide.u32", 0xFFFFFFFF, 4), 0x3FFFFFFFCU);
  EXPECT_EQ(result("mul.hi.u32", 0xD2511F53, 0x80000000), 0x69288FA9U);
  EXPECT_EQ(result("mul.hi.s32", 0xFFFFFFFF, 2), 0xFFFFFFFFU);
  EXPECT_EQ(result("mad.lo.s32", 3, 5, 0xFFFFFFFF), 14U);
  EXPECT_EQ(result("div.s32", 0xFFFFFFF9, 2), 0xFFFFFFFDU) << "-7 / 2 is -3";
  EXPECT_EQ(result("rem.s32", 0xFFFFFFF9, 2), 0xFFFFFFFFU);
  EXPECT_EQ(result("rem.u32", 0xFFFFFFF9, 10), 9U);
  EXPECT_EQ(result("min.s32", 0xFFFFFFFF, 1), 0xFFFFFFFFU);
  EXPECT_EQ(result("min.u32", 0xFFFFFFFF, 1), 1U);
  EXPECT_EQ(result("setp.lt.s32", 0xFFFFFFFF, 0), 1U);
  EXPECT_EQ(result("setp.lt.u32", 0xFFFFFFFF, 0), 0U);
  EXPECT_EQ(result("abs.s32", 0xFFFFFFFD), 3U);
}

TEST(PtxEvaluate, Bits) {
  EXPECT_EQ(result("shr.s32", 0x80000000, 4), 0xF8000000U);
  EXPECT_EQ(result("shr.u32", 0x80000000, 4), 0x08000000U);
  EXPECT_EQ(result("shr.u32", 1, 32), 0U) << "shifts beyond the width empty it";
  EXPECT_EQ(result("shr.s32", 0x80000000, 99), 0xFFFFFFFFU);
  EXPECT_EQ(result("shl.b64", 1, 40), uint64_t{1} << 40);
  EXPECT_EQ(result("shf.l.wrap.b32", 0x80000000, 1, 1), 3U);
  EXPECT_EQ(result("shf.r.wrap.b32", 0, 1, 1), 0x80000000U);
  EXPECT_EQ(result("prmt.b32", 0x33221100, 0x77665544, 0x5410), 0x55441100U);
  EXPECT_EQ(result("prmt.b32", 0x80, 0, 0x8), 0x808080FFU) << "repeats the sign of a byte";
  EXPECT_EQ(result("bfe.u32", 0xABCD1234, 8, 8), 0x12U);
  EXPECT_EQ(result("bfe.s32", 0x0000F000, 12, 4), 0xFFFFFFFFU);
  EXPECT_EQ(result("bfe.s32", 0x80000000, 40, 4), 0xFFFFFFFFU) << "beyond it is the sign";
  EXPECT_EQ(result("bfe.u32", 0x80000000, 40, 4), 0U);
  EXPECT_EQ(result("shl.b16", 1, 65537), 0U);
  EXPECT_EQ(result("not.b16", 0x00FF), 0xFF00U);
  EXPECT_EQ(result("not.pred", 1), 0U);
  EXPECT_EQ(result("xor.b64", 5, 3), 6U);
  EXPECT_EQ(result("selp.b32", 7, 8, 1), 7U);
  EXPECT_EQ(result("selp.b32", 7, 8, 0), 8U);
  EXPECT_EQ(result("popc.b32", 0xF0F0), 8U);
  EXPECT_EQ(result("clz.b32", 1), 31U);
  EXPECT_EQ(result("copysign.f32", of(-1.0F), of(3.0F)), of(-3.0F));
}

TEST(PtxEvaluate, ConversionsToNarrowFloats) {
  EXPECT_EQ(result("cvt.rn.bf16.f32", of(1.0F)), 0x3F80U);
  EXPECT_EQ(result("cvt.rn.bf16.f32", 0x3F808000), 0x3F80U) << "half of a unit, to even";
  EXPECT_EQ(result("cvt.rn.bf16.f32", 0x3F818000), 0x3F82U);
  EXPECT_EQ(result("cvt.rn.bf16.f32", 0x3F808001), 0x3F81U);
  EXPECT_EQ(result("cvt.rn.bf16.f32", 0x7F7FFFFF), 0x7F80U) << "rounds to infinity";
  EXPECT_EQ(result("cvt.rn.bf16.f32", infinity), 0x7F80U);
  EXPECT_EQ(result("cvt.rn.bf16.f32", 0x80000001), 0x8000U) << "far below the least";
  EXPECT_EQ(result("cvt.rn.bf16.f32", 0x00018000), 0x0002U) << "subnormal, to even";
  EXPECT_EQ(result("cvt.rn.bf16x2.f32", of(2.0F), of(1.0F)), 0x40003F80U);
  EXPECT_EQ(result("cvt.rn.f16.f32", of(65504.0F)), 0x7BFFU);
  EXPECT_EQ(result("cvt.rn.f16.f32", of(65520.0F)), 0x7C00U);
  EXPECT_EQ(result("cvt.rn.f16.f32", of(0x1p-24F)), 0x0001U);
  EXPECT_EQ(result("cvt.rn.f16.f32", of(0x1p-25F)), 0x0000U);
  EXPECT_EQ(result("cvt.rn.f16.u16", 2049U), 0x6800U); // a tie, to the even one
  EXPECT_EQ(result("cvt.rn.f16.u32", 2051U), 0x6802U);
  EXPECT_EQ(result("cvt.rn.f16.u32", 65519U), 0x7BFFU);
  EXPECT_EQ(result("cvt.rn.f16.u32", 65520U), 0x7C00U);
  EXPECT_EQ(result("cvt.rn.f16.s32", 0xFFFFFFFFU), 0xBC00U);
  EXPECT_EQ(result("cvt.f32.f16", 0x3C01), of(1 + 0x1p-10F));
  EXPECT_EQ(result("cvt.f32.f16", 0x0001), of(0x1p-24F));
  EXPECT_EQ(result("cvt.ftz.f32.f16", 0x0001), of(0x1p-24F)) << ".ftz is of f32 alone";
  EXPECT_EQ(result("cvt.f32.bf16", 0x3F81), 0x3F810000U);
}

TEST(PtxEvaluate, ConversionsOfIntegers) {
  EXPECT_EQ(result("cvt.rn.f32.s32", 0xFFFFFFFF), of(-1.0F));
  EXPECT_EQ(result("cvt.rn.f32.u32", 0xFFFFFFFF), of(4294967296.0F));
  EXPECT_EQ(result("cvt.rn.f32.s32", 16777217), of(16777216.0F));
  EXPECT_EQ(result("cvt.rzi.s32.f32", of(-2.75F)), 0xFFFFFFFFFFFFFFFEU);
  EXPECT_EQ(result("cvt.rzi.u32.f32", of(-2.75F)), 0U);
  EXPECT_EQ(result("cvt.rzi.s32.f32", of(3e9F)), 0x7FFFFFFFU) << "limited";
  EXPECT_EQ(result("cvt.rzi.s32.f32", notANumber), 0U);
  EXPECT_EQ(result("cvt.rzi.u32.f64", of(std::nan(""))), 0x80000000U);
  EXPECT_EQ(result("cvt.rzi.s64.f32", notANumber), uint64_t{1} << 63);
  EXPECT_EQ(result("cvt.rni.f64.f64", of(2.5)), of(2.0));
  EXPECT_EQ(result("cvt.rmi.ftz.f32.f32", of(-0.5F)), of(-1.0F));
  EXPECT_EQ(result("cvt.s64.s32", 0x80000000), 0xFFFFFFFF80000000U);
  EXPECT_EQ(result("cvt.u64.u32", 0x80000000), 0x80000000U);
  EXPECT_EQ(result("cvt.u16.u32", 0x12345678), 0x5678U);
  EXPECT_EQ(result("cvt.s16.s8", 0xFF) & 0xFFFF, 0xFFFFU);
  EXPECT_EQ(result("cvt.rn.f32.f64", of(1 + 0x1p-24)), of(1.0F));
}
