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
/// name adds nothing.
FailureOr<std::string> Elaborator::callPath(const CallExpr &expr, StringRef callee,
                                            const GivenArgument *name) {
  std::string own;
  if (name) {
    bool isName = name->value.isString() &&
                  (name->value.asString().empty() || isPath(name->value.asString()));
    if (!isName)
      return error(name->valueLoc,
                   "a name consists of letters, digits, '_' and '-', with dots between "
                   "components, or is \"\", which adds no component, got " +
                       describe(name->value));
    own = name->value.asString();
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

/// Takes `name`, `reuse` and `trainable` out of the arguments.
FailureOr<Elaborator::CallSettings>
Elaborator::callSettings(const CallExpr &expr, StringRef callee,
                         std::vector<GivenArgument> &arguments) {
  StringMap<const GivenArgument *> common;
  for (const GivenArgument &argument : arguments)
    if (isCommonArgument(argument.keyword) &&
        !common.try_emplace(argument.keyword, &argument).second)
      return error(argument.loc, "argument '" + argument.keyword + "' is given twice");
  const GivenArgument *name = common.lookup("name"), *reuse = common.lookup("reuse"),
                      *trainable = common.lookup("trainable");
  for (const GivenArgument *flag : {reuse, trainable})
    if (flag && !flag->value.isBool())
      return error(flag->valueLoc,
                   "'" + flag->keyword + "' is true or false, got " + describe(flag->value));
  FailureOr<std::string> path = callPath(expr, callee, name);
  if (failed(path))
    return failure();
  CallSettings settings{std::move(*path), frame->reuse, frame->trainable};
  if (trainable)
    settings.trainable &= trainable->value.asBool();
  if (reuse && reuse->value.asBool()) {
    if (!name || name->value.asString().empty())
      return error(reuse->loc, "'reuse' needs the name under which the parameters were made: name "
                               "= \"...\"");
    settings.reuse = true;
  }
  erase_if(arguments,
           [](const GivenArgument &argument) { return isCommonArgument(argument.keyword); });
  return settings;
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
  FailureOr<CallSettings> settings = callSettings(expr, name, given);
  if (failed(settings))
    return failure();
  return target.op ? callOperator(*target.op, expr, *settings, given)
                   : callFunction(*target.function, expr, std::move(*settings), given);
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
                                          CallSettings settings, ArrayRef<GivenArgument> given) {
  Frame callee;
  callee.function = &function;
  if (settings.path == frame->path)
    callee.counters = frame->counters;
  callee.path = std::move(settings.path);
  callee.reuse = settings.reuse;
  callee.trainable = settings.trainable;
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
                                          const CallSettings &settings,
                                          ArrayRef<GivenArgument> given) {
  constexpr size_t maxOperators = 50'000;
  SmallVector<BoundArgument, 8> bound;
  if (failed(bindArguments(spec, expr.loc, given, diags, bound)))
    return failure();
  for (const BoundArgument &argument : bound)
    if (failed(charge(expr.loc, workOn(argument.value))))
      return failure();
  if (++emitted > maxOperators)
    return error(expr.loc, "a model of more than " + Twine(maxOperators) + " operators");
  setLocation(expr.loc, settings.path);
  Graph::Site site{locationOf(expr.loc), frame->site, settings.reuse, settings.trainable};
  Emission call(graph, diags, spec, bound, settings.path, site, expr.loc);
  return spec.emit(call);
}

} // namespace dlc::fe
