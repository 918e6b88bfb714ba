#include "test/ptx/Block.h"

#include "test/ptx/Evaluate.h"

#include <algorithm>
#include <set>

namespace dlc::ptx {
namespace {

constexpr uint32_t warpSize = 32, sectorBytes = 32, vectorBytes = 16, bankBytes = 4, banks = 32;
// Far more than a thread of this project's kernels executes.
constexpr uint64_t mostInstructions = uint64_t{1} << 26;
constexpr uint32_t several = ~uint32_t{0};

uint64_t mask(unsigned bits) { return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

const char *accessName(const Instruction &in) { return in.op == Op::Ld ? "load" : "store"; }

} // namespace

Block::Block(const Entry &entry, const Launch &launch, uint32_t number, const Tables &tables,
             Memory &memory, Counts &counts)
    : entry(entry), launch(launch), number(number), tables(tables), memory(memory), counts(counts),
      registers(launch.threads * entry.registers.size()), isWritten(registers.size()),
      threads(launch.threads), shared(entry.sharedBytes), sharedBytes(entry.sharedBytes) {
  for (size_t first = 0; Thread &thread : threads) {
    thread.registers = &registers[first];
    thread.isWritten = &isWritten[first];
    first += entry.registers.size();
    thread.visits.resize(memory.isChecked() ? entry.code.size() : 0);
  }
}

std::string Block::at(uint32_t thread, const Instruction &in, const std::string &what) const {
  return entry.name + ", line " + std::to_string(in.line) + ", block " + std::to_string(number) +
         ", thread " + std::to_string(thread) + ": " + what;
}

//===- Control --------------------------------------------------------------------------------===//

std::optional<std::string> Block::run() {
  for (bool isDone = false; !isDone;) {
    for (uint32_t thread = 0; thread < threads.size(); ++thread)
      if (auto fault = runToBarrier(thread))
        return fault;
    if (auto fault = meet())
      return fault;
    settleCounts();
    isDone = threads.front().isDone;
  }
  counts.blockBytes += unionOf(touched);
  counts.blockSectors += unionOf(touched, sectorBytes) / sectorBytes;
  return std::nullopt;
}

/// All threads are at the same barrier, or at the end.
std::optional<std::string> Block::meet() {
  const Thread &first = threads.front();
  for (uint32_t i = 1; i < threads.size(); ++i)
    if (threads[i].isDone != first.isDone || (!first.isDone && threads[i].next != first.next)) {
      uint32_t waiting = first.isDone ? i : 0;
      return at(waiting, entry.code[threads[waiting].next - 1],
                "waits at a barrier that not all threads reach");
    }
  ++epoch;
  counts.barriers += !first.isDone;
  return std::nullopt;
}

std::optional<std::string> Block::runToBarrier(uint32_t number) {
  Thread &thread = threads[number];
  for (uint64_t steps = 0; !thread.isDone; ++steps) {
    const Instruction &in = entry.code[thread.next++];
    if (steps > mostInstructions)
      return at(number, in, "does not end");
    ++counts.instructions;
    if (in.isGuarded && !thread.isWritten[in.guard])
      return at(number, in, "depends on a register that was never written");
    if (in.isGuarded && (thread.registers[in.guard] != 0) != in.guardValue)
      continue;
    if (in.op == Op::Bar)
      return std::nullopt;
    if (auto fault = execute(thread, number, in))
      return fault;
  }
  return std::nullopt;
}

std::optional<std::string> Block::execute(Thread &thread, uint32_t number, const Instruction &in) {
  switch (in.op) {
  case Op::Bra:
    thread.next = in.target;
    return std::nullopt;
  case Op::Ret:
    thread.isDone = true;
    return std::nullopt;
  case Op::Ld:
  case Op::St:
    return access(thread, number, in);
  case Op::Mov:
    return move(thread, number, in);
  default:
    return evaluateInto(thread, number, in);
  }
}

//===- Values ---------------------------------------------------------------------------------===//

/// False for a register that was never written.
bool Block::valueOf(const Thread &thread, uint32_t number, const Operand &operand,
                    uint64_t &value) const {
  switch (operand.kind) {
  case Operand::Kind::Constant:
    value = operand.value;
    return true;
  case Operand::Kind::Register:
    value = thread.registers[operand.reg];
    return thread.isWritten[operand.reg];
  case Operand::Kind::Special:
    break;
  }
  const uint32_t values[] = {number, launch.threads, this->number, launch.blocks};
  value = values[static_cast<size_t>(operand.special)];
  return true;
}

void Block::set(Thread &thread, uint32_t reg, uint64_t value) const {
  if (reg == nowhere)
    return;
  thread.registers[reg] = value & mask(bitsOf(entry.registers[reg]));
  thread.isWritten[reg] = true;
}

std::optional<std::string> Block::evaluateInto(Thread &thread, uint32_t number,
                                               const Instruction &in) {
  uint64_t values[3] = {};
  for (size_t i = 0; i < in.operands.size(); ++i)
    if (!valueOf(thread, number, in.operands[i], values[i]))
      return at(number, in, "reads a register that was never written");
  if (dividesByZero(in, values))
    return at(number, in, "divides by zero, which has no result");
  set(thread, in.results.front(), evaluate(in, values));
  return std::nullopt;
}

/// Packs operands, the first one lowest, and unpacks results.
std::optional<std::string> Block::move(Thread &thread, uint32_t number, const Instruction &in) {
  unsigned width = bitsOf(in.type), from = width / static_cast<unsigned>(in.operands.size()),
           to = width / static_cast<unsigned>(in.results.size());
  uint64_t whole = 0;
  for (size_t i = 0; i < in.operands.size(); ++i) {
    uint64_t part = 0;
    if (!valueOf(thread, number, in.operands[i], part))
      return at(number, in, "reads a register that was never written");
    whole |= (part & mask(from)) << (from * i);
  }
  for (size_t i = 0; i < in.results.size(); ++i)
    set(thread, in.results[i], whole >> (to * i) & mask(to));
  return std::nullopt;
}

//===- Memory ---------------------------------------------------------------------------------===//

std::optional<std::string> Block::access(Thread &thread, uint32_t number, const Instruction &in) {
  uint64_t address = 0;
  if (!valueOf(thread, number, in.operands.front(), address))
    return at(number, in, "reads a register that was never written");
  address += static_cast<uint64_t>(in.offset);
  size_t count = in.op == Op::Ld ? in.results.size() : in.operands.size() - 1;
  uint32_t bytes = bitsOf(in.type) / 8, all = bytes * static_cast<uint32_t>(count);
  if (address % all != 0)
    return at(number, in,
              std::string("a ") + accessName(in) + " of " + std::to_string(all) +
                  " bytes is not aligned");
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = 0;
    if (in.op == Op::St && !valueOf(thread, number, in.operands[i + 1], value))
      return at(number, in, "stores a register that was never written");
    if (std::string fault = transfer(in, address + i * bytes, bytes, number, value); !fault.empty())
      return at(number, in, std::string("a ") + accessName(in) + " " + fault);
    if (in.op == Op::Ld) {
      bool repeatsSign = in.type >= Type::S8 && in.type <= Type::S64;
      unsigned unused = 64 - bitsOf(in.type);
      set(thread, in.results[i],
          repeatsSign ? static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused)
                      : value);
    }
  }
  if (memory.isChecked() && in.space != Space::Param)
    this->count(thread, number, in, address, all);
  return std::nullopt;
}

std::string Block::transfer(const Instruction &in, uint64_t address, uint32_t bytes,
                            uint32_t number, uint64_t &value) {
  if (in.space == Space::Param)
    return loadParameter(address, bytes, value);
  if (in.space == Space::Shared)
    return transferShared(in, address, bytes, number, value);
  Actor actor{this->number, number, epoch};
  if (in.op == Op::St)
    return memory.store(address, bytes, actor, value);
  if (!tables.empty() && address >= tables.begin()->first &&
      address < tables.rbegin()->first + tables.rbegin()->second->bytes.size())
    return loadTable(address, bytes, value);
  if (in.isNonCoherent)
    return "relies on memory that the kernel does not write, which is proven of tables alone";
  return memory.load(address, bytes, actor, value);
}

std::string Block::loadTable(uint64_t address, uint32_t bytes, uint64_t &value) const {
  auto [begin, table] = *std::prev(tables.upper_bound(address));
  if (address - begin + bytes > table->bytes.size())
    return "is out of bounds of " + table->name;
  value = 0;
  for (uint32_t i = 0; i < bytes; ++i)
    value |= uint64_t{table->bytes[address - begin + i]} << (8 * i);
  return "";
}

std::string Block::loadParameter(uint64_t address, uint32_t bytes, uint64_t &value) const {
  if (address % 8 != 0 || address / 8 >= launch.arguments.size() || bytes != 8)
    return "is no parameter";
  value = launch.arguments[address / 8];
  return "";
}

std::string Block::transferShared(const Instruction &in, uint64_t address, uint32_t bytes,
                                  uint32_t number, uint64_t &value) {
  address -= sharedBegin;
  if (address >= shared.size() || bytes > shared.size() - address)
    return "is out of bounds of shared memory, which has " + std::to_string(shared.size()) +
           " bytes: from " + std::to_string(static_cast<int64_t>(address)) + " on";
  for (uint32_t i = 0; i < bytes; ++i) {
    SharedByte &byte = sharedBytes[address + i];
    bool isWritten = byte.isWritten && byte.writerEpoch == epoch && byte.writer != number;
    if (in.op == Op::Ld) {
      if (!byte.isWritten)
        return "reads shared memory that was never written";
      if (isWritten)
        return "reads shared memory that another thread writes meanwhile";
      bool isFirst = byte.reader == 0 || byte.readerEpoch != epoch;
      byte.reader = isFirst || byte.reader == number + 1 ? number + 1 : several;
      byte.readerEpoch = epoch;
      value |= uint64_t{shared[address + i]} << (8 * i);
      continue;
    }
    if (isWritten || (byte.reader != 0 && byte.readerEpoch == epoch && byte.reader != number + 1))
      return "writes shared memory that another thread uses meanwhile";
    byte.isWritten = true;
    byte.writer = number;
    byte.writerEpoch = epoch;
    shared[address + i] = static_cast<uint8_t>(value >> (8 * i));
  }
  return "";
}

//===- Counts ---------------------------------------------------------------------------------===//

/// Lanes of a warp access together what each of them accesses when it comes to an instruction for
/// the same time.
void Block::count(Thread &thread, uint32_t number, const Instruction &in, uint64_t address,
                  uint32_t bytes) {
  auto position = static_cast<uint32_t>(&in - entry.code.data());
  WarpAccess &warp = accesses[{number / warpSize, position, thread.visits[position]++}];
  warp.width = bytes;
  warp.isShared = in.space == Space::Shared;
  uint32_t unit = warp.isShared ? bankBytes : sectorBytes;
  for (uint64_t place = address / unit; place <= (address + bytes - 1) / unit; ++place)
    warp.places.push_back(place);
  if (warp.isShared)
    return;
  counts.bytes += bytes;
  warp.ranges.emplace_back(address, address + bytes);
}

/// Bytes in ranges that may overlap, in whole units.
uint64_t Block::unionOf(Ranges &ranges, uint64_t unit) {
  std::ranges::sort(ranges);
  uint64_t bytes = 0, end = 0;
  for (auto [from, to] : ranges) {
    from = from / unit * unit;
    to = (to + unit - 1) / unit * unit;
    bytes += std::max(to, end) - std::max(from, end);
    end = std::max(end, to);
  }
  return bytes;
}

void Block::settleCounts() {
  for (auto &[key, access] : accesses) {
    std::set<uint64_t> places(access.places.begin(), access.places.end());
    if (!access.isShared) {
      counts.sectors += places.size();
      uint64_t used = unionOf(access.ranges);
      touched.insert(touched.end(), access.ranges.begin(), access.ranges.end());
      counts.leastSectors += (used + sectorBytes - 1) / sectorBytes;
      counts.usedBytes += used;
      counts.wideBytes += access.width >= vectorBytes ? used : 0;
      continue;
    }
    uint32_t words[banks] = {};
    for (uint64_t place : places)
      ++words[place % banks];
    counts.sharedRounds += *std::max_element(words, words + banks);
    counts.leastSharedRounds += (places.size() + banks - 1) / banks;
  }
  accesses.clear();
}

} // namespace dlc::ptx
