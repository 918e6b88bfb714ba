// dlc-convert-nn-to-exec: program by program; the work is in ProgramConverter (places,
// instructions) and KernelTable (kernels).

#include "dialects/NN/InputRange.h"
#include "passes/Passes.h"
#include "passes/exec/ProgramConverter.h"

using namespace mlir;
using namespace dlc;

namespace dlc {
#define GEN_PASS_DEF_CONVERTNNTOEXEC
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
class ConvertNNToExecPass : public dlc::impl::ConvertNNToExecBase<ConvertNNToExecPass> {
public:
  using Base::Base;
  void runOnOperation() override {
    nn::ModelOp model = getOperation();
    if (failed(requireStage(model, nn::Stage::Schedule)))
      return signalPassFailure();
    std::unique_ptr<TargetKernels> targetKernels = TargetKernels::open(model);
    if (!targetKernels)
      return signalPassFailure();
    recordInputs(model);
    createArenas(model);
    SymbolTable symbols(model);
    KernelTable kernels(model, symbols, *targetKernels);
    for (auto program : llvm::make_early_inc_range(model.getBody().getOps<nn::ProgramOp>())) {
      if (failed(ProgramConverter(program, kernels, symbols).convert()))
        return signalPassFailure();
      symbols.remove(program);
      program.erase();
    }
    model.setStage("exec");
  }

private:
  /// True if the name is that of another input's shift or scale.
  static bool isOfNormalize(nn::ProgramOp program, StringRef name) {
    return (name.consume_back(nn::shiftSuffix) || name.consume_back(nn::scaleSuffix)) &&
           llvm::any_of(program.getArguments(), [&](BlockArgument argument) {
             return program.getInputName(argument.getArgNumber()) == name &&
                    nn::tensorType(argument).getElementType().isUnsignedInteger();
           });
  }

  /// The inputs' logical types outlive the nn.programs as attribute `inputs`; train's wins where
  /// programs differ in size.
  static void recordInputs(nn::ModelOp model) {
    llvm::MapVector<StringRef, NamedAttrList> inputs;
    Builder builder(model.getContext());
    for (auto program : model.getBody().getOps<nn::ProgramOp>())
      for (BlockArgument argument : program.getArguments()) {
        StringRef name = program.getInputName(argument.getArgNumber());
        if (isOfNormalize(program, name))
          continue;
        NamedAttrList &entry = inputs[name];
        if (entry.empty() || program.getSymName() == "train") {
          entry.set("name", builder.getStringAttr(name));
          entry.set("type",
                    TypeAttr::get(nn::inputType(nn::logicalType(nn::tensorType(argument)))));
        }
        if (auto range = program.getArgAttrOfType<DenseF64ArrayAttr>(argument.getArgNumber(),
                                                                     nn::inputRange))
          entry.set("range",
                    nn::intersect(range, dyn_cast_or_null<DenseF64ArrayAttr>(entry.get("range"))));
        if (program.getArgAttr(argument.getArgNumber(), nn::inputSumsToOne))
          entry.set("sums_to_one", builder.getBoolAttr(true));
        if (program.getSymName() == "predict")
          entry.set("needed_by_predict", builder.getBoolAttr(true));
      }
    SmallVector<Attribute> list;
    for (auto &[name, entry] : inputs)
      list.push_back(entry.getDictionary(model.getContext()));
    model->setAttr("inputs", builder.getArrayAttr(list));
  }

  static void createArenas(nn::ModelOp model) {
    OpBuilder builder = OpBuilder::atBlockBegin(&model.getBody().front());
    SymbolTable symbols(model); // a variable may have an arena's name
    using exec::ArenaKind;
    for (ArenaKind kind : {ArenaKind::Variables, ArenaKind::Slots, ArenaKind::Inputs,
                           ArenaKind::Transient, ArenaKind::Gradients, ArenaKind::Sums})
      symbols.insert(exec::ArenaOp::create(builder, model.getLoc(),
                                           (exec::stringifyArenaKind(kind) + "_arena").str(), kind,
                                           IntegerAttr(), IntegerAttr()));
  }
};
} // namespace
