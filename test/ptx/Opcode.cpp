#include "test/ptx/Opcode.h"

#include <algorithm>

namespace dlc::ptx {
namespace {

const std::map<std::string, Type> types = {
    {"pred", Type::Pred},   {"b8", Type::B8},   {"b16", Type::B16},   {"b32", Type::B32},
    {"b64", Type::B64},     {"u8", Type::U8},   {"u16", Type::U16},   {"u32", Type::U32},
    {"u64", Type::U64},     {"s8", Type::S8},   {"s16", Type::S16},   {"s32", Type::S32},
    {"s64", Type::S64},     {"f16", Type::F16}, {"bf16", Type::BF16}, {"bf16x2", Type::BF16X2},
    {"f16x2", Type::F16X2}, {"f32", Type::F32}, {"f64", Type::F64}};

const std::map<std::string, Op> ops = {
    {"abs", Op::Abs},   {"add", Op::Add},           {"and", Op::And},   {"bar", Op::Bar},
    {"bfe", Op::Bfe},   {"copysign", Op::CopySign}, {"bra", Op::Bra},   {"clz", Op::Clz},
    {"cvt", Op::Cvt},   {"div", Op::Div},           {"fma", Op::Fma},   {"ld", Op::Ld},
    {"mad", Op::Mad},   {"max", Op::Max},           {"min", Op::Min},   {"mov", Op::Mov},
    {"mul", Op::Mul},   {"neg", Op::Neg},           {"not", Op::Not},   {"or", Op::Or},
    {"popc", Op::Popc}, {"prmt", Op::Prmt},         {"rcp", Op::Rcp},   {"rem", Op::Rem},
    {"ret", Op::Ret},   {"selp", Op::Selp},         {"setp", Op::Setp}, {"shl", Op::Shl},
    {"shr", Op::Shr},   {"sqrt", Op::Sqrt},         {"st", Op::St},     {"sub", Op::Sub},
    {"xor", Op::Xor}};

const std::map<std::string, Compare> comparisons = {
    {"eq", Compare::Eq},   {"ne", Compare::Ne},   {"lt", Compare::Lt},   {"le", Compare::Le},
    {"gt", Compare::Gt},   {"ge", Compare::Ge},   {"lo", Compare::Lt},   {"ls", Compare::Le},
    {"hi", Compare::Gt},   {"hs", Compare::Ge},   {"equ", Compare::Equ}, {"neu", Compare::Neu},
    {"ltu", Compare::Ltu}, {"leu", Compare::Leu}, {"gtu", Compare::Gtu}, {"geu", Compare::Geu},
    {"num", Compare::Num}, {"nan", Compare::Nan}};

const std::map<std::string, Rounding> roundings = {{"rn", Rounding::Nearest},
                                                   {"rni", Rounding::Nearest},
                                                   {"rzi", Rounding::Zero},
                                                   {"rmi", Rounding::Down},
                                                   {"rpi", Rounding::Up}};

const std::map<std::string, Space> spaces = {
    {"param", Space::Param}, {"global", Space::Global}, {"shared", Space::Shared}};

template <typename Value>
bool look(const std::map<std::string, Value> &known, const std::string &word, Value &value) {
  auto found = known.find(word);
  if (found == known.end())
    return false;
  value = found->second;
  return true;
}

std::vector<std::string> partsOf(const std::string &opcode) {
  std::vector<std::string> parts(1);
  for (char c : opcode)
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// A modifier that does not change what the subset computes, or that chooses an instruction.
bool isKnown(const std::string &word, Instruction &in) {
  if (word == "lo" && (in.op == Op::Mul || in.op == Op::Mad))
    return true;
  if (word == "hi" && in.op == Op::Mul) {
    in.op = Op::MulHi;
    return true;
  }
  if (word == "wide" && in.op == Op::Mul) {
    in.op = Op::MulWide;
    return true;
  }
  if (word == "NaN" && (in.op == Op::Max || in.op == Op::Min)) {
    in.keepsNaN = true;
    return true;
  }
  if (word == "nc" && in.op == Op::Ld) {
    in.isNonCoherent = true;
    return true;
  }
  if (word == "ftz") {
    in.flushes = true;
    return true;
  }
  bool isAccess = in.op == Op::Ld || in.op == Op::St;
  return (isAccess && (word == "v2" || word == "v4")) || (in.op == Op::Bra && word == "uni") ||
         (in.op == Op::Bar && word == "sync");
}

bool readModifier(const std::string &word, Instruction &in) {
  if (in.op == Op::Setp && look(comparisons, word, in.compare))
    return true;
  bool isAccess = in.op == Op::Ld || in.op == Op::St;
  return (isAccess && look(spaces, word, in.space)) || isKnown(word, in) ||
         look(roundings, word, in.rounding);
}

/// What rounds must say how: the assembler contracts what does not.
std::string missing(const Instruction &in) {
  bool rounds = in.op == Op::Add || in.op == Op::Sub || in.op == Op::Mul || in.op == Op::Fma ||
                in.op == Op::Div || in.op == Op::Rcp || in.op == Op::Sqrt;
  if (rounds && in.type >= Type::F16 && in.rounding != Rounding::Nearest)
    return "does not say how it rounds";
  return "";
}

} // namespace

unsigned bitsOf(Type type) {
  constexpr unsigned bits[] = {1,  8,  16, 32, 64, 8,  16, 32, 64, 8,
                               16, 32, 64, 16, 16, 32, 32, 32, 64};
  return bits[static_cast<size_t>(type)];
}

std::optional<Type> typeNamed(const std::string &name) {
  Type type{};
  if (!name.starts_with(".") || !look(types, name.substr(1), type))
    return std::nullopt;
  return type;
}

std::string decodeOpcode(const std::string &opcode, Instruction &in) {
  const std::string refused = "'" + opcode + "' ";
  std::vector<std::string> parts = partsOf(opcode);
  if (opcode == "shf.l.wrap.b32" || opcode == "shf.r.wrap.b32") {
    in.op = parts[1] == "l" ? Op::ShfLeft : Op::ShfRight;
    return "";
  }
  if (!look(ops, parts[0], in.op))
    return refused + "is not executed here";
  size_t end = parts.size(), named = in.op == Op::Cvt ? 2 : 1;
  if (in.op == Op::Bar || in.op == Op::Bra || in.op == Op::Ret)
    named = 0;
  if (end < 1 + named)
    return refused + "has no type";
  Type *results[] = {&in.type, &in.sourceType};
  for (size_t i = 0; i < named; ++i)
    if (!look(types, parts[end - named + i], *results[i]))
      return refused + "has an unknown type";
  for (size_t i = 1; i < end - named; ++i)
    if (!readModifier(parts[i], in))
      return refused + "has the unknown modifier '" + parts[i] + "'";
  std::string reason = missing(in);
  return reason.empty() ? "" : refused + reason;
}

} // namespace dlc::ptx
