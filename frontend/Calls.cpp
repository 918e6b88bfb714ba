// Calls of functions and operators, and the names of layers that follow from them.
#include "frontend/Elaborator.h"
#include "frontend/operators/Emission.h"

#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

static bool isPath(StringRef name) {
  SmallVector<StringRef> components;
  name.split(components, '.');
  return name.size() <= 256 && all_of(components, [](StringRef component) {
           return !component.empty() &&
                  all_of(component, [](char c) { return isAlnum(c) || c == '_' || c == '-'; });
         });
}

/// The path of a call: the caller's, then `name = "..."` or the callee's name and number; an empty
/// name adds nothing. Takes `name` out of the arguments.
FailureOr<std::string> Elaborator::callPath(const CallExpr &expr, StringRef callee,
                                            std::vector<GivenArgument> &arguments) {
  std::string own;
  auto given = find_if(arguments, [](const auto &argument) { return argument.keyword == "name"; });
  if (given != arguments.end()) {
    bool isName = given->value.isString() &&
                  (given->value.asString().empty() || isPath(given->value.asString()));
    if (!isName)
      return error(given->valueLoc,
                   "a name consists of letters, digits, '_' and '-', with dots between "
                   "components, or is \"\", which adds no component, got " +
                       describe(given->value));
    own = given->value.asString();
    arguments.erase(given);
  } else {
    own = (callee + "." + Twine((*frame->counters)[callee]++)).str();
  }
  bool joins = !frame->path.empty() && !own.empty();
  std::string path = frame->path + (joins ? "." : "") + own;
  constexpr size_t maxPath = 1024;
  if (path.size() > maxPath)
    return error(expr.loc, "the layer's name is longer than " + Twine(maxPath) + " letters");
  return path;
}

FailureOr<Value> Elaborator::evaluateCall(const CallExpr &expr) {
  FailureOr<Value> callee = evaluate(*expr.callee);
  if (failed(callee))
    return failure();
  if (!callee->isCallable())
    return error(expr.loc, "only functions and operators can be called, got " + describe(*callee));
  std::vector<GivenArgument> given;
  for (const Argument &argument : expr.arguments) {
    FailureOr<Value> value = evaluate(*argument.value);
    if (failed(value))
      return failure();
    given.push_back({argument.loc, argument.value->loc, argument.keyword, std::move(*value)});
  }
  constexpr unsigned maxCalls = 64;
  if (calls >= maxCalls)
    return error(expr.loc, "calls nested deeper than " + Twine(maxCalls) +
                               " levels; does a function call itself without end? An 'if' ends it, "
                               "or 'for i in 0..n { x = f(x) }' repeats a call");
  Callable target = callee->asCallable();
  StringRef name = target.op ? StringRef(target.op->name) : target.function->name;
  FailureOr<std::string> path = callPath(expr, name, given);
  if (failed(path))
    return failure();
  return target.op ? callOperator(*target.op, expr, std::move(*path), given)
                   : callFunction(*target.function, expr, std::move(*path), given);
}

LogicalResult Elaborator::bindParameters(const Function &function, const CallExpr &expr,
                                         ArrayRef<GivenArgument> given, Frame &callee) {
  for (auto [position, argument] : enumerate(given)) {
    StringRef name = argument.keyword;
    if (name.empty()) {
      if (position >= function.parameters.size())
        return error(argument.loc, "'" + function.name + "' takes " +
                                       Twine(function.parameters.size()) + " arguments, got more");
      name = function.parameters[position].name;
    }
    SmallVector<StringRef> names;
    for (const Parameter &parameter : function.parameters)
      names.push_back(parameter.name);
    if (!is_contained(names, name))
      return error(argument.loc, "'" + function.name + "' has no parameter '" + name +
                                     "'; it takes " + listNames(names) + didYouMean(name, names));
    if (!callee.variables.try_emplace(name, argument.value).second)
      return error(argument.loc, "argument '" + name + "' is given twice");
  }
  SaveAndRestore<Frame *> enter(frame, &callee);
  for (const Parameter &parameter : function.parameters) {
    if (callee.variables.contains(parameter.name))
      continue;
    if (!parameter.defaultValue)
      return error(expr.loc, "'" + function.name + "' needs its argument '" + parameter.name + "'");
    FailureOr<Value> value = evaluate(*parameter.defaultValue);
    if (failed(value))
      return failure();
    callee.variables[parameter.name] = std::move(*value);
  }
  return success();
}

FailureOr<Value> Elaborator::callFunction(const Function &function, const CallExpr &expr,
                                          std::string path, ArrayRef<GivenArgument> given) {
  Frame callee;
  callee.function = &function;
  if (path == frame->path)
    callee.counters = frame->counters;
  callee.path = std::move(path);
  callee.site = hash_combine(frame->site, expr.loc.getPointer());
  unsigned errorsBefore = diags.errorCount();
  if (failed(bindParameters(function, expr, given, callee)))
    return failure();
  SaveAndRestore<Frame *> enter(frame, &callee);
  SaveAndRestore<unsigned> nested(calls, calls + 1);
  LogicalResult executed = execute(function.body);
  if (succeeded(executed) && callee.returned)
    return std::move(callee.result);
  if (succeeded(executed))
    return error(expr.loc, "'" + function.name + "' ended without 'return'");
  constexpr unsigned maxNotes = 8; // of the outermost calls: a recursion shows where it began
  if (diags.errorCount() > errorsBefore && calls <= maxNotes)
    diags.note(expr.loc, "in this call of '" + function.name + "'" +
                             (callee.path.empty() ? "" : ", layer " + callee.path));
  return failure();
}

FailureOr<Value> Elaborator::callOperator(const CallSpec &spec, const CallExpr &expr,
                                          std::string path, ArrayRef<GivenArgument> given) {
  constexpr size_t maxOperators = 50'000;
  SmallVector<BoundArgument, 8> bound;
  if (failed(bindArguments(spec, expr.loc, given, diags, bound)))
    return failure();
  for (const BoundArgument &argument : bound)
    if (failed(charge(expr.loc, workOn(argument.value))))
      return failure();
  if (++emitted > maxOperators)
    return error(expr.loc, "a model of more than " + Twine(maxOperators) + " operators");
  setLocation(expr.loc, path);
  Graph::Site site{locationOf(expr.loc), frame->site};
  Emission call(graph, diags, spec, bound, path, site, expr.loc);
  return spec.emit(call);
}

} // namespace dlc::fe
