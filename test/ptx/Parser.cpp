// One pass over the tokens. Names of registers, labels and arrays are resolved here, once.

#include "test/ptx/Evaluate.h"
#include "test/ptx/Opcode.h"

#include <array>
#include <charconv>
#include <optional>

namespace dlc::ptx {
namespace {

struct Token {
  std::string text;
  uint32_t line = 0;
};

bool isWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$' ||
         c == '%' || c == '-';
}

/// Words, with the dots and signs in them, and single other characters.
std::vector<Token> tokenize(const std::string &text) {
  std::vector<Token> tokens;
  uint32_t line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n')
      ++line;
    if (std::isspace(static_cast<unsigned char>(text[i])))
      continue;
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size()) - 1;
      continue;
    }
    size_t end = i;
    while (end < text.size() && isWordCharacter(text[end]))
      ++end;
    end = std::max(end, i + 1);
    tokens.push_back({text.substr(i, end - i), line});
    i = end - 1;
  }
  return tokens;
}

class Parser {
public:
  explicit Parser(const std::string &text) : tokens(tokenize(text)) {}
  Module parse();

private:
  [[noreturn]] void fail(const std::string &what) const {
    uint32_t line = tokens.empty() ? 0 : tokens[std::min(next, tokens.size() - 1)].line;
    throw ParseError("line " + std::to_string(line) + ": " + what);
  }
  bool isAtEnd() const { return next >= tokens.size(); }
  const std::string &peek() const {
    if (isAtEnd())
      fail("the text ends too early");
    return tokens[next].text;
  }
  std::string take() {
    std::string text = peek();
    ++next;
    return text;
  }
  bool takeIf(const std::string &text) {
    bool is = !isAtEnd() && tokens[next].text == text;
    next += is;
    return is;
  }
  void expect(const std::string &text) {
    if (!takeIf(text))
      fail("expected '" + text + "' instead of '" + peek() + "'");
  }
  uint64_t takeNumber();

  void parseTable();
  uint64_t takeAligned();
  void parseEntry();
  void parseParameters(Entry &entry);
  void parseDirectives(Entry &entry);
  void parseStatement(Entry &entry);
  void parseRegisters(Entry &entry);
  void parseShared(Entry &entry);
  void parseInstruction(Entry &entry);
  void parseAccess(Instruction &in);
  void parseMove(Instruction &in);
  uint32_t takeRegister();
  Operand takeOperand();
  std::vector<Operand> takeOperands();
  std::vector<uint32_t> takeResults();
  void resolveLabels(Entry &entry);
  void checkTypes(const Instruction &in, const std::string &opcode) const;

  std::vector<Token> tokens;
  size_t next = 0;
  Module module;
  uint64_t tablesEnd = tablesBegin;
  // Of the entry at hand.
  std::map<std::string, uint32_t> registers, labels;
  std::map<std::string, uint64_t> places; // of parameters and arrays
  std::vector<std::pair<size_t, std::string>> branches;
};

/// The value of "12", "-3", "0x1FU", "0f3F800000" (a float by its bits) or "0d..." (a double).
std::optional<uint64_t> numberOf(std::string text) {
  if (text.ends_with("U"))
    text.pop_back();
  bool isHex = text.starts_with("0x") || text.starts_with("0f") || text.starts_with("0d");
  bool isNegative = text.starts_with("-");
  size_t skip = isHex ? 2 : isNegative;
  const char *begin = text.data() + skip, *end = text.data() + text.size();
  uint64_t value = 0;
  auto [read, error] = std::from_chars(begin, end, value, isHex ? 16 : 10);
  if (error != std::errc() || read != end || begin == end)
    return std::nullopt;
  return isNegative ? 0 - value : value;
}

uint64_t Parser::takeNumber() {
  std::optional<uint64_t> value = numberOf(peek());
  if (!value)
    fail("expected a number instead of '" + peek() + "'");
  ++next;
  return *value;
}

//===- Module ---------------------------------------------------------------------------------===//

Module Parser::parse() {
  while (!isAtEnd()) {
    std::string word = take();
    if (word == ".version" || word == ".target" || word == ".address_size")
      take();
    else if (word == ".global")
      parseTable();
    else if (word == ".entry")
      parseEntry();
    else if (word != ".visible")
      fail("unknown directive '" + word + "'");
  }
  return std::move(module);
}

/// ".align 16", if it is there.
uint64_t Parser::takeAligned() { return takeIf(".align") ? takeNumber() : 1; }

/// .global .align 16 .b8 name[4] = {1, 2, 3, 4};
void Parser::parseTable() {
  uint64_t alignment = takeAligned();
  std::optional<Type> type = typeNamed(take());
  if (!type)
    fail("expected the type of an array");
  Table table{take(), (tablesEnd + alignment - 1) / alignment * alignment, {}};
  expect("[");
  uint64_t count = takeNumber(), bytes = bitsOf(*type) / 8;
  expect("]");
  table.bytes.resize(count * bytes);
  if (takeIf("=")) {
    expect("{");
    for (uint64_t i = 0; !takeIf("}"); ++i) {
      uint64_t value = takeNumber();
      for (uint64_t byte = 0; byte < bytes; ++byte)
        table.bytes.at(i * bytes + byte) = static_cast<uint8_t>(value >> (8 * byte));
      takeIf(",");
    }
  }
  expect(";");
  tablesEnd = table.address + table.bytes.size();
  module.tables.push_back(std::move(table));
}

void Parser::parseEntry() {
  Entry entry;
  registers.clear();
  labels.clear();
  branches.clear();
  places.clear();
  for (const Table &table : module.tables)
    places[table.name] = table.address;
  entry.name = take();
  parseParameters(entry);
  parseDirectives(entry);
  expect("{");
  while (!takeIf("}"))
    parseStatement(entry);
  resolveLabels(entry);
  module.entries[entry.name] = std::move(entry);
}

/// .param .u64 .ptr .global .align 1 name
void Parser::parseParameters(Entry &entry) {
  expect("(");
  while (!takeIf(")")) {
    expect(".param");
    std::optional<Type> type = typeNamed(take());
    if (!type)
      fail("expected the type of a parameter");
    bool isAddress = takeIf(".ptr");
    if (isAddress) {
      expect(".global");
      takeAligned();
    }
    places[peek()] = 8 * entry.parameters.size();
    entry.parameters.push_back({take(), bitsOf(*type) / 8, isAddress});
    takeIf(",");
  }
}

void Parser::parseDirectives(Entry &entry) {
  while (peek() != "{") {
    std::string word = take();
    if (word == ".minnctapersm") {
      takeNumber(); // advice for the assembler
      continue;
    }
    if (word == ".maxnreg") {
      entry.mostRegisters = static_cast<uint32_t>(takeNumber());
      continue;
    }
    if (word != ".reqntid")
      fail("unknown directive '" + word + "'");
    entry.threads = static_cast<uint32_t>(takeNumber());
    while (takeIf(","))
      if (takeNumber() != 1)
        fail("blocks have one dimension here");
  }
}

//===- Entry ----------------------------------------------------------------------------------===//

void Parser::parseStatement(Entry &entry) {
  if (takeIf(".reg"))
    return parseRegisters(entry);
  if (takeIf(".shared"))
    return parseShared(entry);
  if (takeIf(".pragma")) { // for the assembler
    for (const char *word : {"\"", "nounroll", "\"", ";"})
      expect(word);
    return;
  }
  if (next + 1 < tokens.size() && tokens[next + 1].text == ":") {
    labels[take()] = static_cast<uint32_t>(entry.code.size());
    return expect(":");
  }
  if (peek().starts_with("."))
    fail("unknown directive '" + peek() + "'");
  parseInstruction(entry);
}

/// .reg .b32 %r<34>;
void Parser::parseRegisters(Entry &entry) {
  std::optional<Type> type = typeNamed(take());
  if (!type)
    fail("expected the type of registers");
  std::string name = take();
  uint64_t count = 1;
  if (takeIf("<")) {
    count = takeNumber();
    expect(">");
    for (uint64_t i = 0; i < count; ++i)
      registers[name + std::to_string(i)] = static_cast<uint32_t>(entry.registers.size() + i);
  } else {
    registers[name] = static_cast<uint32_t>(entry.registers.size());
  }
  entry.registers.insert(entry.registers.end(), count, *type);
  expect(";");
}

/// .shared .align 16 .b8 name[1024];
void Parser::parseShared(Entry &entry) {
  uint64_t alignment = takeAligned();
  std::optional<Type> type = typeNamed(take());
  if (!type)
    fail("expected the type of an array");
  uint64_t begin = (entry.sharedBytes + alignment - 1) / alignment * alignment;
  places[take()] = sharedBegin + begin;
  expect("[");
  entry.sharedBytes = static_cast<uint32_t>(begin + takeNumber() * bitsOf(*type) / 8);
  expect("]");
  expect(";");
}

uint32_t Parser::takeRegister() {
  auto found = registers.find(peek());
  if (found == registers.end())
    fail("'" + peek() + "' is no register");
  ++next;
  return found->second;
}

Operand Parser::takeOperand() {
  static const std::map<std::string, Special> specials = {{"%tid.x", Special::Tid},
                                                          {"%ntid.x", Special::Ntid},
                                                          {"%ctaid.x", Special::Ctaid},
                                                          {"%nctaid.x", Special::Nctaid}};
  Operand operand;
  if (auto special = specials.find(peek()); special != specials.end()) {
    operand.kind = Operand::Kind::Special;
    operand.special = special->second;
    ++next;
  } else if (registers.contains(peek())) {
    operand.kind = Operand::Kind::Register;
    operand.reg = takeRegister();
  } else if (auto place = places.find(peek()); place != places.end()) {
    operand.value = place->second;
    ++next;
  } else {
    operand.value = takeNumber();
  }
  return operand;
}

/// One register, or several in braces, of which "_" is none.
std::vector<uint32_t> Parser::takeResults() {
  auto result = [&] { return takeIf("_") ? nowhere : takeRegister(); };
  if (!takeIf("{"))
    return {result()};
  std::vector<uint32_t> results;
  while (!takeIf("}")) {
    results.push_back(result());
    takeIf(",");
  }
  return results;
}

/// One operand, or several in braces.
std::vector<Operand> Parser::takeOperands() {
  if (!takeIf("{"))
    return {takeOperand()};
  std::vector<Operand> operands;
  while (!takeIf("}")) {
    operands.push_back(takeOperand());
    takeIf(",");
  }
  return operands;
}

/// [%rd1+16], and what is loaded or stored.
void Parser::parseAccess(Instruction &in) {
  auto address = [&] {
    expect("[");
    in.operands.push_back(takeOperand());
    if (takeIf("+"))
      in.offset = static_cast<int64_t>(takeNumber());
    expect("]");
  };
  if (in.op == Op::Ld) {
    in.results = takeResults();
    expect(",");
    return address();
  }
  address();
  expect(",");
  for (const Operand &value : takeOperands())
    in.operands.push_back(value);
}

/// Also packs and unpacks: mov.b32 {%rs1, %rs2}, %r1.
void Parser::parseMove(Instruction &in) {
  in.results = takeResults();
  expect(",");
  in.operands = takeOperands();
}

void Parser::parseInstruction(Entry &entry) {
  Instruction in;
  in.line = tokens[next].line;
  if (takeIf("@")) {
    in.isGuarded = true;
    in.guardValue = !takeIf("!");
    in.guard = takeRegister();
  }
  const std::string opcode = take();
  if (std::string reason = decodeOpcode(opcode, in); !reason.empty()) {
    --next;
    fail(reason);
  }
  if (in.op == Op::Bra) {
    branches.emplace_back(entry.code.size(), take());
  } else if (in.op == Op::Ld || in.op == Op::St) {
    parseAccess(in);
  } else if (in.op == Op::Mov) {
    parseMove(in);
  } else if (in.op == Op::Bar) {
    in.operands.push_back(takeOperand());
  } else if (in.op != Op::Ret) {
    in.results.push_back(takeRegister());
    while (takeIf(","))
      in.operands.push_back(takeOperand());
    checkTypes(in, opcode);
  }
  expect(";");
  entry.code.push_back(std::move(in));
}

/// Refuses at once what could not be evaluated.
void Parser::checkTypes(const Instruction &in, const std::string &opcode) const {
  constexpr uint64_t values[3] = {1, 1, 1};
  if (in.operands.size() > 3)
    fail("too many operands");
  try {
    evaluate(in, values);
  } catch (const ParseError &error) {
    fail("'" + opcode + "': " + error.what());
  }
}

void Parser::resolveLabels(Entry &entry) {
  for (const auto &[index, label] : branches) {
    auto found = labels.find(label);
    if (found == labels.end())
      fail("a branch to '" + label + "', which is no label");
    entry.code[index].target = found->second;
  }
}

} // namespace

Module parse(const std::string &text, std::string &reason) {
  try {
    return Parser(text).parse();
  } catch (const ParseError &error) {
    reason = error.what();
    return {};
  }
}

} // namespace dlc::ptx
