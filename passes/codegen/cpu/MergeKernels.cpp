// Kernels of many layers differ in sizes only. They become one function, and the sizes that differ
// its arguments, so that LLVM's work does not grow with the number of layers. Sizes that make the
// code fast as constants stay so: of short loops, which LLVM unrolls, and divisors within loops.

#include "passes/codegen/cpu/MergeKernels.h"

#include "passes/codegen/ContentKey.h"
#include "passes/codegen/SideBySide.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/StringMap.h"

#include <map>

using namespace mlir;
using namespace dlc;

// Loops of at most as many iterations keep their bounds.
static constexpr int64_t shortLoop = 8;

//===- Sizes as operands ----------------------------------------------------------------------===//

/// Computes the maps of affine.apply with constants as operands.
static void expandMaps(func::FuncOp function) {
  function.walk([](affine::AffineApplyOp op) {
    OpBuilder b(op);
    std::optional<SmallVector<Value, 8>> values =
        affine::expandAffineMap(b, op.getLoc(), op.getAffineMap(), op.getMapOperands());
    op.getResult().replaceAllUsesWith(values->front());
    op.erase();
  });
}

/// Replaces the indices of an access, which follow the memory in all such ops, by one.
static void flattenAccess(OpOperand &memory) {
  auto type = cast<MemRefType>(memory.get().getType());
  Operation *op = memory.getOwner();
  ImplicitLocOpBuilder b(op->getLoc(), op);
  unsigned first = memory.getOperandNumber() + 1, rank = type.getRank();
  SmallVector<int64_t> strides = computeStrides(type.getShape());
  Value place;
  for (unsigned i = 0; i < rank; ++i) {
    Value index = op->getOperand(first + i);
    if (strides[i] != 1)
      index = arith::MulIOp::create(b, index, arith::ConstantIndexOp::create(b, strides[i]));
    place = place ? arith::AddIOp::create(b, place, index) : index;
  }
  if (!place)
    place = arith::ConstantIndexOp::create(b, 0);
  op->setOperands(first, rank, place);
}

/// Makes buffers of all ranks rows of elements.
static void flattenBuffers(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type || type.getRank() == 1)
      continue;
    for (OpOperand &use : llvm::make_early_inc_range(argument.getUses()))
      flattenAccess(use);
    argument.setType(MemRefType::get({type.getNumElements()}, type.getElementType()));
  }
  function.setType(
      FunctionType::get(function.getContext(), function.front().getArgumentTypes(), TypeRange()));
}

/// True for a bound of a loop that takes a while, or of an unknown number of iterations.
static bool isLongLoop(scf::ForOp loop) {
  std::optional<APInt> trips = loop.getStaticTripCount();
  return !trips || trips->sgt(shortLoop);
}

/// True if a use of a constant costs no more where the constant is an argument.
static bool mayBeArgument(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return use.get() != loop.getStep() && isLongLoop(loop);
  // These run once an item.
  if (isa<arith::DivUIOp, arith::RemUIOp, arith::CmpIOp>(op))
    return isa<func::FuncOp>(op->getParentOp()->getParentOp());
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::MinUIOp>(op) ||
         llvm::any_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>);
}

/// The constants that may be arguments, in order.
static SmallVector<arith::ConstantIndexOp> findSizes(func::FuncOp function) {
  SmallVector<arith::ConstantIndexOp> sizes;
  function.walk([&](arith::ConstantOp op) {
    auto size = dyn_cast<arith::ConstantIndexOp>(op.getOperation());
    if (size && llvm::all_of(size->getUses(), mayBeArgument))
      sizes.push_back(size);
  });
  return sizes;
}

//===- Functions that are equal but for sizes -------------------------------------------------===//

namespace {
/// A function without its name, its sizes and the buffers' lengths.
class Skeleton : public ContentKey {
public:
  Skeleton(func::FuncOp function, ArrayRef<arith::ConstantIndexOp> sizes) {
    for (arith::ConstantIndexOp size : sizes)
      isSize.insert(size);
    write(function.getBody());
  }

private:
  Type typeOf(BlockArgument argument) const override {
    auto buffer = dyn_cast<MemRefType>(argument.getType());
    return buffer ? buffer.getElementType() : argument.getType();
  }
  bool hasAttributes(Operation &op) const override { return !isSize.contains(&op); }

  llvm::SmallPtrSet<Operation *, 16> isSize;
};

struct Member {
  func::FuncOp function;
  SmallVector<arith::ConstantIndexOp> sizes;
};
} // namespace

/// Keeps the first of all members, with an argument for each number that differs.
static void merge(MutableArrayRef<Member> members, std::vector<KernelEntry> &entries) {
  func::FuncOp body = members.front().function;
  std::string name = (body.getName() + ".body").str();
  // Keyed by the members' values: numbers that are equal in all of them share an argument.
  std::map<std::vector<int64_t>, SmallVector<arith::ConstantIndexOp>> arguments;
  for (auto [i, size] : llvm::enumerate(members.front().sizes)) {
    std::vector<int64_t> values;
    for (Member &member : members)
      values.push_back(member.sizes[i].value());
    if (!llvm::all_equal(values))
      arguments[std::move(values)].push_back(size);
  }
  for (auto [i, member] : llvm::enumerate(members)) {
    KernelEntry &entry = entries.emplace_back(member.function.getName().str(), name);
    for (auto &[values, sizes] : arguments)
      entry.sizes.push_back(values[i]);
  }
  for (Member &member : members.drop_front())
    member.function.erase();
  body.setName(name);
  Type index = IndexType::get(body.getContext());
  for (auto &[values, sizes] : arguments) {
    BlockArgument argument = body.front().addArgument(index, body.getLoc());
    for (arith::ConstantIndexOp size : sizes) {
      size.getResult().replaceAllUsesWith(argument);
      size.erase();
    }
  }
  body.setType(FunctionType::get(body.getContext(), body.front().getArgumentTypes(), TypeRange()));
}

/// True for a function of the records' ABI, which takes its kernels' sizes from the start.
static bool isBody(func::FuncOp function) {
  return isa<LLVM::LLVMPointerType>(function.getArgumentTypes().front());
}

std::vector<KernelEntry> dlc::mergeKernels(ModuleOp module) {
  auto functions =
      llvm::to_vector(llvm::make_filter_range(module.getOps<func::FuncOp>(), std::not_fn(isBody)));
  std::vector<Member> members(functions.size());
  std::vector<std::string> skeletons(functions.size());
  changeSideBySide(functions, [&](size_t i) {
    func::FuncOp function = functions[i];
    expandMaps(function);
    flattenBuffers(function);
    members[i] = {function, findSizes(function)};
    skeletons[i] = Skeleton(function, members[i].sizes).bytes;
    return function;
  });
  std::vector<std::vector<Member>> groups;
  llvm::StringMap<size_t> places;
  for (auto [member, skeleton] : llvm::zip(members, skeletons)) {
    size_t place = places.try_emplace(skeleton, groups.size()).first->second;
    groups.resize(std::max(groups.size(), place + 1));
    groups[place].push_back(std::move(member));
  }
  std::vector<KernelEntry> entries;
  for (std::vector<Member> &group : groups)
    merge(group, entries);
  return entries;
}
