#include "test/ptx/Evaluate.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

namespace dlc::ptx {
namespace {

[[noreturn]] void refuse() { throw ParseError("this type is not one of the instruction's"); }

uint64_t mask(unsigned bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

int64_t signExtended(uint64_t value, unsigned bits) {
  unsigned unused = 64 - bits;
  return static_cast<int64_t>(value << unused) >> unused;
}

float asFloat(uint64_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value)); }
double asDouble(uint64_t value) { return std::bit_cast<double>(value); }
uint64_t bits(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t bits(double value) { return std::bit_cast<uint64_t>(value); }

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}

bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 || type == Type::S64;
}
bool isFloating(Type type) { return type >= Type::F16; }

//===- Floating point -------------------------------------------------------------------------===//

/// Both are NaN: which one a GPU returns is not told; the canonical one is.
template <typename Float> Float canonical(Float value) {
  return std::isnan(value) ? std::numeric_limits<Float>::quiet_NaN() : value;
}

template <typename Float> Float extremum(const Instruction &in, Float x, Float y) {
  if (std::isnan(x) || std::isnan(y)) {
    if (in.keepsNaN || (std::isnan(x) && std::isnan(y)))
      return std::numeric_limits<Float>::quiet_NaN();
    return std::isnan(x) ? y : x;
  }
  bool first = x == y ? std::signbit(x) == (in.op == Op::Min) : (x < y) == (in.op == Op::Min);
  return first ? x : y;
}

template <typename Float> Float arithmetic(const Instruction &in, Float x, Float y, Float z) {
  switch (in.op) {
  case Op::Abs:
    return std::fabs(x);
  case Op::CopySign: // the first operand's
    return std::copysign(y, x);
  case Op::Add:
    return canonical(x + y);
  case Op::Sub:
    return canonical(x - y);
  case Op::Mul:
    return canonical(x * y);
  case Op::Div:
    return canonical(x / y);
  case Op::Fma:
    return canonical(std::fma(x, y, z));
  case Op::Neg:
    return -x;
  case Op::Rcp:
    return canonical(1 / x);
  case Op::Sqrt:
    return canonical(std::sqrt(x));
  case Op::Max:
  case Op::Min:
    return extremum(in, x, y);
  default:
    refuse();
  }
}

uint64_t arithmeticOfF32(const Instruction &in, const uint64_t *operands) {
  float values[3];
  for (int i = 0; i < 3; ++i)
    values[i] = in.flushes ? flushed(asFloat(operands[i])) : asFloat(operands[i]);
  float result = arithmetic(in, values[0], values[1], values[2]);
  return bits(in.flushes ? flushed(result) : result);
}

uint64_t arithmeticOfF64(const Instruction &in, const uint64_t *operands) {
  return bits(arithmetic(in, asDouble(operands[0]), asDouble(operands[1]), asDouble(operands[2])));
}

/// To 16 bits of floating point: `mantissa` bits behind the point, exponents from `least` on.
uint64_t narrowed(double x, unsigned mantissa, int least, int most) {
  uint64_t sign = std::signbit(x) ? 0x8000 : 0;
  uint64_t infinity = 0x7FFF & ~mask(mantissa);
  if (std::isnan(x))
    return 0x7FFF;
  double size = std::fabs(x);
  if (size == 0 || std::isinf(size))
    return sign | (size == 0 ? 0 : infinity);
  int exponent = std::max(std::ilogb(size), least);
  double units = std::nearbyint(std::ldexp(size, static_cast<int>(mantissa) - exponent));
  // A subnormal's exponent field is one less than its exponent says.
  uint64_t code =
      (static_cast<uint64_t>(exponent - least) << mantissa) + static_cast<uint64_t>(units);
  return sign | (exponent > most || code > infinity ? infinity : code);
}

uint64_t toBF16(double x) { return narrowed(x, 7, -126, 127); }
uint64_t toF16(double x) { return narrowed(x, 10, -14, 15); }

double fromF16(uint64_t x) {
  auto exponent = static_cast<int>(x >> 10 & 31);
  auto fraction = static_cast<double>(x & 1023);
  double size = exponent == 0    ? std::ldexp(fraction, -24)
                : exponent == 31 ? (fraction == 0 ? std::numeric_limits<double>::infinity()
                                                  : std::numeric_limits<double>::quiet_NaN())
                                 : std::ldexp(1024 + fraction, exponent - 25);
  return x & 0x8000 ? -size : size;
}

uint64_t flushedF16(uint64_t x) { return (x & 0x7C00) == 0 ? x & 0x8000 : x; }

double floatingOf(Type type, bool flushes, uint64_t x) {
  switch (type) {
  case Type::F16:
    return fromF16(flushes ? flushedF16(x) : x);
  case Type::BF16:
    return asFloat(x << 16);
  case Type::F32:
    return flushes ? flushed(asFloat(x)) : asFloat(x);
  case Type::F64:
    return asDouble(x);
  default:
    refuse();
  }
}

/// What is exact in 16 bits.
uint64_t arithmeticOfF16(const Instruction &in, const uint64_t *operands) {
  uint64_t first = in.flushes && in.type == Type::F16 ? flushedF16(operands[0]) : operands[0];
  if (in.op == Op::Abs)
    return first & 0x7FFF;
  if (in.op == Op::Neg)
    return first ^ 0x8000;
  if (in.op != Op::Max && in.op != Op::Min)
    refuse();
  double x = floatingOf(in.type, in.flushes, operands[0]),
         y = floatingOf(in.type, in.flushes, operands[1]);
  double result = extremum(in, x, y);
  return in.type == Type::BF16 ? toBF16(result) : toF16(result);
}

//===- Integers -------------------------------------------------------------------------------===//

/// The upper half of a product of two 64-bit numbers or narrower ones.
uint64_t highHalf(const Instruction &in, uint64_t x, uint64_t y) {
  unsigned width = bitsOf(in.type);
  if (isSigned(in.type)) {
    __int128 product = static_cast<__int128>(signExtended(x, width)) * signExtended(y, width);
    return static_cast<uint64_t>(product >> width);
  }
  return static_cast<uint64_t>(static_cast<unsigned __int128>(x) * y >> width);
}

/// Quotient or remainder.
uint64_t divided(const Instruction &in, uint64_t x, uint64_t y) {
  if (!isSigned(in.type))
    return in.op == Op::Div ? x / y : x % y;
  __int128 a = signExtended(x, bitsOf(in.type)), b = signExtended(y, bitsOf(in.type));
  return static_cast<uint64_t>(in.op == Op::Div ? a / b : a % b);
}

uint64_t integerExtremum(const Instruction &in, uint64_t x, uint64_t y) {
  unsigned width = bitsOf(in.type);
  bool isLess = isSigned(in.type) ? signExtended(x, width) < signExtended(y, width) : x < y;
  return isLess == (in.op == Op::Min) ? x : y;
}

uint64_t shifted(const Instruction &in, uint64_t x, uint64_t by) {
  unsigned width = bitsOf(in.type);
  by &= 0xFFFFFFFF;
  if (in.op == Op::Shl)
    return by >= width ? 0 : x << by;
  if (isSigned(in.type))
    return static_cast<uint64_t>(signExtended(x, width) >> std::min<uint64_t>(by, width - 1));
  return by >= width ? 0 : x >> by;
}

/// 32 bits of two words side by side.
uint64_t funnel(const Instruction &in, uint64_t low, uint64_t high, uint64_t by) {
  uint64_t both = high << 32 | low;
  by &= 31; // wraps
  return in.op == Op::ShfLeft ? both << by >> 32 : both >> by;
}

/// Four of the eight bytes of two words.
uint64_t permuted(uint64_t low, uint64_t high, uint64_t selector) {
  uint64_t both = high << 32 | low, result = 0;
  for (int i = 0; i < 4; ++i) {
    uint64_t choice = selector >> (4 * i) & 15, byte = both >> (8 * (choice & 7)) & 255;
    if (choice & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}

/// Bits of a field: the sign is repeated where the type is signed.
uint64_t field(const Instruction &in, uint64_t x, uint64_t from, uint64_t count) {
  unsigned width = bitsOf(in.type);
  from &= 255;
  count &= 255;
  if (count == 0)
    return 0;
  if (from >= width)
    return isSigned(in.type) && signExtended(x, width) < 0 ? ~uint64_t{0} : 0;
  auto length = static_cast<unsigned>(std::min<uint64_t>(count, width - from));
  uint64_t value = x >> from & mask(length);
  return isSigned(in.type) ? static_cast<uint64_t>(signExtended(value, length)) : value;
}

uint64_t multiplied(const Instruction &in, uint64_t x, uint64_t y) {
  if (in.op != Op::MulWide)
    return x * y;
  unsigned width = bitsOf(in.type);
  if (isSigned(in.type))
    return static_cast<uint64_t>(signExtended(x, width) * signExtended(y, width));
  return x * y;
}

uint64_t integers(const Instruction &in, uint64_t x, uint64_t y, uint64_t z) {
  switch (in.op) {
  case Op::Abs: {
    int64_t value = signExtended(x, bitsOf(in.type));
    return value < 0 ? 0 - static_cast<uint64_t>(value) : x;
  }
  case Op::Add:
    return x + y;
  case Op::Sub:
    return x - y;
  case Op::Mul:
  case Op::MulWide:
    return multiplied(in, x, y);
  case Op::MulHi:
    return highHalf(in, x, y);
  case Op::Mad:
    return x * y + z;
  case Op::Div:
  case Op::Rem:
    return divided(in, x, y);
  case Op::Max:
  case Op::Min:
    return integerExtremum(in, x, y);
  case Op::Neg:
    return 0 - x;
  default:
    refuse();
  }
}

uint64_t bitwise(const Instruction &in, uint64_t x, uint64_t y, uint64_t z) {
  switch (in.op) {
  case Op::And:
    return x & y;
  case Op::Or:
    return x | y;
  case Op::Xor:
    return x ^ y;
  case Op::Not:
    return ~x;
  case Op::Shl:
  case Op::Shr:
    return shifted(in, x, y);
  case Op::ShfLeft:
  case Op::ShfRight:
    return funnel(in, x, y, z);
  case Op::Prmt:
    return permuted(x, y, z);
  case Op::Bfe:
    return field(in, x, y, z);
  case Op::Popc:
    return static_cast<uint64_t>(std::popcount(x));
  case Op::Clz:
    return static_cast<uint64_t>(std::countl_zero(x)) - (64 - bitsOf(in.type));
  case Op::Selp:
    return z & 1 ? x : y;
  case Op::Mov:
    return x;
  default:
    refuse();
  }
}

//===- Comparisons ----------------------------------------------------------------------------===//

template <typename Number> bool holds(Compare compare, Number x, Number y) {
  switch (compare) {
  case Compare::Eq:
  case Compare::Equ:
    return x == y;
  case Compare::Ne:
  case Compare::Neu:
    return x != y;
  case Compare::Lt:
  case Compare::Ltu:
    return x < y;
  case Compare::Le:
  case Compare::Leu:
    return x <= y;
  case Compare::Gt:
  case Compare::Gtu:
    return x > y;
  case Compare::Ge:
  case Compare::Geu:
    return x >= y;
  case Compare::Num:
  case Compare::Nan:
    break;
  }
  return compare == Compare::Num;
}

bool holdsOfFloats(Compare compare, double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return compare >= Compare::Equ && compare != Compare::Num;
  return holds(compare, x, y);
}

uint64_t compared(const Instruction &in, uint64_t x, uint64_t y) {
  if (in.type == Type::F32) {
    float a = asFloat(x), b = asFloat(y);
    return in.flushes ? holdsOfFloats(in.compare, flushed(a), flushed(b))
                      : holdsOfFloats(in.compare, a, b);
  }
  if (in.type == Type::F64)
    return holdsOfFloats(in.compare, asDouble(x), asDouble(y));
  if (in.type == Type::F16 || in.type == Type::BF16)
    return holdsOfFloats(in.compare, floatingOf(in.type, in.flushes, x),
                         floatingOf(in.type, in.flushes, y));
  if (isFloating(in.type) || in.compare >= Compare::Num)
    refuse();
  unsigned width = bitsOf(in.type);
  if (isSigned(in.type))
    return holds(in.compare, signExtended(x, width), signExtended(y, width));
  // Unsigned comparisons are also called lo, ls, hi and hs.
  return holds(in.compare, x, y);
}

//===- Conversions ----------------------------------------------------------------------------===//

/// An integral value, rounded from a float.
double rounded(Rounding rounding, double x) {
  switch (rounding) {
  case Rounding::Nearest:
    return std::nearbyint(x);
  case Rounding::Zero:
    return std::trunc(x);
  case Rounding::Down:
    return std::floor(x);
  case Rounding::Up:
    return std::ceil(x);
  case Rounding::None:
    break;
  }
  refuse();
}

/// To an integer, limited to what it can be. NaN is zero, or, where either is of 64 bits, the
/// integer whose highest bit alone is set.
uint64_t toInteger(const Instruction &in, double x) {
  unsigned width = bitsOf(in.type);
  double whole = rounded(in.rounding, x);
  if (std::isnan(whole))
    return width == 64 || in.sourceType == Type::F64 ? uint64_t{1} << (width - 1) : 0;
  if (isSigned(in.type)) {
    double end = std::ldexp(1, static_cast<int>(width) - 1);
    if (whole >= end)
      return mask(width - 1);
    return whole < -end ? uint64_t{1} << (width - 1)
                        : static_cast<uint64_t>(static_cast<int64_t>(whole));
  }
  if (whole < 0)
    return 0;
  return whole >= std::ldexp(1, static_cast<int>(width)) ? mask(width)
                                                         : static_cast<uint64_t>(whole);
}

uint64_t toFloating(const Instruction &in, double x) {
  switch (in.type) {
  case Type::F32: {
    auto y = static_cast<float>(x);
    return bits(canonical(in.flushes ? flushed(y) : y));
  }
  case Type::F64:
    return bits(canonical(x));
  case Type::BF16:
    return toBF16(x);
  case Type::F16:
    return toF16(x);
  default:
    refuse();
  }
}

/// What a conversion reads: .ftz is of f32, on either side; subnormals of f16 are kept.
double sourceOf(const Instruction &in, uint64_t x) {
  return floatingOf(in.sourceType, in.flushes && in.sourceType == Type::F32, x);
}

/// Integers to floats, in one rounding.
uint64_t fromInteger(const Instruction &in, uint64_t x) {
  unsigned width = bitsOf(in.sourceType);
  bool isNegative = isSigned(in.sourceType) && signExtended(x, width) < 0;
  if (in.type == Type::F64)
    return bits(isNegative ? static_cast<double>(signExtended(x, width)) : static_cast<double>(x));
  if (in.type == Type::F32)
    return bits(isNegative ? static_cast<float>(signExtended(x, width)) : static_cast<float>(x));
  if (width > 32) // of which a double has all
    refuse();
  return toFloating(in, isNegative ? static_cast<double>(signExtended(x, width))
                                   : static_cast<double>(x));
}

uint64_t converted(const Instruction &in, const uint64_t *operands) {
  uint64_t x = operands[0] & mask(bitsOf(in.sourceType));
  if (in.type == Type::BF16X2 || in.type == Type::F16X2) { // the first operand is the upper half
    auto half = [&](uint64_t y) {
      double value = sourceOf(in, y);
      return in.type == Type::BF16X2 ? toBF16(value) : toF16(value);
    };
    return half(operands[0]) << 16 | half(operands[1]);
  }
  bool fromFloat = isFloating(in.sourceType), toFloat = isFloating(in.type);
  if (!fromFloat && !toFloat)
    return isSigned(in.sourceType) ? static_cast<uint64_t>(signExtended(x, bitsOf(in.sourceType)))
                                   : x;
  if (!fromFloat)
    return fromInteger(in, x);
  double value = sourceOf(in, x);
  if (!toFloat)
    return toInteger(in, value);
  bool isWhole = in.type == in.sourceType && in.rounding != Rounding::None;
  return toFloating(in, isWhole ? rounded(in.rounding, value) : value);
}

uint64_t result(const Instruction &in, const uint64_t *operands) {
  switch (in.op) {
  case Op::Cvt:
    return converted(in, operands);
  case Op::Setp:
    return compared(in, operands[0], operands[1]);
  case Op::And:
  case Op::Or:
  case Op::Xor:
  case Op::Not:
  case Op::Shl:
  case Op::Shr:
  case Op::ShfLeft:
  case Op::ShfRight:
  case Op::Prmt:
  case Op::Bfe:
  case Op::Popc:
  case Op::Clz:
  case Op::Selp:
  case Op::Mov:
    return bitwise(in, operands[0], operands[1], operands[2]);
  default:
    break;
  }
  switch (in.type) {
  case Type::F32:
    return arithmeticOfF32(in, operands);
  case Type::F64:
    return arithmeticOfF64(in, operands);
  case Type::BF16:
  case Type::F16:
    return arithmeticOfF16(in, operands);
  default:
    return integers(in, operands[0], operands[1], operands[2]);
  }
}

} // namespace

bool dividesByZero(const Instruction &in, const uint64_t *given) {
  bool divides = in.op == Op::Div || in.op == Op::Rem;
  return divides && !isFloating(in.type) && (given[1] & mask(bitsOf(in.type))) == 0;
}

uint64_t evaluate(const Instruction &in, const uint64_t *given) {
  uint64_t operands[3];
  for (int i = 0; i < 3; ++i)
    operands[i] = in.op == Op::Cvt ? given[i] : given[i] & mask(bitsOf(in.type));
  if (in.op == Op::Shl || in.op == Op::Shr)
    operands[1] = given[1]; // of 32 bits whatever is shifted
  uint64_t value = result(in, operands);
  if (in.op == Op::Setp)
    return value & 1;
  unsigned width = in.op == Op::MulWide ? 2 * bitsOf(in.type) : bitsOf(in.type);
  // A wider register repeats the sign of what is converted to a narrower type.
  if (in.op == Op::Cvt && isSigned(in.type))
    return static_cast<uint64_t>(signExtended(value, width));
  return value & mask(width);
}

} // namespace dlc::ptx
