// A metric that is a function of means, which are pooled over rows and ranks before it is taken.
//
// The text is in postfix, words apart by one blank: numbers; `m0`, `m1`, ... the means; `m0|m1|m4`
// the mean of those of them that count something; `add`, `sub`, `mul`, `div` of the two values
// before; `neg`, `abs`, `exp`, `log`, `log10`, `sqrt`, `tanh`, `sigmoid`, `relu` of the value
// before. So `m0 log10 -10 mul` is -10 log10(m0).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dlc::rt {

/// Sum and count of a loss or metric.
struct Pair {
  double sum = 0;
  double count = 0;
};

/// Invariant: every step finds its operands, and one value is left.
class Formula {
public:
  enum class Op {
    Number,
    Mean,
    Negate,
    Abs,
    Exp,
    Log,
    Log10,
    Sqrt,
    Tanh,
    Sigmoid,
    Relu,
    Add,
    Subtract,
    Multiply,
    Divide
  };
  struct Step {
    Op op;
    double number = 0;         // of Number
    std::vector<size_t> means; // of Mean, at least one
  };
  static constexpr size_t maxMeans = 1024, maxSteps = 1 << 14;

  /// Nothing if the text is no formula of that many means.
  static std::optional<Formula> parse(std::string_view text, size_t means);
  /// True for the word of a function of one value.
  static bool isFunction(std::string_view word);

  std::span<const Step> steps() const { return list; }
  /// Of as many means as parse() was told.
  double evaluate(std::span<const Pair> means) const;

private:
  std::vector<Step> list;
};

} // namespace dlc::rt
