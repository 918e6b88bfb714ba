// `dlc help` and the reference: the tables in words.
#include "frontend/Frontend.h"
#include "frontend/operators/Operators.h"

#include "llvm/Support/Format.h"

using namespace llvm;

namespace dlc::fe {

static constexpr CallKind kinds[] = {CallKind::Operator, CallKind::DataStep, CallKind::Optimizer,
                                     CallKind::Schedule, CallKind::EarlyStop};

static StringRef shownDefault(const ArgumentSpec &argument) {
  StringRef text = argument.defaultText;
  text.consume_front("=");
  return text;
}

/// "max_pool(x, kernel, stride = kernel, padding = 0)".
static void printSignature(const CallSpec &spec, raw_ostream &os) {
  os << spec.name << '(';
  interleaveComma(spec.arguments, os, [&](const ArgumentSpec &argument) {
    os << argument.name;
    if (argument.accepts & Rest)
      os << "...";
    if (!argument.defaultText.empty() && argument.defaultText != "=none")
      os << " = " << shownDefault(argument);
  });
  os << ')';
}

static void printCall(const CallSpec &spec, raw_ostream &os) {
  printSignature(spec, os);
  os << "\n  " << spec.summary << '\n';
  size_t width = 0;
  for (const ArgumentSpec &argument : spec.arguments)
    width = std::max(width, argument.name.size());
  for (const ArgumentSpec &argument : spec.arguments)
    os << "  " << left_justify(argument.name, width) << "  " << argument.doc << " ("
       << describe(argument) << ")\n";
  if (!spec.description.empty())
    os << "  " << spec.description << '\n';
  if (spec.better != Better::Unknown)
    os << "  As a monitor: " << (spec.better == Better::Higher ? "higher" : "lower")
       << " is better.\n";
}

bool printHelp(StringRef name, raw_ostream &os) {
  bool found = false;
  std::vector<StringRef> known;
  for (CallKind kind : kinds) {
    if (name.empty())
      os << (kind == kinds[0] ? "" : "\n") << kindName(kind) << "s:\n";
    for (ArrayRef<CallSpec> table : {operatorTable(), configurationTable()})
      for (const CallSpec &spec : table) {
        if (spec.kind != kind)
          continue;
        known.push_back(spec.name);
        if (name.empty())
          os << "  " << left_justify(spec.name, 24) << spec.summary << '\n';
        else if (spec.name == name)
          printCall(spec, os);
        found |= name.empty() || spec.name == name;
      }
  }
  if (name.empty())
    os << "\nsettings of train:\n";
  for (const SettingSpec &setting : trainSettings()) {
    known.push_back(setting.name);
    if (name.empty())
      os << "  " << left_justify(setting.name, 24) << setting.doc << '\n';
    else if (setting.name == name)
      os << setting.name << " = " << setting.form << "\n  " << setting.doc << '\n';
    found |= setting.name == name;
  }
  if (name.empty())
    os << "\n'dlc help NAME' prints the arguments of one. Every call of an operator or function "
          "also "
          "takes name = \"...\".\n";
  if (!found)
    os << "error: nothing is named '" << name << "'" << didYouMean(name, known)
       << " ('dlc help' lists all)\n";
  return found;
}

} // namespace dlc::fe
