// What an expression of the graph language evaluates to. Values are immutable and cheap to copy;
// lists are shared. Invariant: a list's total size and depth are bounded, so that walks over it may
// recurse.
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/LogicalResult.h"

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace dlc::fe {

struct Function;
struct CallSpec;
class Value;

/// A list. `weight` counts the values in it at all depths.
struct List {
  std::vector<Value> items;
  size_t weight = 1;
  unsigned depth = 1;
};
constexpr size_t maxListWeight = 1 << 20;
constexpr unsigned maxListDepth = 64;
constexpr size_t maxStringSize = 1 << 12;

/// weight * sum(numerator) / sum(denominator), summed over rows and ranks. Without denominator it
/// is the number of elements of the numerator.
struct Term {
  mlir::Value numerator;
  mlir::Value denominator;
  double weight = 1;
};

/// Which values of a loss or metric are better, as far as that is known.
enum class Better { Unknown, Lower, Higher };

/// What losses, metrics and `mean` of everything yield: a sum of terms that is not yet reduced,
/// because rows that pad a batch and other ranks have to be taken into account. Or a function of
/// such terms, by what they are over all rows and ranks.
struct Mean {
  std::vector<Term> terms;
  std::string formula; // of the terms' sum / count (runtime/artifact/Formula.h); empty: their sum
  llvm::StringRef origin; // the operator, for messages
  Better better = Better::Unknown;
  bool differentiable = true; // accuracy and iou are not
};

/// The same value as a formula. Terms lose their weights to it.
Mean asFormula(const Mean &mean);
/// A formula's function of one value. Nothing if the formula would be too long.
std::optional<Mean> applyFormula(llvm::StringRef word, const Mean &mean);
/// A formula's function of a mean and a mean or number, in either order.
std::optional<Mean> applyFormula(llvm::StringRef word, const Value &a, const Value &b);

/// A function of the program, or an operator.
struct Callable {
  const Function *function = nullptr;
  const CallSpec *op = nullptr;
};

class Value {
public:
  Value() = default; // absent: an argument that has no default and is not given
  Value(int64_t v) : data(v) {}
  Value(double v) : data(v) {}
  Value(bool v) : data(v) {}
  Value(std::string v) : data(std::make_shared<const std::string>(std::move(v))) {}
  Value(mlir::Value v) : data(v) {}
  Value(Mean v) : data(std::make_shared<const Mean>(std::move(v))) {}
  Value(Callable v) : data(v) {}
  /// Null-like (absent) if the list would be too large or too deep.
  static Value list(std::vector<Value> items);
  static Value list(llvm::ArrayRef<int64_t> items);

  bool isAbsent() const { return std::holds_alternative<std::monostate>(data); }
  bool isInt() const { return std::holds_alternative<int64_t>(data); }
  bool isFloat() const { return std::holds_alternative<double>(data); }
  bool isBool() const { return std::holds_alternative<bool>(data); }
  bool isString() const { return std::holds_alternative<std::shared_ptr<const std::string>>(data); }
  bool isList() const { return std::holds_alternative<std::shared_ptr<const List>>(data); }
  bool isTensor() const { return std::holds_alternative<mlir::Value>(data); }
  bool isMean() const { return std::holds_alternative<std::shared_ptr<const Mean>>(data); }
  bool isCallable() const { return std::holds_alternative<Callable>(data); }
  bool isNumber() const { return isInt() || isFloat() || isBool(); }
  bool isGraph() const { return isTensor() || isMean(); }
  /// Numbers, strings and lists of them: what a parameter of a model may be.
  bool isPlain() const;

  int64_t asInt() const { return std::get<int64_t>(data); }
  bool asBool() const { return std::get<bool>(data); }
  const std::string &asString() const {
    return *std::get<std::shared_ptr<const std::string>>(data);
  }
  llvm::ArrayRef<Value> asList() const;
  size_t weight() const; // of a list
  mlir::Value asTensor() const { return std::get<mlir::Value>(data); }
  const Mean &asMean() const { return *std::get<std::shared_ptr<const Mean>>(data); }
  Callable asCallable() const { return std::get<Callable>(data); }
  /// Any number as float: bools are 0 and 1.
  double asDouble() const;
  /// Ints and bools.
  bool isIntegral() const { return isInt() || isBool(); }
  int64_t asIntegral() const { return isBool() ? asBool() : asInt(); }

private:
  std::variant<std::monostate, int64_t, double, bool, std::shared_ptr<const std::string>,
               std::shared_ptr<const List>, mlir::Value, std::shared_ptr<const Mean>, Callable>
      data;
};

/// "an int", "a tensor f32[4, 1, 28, 28]", for messages.
std::string describe(const Value &value);

/// The value as `{...}` in a string shows it; for anything but tensors and functions the language
/// reads it back. Cut to maxStringSize.
std::string toText(const Value &value);

/// "f32[4, 1, 28, 28]".
std::string typeText(mlir::Type type);

/// Equality of compile-time values; false for different kinds, ints equal floats of the same value.
bool areEqual(const Value &a, const Value &b);

} // namespace dlc::fe
