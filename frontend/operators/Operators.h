// The one table of what a program can call: operators of the graph and, for the blocks data and
// train, data steps, optimizers, schedules. It gives arguments, defaults and documentation; the
// elaborator checks calls against it, `dlc help` and the documentation print it. A new operator is
// one entry and one emitter.
#pragma once

#include "frontend/operators/Value.h"
#include "frontend/syntax/Diagnostics.h"

#include "llvm/ADT/SmallVector.h"

namespace dlc::fe {

class Emission;

/// What an argument takes; a union of these.
enum Accept : unsigned {
  Int = 1 << 0,
  Float = 1 << 1, // ints too
  Bool = 1 << 2,
  Word = 1 << 3, // one of the argument's words
  Text = 1 << 4, // any string
  IntList = 1 << 5,
  FloatList = 1 << 6,
  TextList = 1 << 7,
  Tensor = 1 << 8,
  TensorList = 1 << 9,
  Anything = 1 << 10,
  Rest = 1 << 11, // takes all arguments without a name, as a list
};

struct ArgumentSpec {
  llvm::StringLiteral name;
  unsigned accepts;
  /// Empty: required. "=text": absent if not given, where the text says what it then is. Else a
  /// constant.
  llvm::StringLiteral defaultText;
  llvm::StringLiteral words; // separated by blanks
  llvm::StringLiteral doc;
};

enum class CallKind { Operator, Optimizer, Schedule, EarlyStop, DataStep };

struct CallSpec {
  llvm::StringLiteral name;
  CallKind kind;
  llvm::StringLiteral summary;
  llvm::ArrayRef<ArgumentSpec> arguments;
  llvm::StringLiteral description;
  mlir::FailureOr<Value> (*emit)(Emission &) = nullptr; // of operators
  Better better = Better::Unknown;                      // of losses and metrics
};

/// Entries of a kind, in the order of the documentation.
llvm::ArrayRef<CallSpec> operatorTable();
llvm::ArrayRef<CallSpec> configurationTable();

/// A setting of the block train.
struct SettingSpec {
  llvm::StringLiteral name;
  llvm::StringLiteral form; // what stands behind '='
  llvm::StringLiteral doc;
};
llvm::ArrayRef<SettingSpec> trainSettings();

/// Null if there is none of this kind.
const CallSpec *lookupCall(llvm::StringRef name, CallKind kind);
std::vector<llvm::StringRef> callNames(CallKind kind);
/// "optimizer", "data step", for messages.
llvm::StringRef kindName(CallKind kind);
/// The words that some argument takes, such as `same` of padding; elsewhere they are strings.
llvm::ArrayRef<llvm::StringRef> argumentWords();

/// What every call of an operator or function takes beside its own arguments, by keyword.
llvm::ArrayRef<ArgumentSpec> commonArguments();
bool isCommonArgument(llvm::StringRef name);

struct GivenArgument {
  llvm::SMLoc loc;
  llvm::SMLoc valueLoc;
  llvm::StringRef keyword; // empty: by position
  Value value;
};

struct BoundArgument {
  Value value;     // absent if not given and without a default
  llvm::SMLoc loc; // invalid if not given
};

/// Matches given arguments with the table: one bound argument per entry of `spec.arguments`, of a
/// type that it accepts.
llvm::LogicalResult bindArguments(const CallSpec &spec, llvm::SMLoc callLoc,
                                  llvm::ArrayRef<GivenArgument> given, Diagnostics &diags,
                                  llvm::SmallVectorImpl<BoundArgument> &bound);

/// "an int or a list of ints".
std::string describe(const ArgumentSpec &argument);

} // namespace dlc::fe
