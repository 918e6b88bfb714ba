// Ops that move, repeat or reduce elements: result types, verification, folding, syntax.

#include "dialects/NN/NN.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

static bool isIncreasingWithin(ArrayRef<int64_t> dims, int64_t rank) {
  return llvm::all_of(dims, [&](int64_t dim) { return dim >= 0 && dim < rank; }) &&
         llvm::adjacent_find(dims, std::greater_equal<>()) == dims.end();
}

//===- constant, iota -------------------------------------------------------------------------===//

void ConstantOp::build(OpBuilder &builder, OperationState &state, RankedTensorType type,
                       double splat) {
  Type element = type.getElementType();
  Attribute value = isa<FloatType>(element)
                        ? Attribute(builder.getFloatAttr(element, splat))
                        : builder.getIntegerAttr(element, static_cast<int64_t>(splat));
  // Dense attributes carry no layout: the logical value is the same in each.
  build(builder, state, type, DenseElementsAttr::get(logicalType(type), value));
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  // Generated code and folders read the elements; a resource need not have them.
  if (!isa<DenseElementsAttr>(getValue()))
    return emitOpError("needs its elements: write dense<...>");
  if (!haveSameLogicalTypes(TypeRange(Type(getValue().getShapedType())), TypeRange(getType())))
    return emitOpError("value has type ") << getValue().getShapedType() << ", result " << getType();
  if (getType() != logicalType(cast<RankedTensorType>(getType())) && !getValue().isSplat())
    return emitOpError("with a layout must be a splat");
  return success();
}

LogicalResult IotaOp::verify() {
  auto dim = static_cast<int64_t>(getDim());
  if (dim < 0 || dim >= tensorType(getY()).getRank())
    return emitOpError("dim ") << dim << " is outside of " << getType();
  return success();
}

//===- broadcast ------------------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  auto from = tensorType(getX()), to = tensorType(getY());
  ArrayRef<int64_t> dims = getDims();
  if (static_cast<int64_t>(dims.size()) != from.getRank() ||
      !isIncreasingWithin(dims, to.getRank()))
    return emitOpError("dims [") << dims << "] must be increasing dimensions of " << to
                                 << ", one per dimension of " << from;
  for (auto [i, dim] : llvm::enumerate(dims))
    if (from.getDimSize(i) != to.getDimSize(dim))
      return emitOpError("dimension ")
             << i << " of " << from << " differs from dimension " << dim << " of " << to;
  if (from.getElementType() != to.getElementType())
    return emitOpError("changes the element type from ") << from << " to " << to;
  return success();
}

OpFoldResult BroadcastOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? OpFoldResult(getX()) : OpFoldResult();
}

//===- reductions -----------------------------------------------------------------------------===//

template <typename Adaptor>
static LogicalResult inferReduction(std::optional<Location> loc, Adaptor adaptor,
                                    SmallVectorImpl<Type> &types) {
  auto from = tensorType(adaptor.getX());
  if (!isIncreasingWithin(adaptor.getDims(), from.getRank()))
    return emitOptionalError(loc, "dims [", adaptor.getDims(),
                             "] must be increasing dimensions of ", from);
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < from.getRank(); ++dim)
    if (!llvm::is_contained(adaptor.getDims(), dim))
      shape.push_back(from.getDimSize(dim));
  types.push_back(RankedTensorType::get(shape, from.getElementType()));
  return success();
}

LogicalResult ReduceSumOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferReduction(loc, adaptor, types);
}

LogicalResult ReduceMaxOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferReduction(loc, adaptor, types);
}

LogicalResult ReduceSumOp::verify() { return success(); }

LogicalResult ReduceMaxOp::verify() { return success(); }

//===- reshape, transpose, reorder ------------------------------------------------------------===//

LogicalResult ReshapeOp::verify() {
  auto from = tensorType(getX()), to = tensorType(getY());
  if (from.getNumElements() != to.getNumElements() || from.getElementType() != to.getElementType())
    return emitOpError("changes the elements: ") << from << " to " << to;
  return success();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? OpFoldResult(getX()) : OpFoldResult();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto from = tensorType(adaptor.getX());
  SmallVector<int64_t> sorted(adaptor.getPermutation()), shape;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, from.getRank())))
    return emitOptionalError(loc, "[", adaptor.getPermutation(),
                             "] is no permutation of the dimensions of ", from);
  for (int64_t dim : adaptor.getPermutation())
    shape.push_back(from.getDimSize(dim));
  types.push_back(RankedTensorType::get(shape, from.getElementType()));
  return success();
}

LogicalResult TransposeOp::verify() { return success(); }

LogicalResult ReorderOp::verify() {
  RankedTensorType from = tensorType(getX()), to = getType();
  Type wide = from.getElementType(), narrow = to.getElementType();
  bool isNarrowed =
      isa<FloatType>(wide) && isa<FloatType>(narrow) && elementBytes(narrow) < elementBytes(wide);
  if (from.getShape() != to.getShape() || (wide != narrow && !isNarrowed))
    return emitOpError("changes more than the layout: ") << getX().getType() << " to " << getType();
  return success();
}

OpFoldResult ReorderOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  auto producer = getX().getDefiningOp<ReorderOp>(); // what narrows cannot be undone
  return producer && producer.getX().getType() == getType() ? producer.getX() : OpFoldResult();
}

//===- concat, slice, pad ---------------------------------------------------------------------===//

LogicalResult ConcatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(loc, "concat needs an operand");
  auto first = tensorType(adaptor.getInputs().front());
  auto dim = static_cast<int64_t>(adaptor.getDim());
  if (dim < 0 || dim >= first.getRank())
    return emitOptionalError(loc, "dim ", dim, " is outside of ", first);
  SmallVector<int64_t> shape(first.getShape());
  for (Value input : adaptor.getInputs().drop_front()) {
    auto type = tensorType(input);
    if (type.getRank() != first.getRank() || type.getElementType() != first.getElementType())
      return emitOptionalError(loc, "joins ", type, " to ", first);
    for (int64_t i = 0; i < first.getRank(); ++i)
      if (i != dim && type.getDimSize(i) != first.getDimSize(i))
        return emitOptionalError(loc, "joins ", type, " to ", first, " along dimension ", dim);
    shape[dim] += type.getDimSize(dim);
  }
  types.push_back(RankedTensorType::get(shape, first.getElementType()));
  return success();
}

LogicalResult ConcatOp::verify() { return success(); }

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  auto from = tensorType(adaptor.getX());
  ArrayRef<int64_t> start = adaptor.getStart(), size = adaptor.getSize();
  if (static_cast<int64_t>(start.size()) != from.getRank() || size.size() != start.size())
    return emitOptionalError(loc, "start and size need one entry per dimension of ", from);
  for (int64_t i = 0; i < from.getRank(); ++i)
    if (start[i] < 0 || size[i] < 0 || size[i] > from.getDimSize(i) - start[i])
      return emitOptionalError(loc, "the box [", start, "] + [", size, "] is outside of ", from);
  types.push_back(RankedTensorType::get(size, from.getElementType()));
  return success();
}

LogicalResult SliceOp::verify() { return success(); }

/// The shape that `extentOf` makes of each dimension's extent and number, which is at least 1.
static LogicalResult
inferScaled(std::optional<Location> loc, RankedTensorType from, StringRef name,
            ArrayRef<int64_t> numbers, SmallVectorImpl<Type> &types,
            llvm::function_ref<int64_t(int64_t extent, int64_t number)> extentOf) {
  if (static_cast<int64_t>(numbers.size()) != from.getRank() ||
      llvm::any_of(numbers, [](int64_t n) { return n < 1; }))
    return emitOptionalError(loc, name, " needs one entry >= 1 per dimension of ", from);
  for (auto [extent, number] : llvm::zip(from.getShape(), numbers))
    if (number > maxElements / std::max<int64_t>(extent, 1))
      return emitOptionalError(loc, name, " has ", number, ", which is too large");
  SmallVector<int64_t> shape;
  for (auto [extent, number] : llvm::zip(from.getShape(), numbers))
    shape.push_back(extentOf(extent, number));
  types.push_back(RankedTensorType::get(shape, from.getElementType()));
  return success();
}

LogicalResult SubsampleOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferScaled(
      loc, tensorType(adaptor.getX()), "strides", adaptor.getStrides(), types,
      [](int64_t extent, int64_t stride) { return llvm::divideCeil(extent, stride); });
}

LogicalResult SubsampleOp::verify() { return success(); }

LogicalResult RepeatOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  return inferScaled(loc, tensorType(adaptor.getX()), "times", adaptor.getTimes(), types,
                     [](int64_t extent, int64_t times) { return extent * times; });
}

LogicalResult RepeatOp::verify() { return success(); }

bool dlc::nn::areFewRepeats(ArrayRef<int64_t> times) {
  int64_t places = 1;
  return llvm::all_of(times, [&](int64_t count) {
    return (places *= std::min(count, mostRepeats + 1)) <= mostRepeats;
  });
}

LogicalResult PadOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc, Adaptor adaptor,
                                      SmallVectorImpl<Type> &types) {
  auto from = tensorType(adaptor.getX());
  ArrayRef<int64_t> low = adaptor.getLow(), high = adaptor.getHigh();
  if (static_cast<int64_t>(low.size()) != from.getRank() || high.size() != low.size() ||
      llvm::any_of(llvm::concat<const int64_t>(low, high),
                   [](int64_t n) { return n < 0 || n > maxElements; }))
    return emitOptionalError(loc, "low and high need one entry >= 0 per dimension of ", from);
  SmallVector<int64_t> shape(from.getShape());
  for (int64_t i = 0; i < from.getRank(); ++i)
    shape[i] += low[i] + high[i];
  types.push_back(RankedTensorType::get(shape, from.getElementType()));
  return success();
}

LogicalResult PadOp::verify() { return success(); }

//===- fused ----------------------------------------------------------------------------------===//

// nn.fused (%a = %x, %b = %y) : (types) -> (types) attributes {...} { ... nn.yield ... }
ParseResult FusedOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  auto parsePair = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(operands.emplace_back()));
  };
  FunctionType type;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parsePair) ||
      parser.parseColonType(type) || parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.resolveOperands(operands, type.getInputs(), loc, result.operands))
    return failure();
  result.addTypes(type.getResults());
  for (auto [argument, input] : llvm::zip(arguments, type.getInputs()))
    argument.type = input;
  return parser.parseRegion(*result.addRegion(), arguments);
}

void FusedOp::print(OpAsmPrinter &printer) {
  printer << " (";
  llvm::interleaveComma(llvm::zip(getBody().getArguments(), getInputs()), printer, [&](auto pair) {
    printer.printRegionArgument(std::get<0>(pair), {}, /*omitType=*/true);
    printer << " = " << std::get<1>(pair);
  });
  printer << ") : ";
  printer.printFunctionalType(*this);
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult FusedOp::verify() {
  Block &body = getBody().front();
  if (!llvm::equal(body.getArgumentTypes(), getInputs().getTypes()))
    return emitOpError("arguments of the region differ from the operands");
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield || !llvm::equal(yield.getValues().getTypes(), getResultTypes()))
    return emitOpError("results differ from what nn.yield names");
  return success();
}

/// For the implicit terminator: results are added by whoever builds the cluster.
void YieldOp::build(OpBuilder &, OperationState &) {}

//===- Rows -----------------------------------------------------------------------------------===//

using HasRows = llvm::function_ref<bool(Value)>;

bool BroadcastOp::keepsRows(HasRows) { return getDims().front() == 0; }
// Row-major, so equal extents of dimension 0 are equal rows.
bool ReshapeOp::keepsRows(HasRows) { return true; }
bool TransposeOp::keepsRows(HasRows) { return getPermutation().front() == 0; }
bool SliceOp::keepsRows(HasRows) { return getStart().front() == 0; }
bool PadOp::keepsRows(HasRows) { return getLow().front() == 0 && getHigh().front() == 0; }
bool ConcatOp::keepsRows(HasRows) { return getDim() != 0; }
bool ReduceSumOp::keepsRows(HasRows) { return !llvm::is_contained(getDims(), 0); }
bool ReduceMaxOp::keepsRows(HasRows) { return !llvm::is_contained(getDims(), 0); }

//===- Gradients ------------------------------------------------------------------------------===//

LogicalResult CountNonfiniteOp::verify() {
  auto isF32 = [](Value value) { return tensorType(value).getElementType().isF32(); };
  auto isScalar = [](Value value) { return tensorType(value).getRank() == 0; };
  if (getGradients().empty() || !llvm::all_of(getOperands(), isF32) || !isF32(getCount()) ||
      !isScalar(getScale()) || !isScalar(getCount()))
    return emitOpError("counts elements of tensors of f32, by scalars of f32");
  return success();
}

//===- Blocks ---------------------------------------------------------------------------------===//

static bool isAligned(const rt::Layout &layout, size_t dim, int64_t position) {
  return position % layout.blockOf(dim) == 0;
}

bool ConcatOp::canMoveIn(const rt::Layout &layout) {
  auto dim = static_cast<size_t>(getDim());
  return llvm::all_of(getInputs().drop_back(), [&](Value input) {
    return isAligned(layout, dim, tensorType(input).getDimSize(dim));
  });
}

/// A cut inside a block would leave values in what is padding of the result.
bool SliceOp::canMoveIn(const rt::Layout &layout) {
  ArrayRef<int64_t> shape = tensorType(getX()).getShape();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t end = getStart()[dim] + getSize()[dim];
    if (!isAligned(layout, dim, getStart()[dim]) ||
        (end != shape[dim] && !isAligned(layout, dim, end)))
      return false;
  }
  return true;
}

/// True if all numbers but those of dimensions without blocks are 1.
static bool keepsBlocks(const rt::Layout &layout, ArrayRef<int64_t> numbers) {
  return llvm::all_of(llvm::enumerate(numbers), [&](auto entry) {
    return entry.value() == 1 || layout.blockOf(entry.index()) == 1;
  });
}

bool SubsampleOp::canMoveIn(const rt::Layout &layout) { return keepsBlocks(layout, getStrides()); }
bool RepeatOp::canMoveIn(const rt::Layout &layout) { return keepsBlocks(layout, getTimes()); }

bool PadOp::canMoveIn(const rt::Layout &layout) {
  for (size_t dim = 0; dim < getLow().size(); ++dim)
    if (layout.blockOf(dim) > 1 && (getLow()[dim] != 0 || getHigh()[dim] != 0))
      return false;
  return true;
}
