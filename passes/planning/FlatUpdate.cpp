// A walk through the cluster's ops follows whether zeros give zeros; only a few ops are known to
// keep them.

#include "passes/planning/FlatUpdate.h"

#include "dialects/Exec/Exec.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace dlc;

//===- Zeros ----------------------------------------------------------------------------------===//

namespace {
/// What is known of a value if all tensors are zero.
enum class Known { Nothing, Finite, Nonzero, Zero };
} // namespace

static Known knownOf(Operation *op, llvm::function_ref<Known(unsigned)> operand) {
  auto both = [&](Known wanted) { return operand(0) == wanted && operand(1) == wanted; };
  auto either = [&](Known wanted) { return operand(0) == wanted || operand(1) == wanted; };
  return llvm::TypeSwitch<Operation *, Known>(op)
      .Case([](nn::ConstantOp constant) {
        std::optional<double> value = nn::splatValue(constant);
        if (!value || !std::isfinite(*value))
          return Known::Nothing;
        return *value == 0 ? Known::Zero : Known::Nonzero;
      })
      .Case<nn::BroadcastOp, nn::NegOp>([&](auto) { return operand(0); })
      .Case<nn::SqrtOp, nn::CastOp>(
          [&](auto) { return operand(0) == Known::Zero ? Known::Zero : Known::Nothing; })
      .Case<nn::AddOp, nn::SubOp>([&](auto) {
        if (either(Known::Nothing))
          return Known::Nothing;
        if (both(Known::Zero))
          return Known::Zero;
        return either(Known::Zero) && either(Known::Nonzero) ? Known::Nonzero : Known::Finite;
      })
      .Case([&](nn::MulOp) {
        if (either(Known::Nothing))
          return Known::Nothing;
        if (either(Known::Zero))
          return Known::Zero;
        return both(Known::Nonzero) ? Known::Nonzero : Known::Finite;
      })
      .Case([&](nn::DivOp) { return operand(1) == Known::Nonzero ? operand(0) : Known::Nothing; })
      .Case([&](nn::SelectOp) {
        return operand(1) == Known::Zero && operand(2) == Known::Zero ? Known::Zero
                                                                      : Known::Nothing;
      })
      .Default([](Operation *) { return Known::Nothing; });
}

static bool keepsZeros(Block &cluster) {
  llvm::DenseMap<Value, Known> known;
  for (BlockArgument argument : cluster.getArguments())
    known[argument] = nn::tensorType(argument).getRank() > 0 ? Known::Zero : Known::Nonzero;
  for (Operation &op : cluster.without_terminator())
    known[op.getResult(0)] =
        knownOf(&op, [&](unsigned index) { return known.lookup(op.getOperand(index)); });
  return llvm::all_of(cluster.getTerminator()->getOperands(),
                      [&](Value value) { return known.lookup(value) == Known::Zero; });
}

//===- Shapes ---------------------------------------------------------------------------------===//

bool dlc::isFlatUpdate(Block &cluster) {
  RankedTensorType common;
  auto isCommon = [&](Value value) {
    auto type = nn::tensorType(value);
    if (type.getRank() > 0 && !common)
      common = type;
    return type.getRank() == 0 || nn::haveOneSpace(type, common);
  };
  auto hasRank = [](Value value) { return nn::tensorType(value).getRank() > 0; };
  if (!llvm::all_of(cluster.getArguments(), isCommon) ||
      !llvm::all_of(cluster.getTerminator()->getOperands(), hasRank))
    return false;
  for (Operation &op : cluster.without_terminator()) {
    auto broadcast = dyn_cast<nn::BroadcastOp>(op);
    bool isPointwise = (op.hasTrait<nn::Elementwise>() && !isa<nn::RandomOpInterface>(op)) ||
                       (broadcast && !hasRank(broadcast.getX())) ||
                       (isa<nn::ConstantOp>(op) && nn::splatValue(op.getResult(0)));
    if (!isPointwise || !llvm::all_of(op.getResults(), isCommon))
      return false;
  }
  return keepsZeros(cluster);
}

void dlc::buildFlatUpdate(Block &cluster, RankedTensorType type, Region &into) {
  auto typeFor = [&](Value value) {
    auto former = nn::tensorType(value);
    return former.getRank() == 0 ? former
                                 : cast<RankedTensorType>(type.clone(former.getElementType()));
  };
  Block &block = into.emplaceBlock();
  IRMapping mapping;
  for (BlockArgument argument : cluster.getArguments())
    mapping.map(argument, block.addArgument(typeFor(argument), argument.getLoc()));
  OpBuilder builder(cluster.getParentOp()->getContext());
  builder.setInsertionPointToEnd(&block);
  for (Operation &op : cluster) {
    Operation *copy = builder.clone(op, mapping);
    for (OpResult result : op.getResults())
      copy->getResult(result.getResultNumber()).setType(typeFor(result));
    if (auto constant = dyn_cast<nn::ConstantOp>(copy)) {
      auto value = cast<SplatElementsAttr>(constant.getValue());
      constant.setValueAttr(
          DenseElementsAttr::get(typeFor(op.getResult(0)), value.getSplatValue<Attribute>()));
    }
  }
}

std::string dlc::flatUpdateText(Block &cluster, RankedTensorType type) {
  // Printed inside of an op: operands of a region without a parent have no names.
  Operation *parent = cluster.getParentOp();
  OpBuilder builder(parent->getContext());
  OwningOpRef<exec::ClusterOp> flat =
      exec::ClusterOp::create(builder, parent->getLoc(), "flat", DenseI64ArrayAttr());
  buildFlatUpdate(cluster, type, flat->getBody());
  std::string text;
  llvm::raw_string_ostream stream(text);
  flat->print(stream, OpPrintingFlags().useLocalScope().assumeVerified());
  return text;
}
