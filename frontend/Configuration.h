// The blocks data, train and predict: checked against the table and written as attributes of the
// nn.model.
//
//   config = {NAME = value, ...}, the parameters of the model as resolved
//   data   = {sources = [{name, axes}..], validation = 0.2,
//             chains = [{inputs = [..], steps = [CALL..], outputs = [..]}..]}
//   train  = {optimizer = CALL, epochs = 20, steps_per_epoch = 0, schedule = [CALL..],
//             monitor = {name = "iou", goal = "max"}, early_stop = CALL, freeze = ["*.bias"],
//             lr_scale = [["head.*", 10.0]..], clip_norm = 1.0, ema = 0.999}
//   CALL   = {name = "adam", lr = 1.0e-3, ...}
//
// Arguments are i64, f64, bool, string, or an array of one of these; all that have a value are
// written, defaults included. Entries from early_stop on are there if given.
#pragma once

#include "frontend/Elaborator.h"
#include "runtime/artifact/Ranges.h"

namespace dlc::fe {

/// Replaces or adds the entries of blocks that settings name ("train.epochs"), and marks those
/// settings.
llvm::LogicalResult applyBlockSettings(ModelFile &file, llvm::MutableArrayRef<Setting> settings,
                                       Diagnostics &diags);
/// Reports settings that name neither a parameter nor an entry of a block.
llvm::LogicalResult checkSettingsUsed(const ModelFile &file, llvm::ArrayRef<Setting> settings,
                                      Diagnostics &diags);

class Configuration {
public:
  Configuration(const ModelFile &file, Elaborator &elaborator, Diagnostics &diags,
                const Elaborator::Parameters &parameters)
      : file(file), elaborator(elaborator), diags(diags), parameters(parameters) {}

  /// The block predict as values for parameters. Settings of it may be written as settings of the
  /// parameters themselves.
  llvm::LogicalResult evaluatePredict(Elaborator::Parameters &overrides);
  /// Sets config, data and train of a model that has its parameters. Inputs are those of @train,
  /// metrics those of @eval.
  llvm::LogicalResult write(nn::ModelOp written, llvm::ArrayRef<InputInfo> inputs,
                            llvm::ArrayRef<MetricInfo> metrics);

private:
  mlir::FailureOr<Value> predictValue(const Entry &entry, const Value &current);
  mlir::FailureOr<mlir::Attribute> dataAttr(llvm::ArrayRef<InputInfo> inputs);
  mlir::FailureOr<mlir::Attribute> sourcesAttr();
  mlir::FailureOr<mlir::Attribute> chainAttr(const ChainDecl &chain,
                                             std::vector<llvm::StringRef> &known,
                                             llvm::ArrayRef<InputInfo> inputs);
  mlir::FailureOr<mlir::Attribute> outputChainAttr(const ChainDecl &chain);
  mlir::FailureOr<mlir::Attribute> trainAttr(llvm::ArrayRef<MetricInfo> metrics);
  mlir::FailureOr<mlir::Attribute> trainEntryAttr(const Entry &entry,
                                                  llvm::ArrayRef<MetricInfo> metrics);
  mlir::FailureOr<mlir::Attribute> monitorAttr(const Expr &expr,
                                               llvm::ArrayRef<MetricInfo> metrics);
  mlir::Attribute monitor(llvm::StringRef name, bool isMax);
  mlir::FailureOr<mlir::Attribute> patternsAttr(const Expr &expr);
  mlir::FailureOr<mlir::Attribute> scalesAttr(const Expr &expr);
  /// Reports a pattern that matches no parameter.
  llvm::LogicalResult checkPattern(llvm::StringRef pattern, llvm::SMLoc loc);
  /// Remarks an optimizer's patterns that match no parameter.
  void noteUnmatched(mlir::ArrayAttr patterns, llvm::SMLoc loc);
  mlir::FailureOr<mlir::Attribute> scheduleAttr(const Expr &expr);
  mlir::FailureOr<mlir::Attribute> countAttr(const Entry &entry, int64_t low);
  mlir::FailureOr<mlir::Attribute> numberAttr(const Entry &entry, const rt::Range &range);
  /// A call or a bare name of the kind.
  mlir::FailureOr<mlir::Attribute> callAttr(const Expr &expr, CallKind kind);
  llvm::LogicalResult checkArguments(const CallSpec &spec, llvm::SMLoc loc,
                                     llvm::ArrayRef<BoundArgument> bound);
  llvm::LogicalResult checkBounds(const CallSpec &spec, llvm::SMLoc loc,
                                  llvm::ArrayRef<BoundArgument> bound);
  llvm::LogicalResult checkArity(const ChainDecl &chain, llvm::ArrayRef<mlir::Attribute> steps);
  llvm::LogicalResult checkSizes(const ChainDecl &chain, llvm::ArrayRef<mlir::Attribute> steps,
                                 llvm::ArrayRef<InputInfo> inputs);
  llvm::LogicalResult checkPatches(llvm::ArrayRef<mlir::Attribute> chains);
  mlir::Attribute strings(llvm::ArrayRef<NamedLoc> names);

  const ModelFile &file;
  Elaborator &elaborator;
  Diagnostics &diags;
  const Elaborator::Parameters &parameters;
  nn::ModelOp model; // being written
  mlir::Builder builder{static_cast<mlir::MLIRContext *>(nullptr)};
};

} // namespace dlc::fe
