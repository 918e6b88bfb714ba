#include "frontend/syntax/Habits.h"

#include "frontend/syntax/Diagnostics.h"

#include <utility>

using namespace llvm;

namespace dlc::fe {

using Hint = std::pair<StringLiteral, StringLiteral>;

static constexpr Hint syntax[] = {
    {"=", "a comparison is '=='"},
    {"+=", "losses add up in one statement: loss = a + 0.4 * b"},
    {"not", "write '!'"},
    {"and", "write '&&'"},
    {"or", "write '||'"},
    {"is", "write '=='"},
    {"in", "compare with each: x == a || x == b"},
    {"if", "a choice is a if c else b"},
    {"for", "a list grows in a loop: for i in 0..n { list += [i] }"},
    {"elif", "write 'else if'"},
    {"while", "loops are over lists: for i in 0..n { ... }"},
    {"break", "a loop runs over its whole list; 'if' leaves out what is not wanted"},
    {"continue", "a loop runs over its whole list; 'if' leaves out what is not wanted"},
    {"pass", "an empty block is { }"},
    {"def", "write 'fn'"},
    {"function", "write 'fn'"},
    {"class", "a network is a 'model', a part of it a function, 'fn'"},
    {"lambda", "functions have names: fn at the top of the file"},
    {"from", "functions of another file come by import \"file.dl\""},
    {"print",
     "write print \"text {expr}\"; 'dlc compile FILE --emit=nn -o -' shows what comes out"},
};

static constexpr Hint names[] = {
    {"range", "write 0..n"},
    {"zip", "count the places: for i in 0..len(a) { ... a[i], b[i] ... }"},
    {"pow", "write x ** p"},
    {"True", "write 'true'"},
    {"False", "write 'false'"},
    {"None", "leave the argument out"},
    {"loss", "'loss = ...' makes no value; name the value first: l = ..., then loss = l"},
    {"output", "a result has a name: output NAME = value"},
    {"metric", "a metric has a name: metric NAME = value"},
    {"nn", "operators have no prefix: conv(x, 16, kernel = 3)"},
    {"F", "operators have no prefix: relu(x)"},
    {"torch", "operators have no prefix: relu(x)"},
    {"self", "layers are calls: x = conv(x, 16, kernel = 3)"},
    {"Linear", "write dense(x, channels)"},
    {"linear", "write dense(x, channels)"},
    {"cat", "write concat(a, b)"},
    {"view", "write reshape(x, [...])"},
    {"CrossEntropyLoss", "write softmax_cross_entropy(logits, label)"},
    {"cross_entropy", "write softmax_cross_entropy(logits, label)"},
    {"BCEWithLogitsLoss", "write bce_with_logits(logits, target)"},
    {"BCELoss", "write bce_with_logits(logits, target)"},
    {"MSELoss", "write mse(x, target)"},
    {"L1Loss", "write mae(x, target)"},
    {"lr", "it belongs to the optimizer: optimizer = adam(lr = 1e-3)"},
    {"patience", "it belongs to a call: early_stop(patience = 10)"},
    {"batch", "the rows of a rank are a parameter of the model: model m(batch = 32)"},
    {"batch_size", "the rows of a rank are a parameter of the model: model m(batch = 32)"},
};

static std::string hintIn(ArrayRef<Hint> table, StringRef text) {
  for (const auto &[habit, hint] : table)
    if (habit == text)
      return ("; " + hint).str();
  return "";
}

std::string syntaxHint(StringRef text) { return hintIn(syntax, text); }

std::string nameHint(StringRef name, ArrayRef<StringRef> known) {
  for (ArrayRef<Hint> table : {ArrayRef(syntax), ArrayRef(names)})
    if (std::string hint = hintIn(table, name); !hint.empty())
      return hint;
  return didYouMean(name, known);
}

// Longer signs come before their prefixes.
static constexpr std::pair<StringLiteral, const char *> signs[] = {
    {"#", "a comment begins with '//'"},
    {"/*", "a comment begins with '//' and ends with its line"},
    {"^", "'^' is no operator; a power is x ** p, and that one of two bools is true is a != b"},
    {"++", "'++' is no operator; write i += 1"},
    {"<>", "'<>' is no operator; write '!='"},
    {"&", "'&' is no operator; of bools write '&&'"},
    {"|", "'|' is no operator; of bools write '||'"},
    {"~", "'~' is no operator; of a bool write '!'"},
    {"%", "'%' is no operator; write 'mod'"},
    {"@", "'@' is no operator; dense(x, channels) multiplies by a matrix of parameters"},
    {"?", "'?' has no meaning here: an extent is an int known when compiling, and a choice is "
          "a if c else b"},
    {"'", "a string stands in double quotes"},
    {"\\", "a statement goes on in the next line inside of brackets only"},
};

const char *foreignSign(StringRef rest, size_t &length) {
  for (auto [sign, message] : signs)
    if (rest.starts_with(sign)) {
      length = sign.size();
      return message;
    }
  return nullptr;
}

} // namespace dlc::fe
