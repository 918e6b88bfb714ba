#include "passes/codegen/gpu/LowerKernels.h"

#include "passes/codegen/MathFunctions.h"
#include "passes/codegen/gpu/ExpandMath.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace dlc;

namespace {
/// Rounding to 16 bits by the device's own conversion. LLVM would take arithmetic in f32 whose
/// result is rounded for arithmetic in 16 bits, which is so but for denormals: those it flushes.
struct RoundTo16Bits : ConvertOpToLLVMPattern<arith::TruncFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!isa<Float16Type, BFloat16Type>(type) || !operands.getIn().getType().isF32())
      return rewriter.notifyMatchFailure(op, "rounds no f32 to 16 bits");
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, type,
        rewriter.getStringAttr(type.isF16() ? "llvm.nvvm.f2f16.rn" : "llvm.nvvm.f2bf16.rn"),
        operands.getIn());
    return success();
  }
};

/// Widening by an intrinsic that InstCombine of LLVM 22 does not look through. It would compare in
/// f16 what is widened, where what flushes f32's denormals flushes f16's, which f32 tells from
/// zero.
struct WidenF16 : ConvertOpToLLVMPattern<arith::ExtFOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!operands.getIn().getType().isF16())
      return rewriter.notifyMatchFailure(op, "widens no f16");
    Value bits =
        LLVM::BitcastOp::create(rewriter, op.getLoc(), rewriter.getI16Type(), operands.getIn());
    rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
        op, op.getType(), rewriter.getStringAttr("llvm.convert.from.fp16"), bits);
    return success();
  }
};
} // namespace

// Of the dialect that knows the attribute, so that lowering an scf.for keeps it.
static constexpr llvm::StringLiteral loopAnnotation = "llvm.loop_annotation";

void dlc::keepRolled(scf::ForOp loop) {
  MLIRContext *context = loop.getContext();
  auto unroll =
      LLVM::LoopUnrollAttr::get(context, BoolAttr::get(context, true), {}, {}, {}, {}, {}, {});
  loop->setDiscardableAttr(loopAnnotation,
                           LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {},
                                                         {}, {}, {}, {}, {}, {}, {}, {}));
}

static LogicalResult convertToLlvm(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateMathToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  patterns.add<RoundTo16Bits, WidenF16>(converter, /*benefit=*/2);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalDialect<NVVM::NVVMDialect>();
  return applyPartialConversion(module, target, std::move(patterns));
}

/// Annotations of loops, which conversions have taken along as they were, become LLVM's.
static void annotateLoops(ModuleOp module) {
  module.walk([](LLVM::BrOp latch) {
    if (Attribute annotation = latch->removeDiscardableAttr(loopAnnotation))
      latch.setLoopAnnotationAttr(cast<LLVM::LoopAnnotationAttr>(annotation));
  });
}

LogicalResult dlc::lowerGpuKernels(ModuleOp module) {
  if (failed(expandMath(module)) || failed(approximateMath(module)))
    return failure();
  PassManager manager(module.getContext());
#ifdef NDEBUG
  manager.enableVerifier(false); // once, in the end, is enough
#endif
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  if (failed(manager.run(module)) || failed(convertToLlvm(module)))
    return failure();
  annotateLoops(module);
  return verify(module);
}
