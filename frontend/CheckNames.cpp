// Unused values are found by live variables, backwards over the syntax tree: an assignment is
// unused if its name is not live after it. Both branches of an `if` may be taken and a loop may run
// any number of times, so that the verdict does not depend on what the parameters are set to. At
// the end of a loop's body is live what is live after the loop and what the body reads before
// writing.
#include "frontend/CheckNames.h"

#include "frontend/operators/Operators.h"
#include "frontend/syntax/Habits.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace dlc::fe {

using Names = DenseSet<StringRef>;
using NameVisitor = function_ref<void(const NameExpr &)>;

static void forEachName(const Expr &expr, NameVisitor visit) {
  switch (expr.kind) {
  case Expr::Kind::Integer:
  case Expr::Kind::Float:
  case Expr::Kind::Bool:
    return;
  case Expr::Kind::String:
    for (const ExprPtr &part : cast<StringExpr>(expr).expressions)
      forEachName(*part, visit);
    return;
  case Expr::Kind::List:
    for (const ExprPtr &item : cast<ListExpr>(expr).items)
      forEachName(*item, visit);
    return;
  case Expr::Kind::Name:
    return visit(cast<NameExpr>(expr));
  case Expr::Kind::Member:
    return forEachName(*cast<MemberExpr>(expr).object, visit);
  case Expr::Kind::Index:
    forEachName(*cast<IndexExpr>(expr).object, visit);
    return forEachName(*cast<IndexExpr>(expr).index, visit);
  case Expr::Kind::Call:
    forEachName(*cast<CallExpr>(expr).callee, visit);
    for (const Argument &argument : cast<CallExpr>(expr).arguments)
      forEachName(*argument.value, visit);
    return;
  case Expr::Kind::Unary:
    return forEachName(*cast<UnaryExpr>(expr).operand, visit);
  case Expr::Kind::Binary:
    forEachName(*cast<BinaryExpr>(expr).left, visit);
    return forEachName(*cast<BinaryExpr>(expr).right, visit);
  case Expr::Kind::Conditional:
    forEachName(*cast<ConditionalExpr>(expr).chosen, visit);
    forEachName(*cast<ConditionalExpr>(expr).condition, visit);
    return forEachName(*cast<ConditionalExpr>(expr).other, visit);
  }
}

static void addReads(const Expr &expr, Names &names) {
  forEachName(expr, [&](const NameExpr &name) { names.insert(name.name); });
}

static void forEachName(const Pattern &pattern, function_ref<void(StringRef)> visit) {
  if (!pattern.name.empty())
    visit(pattern.name);
  for (const Pattern &item : pattern.items)
    forEachName(item, visit);
}

//===- Undefined names ------------------------------------------------------------------------===//

namespace {
/// Names that a function's body defines anywhere, and all that it reads, in order.
struct Definitions {
  void visit(const Block &block) {
    for (const auto &statement : block)
      visit(*statement);
  }
  void visit(const Stmt &statement);
  void read(const Expr &expr) {
    forEachName(expr, [&](const NameExpr &name) { reads.push_back(&name); });
  }

  SmallVector<StringRef> defined;
  SmallVector<const NameExpr *> reads;
};
} // namespace

void Definitions::visit(const Stmt &statement) {
  if (const auto *assign = dyn_cast<AssignStmt>(&statement)) {
    forEachName(assign->target, [&](StringRef name) { defined.push_back(name); });
    read(*assign->value);
  } else if (const auto *loop = dyn_cast<ForStmt>(&statement)) {
    forEachName(loop->pattern, [&](StringRef name) { defined.push_back(name); });
    read(*loop->iterable);
    visit(loop->body);
  } else if (const auto *branch = dyn_cast<IfStmt>(&statement)) {
    read(*branch->condition);
    visit(branch->thenBlock);
    visit(branch->elseBlock);
  } else if (const auto *require = dyn_cast<RequireStmt>(&statement)) {
    read(*require->condition);
    read(*require->message);
  } else if (const auto *print = dyn_cast<PrintStmt>(&statement)) {
    read(*print->message);
  } else if (const auto *result = dyn_cast<ReturnStmt>(&statement)) {
    read(*result->value);
  } else if (const auto *input = dyn_cast<InputStmt>(&statement)) {
    defined.push_back(input->name);
    for (const Dimension &dimension : input->dimensions)
      read(*dimension.value);
  } else if (const auto *output = dyn_cast<OutputStmt>(&statement)) {
    read(*output->value);
  } else if (const auto *loss = dyn_cast<LossStmt>(&statement)) {
    read(*loss->value);
  } else {
    read(*cast<MetricStmt>(statement).value);
  }
}

static LogicalResult checkDefined(const ModelFile &file, const Function &function,
                                  Diagnostics &diags) {
  Definitions definitions;
  for (const Parameter &parameter : function.parameters) {
    definitions.defined.push_back(parameter.name);
    if (parameter.defaultValue)
      definitions.read(*parameter.defaultValue);
  }
  definitions.visit(function.body);
  SmallVector<StringRef> known = definitions.defined;
  for (const auto &other : file.functions)
    known.push_back(other->name);
  append_range(known, callNames(CallKind::Operator));
  append_range(known, argumentWords());
  known.push_back("training");
  Names names(known.begin(), known.end());
  for (const NameExpr *read : definitions.reads)
    if (!names.contains(read->name))
      return diags.error(read->loc,
                         "unknown name '" + read->name + "'" + nameHint(read->name, known));
  return success();
}

//===- Unused values --------------------------------------------------------------------------===//

namespace {
class Liveness {
public:
  struct Finding {
    SMLoc loc;
    StringRef name;
  };

  /// Turns what is live after the block into what is live before it.
  void visit(const Block &block, Names &live) {
    for (const auto &statement : reverse(block))
      visit(*statement, live);
  }

  std::vector<Finding> findings;

private:
  void visit(const Stmt &statement, Names &live);
  void visitFor(const ForStmt &loop, Names &live);

  /// Of a list that is taken apart, one value at least is used.
  void define(const Pattern &target, Names &live) {
    bool isUsed = false;
    StringRef first;
    forEachName(target, [&](StringRef name) {
      isUsed |= live.erase(name);
      first = first.empty() ? name : first;
    });
    if (!isUsed && recording)
      findings.push_back({target.loc, first});
  }

  bool recording = true;
};
} // namespace

void Liveness::visitFor(const ForStmt &loop, Names &live) {
  Names readByBody;
  bool outer = std::exchange(recording, false);
  visit(loop.body, readByBody);
  recording = outer;
  forEachName(loop.pattern, [&](StringRef name) { readByBody.erase(name); });
  Names atEnd = live;
  atEnd.insert(readByBody.begin(), readByBody.end());
  if (recording)
    visit(loop.body, atEnd);
  live.insert(readByBody.begin(), readByBody.end());
  addReads(*loop.iterable, live);
}

void Liveness::visit(const Stmt &statement, Names &live) {
  switch (statement.kind) {
  case Stmt::Kind::Assign: {
    const auto &assign = cast<AssignStmt>(statement);
    define(assign.target, live);
    return addReads(*assign.value, live);
  }
  case Stmt::Kind::For:
    return visitFor(cast<ForStmt>(statement), live);
  case Stmt::Kind::If: {
    const auto &branch = cast<IfStmt>(statement);
    Names otherwise = live;
    visit(branch.thenBlock, live);
    visit(branch.elseBlock, otherwise);
    live.insert(otherwise.begin(), otherwise.end());
    return addReads(*branch.condition, live);
  }
  case Stmt::Kind::Require:
    addReads(*cast<RequireStmt>(statement).condition, live);
    return addReads(*cast<RequireStmt>(statement).message, live);
  case Stmt::Kind::Print:
    return addReads(*cast<PrintStmt>(statement).message, live);
  case Stmt::Kind::Return:
    // Code after a return never runs, but it is no typo, so names that it reads count as used.
    return addReads(*cast<ReturnStmt>(statement).value, live);
  case Stmt::Kind::Input: {
    const auto &input = cast<InputStmt>(statement);
    define(Pattern{input.loc, input.name, {}}, live);
    for (const Dimension &dimension : input.dimensions)
      addReads(*dimension.value, live);
    return;
  }
  case Stmt::Kind::Output:
    return addReads(*cast<OutputStmt>(statement).value, live);
  case Stmt::Kind::Loss:
    return addReads(*cast<LossStmt>(statement).value, live);
  case Stmt::Kind::Metric:
    return addReads(*cast<MetricStmt>(statement).value, live);
  }
}

static bool isResultWord(StringRef name) { return name == "output" || name == "metric"; }

static LogicalResult checkUsed(const ModelFile &file, Diagnostics &diags) {
  Liveness liveness;
  for (const auto &function : file.functions) {
    Names live;
    liveness.visit(function->body, live);
  }
  Names live;
  liveness.visit(file.model->body, live);
  for (const auto &chain : file.chains)
    for (const ExprPtr &step : chain.steps)
      addReads(*step, live);
  for (const auto *entries : {&file.data, &file.train, &file.predict})
    for (const Entry &entry : *entries)
      addReads(*entry.value, live);
  for (const Parameter &parameter : file.model->parameters)
    addReads(*parameter.defaultValue, live);
  for (const Parameter &parameter : file.model->parameters)
    if (!live.contains(parameter.name))
      liveness.findings.push_back({parameter.loc, parameter.name});
  sort(liveness.findings,
       [](const auto &a, const auto &b) { return a.loc.getPointer() < b.loc.getPointer(); });
  for (const Liveness::Finding &finding : ArrayRef(liveness.findings).take_front(10))
    (void)diags.error(finding.loc,
                      "the value of '" + finding.name + "' is never used" +
                          (isResultWord(finding.name) ? nameHint(finding.name, {}) : ""));
  return success(liveness.findings.empty());
}

LogicalResult checkNames(const ModelFile &file, Diagnostics &diags) {
  for (const auto &function : file.functions)
    if (failed(checkDefined(file, *function, diags)))
      return failure();
  if (failed(checkDefined(file, *file.model, diags)))
    return failure();
  return checkUsed(file, diags);
}

} // namespace dlc::fe
