#include "runtime/artifact/Formula.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace dlc::rt {

namespace {
struct Word {
  std::string_view text;
  Formula::Op op;
  size_t operands;
};
constexpr Word words[] = {
    {"neg", Formula::Op::Negate, 1},   {"abs", Formula::Op::Abs, 1},
    {"exp", Formula::Op::Exp, 1},      {"log", Formula::Op::Log, 1},
    {"log10", Formula::Op::Log10, 1},  {"sqrt", Formula::Op::Sqrt, 1},
    {"tanh", Formula::Op::Tanh, 1},    {"sigmoid", Formula::Op::Sigmoid, 1},
    {"relu", Formula::Op::Relu, 1},    {"add", Formula::Op::Add, 2},
    {"sub", Formula::Op::Subtract, 2}, {"mul", Formula::Op::Multiply, 2},
    {"div", Formula::Op::Divide, 2},
};

const Word *lookup(std::string_view text) {
  for (const Word &word : words)
    if (word.text == text)
      return &word;
  return nullptr;
}

template <typename Number> bool isNumber(std::string_view text, Number &number) {
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// The places in `m0|m1|m4`; nothing if one of them is no mean of so many.
std::optional<std::vector<size_t>> placesOf(std::string_view word, size_t means) {
  std::vector<size_t> places;
  while (true) {
    std::string_view part = word.substr(0, word.find('|'));
    size_t place = 0;
    if (!part.starts_with('m') || !isNumber(part.substr(1), place) || place >= means)
      return {};
    places.push_back(place);
    if (part.size() == word.size())
      return places;
    word.remove_prefix(part.size() + 1);
  }
}
} // namespace

bool Formula::isFunction(std::string_view word) {
  const Word *known = lookup(word);
  return known && known->operands == 1;
}

std::optional<Formula> Formula::parse(std::string_view text, size_t means) {
  Formula formula;
  size_t depth = 0;
  while (true) {
    std::string_view part = text.substr(0, text.find(' '));
    Step step{Op::Number, 0, {}};
    size_t operands = 0;
    if (const Word *word = lookup(part)) {
      step.op = word->op;
      operands = word->operands;
    } else if (part.starts_with('m')) {
      std::optional<std::vector<size_t>> places = placesOf(part, means);
      if (!places)
        return {};
      step = {Op::Mean, 0, std::move(*places)};
    } else if (!isNumber(part, step.number) || !std::isfinite(step.number)) {
      return {};
    }
    if (depth < operands || formula.list.size() == maxSteps)
      return {};
    depth = depth - operands + 1;
    formula.list.push_back(std::move(step));
    if (part.size() == text.size())
      break;
    text.remove_prefix(part.size() + 1);
  }
  return depth == 1 ? std::optional(std::move(formula)) : std::nullopt;
}

static double averageOf(std::span<const Pair> means, std::span<const size_t> places) {
  double sum = 0, count = 0;
  for (size_t place : places)
    if (means[place].count != 0) {
      sum += means[place].sum / means[place].count;
      count += 1;
    }
  return sum / count;
}

static double apply(Formula::Op op, double a, double b) {
  switch (op) {
  case Formula::Op::Negate:
    return -b;
  case Formula::Op::Abs:
    return std::fabs(b);
  case Formula::Op::Exp:
    return std::exp(b);
  case Formula::Op::Log:
    return std::log(b);
  case Formula::Op::Log10:
    return std::log10(b);
  case Formula::Op::Sqrt:
    return std::sqrt(b);
  case Formula::Op::Tanh:
    return std::tanh(b);
  case Formula::Op::Sigmoid:
    return 1 / (1 + std::exp(-b));
  case Formula::Op::Relu:
    return b < 0 ? 0 : b;
  case Formula::Op::Add:
    return a + b;
  case Formula::Op::Subtract:
    return a - b;
  case Formula::Op::Multiply:
    return a * b;
  case Formula::Op::Divide:
    return a / b;
  default:
    return std::numeric_limits<double>::quiet_NaN();
  }
}

double Formula::evaluate(std::span<const Pair> means) const {
  std::vector<double> stack;
  auto pop = [&] {
    double value = stack.back();
    stack.pop_back();
    return value;
  };
  for (const Step &step : list)
    if (step.op == Op::Number) {
      stack.push_back(step.number);
    } else if (step.op == Op::Mean) {
      stack.push_back(averageOf(means, step.means));
    } else {
      double b = pop();
      double a = step.op >= Op::Add ? pop() : 0;
      stack.push_back(apply(step.op, a, b));
    }
  return stack.back();
}

} // namespace dlc::rt
