#include "frontend/operators/Value.h"

#include "frontend/operators/Operators.h"
#include "frontend/syntax/AST.h"
#include "runtime/artifact/Formula.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace dlc::fe {

Value Value::list(std::vector<Value> items) {
  auto list = std::make_shared<List>();
  for (const Value &item : items) {
    list->weight += 1;
    if (item.isList()) {
      const List &inner = *std::get<std::shared_ptr<const List>>(item.data);
      list->weight += inner.weight;
      list->depth = std::max(list->depth, inner.depth + 1);
    }
    if (list->weight > maxListWeight || list->depth > maxListDepth)
      return Value();
  }
  list->items = std::move(items);
  Value value;
  value.data = std::shared_ptr<const List>(std::move(list));
  return value;
}

Value Value::list(ArrayRef<int64_t> items) {
  return list(std::vector<Value>(items.begin(), items.end()));
}

ArrayRef<Value> Value::asList() const { return std::get<std::shared_ptr<const List>>(data)->items; }

bool Value::isPlain() const {
  return isNumber() || isString() ||
         (isList() && all_of(asList(), [](const Value &item) { return item.isPlain(); }));
}

size_t Value::weight() const { return std::get<std::shared_ptr<const List>>(data)->weight; }

double Value::asDouble() const {
  if (isFloat())
    return std::get<double>(data);
  return static_cast<double>(asIntegral());
}

std::string typeText(mlir::Type type) {
  auto tensor = cast<mlir::RankedTensorType>(type);
  std::string text;
  raw_string_ostream os(text);
  if (tensor.getElementType().isInteger(1))
    os << "bool";
  else
    os << tensor.getElementType();
  os << '[';
  interleaveComma(tensor.getShape(), os);
  os << ']';
  return text;
}

std::string describe(const Value &value) {
  if (value.isInt())
    return "the int " + toText(value);
  if (value.isFloat())
    return "the float " + toText(value);
  if (value.isBool())
    return toText(value);
  if (value.isString())
    return "the string \"" + StringRef(value.asString()).take_front(60).str() + "\"";
  if (value.isList())
    return "a list of " + std::to_string(value.asList().size()) + " values";
  if (value.isTensor())
    return "a tensor " + typeText(value.asTensor().getType());
  if (value.isMean() && !value.asMean().formula.empty())
    return "a function of means";
  if (value.isMean())
    return "the result of " + value.asMean().origin.str();
  if (value.isCallable())
    return "the " + toText(value);
  return "nothing";
}

static void print(const Value &value, raw_string_ostream &os) {
  if (os.str().size() > maxStringSize)
    return;
  if (value.isInt()) {
    os << value.asInt();
  } else if (value.isFloat()) {
    SmallString<32> digits;
    // The shortest of 6 and 17 digits that reads back the same.
    raw_svector_ostream(digits) << format("%g", value.asDouble());
    double back = 0;
    if (StringRef(digits).getAsDouble(back) || back != value.asDouble()) {
      digits.clear();
      raw_svector_ostream(digits) << format("%.17g", value.asDouble());
    }
    os << digits << (StringRef(digits).find_first_of(".en") == StringRef::npos ? ".0" : "");
  } else if (value.isBool()) {
    os << (value.asBool() ? "true" : "false");
  } else if (value.isString()) {
    os << value.asString();
  } else if (value.isList()) {
    os << '[';
    interleave(value.asList(), os, [&](const Value &item) { print(item, os); }, ", ");
    os << ']';
  } else if (value.isTensor()) {
    os << typeText(value.asTensor().getType());
  } else if (value.isMean()) {
    os << value.asMean().origin;
  } else if (value.isCallable()) {
    Callable callable = value.asCallable();
    os << (callable.op ? "operator " + callable.op->name : "function " + callable.function->name);
  }
}

std::string toText(const Value &value) {
  std::string text;
  raw_string_ostream os(text);
  print(value, os);
  if (text.size() > maxStringSize)
    text.resize(maxStringSize);
  return text;
}

//===- Formulas -------------------------------------------------------------------------------===//

Mean asFormula(const Mean &mean) {
  Mean result = mean;
  result.better = Better::Unknown;
  if (!mean.formula.empty())
    return result;
  for (auto [i, term] : enumerate(result.terms)) {
    result.formula += (i ? " m" : "m") + std::to_string(i);
    if (term.weight != 1)
      result.formula += " " + toText(Value(term.weight)) + " mul";
    result.formula += i ? " add" : "";
    term.weight = 1;
  }
  return result;
}

/// The function `word` of what the formula has so far; nothing if that is too long.
static std::optional<Mean> finished(Mean mean, StringRef word) {
  mean.formula += (" " + word).str();
  if (mean.terms.size() > rt::Formula::maxMeans ||
      !rt::Formula::parse(mean.formula, mean.terms.size()))
    return std::nullopt;
  return mean;
}

std::optional<Mean> applyFormula(StringRef word, const Mean &mean) {
  return finished(asFormula(mean), word);
}

/// The formula of `right` where its terms are among those of `left`, too.
static std::string joinTerms(Mean &left, const Mean &right) {
  SmallVector<size_t> places;
  for (const Term &term : right.terms) {
    auto known = find_if(left.terms, [&](const Term &other) {
      return other.numerator == term.numerator && other.denominator == term.denominator;
    });
    places.push_back(known - left.terms.begin());
    if (known == left.terms.end())
      left.terms.push_back(term);
  }
  std::string text;
  for (StringRef word : split(right.formula, ' ')) {
    std::string separator = " ";
    for (StringRef part : split(word, '|')) {
      size_t place = 0;
      bool isMean = part.starts_with("m") && !part.drop_front().getAsInteger(10, place);
      text += separator + (isMean ? "m" + std::to_string(places[place]) : part.str());
      separator = "|";
    }
  }
  return text;
}

std::optional<Mean> applyFormula(StringRef word, const Value &a, const Value &b) {
  Mean result = asFormula(a.isMean() ? a.asMean() : b.asMean());
  if (!a.isMean()) {
    result.formula = toText(Value(a.asDouble())) + " " + result.formula;
  } else if (b.isMean()) {
    Mean right = asFormula(b.asMean());
    result.formula += joinTerms(result, right);
    if (!right.differentiable)
      result.origin = right.origin;
    result.differentiable &= right.differentiable;
  } else {
    result.formula += " " + toText(Value(b.asDouble()));
  }
  return finished(std::move(result), word);
}

bool areEqual(const Value &a, const Value &b) {
  if (a.isIntegral() && b.isIntegral())
    return a.asIntegral() == b.asIntegral();
  if (a.isNumber() && b.isNumber())
    return a.asDouble() == b.asDouble();
  if (a.isString() && b.isString())
    return a.asString() == b.asString();
  if (a.isList() && b.isList())
    return equal(a.asList(), b.asList(), areEqual);
  if (a.isCallable() && b.isCallable())
    return a.asCallable().function == b.asCallable().function &&
           a.asCallable().op == b.asCallable().op;
  return false;
}

} // namespace dlc::fe
