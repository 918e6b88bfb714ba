#include "passes/codegen/gpu/LowerKernels.h"

#include "passes/codegen/MathFunctions.h"
#include "passes/codegen/gpu/ExpandMath.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
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

static LogicalResult convertToLlvm(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateMathToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalDialect<NVVM::NVVMDialect>();
  return applyPartialConversion(module, target, std::move(patterns));
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
  return verify(module);
}
