// Runs a parsed model at compile time, once per program, and leaves the nn.model: interpreter of
// statements and expressions, names of layers, calls of functions and operators. Stops at the first
// error. Invariant: work and memory are bounded (charge), whatever the program says.
#pragma once

#include "frontend/operators/Graph.h"
#include "frontend/operators/Operators.h"
#include "frontend/syntax/AST.h"

#include <set>

namespace dlc::fe {

/// `--set name=value` as an expression: text of a buffer of the SourceMgr.
struct Setting {
  llvm::StringRef name;
  llvm::StringRef text;
  bool used = false;
};

/// `--set name=text` by the type of the default: words and lists need no quotes and brackets.
mlir::FailureOr<Value> convertSetting(const Setting &setting, const Value &like,
                                      Diagnostics &diags);

struct InputInfo {
  llvm::StringRef name;
  llvm::SMLoc loc;
  mlir::RankedTensorType type;
};

struct MetricInfo {
  llvm::StringRef name;
  Better better;
};

/// One activation of the model or of a function.
struct Frame {
  const Function *function = nullptr;
  std::string path;                     // of the layers made in it; empty in the model
  size_t site = 0;                      // hash of the calls that led here
  bool reuse = false, trainable = true; // as the calls that led here say
  /// Unnamed calls so far, per callee. A call that adds nothing to the path shares its caller's.
  using Counters = llvm::StringMap<unsigned>;
  std::shared_ptr<Counters> counters = std::make_shared<Counters>();
  llvm::StringMap<Value> variables;
  bool returned = false;
  Value result;
};

class Elaborator {
public:
  using Parameters = std::vector<std::pair<llvm::StringRef, Value>>;

  Elaborator(const ModelFile &file, Graph &graph, Diagnostics &diags);

  /// Values of the model's parameters: an entry of `overrides` (of the block predict), else a
  /// setting, else the default. Settings used are marked.
  llvm::LogicalResult resolveParameters(llvm::MutableArrayRef<Setting> settings,
                                        const Parameters &overrides, Parameters &resolved);
  llvm::LogicalResult elaborate(ProgramKind kind, const Parameters &parameters);

  /// Of the last program elaborated.
  llvm::ArrayRef<InputInfo> inputs() const { return inputInfos; }
  llvm::ArrayRef<MetricInfo> metrics() const { return metricInfos; }
  bool hasOutputs() const { return !outputNames.empty(); }
  llvm::ArrayRef<llvm::StringRef> outputs() const { return outputNames; }

  /// Evaluates an expression of a block beside the model, which sees the model's parameters.
  mlir::FailureOr<Value> evaluateWith(const Parameters &parameters, const Expr &expr);

private:
  // Statements (Elaborator.cpp).
  llvm::LogicalResult execute(const Block &block);
  llvm::LogicalResult execute(const Stmt &statement);
  llvm::LogicalResult executeFor(const ForStmt &loop);
  llvm::LogicalResult bindPattern(const Pattern &pattern, const Value &value);
  /// `keyword` is the statement's, for the message.
  mlir::FailureOr<bool> evaluateCondition(llvm::StringRef keyword, const Expr &expr);
  llvm::LogicalResult executeIf(const IfStmt &branch);
  llvm::LogicalResult executeRequire(const RequireStmt &require);
  llvm::LogicalResult executePrint(const PrintStmt &print);
  llvm::LogicalResult executeReturn(const ReturnStmt &result);
  llvm::LogicalResult executeInput(const InputStmt &input);
  mlir::FailureOr<mlir::RankedTensorType> evaluateType(const InputStmt &input);
  std::vector<std::string> extentNames(const InputStmt &input);
  llvm::LogicalResult executeOutput(const OutputStmt &output);
  llvm::LogicalResult executeLoss(const LossStmt &loss);
  llvm::LogicalResult executeMetric(const MetricStmt &metric);
  llvm::LogicalResult checkModelStatement(const Stmt &statement);

  // Expressions (Evaluate.cpp).
  mlir::FailureOr<Value> evaluate(const Expr &expr);
  mlir::FailureOr<Value> evaluateString(const StringExpr &expr);
  mlir::FailureOr<Value> evaluateList(const ListExpr &expr);
  mlir::FailureOr<Value> evaluateName(const NameExpr &expr);
  mlir::FailureOr<Value> evaluateMember(const MemberExpr &expr);
  mlir::FailureOr<Value> evaluateIndex(const IndexExpr &expr);
  mlir::FailureOr<Value> evaluateUnary(const UnaryExpr &expr);
  mlir::FailureOr<Value> evaluateBinary(const BinaryExpr &expr);
  mlir::FailureOr<Value> evaluateConditional(const ConditionalExpr &expr);

  // Calls (Calls.cpp).
  mlir::FailureOr<Value> evaluateCall(const CallExpr &expr);
  /// What every call may say, apart from what its callee takes.
  struct CallSettings {
    std::string path;
    bool reuse = false, trainable = true;
  };
  mlir::FailureOr<CallSettings> callSettings(const CallExpr &expr, llvm::StringRef callee,
                                             std::vector<GivenArgument> &arguments);
  mlir::FailureOr<std::string> callPath(const CallExpr &expr, llvm::StringRef callee,
                                        const GivenArgument *name);
  mlir::FailureOr<Value> callFunction(const Function &function, const CallExpr &expr,
                                      CallSettings settings, llvm::ArrayRef<GivenArgument> given);
  llvm::LogicalResult bindParameters(const Function &function, const CallExpr &expr,
                                     llvm::ArrayRef<GivenArgument> given, Frame &callee);
  mlir::FailureOr<Value> callOperator(const CallSpec &spec, const CallExpr &expr,
                                      const CallSettings &settings,
                                      llvm::ArrayRef<GivenArgument> given);

  llvm::LogicalResult error(llvm::SMLoc loc, const llvm::Twine &message) {
    return diags.error(loc, message);
  }
  /// Pays for work; an error once a program has done too much of it.
  llvm::LogicalResult charge(llvm::SMLoc loc, size_t cost = 1);
  const Function *findFunction(llvm::StringRef name) const;
  mlir::Location locationOf(llvm::SMLoc loc) const {
    return diags.locationOf(*graph.builder.getContext(), loc);
  }
  void setLocation(llvm::SMLoc loc, llvm::StringRef path);

  const ModelFile &file;
  Graph &graph;
  Diagnostics &diags;
  Frame *frame = nullptr;
  unsigned depth = 0; // of evaluate, over all frames
  unsigned calls = 0; // frames of functions
  size_t spent = 0;
  size_t emitted = 0;
  /// What `print` said where: most programs of a model say the same.
  std::set<std::pair<const char *, std::string>> printed;
  std::vector<InputInfo> inputInfos;
  std::vector<llvm::StringRef> outputNames;
  std::vector<MetricInfo> metricInfos;
  llvm::SMLoc lossLoc;
};

/// What to charge for visiting all of a list or string.
inline size_t workOn(const Value &value) {
  return (value.isString() ? value.asString().size() : value.isList() ? value.weight() : 0) / 16;
}

} // namespace dlc::fe
