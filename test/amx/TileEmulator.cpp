// AMX for processors without it: preloaded into a program, it computes each tile instruction when
// the processor traps on it (Intel SDM volume 2, chapter 3 "AMX"), and lets the kernel and oneDNN
// report AMX. oneDNN's `cpuid` is replaced by ud2 and its `xgetbv` by ud0 beforehand
// (test/e2e/amx.py), so that they trap, too. Numbers are right up to the order of sums, times mean
// nothing.

#include <algorithm>
#include <bit>
#include <cpuid.h>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <immintrin.h>

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

/// Memory that LDTILECFG loads.
struct TileConfig {
  uint8_t palette, startRow, reserved[14];
  uint16_t rowBytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64);

struct Tiles {
  TileConfig config;
  alignas(64) uint8_t data[8][16][64];
};

// Handlers may not allocate: initial-exec memory is there when a thread starts.
__attribute__((tls_model("initial-exec"))) thread_local Tiles tiles;
unsigned long products;

constexpr int registers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};

/// A VEX-coded instruction of map 0F38.
struct Instruction {
  uint8_t opcode, prefix; // 0: none, 1: 66, 2: F3, 3: F2
  bool inMemory;
  int first, second, third; // tiles
  uint8_t *address;
  int64_t stride; // bytes from row to row
  int64_t length;
};

template <typename T> T loadFrom(const uint8_t *memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

Instruction decode(const uint8_t *code, const greg_t *values) {
  uint8_t modrm = code[4];
  int mode = modrm >> 6, base = modrm & 7, highBase = code[1] & 0x20 ? 0 : 8;
  Instruction found{code[3],   static_cast<uint8_t>(code[2] & 3),
                    mode != 3, modrm >> 3 & 7,
                    base,      ~code[2] >> 3 & 7,
                    nullptr,   0,
                    5};
  if (mode == 3)
    return found;
  int64_t address = 0;
  bool relative = mode == 0 && base == 5;
  if (base == 4) {
    uint8_t sib = code[5];
    ++found.length;
    base = sib & 7;
    int index = (sib >> 3 & 7) + (code[1] & 0x40 ? 0 : 8);
    if (index != 4)
      found.stride = values[registers[index]] << (sib >> 6);
  }
  bool baseless = mode == 0 && base == 5;
  if (!baseless)
    address = values[registers[base + highBase]];
  if (mode == 1)
    address += static_cast<int8_t>(code[found.length++]);
  if (mode == 2 || baseless) {
    address += loadFrom<int32_t>(code + found.length);
    found.length += 4;
  }
  if (relative)
    address += reinterpret_cast<int64_t>(code) + found.length;
  found.address = std::bit_cast<uint8_t *>(address);
  return found;
}

/// TDPBF16PS.
bool multiply(const Instruction &op) {
  const TileConfig &config = tiles.config;
  int rows = config.rows[op.first], columns = config.rowBytes[op.first] / 4;
  int depth = config.rowBytes[op.second] / 4;
  if (rows == 0 || config.rows[op.second] != rows || config.rows[op.third] != depth ||
      config.rowBytes[op.third] / 4 != columns)
    return false;
  auto valid = static_cast<__mmask16>((1U << columns) - 1);
  for (int row = 0; row < rows; ++row) {
    __m512 sums = _mm512_load_ps(tiles.data[op.first][row]);
    for (int k = 0; k < depth; ++k) {
      auto pair = loadFrom<int32_t>(&tiles.data[op.second][row][4 * k]);
      sums = _mm512_dpbf16_ps(sums, (__m512bh)_mm512_set1_epi32(pair),
                              (__m512bh)_mm512_load_si512(tiles.data[op.third][k]));
    }
    _mm512_store_ps(tiles.data[op.first][row], _mm512_maskz_mov_ps(valid, sums));
  }
  std::memset(tiles.data[op.first][rows], 0, static_cast<size_t>(16 - rows) * 64);
  __atomic_fetch_add(&products, 1, __ATOMIC_RELAXED);
  return true;
}

/// TILELOADD, TILELOADDT1, TILESTORED.
bool move(const Instruction &op) {
  int rows = tiles.config.rows[op.first];
  size_t bytes = tiles.config.rowBytes[op.first];
  bool store = op.prefix == 2;
  if (rows == 0 || !op.inMemory)
    return false;
  if (!store)
    std::memset(tiles.data[op.first], 0, sizeof tiles.data[0]);
  for (int row = 0; row < rows; ++row) {
    uint8_t *memory = op.address + row * op.stride, *tile = tiles.data[op.first][row];
    std::memcpy(store ? memory : tile, store ? tile : memory, bytes);
  }
  return true;
}

/// LDTILECFG, STTILECFG, TILERELEASE, TILEZERO.
bool configure(Instruction op) {
  op.address += op.stride; // an index here, which is added once
  if (op.inMemory && op.prefix == 1) {
    std::memcpy(op.address, &tiles.config, sizeof tiles.config);
  } else if (!op.inMemory && op.prefix == 3) {
    std::memset(tiles.data[op.first], 0, sizeof tiles.data[0]);
  } else if (op.prefix == 0) {
    std::memset(&tiles, 0, sizeof tiles);
    if (op.inMemory)
      std::memcpy(&tiles.config, op.address, sizeof tiles.config);
  } else {
    return false;
  }
  return true;
}

bool execute(const Instruction &op) {
  switch (op.opcode) {
  case 0x49:
    return configure(op);
  case 0x4b:
    return move(op);
  case 0x5c:
    return op.prefix == 2 && !op.inMemory && multiply(op);
  default:
    return false;
  }
}

constexpr unsigned tileBits = 3U << 17;

void reportFeatures(greg_t *values) {
  auto leaf = static_cast<unsigned>(values[REG_RAX]);
  auto part = static_cast<unsigned>(values[REG_RCX]);
  unsigned a, b, c, d;
  __cpuid_count(leaf, part, a, b, c, d);
  if (leaf == 0)
    a = std::max(a, 0x1eU);
  if (leaf == 7 && part == 0)
    d |= 1U << 22 | 1U << 24 | 1U << 25;
  if (leaf == 0x1d) {
    a = part == 0 ? 1 : 8192 | 1024 << 16;
    b = part == 0 ? 0 : 64 | 8 << 16;
    c = part == 0 ? 0 : 16;
    d = 0;
  }
  if (leaf == 0x1e) {
    a = c = d = 0;
    b = 16 | 64 << 8;
  }
  values[REG_RAX] = a;
  values[REG_RBX] = b;
  values[REG_RCX] = c;
  values[REG_RDX] = d;
}

[[noreturn]] void giveUp(const uint8_t *code) {
  char text[128];
  int length = std::snprintf(text, sizeof text, "tile emulator: cannot execute");
  for (int i = 0; i < 12; ++i)
    length += std::snprintf(text + length, sizeof text - length, " %02x", code[i]);
  text[length++] = '\n';
  (void)!write(STDERR_FILENO, text, length);
  std::abort();
}

void onTrap(int, siginfo_t *, void *context) {
  greg_t *values = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  const auto *code = std::bit_cast<const uint8_t *>(values[REG_RIP]);
  if (code[0] == 0x0f && code[1] == 0x0b) {
    reportFeatures(values);
    values[REG_RIP] += 2;
  } else if (code[0] == 0x0f && code[1] == 0xff) {
    unsigned a, d;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    values[REG_RAX] = a | tileBits;
    values[REG_RDX] = d;
    values[REG_RIP] += 3;
  } else {
    if (code[0] != 0xc4 || (code[1] & 0x1f) != 2)
      giveUp(code);
    Instruction op = decode(code, values);
    if (!execute(op))
      giveUp(code);
    values[REG_RIP] += op.length;
  }
}

template <typename Function> Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

__attribute__((constructor)) void install() {
  struct sigaction action{};
  action.sa_sigaction = onTrap;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, nullptr);
}

/// Tests ask how many products were computed here.
__attribute__((destructor)) void report() {
  const char *path = std::getenv("DLC_TILE_PRODUCTS");
  if (!path || products == 0)
    return;
  if (FILE *file = std::fopen(path, "a")) {
    std::fprintf(file, "%lu\n", products);
    std::fclose(file);
  }
}

} // namespace

extern "C" {

/// LLVM installs a handler of its own.
int sigaction(int number, const struct sigaction *action, struct sigaction *old) noexcept {
  if (number == SIGILL && action && action->sa_sigaction != onTrap) {
    if (old)
      *old = {};
    return 0;
  }
  return next<int(int, const struct sigaction *, struct sigaction *)>("sigaction")(number, action,
                                                                                   old);
}

/// arch_prctl(2): permission to use tiles is asked for and given.
long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long &argument : a)
    argument = va_arg(list, long);
  va_end(list);
  constexpr long supported = 0x1021, granted = 0x1022, request = 0x1023;
  if (number == SYS_arch_prctl && (a[0] == supported || a[0] == granted)) {
    *std::bit_cast<uint64_t *>(a[1]) = tileBits | 0xff;
    return 0;
  }
  if (number == SYS_arch_prctl && a[0] == request)
    return 0;
  return next<long(long, long, long, long, long, long, long)>("syscall")(number, a[0], a[1], a[2],
                                                                         a[3], a[4], a[5]);
}

/// /proc/cpuinfo, with AMX among the flags.
FILE *fopen64(const char *path, const char *mode) {
  auto *open = next<FILE *(const char *, const char *)>("fopen64");
  FILE *file = open(path, mode);
  if (!file || std::strcmp(path, "/proc/cpuinfo") != 0)
    return file;
  FILE *copy = std::tmpfile();
  char line[16384];
  while (copy && std::fgets(line, sizeof line, file)) {
    bool flags = std::strncmp(line, "flags", 5) == 0;
    if (char *end = std::strchr(line, '\n'); flags && end)
      std::strcpy(end, " amx_bf16 amx_tile amx_int8\n");
    std::fputs(line, copy);
  }
  if (!copy)
    return file;
  std::fclose(file);
  std::fseek(copy, 0, SEEK_SET);
  return copy;
}
}
