// From loops over vectors to LLVM's dialect. f32 functions are MLIR's polynomials; f64 ones, which
// only scalars and tests need, are calls of libm. A kernel's entry unpacks the array of buffers and
// calls the body, which LLVM inlines.

#include "passes/KernelEmitter.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace dlc;

/// Polynomials for the functions that have good ones.
static LogicalResult approximateMath(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  populateMathPolynomialApproximationPatterns(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

/// Adds `NAME(buffers, begin, end)` that calls the function under another name.
static void addEntry(LLVM::LLVMFuncOp body) {
  ImplicitLocOpBuilder b(body.getLoc(), body);
  std::string name = body.getName().str();
  body.setName(name + ".body");
  body.setLinkage(LLVM::Linkage::Internal);
  body.setAlwaysInline(true);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), index = b.getI64Type();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, index, index});
  auto entry = LLVM::LLVMFuncOp::create(b, name, type);
  b.setInsertionPointToStart(entry.addEntryBlock(b));
  SmallVector<Value> operands;
  for (unsigned i = 0; i + 2 < body.getNumArguments(); ++i) {
    Value slot = LLVM::GEPOp::create(b, pointer, pointer, entry.getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
    operands.push_back(LLVM::LoadOp::create(b, pointer, slot));
  }
  operands.push_back(entry.getArgument(1));
  operands.push_back(entry.getArgument(2));
  LLVM::CallOp::create(b, body, operands);
  LLVM::ReturnOp::create(b, ValueRange());
}

LogicalResult dlc::lowerToLlvm(ModuleOp module) {
  if (failed(approximateMath(module)))
    return failure();
  PassManager manager(module.getContext());
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  functions.addPass(createLowerAffinePass());
  functions.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions bare;
  bare.useBarePtrCallConv = true;
  manager.addPass(createConvertFuncToLLVMPass(bare));
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createConvertIndexToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
  if (failed(manager.run(module)))
    return failure();
  for (auto function : llvm::to_vector(module.getOps<LLVM::LLVMFuncOp>()))
    if (!function.isExternal())
      addEntry(function);
  return success();
}
