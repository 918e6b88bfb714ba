// dlc-insert-16-bit-weights: casts of parameters become reads of variables that hold the
// parameter in 16 bits, and the parameters' assignments write those, too. Invariant: a copy is
// always its parameter rounded.

#include "dialects/NN/Role.h"
#include "passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

namespace dlc {
#define GEN_PASS_DEF_INSERT16BITWEIGHTS
#include "passes/Passes.h.inc"
} // namespace dlc

namespace {
struct Insert16BitWeightsPass : dlc::impl::Insert16BitWeightsBase<Insert16BitWeightsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModelOp model = getOperation();
    if (model.getStage() != nameOf(Stage::Schedule) && failed(requireStage(model, Stage::Train)))
      return signalPassFailure();
    SymbolTable symbols(model);
    for (auto program : model.getBody().getOps<ProgramOp>())
      for (auto assign : program.getBody().getOps<AssignOp>())
        assigned.insert(assign.getVariable());
    for (auto program : model.getBody().getOps<ProgramOp>())
      for (auto cast : llvm::make_early_inc_range(program.getBody().getOps<CastOp>()))
        if (VariableOp parameter = parameterBehind(cast, symbols))
          readCopy(cast, copyOf(parameter, tensorType(cast.getY()).getElementType(), symbols));
    for (auto program : model.getBody().getOps<ProgramOp>())
      for (auto assign : llvm::make_early_inc_range(program.getBody().getOps<AssignOp>()))
        assignCopies(assign, symbols);
    copies.clear();
    assigned.clear();
  }

private:
  /// The parameter whose value in a narrower type the cast yields, or null.
  static VariableOp parameterBehind(CastOp cast, SymbolTable &symbols) {
    auto read = cast.getX().getDefiningOp<ReadOp>();
    auto variable = read ? symbols.lookup<VariableOp>(read.getVariable()) : VariableOp();
    Type from = tensorType(cast.getX()).getElementType(),
         to = tensorType(cast.getY()).getElementType();
    bool isNarrower =
        isa<FloatType>(from) && isa<FloatType>(to) && elementBytes(to) < elementBytes(from);
    return variable && variable.getKind() == VariableKind::Parameter && isNarrower ? variable
                                                                                   : VariableOp();
  }

  VariableOp copyOf(VariableOp parameter, Type element, SymbolTable &symbols) {
    for (VariableOp copy : copies[parameter])
      if (cast<RankedTensorType>(copy.getType()).getElementType() == element)
        return copy;
    std::string name;
    llvm::raw_string_ostream(name) << parameter.getSymName() << "." << element;
    // Made by an earlier run.
    if (auto known = symbols.lookup<VariableOp>(name);
        known && isCopyOf(known, parameter, element)) {
      if (!assigned.contains(name))
        copies[parameter].push_back(known);
      return known;
    }
    OpBuilder behind(parameter.getContext());
    behind.setInsertionPointAfter(parameter);
    auto zero = InitializerAttr::get(&getContext(), InitializerKind::Constant, 0, 0);
    auto copy = VariableOp::create(
        behind, parameter.getLoc(), name,
        cast<RankedTensorType>(parameter.getType()).clone(element), VariableKind::Copy, zero,
        FlatSymbolRefAttr::get(parameter.getSymNameAttr()), StringAttr());
    symbols.insert(copy);
    copies[parameter].push_back(copy);
    return copy;
  }

  static bool isCopyOf(VariableOp copy, VariableOp parameter, Type element) {
    auto type = cast<RankedTensorType>(parameter.getType());
    return copy.getKind() == VariableKind::Copy && copy.getType() == type.clone(element) &&
           copy.getOwnerAttr() == FlatSymbolRefAttr::get(parameter.getSymNameAttr());
  }

  static void readCopy(CastOp cast, VariableOp copy) {
    OpBuilder builder(cast);
    auto former = cast.getX().getDefiningOp<ReadOp>();
    auto read = ReadOp::create(builder, cast.getLoc(), cast.getY().getType(), copy.getSymName());
    cast.getY().replaceAllUsesWith(read.getValue());
    cast.erase();
    if (former.use_empty())
      former.erase();
  }

  void assignCopies(AssignOp assign, const SymbolTable &symbols) {
    auto parameter = symbols.lookup<VariableOp>(assign.getVariable());
    RoleStamp stamp({Phase::Update, LayerKind::Other, assign.getVariableAttr()});
    OpBuilder builder(assign->getContext(), &stamp);
    builder.setInsertionPointAfter(assign);
    for (VariableOp copy : copies.lookup(parameter)) {
      auto rounded = CastOp::create(builder, assign.getLoc(),
                                    cast<RankedTensorType>(copy.getType()), assign.getValue());
      AssignOp::create(builder, assign.getLoc(), copy.getSymName(), rounded.getY());
    }
  }

  llvm::MapVector<Operation *, SmallVector<VariableOp, 1>> copies; // to be assigned, by parameter
  llvm::StringSet<> assigned;                                      // variables
};
} // namespace
