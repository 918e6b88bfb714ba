#include "passes/schedule/LegalizeKernels.h"

#include "dialects/NN/Elementwise.h"
#include "dialects/NN/Role.h"

using namespace mlir;
using namespace dlc;

namespace {
/// A bias stays as it is, is rounded to the type of what is multiplied, or is added behind the
/// kernel, with the ReLU that comes behind it.
enum class Bias { Kept, Narrow, Split };

struct Form {
  Bias bias = Bias::Kept;
  bool isNarrow = false; // the result has the type of what is multiplied
};
} // namespace

static Type elementOf(Value value) { return nn::tensorType(value).getElementType(); }

/// True if a 16-bit kernel has this in f32.
static bool canNarrow(Operation *op, Value value) {
  return elementOf(value).isF32() && elementOf(op->getOperand(0)).getIntOrFloatBitWidth() == 16;
}

/// The forms in which an op can be had, in the order in which they are tried: a bias costs a pass
/// over the result if it is split off, nearly nothing if it is narrow.
static SmallVector<Form> formsOf(Operation *op) {
  auto epilogue = dyn_cast<nn::EpilogueOpInterface>(op);
  Value bias = epilogue ? epilogue.getBias() : Value();
  SmallVector<Form> forms;
  for (Bias form : {Bias::Kept, Bias::Narrow, Bias::Split})
    for (bool isNarrow : {false, true}) {
      bool hasBiasSo = form == Bias::Kept || (bias && (form == Bias::Split || canNarrow(op, bias)));
      bool hasResultSo = !isNarrow || canNarrow(op, op->getResult(0));
      if (hasBiasSo && hasResultSo)
        forms.push_back({form, isNarrow});
    }
  return forms;
}

/// Layouts are to come, but for those that vectors and matrices have in any case.
static bool isOffered(Operation *op, Form form, TargetKernels &kernels) {
  rt::KernelRequest request = *kernels.request(op);
  if (form.isNarrow)
    request.operands.back().dtype = request.operands.front().dtype;
  if (form.bias != Bias::Kept) {
    auto bias = cast<nn::EpilogueOpInterface>(op).getBiasMutable();
    auto operand = request.operands.begin() + bias.begin()->getOperandNumber();
    if (form.bias == Bias::Narrow)
      operand->dtype = request.operands.front().dtype;
    else
      request.operands.erase(operand);
    request.bias &= form.bias == Bias::Narrow;
    request.relu &= form.bias == Bias::Narrow;
  }
  for (rt::OperandType &operand : request.operands) {
    operand.layout.reset();
    if (operand.shape.size() < 3)
      operand.layout = rt::Layout::rowMajor(operand.shape.size());
  }
  return !kernels.candidates(op, request).candidates.empty();
}

static void narrowBias(nn::EpilogueOpInterface op, OpBuilder &builder) {
  builder.setInsertionPoint(op);
  op.getBiasMutable().assign(
      nn::castTo(builder, op->getLoc(), op.getBias(), elementOf(op->getOperand(0))));
}

static void narrowResult(Operation *op, OpBuilder &builder) {
  Value result = op->getResult(0);
  RankedTensorType wide = nn::tensorType(result);
  result.setType(wide.clone(elementOf(op->getOperand(0))));
  builder.setInsertionPointAfter(op);
  auto cast = nn::CastOp::create(builder, op->getLoc(), wide, result);
  result.replaceAllUsesExcept(cast, cast);
}

static void splitBias(nn::EpilogueOpInterface op, OpBuilder &builder) {
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0);
  RankedTensorType type = nn::tensorType(result);
  Value bias = nn::castTo(builder, op->getLoc(), op.getBias(), type.getElementType());
  Value terms = nn::BroadcastOp::create(builder, op->getLoc(), type, bias, ArrayRef<int64_t>{1});
  auto sum = nn::AddOp::create(builder, op->getLoc(), result, terms);
  op.getBiasMutable().clear();
  Value last = sum;
  if (op.getRelu()) {
    op.setRelu(false);
    last = nn::ReluOp::create(builder, op->getLoc(), sum);
  }
  result.replaceAllUsesExcept(last, sum);
}

/// An op that has a kernel in no form stays as it is: the choice of layouts says so.
static void legalize(Operation *op, TargetKernels &kernels) {
  SmallVector<Form> forms = formsOf(op);
  const auto *offered =
      forms.size() > 1
          ? llvm::find_if(forms, [&](Form form) { return isOffered(op, form, kernels); })
          : forms.end();
  if (offered == forms.end())
    return;
  nn::RoleStamp stamp(nn::roleOf(op));
  OpBuilder builder(op->getContext(), &stamp);
  // A result that is widened is so ahead of the sum.
  if (offered->bias == Bias::Narrow)
    narrowBias(cast<nn::EpilogueOpInterface>(op), builder);
  if (offered->bias == Bias::Split)
    splitBias(cast<nn::EpilogueOpInterface>(op), builder);
  if (offered->isNarrow)
    narrowResult(op, builder);
}

void dlc::legalizeKernels(nn::ModelOp model, TargetKernels &kernels) {
  model.walk([&](Operation *op) {
    if (hasRequest(op))
      legalize(op, kernels);
  });
}
