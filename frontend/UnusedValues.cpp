// Live variables, backwards over the syntax tree: an assignment is unused if its name is not live
// after it. Both branches of an `if` may be taken and a loop may run any number of times, so that
// the verdict does not depend on what the parameters are set to. At the end of a loop's body is
// live what is live after the loop and what the body reads before writing.
#include "frontend/UnusedValues.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace dlc::fe {

namespace {
using Names = DenseSet<StringRef>;

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

  static void addReads(const Expr &expr, Names &live);

  std::vector<Finding> findings;

private:
  void visit(const Stmt &statement, Names &live);
  void visitFor(const ForStmt &loop, Names &live);

  void define(SMLoc loc, StringRef name, Names &live) {
    if (!live.erase(name) && recording)
      findings.push_back({loc, name});
  }

  bool recording = true;
};
} // namespace

void Liveness::addReads(const Expr &expr, Names &live) {
  switch (expr.kind) {
  case Expr::Kind::Integer:
  case Expr::Kind::Float:
  case Expr::Kind::Bool:
    return;
  case Expr::Kind::String:
    for (const ExprPtr &part : cast<StringExpr>(expr).expressions)
      addReads(*part, live);
    return;
  case Expr::Kind::List:
    for (const ExprPtr &item : cast<ListExpr>(expr).items)
      addReads(*item, live);
    return;
  case Expr::Kind::Name:
    live.insert(cast<NameExpr>(expr).name);
    return;
  case Expr::Kind::Member:
    return addReads(*cast<MemberExpr>(expr).object, live);
  case Expr::Kind::Index:
    addReads(*cast<IndexExpr>(expr).object, live);
    return addReads(*cast<IndexExpr>(expr).index, live);
  case Expr::Kind::Call:
    addReads(*cast<CallExpr>(expr).callee, live);
    for (const Argument &argument : cast<CallExpr>(expr).arguments)
      addReads(*argument.value, live);
    return;
  case Expr::Kind::Unary:
    return addReads(*cast<UnaryExpr>(expr).operand, live);
  case Expr::Kind::Binary:
    addReads(*cast<BinaryExpr>(expr).left, live);
    return addReads(*cast<BinaryExpr>(expr).right, live);
  }
}

static void erasePattern(const Pattern &pattern, Names &live) {
  if (!pattern.name.empty())
    live.erase(pattern.name);
  for (const Pattern &item : pattern.items)
    erasePattern(item, live);
}

void Liveness::visitFor(const ForStmt &loop, Names &live) {
  Names readByBody;
  bool outer = std::exchange(recording, false);
  visit(loop.body, readByBody);
  recording = outer;
  erasePattern(loop.pattern, readByBody);
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
    define(assign.loc, assign.name, live);
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
  case Stmt::Kind::Return:
    live.clear();
    return addReads(*cast<ReturnStmt>(statement).value, live);
  case Stmt::Kind::Input: {
    const auto &input = cast<InputStmt>(statement);
    define(input.loc, input.name, live);
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

LogicalResult checkUnusedValues(const ModelFile &file, Diagnostics &diags) {
  Liveness liveness;
  for (const auto &function : file.functions) {
    Names live;
    liveness.visit(function->body, live);
  }
  Names live;
  liveness.visit(file.model->body, live);
  for (const auto &chain : file.chains)
    for (const ExprPtr &step : chain.steps)
      Liveness::addReads(*step, live);
  for (const auto *entries : {&file.data, &file.train, &file.predict})
    for (const Entry &entry : *entries)
      Liveness::addReads(*entry.value, live);
  for (const Parameter &parameter : file.model->parameters)
    Liveness::addReads(*parameter.defaultValue, live);
  for (const Parameter &parameter : file.model->parameters)
    if (!live.contains(parameter.name))
      liveness.findings.push_back({parameter.loc, parameter.name});
  sort(liveness.findings,
       [](const auto &a, const auto &b) { return a.loc.getPointer() < b.loc.getPointer(); });
  for (const Liveness::Finding &finding : ArrayRef(liveness.findings).take_front(10))
    (void)diags.error(finding.loc, "the value of '" + finding.name + "' is never used");
  return success(liveness.findings.empty());
}

} // namespace dlc::fe
