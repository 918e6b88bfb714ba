// Programs and the statements they are made of, but for those that declare inputs and results
// (InputsAndResults.cpp).
#include "frontend/Elaborator.h"

#include "frontend/syntax/Parser.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/SaveAndRestore.h"

#include <cmath>

using namespace llvm;
using mlir::FailureOr;

namespace dlc::fe {

Elaborator::Elaborator(const ModelFile &file, Graph &graph, Diagnostics &diags)
    : file(file), graph(graph), diags(diags) {}

void Elaborator::setLocation(SMLoc loc, StringRef path) {
  mlir::Location place = locationOf(loc);
  graph.loc = path.empty()
                  ? place
                  : mlir::NameLoc::get(mlir::StringAttr::get(place.getContext(), path), place);
}

LogicalResult Elaborator::charge(SMLoc loc, size_t cost) {
  constexpr size_t budget = 2'000'000;
  spent += cost;
  if (spent <= budget)
    return success();
  return error(loc, "elaborating the model takes more than " + Twine(budget) +
                        " steps; is a loop too long?");
}

const Function *Elaborator::findFunction(StringRef name) const {
  for (const auto &function : file.functions)
    if (function->name == name)
      return function.get();
  return nullptr;
}

//===- Programs -------------------------------------------------------------------------------===//

FailureOr<Value> convertSetting(const Setting &setting, const Value &like, Diagnostics &diags) {
  StringRef text = setting.text.trim();
  SMLoc loc = SMLoc::getFromPointer(setting.text.data());
  auto mismatch = [&](StringRef wanted) {
    return diags.error(loc, "'" + setting.name + "' expects " + wanted + " like its default " +
                                toText(like) + ", got '" + text + "'");
  };
  if (like.isString())
    return Value(text.str());
  if (like.isBool()) {
    if (text != "true" && text != "false")
      return mismatch("true or false");
    return Value(text == "true");
  }
  if (like.isInt()) {
    int64_t value = 0;
    if (text.getAsInteger(10, value))
      return mismatch("an int");
    return Value(value);
  }
  if (like.isFloat()) {
    double value = 0;
    if (text.getAsDouble(value) || !std::isfinite(value))
      return mismatch("a number");
    return Value(value);
  }
  if (!like.isList())
    return diags.error(loc,
                       "'" + setting.name + "' cannot be set: its default is " + describe(like));
  text.consume_front("[");
  text.consume_back("]");
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  std::vector<Value> items;
  ArrayRef<Value> likeItems = like.asList();
  for (StringRef part : parts) {
    Value likeItem = likeItems.empty() ? Value(int64_t{0}) : likeItems.front();
    if (likeItem.isList())
      return diags.error(loc, "'" + setting.name + "' is a list of lists; set it in the file");
    FailureOr<Value> item = convertSetting({setting.name, part}, likeItem, diags);
    if (failed(item))
      return failure();
    items.push_back(*item);
  }
  Value list = Value::list(std::move(items));
  if (list.isAbsent())
    return mismatch("a shorter list");
  return list;
}

LogicalResult Elaborator::resolveParameters(MutableArrayRef<Setting> settings,
                                            const Parameters &overrides, Parameters &resolved) {
  for (const Parameter &parameter : file.model->parameters) {
    FailureOr<Value> value = evaluateWith(resolved, *parameter.defaultValue);
    if (failed(value))
      return failure();
    for (Setting &setting : settings)
      if (setting.name == parameter.name) {
        setting.used = true;
        value = convertSetting(setting, *value, diags);
        if (failed(value))
          return failure();
      }
    auto named = [&](const auto &pair) { return pair.first == parameter.name; };
    if (auto given = find_if(overrides, named); given != overrides.end())
      value = given->second;
    if (!value->isPlain())
      return error(parameter.loc,
                   "a model's parameter is a number, a string or a list of these, got " +
                       describe(*value));
    resolved.emplace_back(parameter.name, *value);
  }
  return success();
}

FailureOr<Value> Elaborator::evaluateWith(const Parameters &parameters, const Expr &expr) {
  Frame local;
  local.function = file.model.get();
  for (const auto &[name, value] : parameters)
    local.variables[name] = value;
  SaveAndRestore<Frame *> enter(frame, &local);
  return evaluate(expr);
}

LogicalResult Elaborator::elaborate(ProgramKind kind, const Parameters &parameters) {
  inputInfos.clear();
  outputNames.clear();
  metricInfos.clear();
  lossLoc = SMLoc();
  Frame local;
  local.function = file.model.get();
  for (const auto &[name, value] : parameters)
    local.variables[name] = value;
  SaveAndRestore<Frame *> enter(frame, &local);
  graph.beginProgram(kind);
  if (failed(execute(file.model->body)))
    return failure();
  if (!lossLoc.isValid())
    return error(file.model->loc,
                 "model '" + file.model->name + "' has no loss in @" + programName(kind) +
                     "; add one, such as 'loss = softmax_cross_entropy(logits, label)' or "
                     "'loss = mse(y, target)'");
  graph.endProgram();
  return success();
}

//===- Statements -----------------------------------------------------------------------------===//

LogicalResult Elaborator::execute(const Block &block) {
  ++depth;
  scope_exit leave([&] { --depth; });
  for (const auto &statement : block) {
    if (failed(execute(*statement)))
      return failure();
    if (frame->returned)
      break;
  }
  return success();
}

LogicalResult Elaborator::checkModelStatement(const Stmt &statement) {
  if (frame->function == file.model.get())
    return success();
  return error(statement.loc, "inputs, losses, metrics and outputs belong to the model, not to a "
                              "function; return the value instead");
}

LogicalResult Elaborator::execute(const Stmt &statement) {
  if (failed(charge(statement.loc)))
    return failure();
  switch (statement.kind) {
  case Stmt::Kind::Assign: {
    const auto &assign = cast<AssignStmt>(statement);
    FailureOr<Value> value = evaluate(*assign.value);
    if (failed(value))
      return failure();
    return bindPattern(assign.target, *value);
  }
  case Stmt::Kind::For:
    return executeFor(cast<ForStmt>(statement));
  case Stmt::Kind::If:
    return executeIf(cast<IfStmt>(statement));
  case Stmt::Kind::Require:
    return executeRequire(cast<RequireStmt>(statement));
  case Stmt::Kind::Print:
    return executePrint(cast<PrintStmt>(statement));
  case Stmt::Kind::Return:
    return executeReturn(cast<ReturnStmt>(statement));
  default:
    break;
  }
  if (failed(checkModelStatement(statement)))
    return failure();
  switch (statement.kind) {
  case Stmt::Kind::Input:
    return executeInput(cast<InputStmt>(statement));
  case Stmt::Kind::Output:
    return executeOutput(cast<OutputStmt>(statement));
  case Stmt::Kind::Loss:
    return executeLoss(cast<LossStmt>(statement));
  default:
    return executeMetric(cast<MetricStmt>(statement));
  }
}

LogicalResult Elaborator::bindPattern(const Pattern &pattern, const Value &value) {
  if (!pattern.name.empty()) {
    frame->variables[pattern.name] = value;
    return success();
  }
  if (!value.isList() || value.asList().size() != pattern.items.size())
    return error(pattern.loc, "this takes a list of " + Twine(pattern.items.size()) +
                                  " values apart, got " + describe(value));
  for (auto [part, item] : zip(pattern.items, value.asList()))
    if (failed(bindPattern(part, item)))
      return failure();
  return success();
}

LogicalResult Elaborator::executeFor(const ForStmt &loop) {
  FailureOr<Value> iterable = evaluate(*loop.iterable);
  if (failed(iterable))
    return failure();
  if (!iterable->isList())
    return error(loop.iterable->loc,
                 "'for' expects a list or a range such as 0..n, got " + describe(*iterable));
  for (const Value &item : iterable->asList()) {
    if (failed(charge(loop.loc)) || failed(bindPattern(loop.pattern, item)) ||
        failed(execute(loop.body)))
      return failure();
    if (frame->returned)
      break;
  }
  return success();
}

FailureOr<bool> Elaborator::evaluateCondition(StringRef keyword, const Expr &expr) {
  FailureOr<Value> condition = evaluate(expr);
  if (failed(condition))
    return failure();
  if (!condition->isBool())
    return error(expr.loc, "'" + keyword + "' expects a bool known at compile time, got " +
                               describe(*condition));
  return condition->asBool();
}

LogicalResult Elaborator::executeIf(const IfStmt &branch) {
  FailureOr<bool> condition = evaluateCondition("if", *branch.condition);
  if (failed(condition))
    return failure();
  return execute(*condition ? branch.thenBlock : branch.elseBlock);
}

LogicalResult Elaborator::executeRequire(const RequireStmt &require) {
  FailureOr<bool> condition = evaluateCondition("require", *require.condition);
  if (failed(condition))
    return failure();
  FailureOr<Value> message = evaluate(*require.message);
  if (failed(message))
    return failure();
  if (!message->isString())
    return error(require.message->loc,
                 "the message of 'require' is a string, got " + describe(*message));
  return *condition ? success() : error(require.loc, message->asString());
}

LogicalResult Elaborator::executePrint(const PrintStmt &print) {
  FailureOr<Value> message = evaluate(*print.message);
  if (failed(message))
    return failure();
  if (printed.emplace(print.loc.getPointer(), message->asString()).second)
    diags.remark(print.loc, message->asString());
  return success();
}

LogicalResult Elaborator::executeReturn(const ReturnStmt &result) {
  if (frame->function == file.model.get())
    return error(result.loc,
                 "a model returns nothing; its results are losses, metrics and outputs");
  FailureOr<Value> value = evaluate(*result.value);
  if (failed(value))
    return failure();
  frame->result = std::move(*value);
  frame->returned = true;
  return success();
}

} // namespace dlc::fe
