// The nn dialect's registration, attributes and type helpers.

#include "dialects/NN/NN.h"
#include "dialects/NN/Role.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dlc;
using namespace dlc::nn;

/// The type of a constant is its value's, unless one with a layout follows:
/// `dense<0.0> : tensor<2x16xf32> : tensor<2x16xf32, #nn.layout<..>>`.
static ParseResult parseConstantValue(OpAsmParser &parser, ElementsAttr &value, Type &type) {
  if (parser.parseAttribute(value))
    return failure();
  type = value.getType();
  return succeeded(parser.parseOptionalColon()) ? parser.parseType(type) : success();
}

static void printConstantValue(OpAsmPrinter &printer, Operation *, ElementsAttr value, Type type) {
  printer << value;
  if (type != value.getType())
    printer << " : " << type;
}

#include "dialects/NN/NNDialect.cpp.inc"
#include "dialects/NN/NNEnums.cpp.inc"
#include "dialects/NN/NNInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NN/NNAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/NN/NNOps.cpp.inc"

void NNDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/NN/NNOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/NN/NNAttrs.cpp.inc"
      >();
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type,
                                          Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  return elements ? ConstantOp::create(builder, loc, type, elements) : nullptr;
}

//===- Attributes -----------------------------------------------------------------------------===//

LayoutAttr LayoutAttr::get(MLIRContext *context, const rt::Layout &layout) {
  return get(context, StringRef(layout.toString()));
}

/// The layout of a text that is one. Programs have few layouts and many questions about them.
static const rt::Layout &layoutNamed(StringRef text) {
  static thread_local llvm::StringMap<rt::Layout> known;
  auto [entry, isNew] = known.try_emplace(text);
  if (isNew)
    entry->second = *rt::Layout::parse({text.data(), text.size()});
  return entry->second;
}

rt::Layout LayoutAttr::getLayout() const { return layoutNamed(getText()); }

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  std::string text;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeywordOrString(&text) || parser.parseGreater())
    return {};
  std::optional<rt::Layout> layout = rt::Layout::parse(text);
  if (!layout) {
    parser.emitError(loc, "'") << text << "' is not a layout such as nhwc, nChw16c or OIhw16i16o";
    return {};
  }
  return get(parser.getContext(), *layout);
}

void LayoutAttr::print(AsmPrinter &printer) const { printer << '<' << getText() << '>'; }

LogicalResult StagePlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                    int64_t extent, int64_t chunk, DenseI64ArrayAttr buffers,
                                    int64_t reads, uint64_t bytes, uint64_t flops, uint64_t part) {
  if (extent < 1 || chunk < 1)
    return emitError() << "a stage of " << extent << " iterations in chunks of " << chunk;
  constexpr uint64_t most = uint64_t{1} << 60;
  if (bytes > most || flops > most || part > most)
    return emitError() << "a stage moves, computes and writes less than 2^60 of anything";
  auto isNegative = [](int64_t buffer) { return buffer < 0; };
  if (!buffers || llvm::any_of(buffers.asArrayRef(), isNegative) || reads < 0 ||
      reads > buffers.size())
    return emitError() << "a stage needs the positions of its buffers, the first `reads` of them "
                          "read";
  return success();
}

LogicalResult ClusterPlanAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                      ArrayAttr stages, ArrayAttr scratch,
                                      DenseI64ArrayAttr shares) {
  if (!stages || !llvm::all_of(stages, llvm::IsaPred<StagePlanAttr>))
    return emitError() << "the stages of a plan are a list of #nn.stage";
  auto isTensorType = [](Attribute attribute) {
    auto type = dyn_cast<TypeAttr>(attribute);
    return type && isa<RankedTensorType>(type.getValue()) && isTensor(type.getValue());
  };
  if (!scratch || !llvm::all_of(scratch, isTensorType))
    return emitError() << "the scratch of a plan is a list of tensor types";
  auto isNegative = [](int64_t position) { return position < 0; };
  if (!shares || shares.size() % 2 != 0 || llvm::any_of(shares.asArrayRef(), isNegative))
    return emitError() << "the shares of a plan are pairs of an operand and a result";
  return success();
}

Attribute RoleAttr::parse(AsmParser &parser, Type) {
  FailureOr<Phase> phase;
  FailureOr<LayerKind> kind = LayerKind::Other;
  FlatSymbolRefAttr variable;
  if (parser.parseLess() || failed(phase = FieldParser<Phase>::parse(parser)))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringAttr symbol;
    if (succeeded(parser.parseOptionalSymbolName(symbol)))
      variable = FlatSymbolRefAttr::get(symbol);
    else if (failed(kind = FieldParser<LayerKind>::parse(parser)))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), *phase, *kind, variable);
}

void RoleAttr::print(AsmPrinter &printer) const {
  printer << '<' << getPhase();
  if (getKind() != LayerKind::Other)
    printer << ", " << getKind();
  if (getVariable())
    printer << ", " << getVariable();
  printer << '>';
}

LogicalResult NNDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == roleName && !isa<RoleAttr>(attribute.getValue()))
    return op->emitOpError() << roleName << " is " << attribute.getValue()
                             << ", expected a #nn.role";
  return success();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef text) {
  std::optional<rt::Layout> layout = rt::Layout::parse({text.data(), text.size()});
  if (!layout || layout->toString() != text)
    return emitError() << "'" << text << "' is not the canonical text of a layout";
  return success();
}

LogicalResult LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                         function_ref<InFlightDiagnostic()> emitError) const {
  if (getLayout().rank() != shape.size())
    return emitError() << "layout " << getText() << " is for rank " << getLayout().rank()
                       << ", the tensor has rank " << shape.size();
  return success();
}

Attribute InitializerAttr::parse(AsmParser &parser, Type) {
  StringRef keyword;
  double a = 0, b = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&keyword) || parser.parseComma() ||
      parser.parseFloat(a) || parser.parseComma() || parser.parseFloat(b) || parser.parseGreater())
    return {};
  std::optional<InitializerKind> kind = symbolizeInitializerKind(keyword);
  if (!kind) {
    parser.emitError(loc, "expected constant, normal or uniform");
    return {};
  }
  return get(parser.getContext(), *kind, a, b);
}

void InitializerAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyInitializerKind(getKind()) << ", ";
  printer.printFloat(getFirst());
  printer << ", ";
  printer.printFloat(getSecond());
  printer << '>';
}

//===- Types ----------------------------------------------------------------------------------===//

bool nn::isBounded(Type type, int64_t maxRank) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto isExtent = [](int64_t extent) { return extent >= 1 && extent <= maxElements; };
  if (!tensor || tensor.getRank() > maxRank || !llvm::all_of(tensor.getShape(), isExtent) ||
      (tensor.getEncoding() && !isa<LayoutAttr>(tensor.getEncoding())))
    return false;
  int64_t elements = 1;
  auto fits = [&](int64_t factor) {
    if (factor > maxElements / elements)
      return false;
    elements *= factor;
    return true;
  };
  if (!tensor.getEncoding())
    return llvm::all_of(tensor.getShape(), fits);
  rt::Layout layout = layoutOf(tensor);
  // Blocks alone first: extents are divided by their product.
  if (!llvm::all_of(layout.blocks, [&](rt::Layout::Block block) { return fits(block.size); }))
    return false;
  elements = 1;
  return llvm::all_of(layout.physicalShape(tensor.getShape().vec()), fits);
}

bool nn::isTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isBounded(type))
    return false;
  Type element = tensor.getElementType();
  return isa<Float64Type, Float32Type, BFloat16Type, Float16Type>(element) ||
         element.isSignlessInteger(1) || element.isSignlessInteger(8) ||
         element.isSignlessInteger(32) || element.isSignlessInteger(64) ||
         element.isUnsignedInteger(8) || element.isUnsignedInteger(16);
}

RankedTensorType nn::inputType(RankedTensorType type) {
  bool isStored = type.getElementType().isUnsignedInteger();
  return isStored ? type.clone(Float32Type::get(type.getContext())) : type;
}

bool nn::haveSameLogicalTypes(TypeRange a, TypeRange b) {
  return a.size() == b.size() && llvm::all_of(llvm::zip(a, b), [](auto pair) {
           auto x = dyn_cast<RankedTensorType>(std::get<0>(pair));
           auto y = dyn_cast<RankedTensorType>(std::get<1>(pair));
           return x && y && x.getShape() == y.getShape() &&
                  x.getElementType() == y.getElementType();
         });
}

bool nn::isSumOf(TypeRange types, TypeRange sums) {
  SmallVector<Type> wanted = llvm::map_to_vector(
      types, [](Type type) -> Type { return sumType(cast<RankedTensorType>(type)); });
  return haveSameLogicalTypes(wanted, sums);
}

rt::Layout nn::layoutOf(RankedTensorType type) {
  if (auto layout = dyn_cast_if_present<LayoutAttr>(type.getEncoding()))
    return layout.getLayout();
  return rt::Layout::rowMajor(type.getRank());
}

RankedTensorType nn::withLayout(RankedTensorType type, const rt::Layout &layout) {
  Attribute encoding;
  if (!layout.isRowMajor())
    encoding = LayoutAttr::get(type.getContext(), layout);
  return RankedTensorType::get(type.getShape(), type.getElementType(), encoding);
}

RankedTensorType nn::logicalType(RankedTensorType type) {
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

RankedTensorType nn::sumType(RankedTensorType type) {
  Type element = type.getElementType();
  if (element.isBF16() || element.isF16())
    element = Float32Type::get(type.getContext());
  return RankedTensorType::get(type.getShape(), element);
}

int64_t nn::elementBytes(Type element) {
  return std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
}

int64_t nn::physicalBytes(RankedTensorType type) {
  if (auto layout = dyn_cast_if_present<LayoutAttr>(type.getEncoding()))
    return physicalBytes(type, layoutNamed(layout.getText()));
  return type.getNumElements() * elementBytes(type.getElementType());
}

int64_t nn::physicalBytes(RankedTensorType type, const rt::Layout &layout) {
  int64_t bytes = elementBytes(type.getElementType());
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    bytes *= llvm::alignTo(extent, layout.blockOf(dim));
  return bytes;
}

std::optional<int64_t> nn::rowOffset(RankedTensorType whole, int64_t row, RankedTensorType part) {
  rt::Layout layout = layoutOf(whole);
  if (whole.getRank() == 0 || part.getRank() != whole.getRank() || !part.hasStaticShape() ||
      !whole.hasStaticShape() || layout.order.front() != 0 ||
      part.getElementType() != whole.getElementType() ||
      part.getEncoding() != whole.getEncoding() ||
      part.getShape().drop_front() != whole.getShape().drop_front())
    return std::nullopt;
  int64_t rows = part.getDimSize(0), block = layout.blockOf(0);
  bool cutsBlock = row % block != 0 || (rows % block != 0 && row + rows != whole.getDimSize(0));
  if (row < 0 || row > whole.getDimSize(0) - rows || cutsBlock)
    return std::nullopt;
  std::vector<int64_t> first(static_cast<size_t>(whole.getRank()), 0);
  first.front() = row;
  return layout.offsetOf(whole.getShape().vec(), first) * elementBytes(whole.getElementType());
}

//===- Values ---------------------------------------------------------------------------------===//

Value nn::splat(OpBuilder &builder, Location loc, RankedTensorType type, double value) {
  return ConstantOp::create(builder, loc, type, value);
}

ProgramOp nn::trainProgram(ModelOp model) {
  return dyn_cast_or_null<ProgramOp>(SymbolTable::lookupSymbolIn(model, "train"));
}

std::optional<double> nn::splatValue(Value value) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    return splatValue(broadcast.getX());
  auto constant = value.getDefiningOp<ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!dense || !dense.isSplat())
    return std::nullopt;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().convertToDouble();
  const APInt integer = dense.getSplatValue<APInt>();
  return integer.getBitWidth() == 1 ? integer.getZExtValue() : double(integer.getSExtValue());
}

StringRef nn::layerName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef name = layerName(part); !name.empty())
        return name;
  return {};
}
