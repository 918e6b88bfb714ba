// PTX as data: what the parser makes of a text and the machine executes.
//
// The subset is what LLVM's back end writes for this project's kernels: one-dimensional blocks, no
// calls, no local memory, no atomics, no exchange within a warp. Anything else is refused when it
// is read. Source: NVIDIA's PTX ISA manual.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace dlc::ptx {

/// Why a text is refused.
struct ParseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Op : uint8_t {
  // Of values.
  Abs,
  Add,
  And,
  Bfe,
  Clz,
  CopySign,
  Cvt,
  Div,
  Fma,
  Mad,
  Max,
  Min,
  Mov,
  Mul,
  MulHi,
  MulWide,
  Neg,
  Not,
  Or,
  Popc,
  Prmt,
  Rcp,
  Rem,
  Selp,
  Setp,
  ShfLeft,
  ShfRight,
  Shl,
  Shr,
  Sqrt,
  Sub,
  Xor,
  // Of memory and control.
  Bar,
  Bra,
  Ld,
  Ret,
  St
};

enum class Type : uint8_t {
  Pred,
  B8,
  B16,
  B32,
  B64,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  BF16,
  BF16X2,
  F16X2,
  F32,
  F64
};
unsigned bitsOf(Type type);

enum class Compare : uint8_t {
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge, // of numbers: false where one is NaN, but ne
  Equ,
  Neu,
  Ltu,
  Leu,
  Gtu,
  Geu, // true where one is NaN
  Num,
  Nan
};
/// Of conversions: to nearest even, to zero, down, up; those to integers alike.
enum class Rounding : uint8_t { None, Nearest, Zero, Down, Up };
enum class Space : uint8_t { Param, Global, Shared };
enum class Special : uint8_t { Tid, Ntid, Ctaid, Nctaid };

/// The result that is not kept.
constexpr uint32_t nowhere = ~uint32_t{0};

/// A register, a constant, or what a thread is.
struct Operand {
  enum class Kind : uint8_t { Register, Constant, Special };
  Kind kind = Kind::Constant;
  Special special = Special::Tid;
  uint32_t reg = 0;   // number in the entry
  uint64_t value = 0; // of a constant
};

struct Instruction {
  Op op = Op::Ret;
  Type type = Type::B32;       // of the result
  Type sourceType = Type::B32; // of a conversion's operand
  Compare compare = Compare::Eq;
  Rounding rounding = Rounding::None;
  Space space = Space::Global;
  bool flushes = false;   // subnormal operands and results of f32, or f16, are zero
  bool keepsNaN = false;  // of a minimum or maximum
  bool isGuarded = false; // runs where a predicate is true, or false
  bool guardValue = true;
  uint32_t guard = 0;
  bool isNonCoherent = false; // a load that relies on nobody writing
  uint32_t line = 0;
  uint32_t target = 0;           // of a branch
  int64_t offset = 0;            // of an access, in bytes
  std::vector<uint32_t> results; // registers, or `nowhere`; of a load or an unpacking several
  std::vector<Operand> operands; // of an access: the address, then what is stored
};

struct Parameter {
  std::string name;
  unsigned bytes = 8;
  bool isAddress = false; // of global memory
};

struct Entry {
  std::string name;
  std::vector<Parameter> parameters; // each at the next multiple of 8 bytes
  std::vector<Type> registers;
  std::vector<Instruction> code;
  uint32_t sharedBytes = 0;
  uint32_t threads = 0;       // of a block, as the text demands; 0: any
  uint32_t mostRegisters = 0; // of a thread, as the text limits them; 0: not limited
};

/// An initialised array in global memory.
struct Table {
  std::string name;
  uint64_t address = 0;
  std::vector<uint8_t> bytes;
};

struct Module {
  std::map<std::string, Entry> entries;
  std::vector<Table> tables;
};

/// Reads a text. At the first thing that is not in the subset, `reason` says what, and on which
/// line.
Module parse(const std::string &text, std::string &reason);

/// Where tables lie, one after the other, and where an entry's shared memory begins.
constexpr uint64_t tablesBegin = uint64_t{1} << 40, sharedBegin = 1024;

} // namespace dlc::ptx
