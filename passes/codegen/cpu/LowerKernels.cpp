// From loops over vectors to LLVM's dialect. f32 functions are MLIR's polynomials; f64 ones, which
// only scalars and tests need, are calls of libm. A kernel becomes a record (runtime/cpu/
// GeneratedCode.h) of its body, which other kernels may share, its contract and its sizes.

#include "passes/codegen/cpu/LowerKernels.h"
#include "passes/codegen/MathFunctions.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace dlc;

//===- bf16 -----------------------------------------------------------------------------------===//

// Explicit integers: LLVM moves selects onto bf16 vectors, and takes those apart where the target
// has no instructions for them.
namespace {
/// Integer code on the bits of a scalar or a vector.
class BitsBuilder : public ImplicitLocOpBuilder {
public:
  BitsBuilder(Operation *op, PatternRewriter &rewriter)
      : ImplicitLocOpBuilder(op->getLoc(), rewriter), shape(op->getResult(0).getType()) {}

  Type typeOf(Type element) {
    auto vector = dyn_cast<VectorType>(shape);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value constant(int32_t value) {
    TypedAttr number = getI32IntegerAttr(value);
    if (auto vector = dyn_cast<VectorType>(typeOf(getI32Type())))
      number = DenseElementsAttr::get(vector, Attribute(number));
    return arith::ConstantOp::create(*this, number);
  }
  Value bits(Value x, unsigned width) {
    return arith::BitcastOp::create(*this, typeOf(getIntegerType(width)), x);
  }

private:
  Type shape;
};

struct WidenBFloat16 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn()).isBF16() || !getElementTypeOrSelf(op).isF32())
      return rewriter.notifyMatchFailure(op, "widens other types");
    BitsBuilder b(op, rewriter);
    Value bits =
        arith::ExtUIOp::create(b, b.typeOf(b.getI32Type()), b.bits(op.getIn(), /*width=*/16));
    bits = arith::ShLIOp::create(b, bits, b.constant(16));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), bits);
    return success();
  }
};

/// Full vectors as words of f32 whose lower halves are zeros: one permutation instead of an
/// extension and a shift.
struct ShuffleBFloat16 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  static constexpr int64_t lanes = 16;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    auto from = dyn_cast<VectorType>(op.getIn().getType());
    if (!from || !from.getElementType().isBF16() || from.getShape() != ArrayRef(lanes) ||
        !getElementTypeOrSelf(op).isF32())
      return rewriter.notifyMatchFailure(op, "does not fill a vector of 512 bits");
    BitsBuilder b(op, rewriter);
    Value bits = b.bits(op.getIn(), /*width=*/16);
    Value zero = arith::ConstantOp::create(b, rewriter.getZeroAttr(bits.getType()));
    SmallVector<int64_t> words;
    for (int64_t lane = 0; lane < lanes; ++lane)
      words.append({lanes, lane}); // of the zeros, of the value
    Value wide = vector::ShuffleOp::create(b, bits, zero, words);
    rewriter.replaceOpWithNewOp<vector::BitCastOp>(op, op.getType(), wide);
    return success();
  }
};

/// Rounds to nearest even; NaN stays NaN, as the instruction makes it quiet.
struct RoundToBFloat16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn()).isF32() || !getElementTypeOrSelf(op).isBF16())
      return rewriter.notifyMatchFailure(op, "rounds other types");
    BitsBuilder b(op, rewriter);
    Value bits = b.bits(op.getIn(), /*width=*/32);
    Value odd =
        arith::AndIOp::create(b, arith::ShRUIOp::create(b, bits, b.constant(16)), b.constant(1));
    Value half = arith::AddIOp::create(b, odd, b.constant(0x7FFF));
    Value rounded = arith::AddIOp::create(b, bits, half);
    Value quiet = arith::OrIOp::create(b, bits, b.constant(0x400000));
    Value nan = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, op.getIn(), op.getIn());
    Value result = arith::SelectOp::create(b, nan, quiet, rounded);
    result = arith::ShRUIOp::create(b, result, b.constant(16));
    result = arith::TruncIOp::create(b, b.typeOf(b.getI16Type()), result);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), result);
    return success();
  }
};
} // namespace

/// bf16 as integer code, except for roundings that are one instruction.
static LogicalResult expandBFloat16(ModuleOp module, const CodeTarget &target) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<WidenBFloat16>(module.getContext());
  // On processors with AMX it takes three operations, which share a port with the extension.
  if (target.has("avx512bw") && !target.has("amx-tile"))
    patterns.add<ShuffleBFloat16>(module.getContext(), /*benefit=*/2);
  if (!target.has("avx512bf16"))
    patterns.add<RoundToBFloat16>(module.getContext());
  return applyPatternsGreedily(module, std::move(patterns));
}

/// Non-temporal stores of full vectors in halves of integers: LLVM 22 has none of bf16, takes
/// ordinary ones instead, and sees through a bitcast of the whole.
static LogicalResult splitNontemporalStores(ModuleOp module) {
  module.walk([](LLVM::StoreOp store) {
    auto type = dyn_cast<VectorType>(store.getValue().getType());
    if (!store.getNontemporal() || !type || !type.getElementType().isBF16() ||
        type.getNumElements() != 16)
      return;
    ImplicitLocOpBuilder b(store.getLoc(), store);
    Value bits = LLVM::BitcastOp::create(b, VectorType::get({4}, b.getI64Type()), store.getValue());
    for (int32_t half : {0, 1}) {
      Value part = LLVM::ShuffleVectorOp::create(b, bits, bits, ArrayRef{2 * half, 2 * half + 1});
      Value place = LLVM::GEPOp::create(b, store.getAddr().getType(), b.getI8Type(),
                                        store.getAddr(), ArrayRef<LLVM::GEPArg>{16 * half});
      LLVM::StoreOp::create(b, part, place, /*alignment=*/16, /*isVolatile=*/false,
                            /*isNonTemporal=*/true);
    }
    store.erase();
  });
  return success();
}

/// Reads these integers, if there are any, where bf16 is read, and makes bf16 of them behind it.
template <typename Load> static void readIntegers(Load load, VectorType bits) {
  if (!bits)
    return;
  ImplicitLocOpBuilder b(load.getLoc(), load);
  for (OpOperand &passed : load.getPassThruMutable())
    passed.set(LLVM::BitcastOp::create(b, bits, passed.get()));
  Value loaded = load->getResult(0);
  Type type = loaded.getType();
  loaded.setType(bits);
  b.setInsertionPointAfter(load);
  auto value = LLVM::BitcastOp::create(b, type, loaded);
  loaded.replaceAllUsesExcept(value, value);
}

/// Masked accesses to bf16, gathers, and stores of one, as those of integers: where the target has
/// no instructions for bf16, LLVM 22 takes them apart and converts each element by a function that
/// no module has.
static LogicalResult accessIntegers(ModuleOp module) {
  auto integers = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    bool isBf16 = vector && vector.getElementType().isBF16();
    return isBf16 ? vector.clone(IntegerType::get(type.getContext(), 16)) : VectorType();
  };
  // What lives on from one block to another, a value that a loop stores each time, would be f32.
  module.walk([](LLVM::StoreOp store) {
    OpBuilder b(store);
    if (store.getValue().getType().isBF16())
      store.getValueMutable().assign(
          LLVM::BitcastOp::create(b, store.getLoc(), b.getI16Type(), store.getValue()));
  });
  module.walk([&](LLVM::MaskedStoreOp store) {
    VectorType bits = integers(store.getValue().getType());
    OpBuilder b(store);
    if (bits)
      store.getValueMutable().assign(
          LLVM::BitcastOp::create(b, store.getLoc(), bits, store.getValue()));
  });
  module.walk([&](LLVM::MaskedLoadOp load) { readIntegers(load, integers(load.getType())); });
  module.walk(
      [&](LLVM::masked_gather gather) { readIntegers(gather, integers(gather.getType())); });
  return success();
}

//===- Lowering -------------------------------------------------------------------------------===//

namespace {
/// Patterns on a share's operations, as a pass.
class SharePass : public PassWrapper<SharePass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SharePass)
  using Transform = std::function<LogicalResult(ModuleOp)>;

  explicit SharePass(Transform transform) : transform(std::move(transform)) {}
  StringRef getName() const override { return "SharePass"; }
  void runOnOperation() override {
    if (failed(transform(getOperation())))
      signalPassFailure();
  }

private:
  Transform transform;
};
} // namespace

/// Rewrites vector ops without a counterpart in LLVM's dialect by others.
static LogicalResult lowerVectors(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorMaskMaterializationPatterns(patterns, /*force32BitVectorIndices=*/true);
  vector::populateVectorInterleaveLoweringPatterns(patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  vector::populateVectorStepLoweringPatterns(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

/// Converts all dialects at once: a conversion of each would take as long as that of all.
static LogicalResult convertToLlvm(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LowerToLLVMOptions options(context);
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  populateVectorToLLVMConversionPatterns(converter, patterns, /*reassociateFPReductions=*/false,
                                         /*force32BitVectorIndices=*/true);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  populateFuncToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  return applyPartialConversion(module, target, std::move(patterns));
}

/// Makes `(buffers..., begin, end, sizes...)` the ABI `(buffers, begin, end, sizes)` of records.
static void packArguments(LLVM::LLVMFuncOp body, size_t sizes) {
  ImplicitLocOpBuilder b(body.getLoc(), body.getContext());
  Block &entry = body.front();
  b.setInsertionPointToStart(&entry);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext()), index = b.getI64Type();
  Type types[] = {pointer, index, index, pointer};
  size_t unpacked = entry.getNumArguments(), buffers = unpacked - 2 - sizes;
  for (Type type : types)
    entry.addArgument(type, b.getLoc());
  auto packed = llvm::to_vector(entry.getArguments().take_back(std::size(types)));
  auto unpack = [&](size_t first, size_t count, Value array) {
    for (size_t i = 0; i < count; ++i) {
      Type type = entry.getArgument(first + i).getType();
      Value slot = LLVM::GEPOp::create(b, pointer, type, array,
                                       ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(i)});
      entry.getArgument(first + i).replaceAllUsesWith(LLVM::LoadOp::create(b, type, slot));
    }
  };
  unpack(0, buffers, packed[0]);
  entry.getArgument(buffers).replaceAllUsesWith(packed[1]);
  entry.getArgument(buffers + 1).replaceAllUsesWith(packed[2]);
  unpack(buffers + 2, sizes, packed[3]);
  entry.eraseArguments(0, unpacked);
  body.setFunctionType(LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), types));
  body.setLinkage(LLVM::Linkage::Internal);
}

/// Adds the kernel's record ahead of its body.
static void addRecord(const KernelEntry &entry, int64_t contract, LLVM::LLVMFuncOp body) {
  ImplicitLocOpBuilder b(body.getLoc(), body);
  SmallVector<int64_t> numbers{contract};
  llvm::append_range(numbers, entry.sizes);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type array = LLVM::LLVMArrayType::get(b.getI64Type(), numbers.size());
  Type type = LLVM::LLVMStructType::getLiteral(b.getContext(), {pointer, array});
  auto record = LLVM::GlobalOp::create(b, type, /*isConstant=*/true, LLVM::Linkage::External,
                                       entry.name, Attribute());
  b.createBlock(&record.getInitializer());
  Value fields[] = {LLVM::AddressOfOp::create(b, body),
                    LLVM::ConstantOp::create(b, array, b.getI64TensorAttr(numbers))};
  Value value = LLVM::PoisonOp::create(b, type);
  for (auto [i, field] : llvm::enumerate(fields))
    value = LLVM::InsertValueOp::create(b, value, field, static_cast<int64_t>(i));
  LLVM::ReturnOp::create(b, value);
}

/// Adds the records of all kernels, and lets their bodies take what these hold.
static void addRecords(ModuleOp shares, ArrayRef<KernelEntry> entries, const Contracts &contracts) {
  llvm::StringMap<LLVM::LLVMFuncOp> bodies;
  shares.walk([&](LLVM::LLVMFuncOp body) { bodies[body.getName()] = body; });
  for (const KernelEntry &entry : entries) {
    LLVM::LLVMFuncOp body = bodies.at(entry.body);
    // Named by its first kernel, unless it had the records' ABI from the start.
    if (body.getLinkage() != LLVM::Linkage::Internal)
      packArguments(body, entry.sizes.size());
    addRecord(entry, contracts.lookup(entry.name), body);
  }
}

LogicalResult dlc::lowerToLlvm(ModuleOp shares, ArrayRef<KernelEntry> entries,
                               const Contracts &contracts, const CodeTarget &target) {
  PassManager manager(shares.getContext());
#ifdef NDEBUG
  // Once, in the end, is enough: each verification takes as long as a pass.
  manager.enableVerifier(false);
#endif
  OpPassManager &share = manager.nest<ModuleOp>();
  share.addPass(std::make_unique<SharePass>(approximateMath));
  share.addPass(
      std::make_unique<SharePass>([&](ModuleOp module) { return expandBFloat16(module, target); }));
  OpPassManager &functions = share.nest<func::FuncOp>();
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  functions.addPass(createSCFToControlFlowPass());
  share.addPass(std::make_unique<SharePass>(lowerVectors));
  share.addPass(std::make_unique<SharePass>(convertToLlvm));
  share.addPass(std::make_unique<SharePass>(splitNontemporalStores));
  if (!target.has("avx512bf16"))
    share.addPass(std::make_unique<SharePass>(accessIntegers));
  if (failed(manager.run(shares)))
    return failure();
  addRecords(shares, entries, contracts);
  return verify(shares);
}
