// `dlc help` and the reference: the tables in words.
#include "frontend/Frontend.h"
#include "frontend/operators/Operators.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace llvm;

namespace dlc::fe {

static constexpr CallKind kinds[] = {CallKind::Operator, CallKind::DataStep, CallKind::Optimizer,
                                     CallKind::Schedule, CallKind::EarlyStop};

static std::vector<const CallSpec *> callsOf(CallKind kind) {
  std::vector<const CallSpec *> calls;
  for (ArrayRef<CallSpec> table : {operatorTable(), configurationTable()})
    for (const CallSpec &spec : table)
      if (spec.kind == kind)
        calls.push_back(&spec);
  return calls;
}

/// "kernel = 2", or only the name of an argument without a default.
static std::string withDefault(const ArgumentSpec &argument) {
  std::string text = argument.name.str();
  if (argument.accepts & Rest)
    text += "...";
  StringRef value = argument.defaultText;
  value.consume_front("=");
  return value.empty() || value == "none" ? text : text + " = " + value.str();
}

/// "max_pool(x, kernel, stride = kernel, padding = 0)".
static std::string signature(const CallSpec &spec) {
  return spec.name.str() + "(" + join(map_range(spec.arguments, withDefault), ", ") + ")";
}

static StringRef asMonitor(Better better) {
  switch (better) {
  case Better::Unknown:
    return "";
  case Better::Higher:
    return "As a monitor: higher is better.";
  case Better::Lower:
    return "As a monitor: lower is better.";
  }
  llvm_unreachable("all directions have words");
}

//===- dlc help -------------------------------------------------------------------------------===//

static void printCall(const CallSpec &spec, raw_ostream &os) {
  os << signature(spec) << "\n  " << spec.summary << '\n';
  size_t width = 0;
  for (const ArgumentSpec &argument : spec.arguments)
    width = std::max(width, argument.name.size());
  for (const ArgumentSpec &argument : spec.arguments)
    os << "  " << left_justify(argument.name, width) << "  " << argument.doc << " ("
       << describe(argument) << ")\n";
  for (StringRef text : {StringRef(spec.description), asMonitor(spec.better)})
    if (!text.empty())
      os << "  " << text << '\n';
}

static void printAll(raw_ostream &os) {
  for (CallKind kind : kinds) {
    os << (kind == kinds[0] ? "" : "\n") << kindName(kind) << "s:\n";
    for (const CallSpec *spec : callsOf(kind))
      os << "  " << left_justify(spec->name, 24) << spec->summary << '\n';
  }
  os << "\nsettings of train:\n";
  for (const SettingSpec &setting : trainSettings())
    os << "  " << left_justify(setting.name, 24) << setting.doc << '\n';
  os << "\n'dlc help NAME' prints the arguments of one. Every call of an operator or function also "
        "takes:\n";
  for (const ArgumentSpec &argument : commonArguments())
    os << "  " << left_justify(argument.name, 24) << argument.doc << '\n';
}

bool printHelp(StringRef name, raw_ostream &os) {
  if (name.empty()) {
    printAll(os);
    return true;
  }
  bool found = false;
  std::vector<StringRef> known;
  for (CallKind kind : kinds)
    for (const CallSpec *spec : callsOf(kind)) {
      known.push_back(spec->name);
      if (spec->name != name)
        continue;
      printCall(*spec, os);
      found = true;
    }
  for (const ArgumentSpec &argument : commonArguments()) {
    known.push_back(argument.name);
    if (argument.name != name)
      continue;
    os << withDefault(argument) << ", an argument of every call of an operator or function\n  "
       << argument.doc << " (" << describe(argument) << ")\n";
    found = true;
  }
  for (const SettingSpec &setting : trainSettings()) {
    known.push_back(setting.name);
    if (setting.name != name)
      continue;
    os << setting.name << " = " << setting.form << "\n  " << setting.doc << '\n';
    found = true;
  }
  if (!found)
    os << "error: nothing is named '" << name << "'" << didYouMean(name, known)
       << " ('dlc help' lists all)\n";
  return found;
}

//===- The reference --------------------------------------------------------------------------===//

/// Words in lines of at most 120 letters; lines after the first begin with `indent`, and never with
/// a sign that would make a list of them.
static void printWrapped(StringRef text, StringRef indent, raw_ostream &os) {
  constexpr size_t width = 118; // leaves room for a sign
  size_t column = 0;
  for (StringRef word : split(text, ' ')) {
    bool sign = word == "-" || word == "+" || word == "*";
    if (column > 0 && !sign && column + 1 + word.size() > width) {
      os << '\n' << indent;
      column = indent.size();
    } else if (column > 0) {
      os << ' ';
      ++column;
    }
    os << word;
    column += word.size();
  }
  os << '\n';
}

static void printSection(StringRef name, StringRef code, StringRef summary, raw_ostream &os) {
  os << "\n### " << name << "\n\n```\n";
  printWrapped(code, std::string(name.size() + 1, ' '), os);
  os << "```\n\n";
  printWrapped(summary, "", os);
}

static void printArguments(ArrayRef<ArgumentSpec> arguments, bool defaults, raw_ostream &os) {
  os << '\n';
  for (const ArgumentSpec &argument : arguments) {
    std::string name = defaults ? withDefault(argument) : argument.name.str();
    printWrapped("- `" + name + "`: " + argument.doc.str() + " (" + describe(argument) + ")", "  ",
                 os);
  }
}

static void printReferenceOf(const CallSpec &spec, raw_ostream &os) {
  printSection(spec.name, signature(spec), spec.summary, os);
  if (!spec.arguments.empty())
    printArguments(spec.arguments, /*defaults=*/false, os);
  std::string text = spec.description.str();
  if (StringRef monitor = asMonitor(spec.better); !monitor.empty())
    text += (text.empty() ? "" : " ") + monitor.str();
  if (text.empty())
    return;
  os << '\n';
  printWrapped(text, "", os);
}

void printReference(raw_ostream &os) {
  os << "# What a program can call\n\n";
  printWrapped(
      "`dlc help --markdown` writes this page from the tables by which the compiler checks "
      "calls; `dlc help NAME` prints one entry. The language: [language.md](language.md).",
      "", os);
  for (CallKind kind : kinds) {
    StringRef name = kindName(kind);
    os << "\n## " << toUpper(name.front()) << name.drop_front() << "s\n";
    if (kind == CallKind::Operator) {
      os << "\nEvery call of an operator or function also takes:\n";
      printArguments(commonArguments(), /*defaults=*/true, os);
    }
    for (const CallSpec *spec : callsOf(kind))
      printReferenceOf(*spec, os);
  }
  os << "\n## Settings of train\n";
  for (const SettingSpec &setting : trainSettings())
    printSection(setting.name, setting.name.str() + " = " + setting.form.str(), setting.doc, os);
}

} // namespace dlc::fe
