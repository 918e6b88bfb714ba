// Syntax tree of the graph language. Text is referenced, not copied: the SourceMgr outlives the
// tree. Invariant: no expression is higher than maxHeight and no block nested deeper, so that walks
// may recurse.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Casting.h"
#include "llvm/Support/SMLoc.h"

#include <memory>
#include <string>
#include <vector>

namespace dlc::fe {

constexpr unsigned maxHeight = 128;
/// Of one call, function or block.
constexpr size_t maxArguments = 256;
constexpr size_t maxFunctions = 1024;

//===- Expressions ----------------------------------------------------------------------------===//

enum class UnaryOperator { Negate, Not };
enum class BinaryOperator {
  Or,
  And,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  ShiftLeft,
  ShiftRight,
  Add,
  Subtract,
  Multiply,
  Divide,
  Div,
  Mod,
  Power,
  Range,
};
llvm::StringRef spelling(BinaryOperator op);

struct Expr {
  enum class Kind {
    Integer,
    Float,
    Bool,
    String,
    List,
    Name,
    Member,
    Index,
    Call,
    Unary,
    Binary,
    Conditional
  };

  Expr(Kind kind, llvm::SMLoc loc) : kind(kind), loc(loc) {}
  virtual ~Expr() = default;

  const Kind kind;
  const llvm::SMLoc loc;
  unsigned height = 1;
};
using ExprPtr = std::unique_ptr<Expr>;

template <Expr::Kind K> struct ExprOf : Expr {
  explicit ExprOf(llvm::SMLoc loc) : Expr(K, loc) {}
  static bool classof(const Expr *e) { return e->kind == K; }
};

struct IntegerExpr : ExprOf<Expr::Kind::Integer> {
  using ExprOf::ExprOf;
  int64_t value = 0;
};

struct FloatExpr : ExprOf<Expr::Kind::Float> {
  using ExprOf::ExprOf;
  double value = 0;
};

struct BoolExpr : ExprOf<Expr::Kind::Bool> {
  using ExprOf::ExprOf;
  bool value = false;
};

/// Literal text, then expression, then literal text...: "up.{level}.x" is "up.", level, ".x".
struct StringExpr : ExprOf<Expr::Kind::String> {
  using ExprOf::ExprOf;
  std::vector<std::string> literals; // one more than expressions
  std::vector<ExprPtr> expressions;
};

struct ListExpr : ExprOf<Expr::Kind::List> {
  using ExprOf::ExprOf;
  std::vector<ExprPtr> items;
};

struct NameExpr : ExprOf<Expr::Kind::Name> {
  using ExprOf::ExprOf;
  llvm::StringRef name;
};

struct MemberExpr : ExprOf<Expr::Kind::Member> {
  using ExprOf::ExprOf;
  ExprPtr object;
  llvm::StringRef member;
};

struct IndexExpr : ExprOf<Expr::Kind::Index> {
  using ExprOf::ExprOf;
  ExprPtr object;
  ExprPtr index;
};

struct Argument {
  llvm::SMLoc loc;
  llvm::StringRef keyword; // empty: positional
  ExprPtr value;
};

struct CallExpr : ExprOf<Expr::Kind::Call> {
  using ExprOf::ExprOf;
  ExprPtr callee;
  std::vector<Argument> arguments;
};

struct UnaryExpr : ExprOf<Expr::Kind::Unary> {
  using ExprOf::ExprOf;
  UnaryOperator op{};
  ExprPtr operand;
};

struct BinaryExpr : ExprOf<Expr::Kind::Binary> {
  using ExprOf::ExprOf;
  BinaryOperator op{};
  ExprPtr left;
  ExprPtr right;
};

/// `chosen if condition else other`.
struct ConditionalExpr : ExprOf<Expr::Kind::Conditional> {
  using ExprOf::ExprOf;
  ExprPtr chosen;
  ExprPtr condition;
  ExprPtr other;
};

//===- Statements -----------------------------------------------------------------------------===//

struct Stmt {
  enum class Kind { Assign, For, If, Require, Print, Return, Input, Output, Loss, Metric };

  Stmt(Kind kind, llvm::SMLoc loc) : kind(kind), loc(loc) {}
  virtual ~Stmt() = default;

  const Kind kind;
  const llvm::SMLoc loc;
};
using Block = std::vector<std::unique_ptr<Stmt>>;

template <Stmt::Kind K> struct StmtOf : Stmt {
  explicit StmtOf(llvm::SMLoc loc) : Stmt(K, loc) {}
  static bool classof(const Stmt *s) { return s->kind == K; }
};

/// What a `for` or an assignment binds: one name, or a list of patterns that takes a list apart.
struct Pattern {
  llvm::SMLoc loc;
  llvm::StringRef name; // empty: a list pattern
  std::vector<Pattern> items;
};

struct AssignStmt : StmtOf<Stmt::Kind::Assign> {
  using StmtOf::StmtOf;
  Pattern target;
  ExprPtr value; // of `x += e` the sum x + e
};

struct ForStmt : StmtOf<Stmt::Kind::For> {
  using StmtOf::StmtOf;
  Pattern pattern;
  ExprPtr iterable;
  Block body;
};

struct IfStmt : StmtOf<Stmt::Kind::If> {
  using StmtOf::StmtOf;
  ExprPtr condition;
  Block thenBlock;
  Block elseBlock;
};

struct RequireStmt : StmtOf<Stmt::Kind::Require> {
  using StmtOf::StmtOf;
  ExprPtr condition;
  ExprPtr message;
};

struct PrintStmt : StmtOf<Stmt::Kind::Print> {
  using StmtOf::StmtOf;
  ExprPtr message;
};

struct ReturnStmt : StmtOf<Stmt::Kind::Return> {
  using StmtOf::StmtOf;
  ExprPtr value;
};

struct Dimension {
  ExprPtr value;
  bool splice = false; // `patch...`: the items of a list
};

struct InputStmt : StmtOf<Stmt::Kind::Input> {
  using StmtOf::StmtOf;
  llvm::StringRef name;
  llvm::SMLoc typeLoc;
  llvm::StringRef element;
  std::vector<Dimension> dimensions;
};

/// `output NAME = value`, `metric NAME = value`, `loss = value` (no name).
template <Stmt::Kind K> struct SinkStmt : StmtOf<K> {
  using StmtOf<K>::StmtOf;
  llvm::StringRef name;
  ExprPtr value;
};
using OutputStmt = SinkStmt<Stmt::Kind::Output>;
using MetricStmt = SinkStmt<Stmt::Kind::Metric>;
using LossStmt = SinkStmt<Stmt::Kind::Loss>;

//===- Files ----------------------------------------------------------------------------------===//

struct Parameter {
  llvm::SMLoc loc;
  llvm::StringRef name;
  ExprPtr defaultValue; // null: must be given
};

struct Function {
  llvm::SMLoc loc;
  llvm::StringRef name;
  std::vector<Parameter> parameters;
  Block body;
};

struct SourceDecl {
  llvm::SMLoc loc;
  std::vector<llvm::StringRef> names;
  ExprPtr axes; // null: not stated
};

struct NamedLoc {
  llvm::SMLoc loc;
  llvm::StringRef name;
};

/// `inputs -> steps -> outputs`. A step is a call or a bare name.
struct ChainDecl {
  llvm::SMLoc loc;
  std::vector<NamedLoc> inputs;
  std::vector<ExprPtr> steps;
  std::vector<NamedLoc> outputs;
};

/// `key = value` of the blocks data, train and predict.
struct Entry {
  llvm::SMLoc loc;
  llvm::StringRef name;
  ExprPtr value;           // null if it is not parsed yet
  llvm::StringRef setting; // then the text that the command line gives
};

struct ModelFile {
  std::vector<std::unique_ptr<Function>> functions;
  std::unique_ptr<Function> model;
  std::vector<SourceDecl> sources;
  std::vector<ChainDecl> chains;
  std::vector<Entry> data;
  std::vector<Entry> train;
  std::vector<Entry> predict;
};

} // namespace dlc::fe
