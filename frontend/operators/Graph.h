// Builds the nn.model: variables shared by the programs @train, @eval and @predict, and the ops of
// the program being elaborated. Callers check operands; what reaches this class gives valid ops.
// Errors go to the context, at the places that callers give.
// Invariant: a variable is named once per program, by the same call path, with one type in all of
// them.
#pragma once

#include "dialects/NN/NN.h"
#include "frontend/operators/Value.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <limits>

namespace dlc::fe {

enum class ProgramKind { Train, Eval, Predict };
llvm::StringRef programName(ProgramKind kind);

using nn::maxElements;
/// Number of elements, saturating; at most maxElements in any tensor of a model.
int64_t elementCount(llvm::ArrayRef<int64_t> shape);

inline bool fitsF32(double value) { return std::fabs(value) <= std::numeric_limits<float>::max(); }

inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) {
  return nn::tensorType(value).getShape();
}

class Graph {
public:
  Graph(mlir::MLIRContext &context, llvm::StringRef modelName);

  mlir::ModuleOp module() { return *container; }
  nn::ModelOp model() { return modelOp; }
  mlir::OwningOpRef<mlir::ModuleOp> take() { return std::move(container); }

  //===- Programs -----------------------------------------------------------------------------===//

  void beginProgram(ProgramKind kind);
  ProgramKind program() const { return kind; }
  bool isTraining() const { return kind == ProgramKind::Train; }
  /// `extents` names the model's parameters that set the type's extents, empty where none does.
  mlir::Value addInput(llvm::StringRef name, mlir::RankedTensorType type,
                       llvm::ArrayRef<std::string> extents);
  int64_t batch() const { return rows; }
  /// One term of the loss per term; the rows that pad a batch are left out of evaluation, or an
  /// error is reported at `where`.
  llvm::LogicalResult addLoss(const Mean &mean, mlir::Location where);
  /// A function of several terms has each of them as a metric `name.0`, `name.1` and so on.
  llvm::LogicalResult addMetric(llvm::StringRef name, const Mean &mean, mlir::Location where);
  void addOutput(llvm::StringRef name, mlir::Value value);
  /// Erases what no result needs (in prediction inputs too) and fixes the program's signature.
  void endProgram();
  /// Reports parameters that influence no result of any program.
  llvm::LogicalResult checkAllParametersUsed();

  //===- Variables ----------------------------------------------------------------------------===//

  /// The place of a variable: where it is declared, and a hash of the calls that led there. `reuse`
  /// takes the variable that another place has made; `trainable` is false for a frozen parameter.
  struct Site {
    mlir::Location loc;
    size_t path = 0;
    bool reuse = false;
    bool trainable = true;
  };
  /// The variable's value, declaring it in the first program. Two of one name are an error.
  mlir::FailureOr<mlir::Value> variable(llvm::StringRef name, llvm::ArrayRef<int64_t> shape,
                                        nn::VariableKind kind, nn::InitializerAttr init, Site site);
  /// The value of the variable after the step, and for what reuses it.
  void assign(llvm::StringRef name, mlir::Value value);
  /// The stream of random numbers of a layer; false if the program has one of that name already,
  /// unless each reuse of it gets a stream of its own.
  bool claimRandomStream(llvm::StringRef path, const Site &site, int64_t &stream);
  /// Reads a scalar that the host writes: seed, step, first_row, valid_rows (all i64).
  mlir::Value hostScalar(llvm::StringRef role);

  //===- Ops ----------------------------------------------------------------------------------===//

  mlir::OpBuilder builder;
  mlir::Location loc;

  mlir::RankedTensorType f32(llvm::ArrayRef<int64_t> shape);
  mlir::RankedTensorType i32(llvm::ArrayRef<int64_t> shape);
  mlir::Value constant(mlir::RankedTensorType type, double value);
  mlir::Value cast(mlir::Value value, mlir::Type element);
  /// Ints and bools become f32.
  mlir::Value toFloat(mlir::Value value);
  /// Numbers and means too. Numbers give scalars.
  mlir::Value toFloat(const Value &value);
  /// The same value, a constant to differentiation.
  mlir::Value stopGradient(mlir::Value value);
  /// Repeats a scalar or axes of size 1.
  mlir::Value broadcast(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  /// Axis i of the value is axis `axes[i]` of the result; it repeats along all others.
  mlir::Value spread(mlir::Value value, llvm::ArrayRef<int64_t> axes,
                     llvm::ArrayRef<int64_t> shape);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value sum(mlir::Value value, llvm::ArrayRef<int64_t> axes);
  mlir::Value sumAll(mlir::Value value);
  mlir::Value compare(nn::Comparison predicate, mlir::Value a, mlir::Value b);
  /// The mean as a scalar of this rank's batch, in evaluation of its valid rows.
  mlir::Value materialise(const Mean &mean);

private:
  struct Variable {
    nn::VariableOp op;
    Site site;
    ProgramKind lastProgram;
    bool influential = false;
  };

  mlir::FailureOr<mlir::Value> reuse(llvm::StringRef name, mlir::RankedTensorType type,
                                     nn::VariableKind kind, const Site &site);
  mlir::Value valueOf(llvm::StringRef name, mlir::RankedTensorType type);
  std::pair<mlir::Value, mlir::Value> sumAndCount(const Term &term);
  std::string leaveOutPadding(mlir::Value &sum, mlir::Value &count);
  mlir::FailureOr<std::pair<mlir::Value, mlir::Value>> validSumAndCount(const Term &term,
                                                                        mlir::Location where);
  llvm::LogicalResult addPooled(llvm::StringRef name, const Term &term, mlir::Location where);
  mlir::Value evaluateFormula(const Mean &mean,
                              llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> means);
  nn::VariableOp declare(llvm::StringRef name, mlir::RankedTensorType type, nn::VariableKind kind,
                         nn::InitializerAttr init);
  void markInfluential();

  mlir::OwningOpRef<mlir::ModuleOp> container;
  nn::ModelOp modelOp;
  nn::ProgramOp programOp;
  nn::ProgramOp firstProgram;
  ProgramKind kind = ProgramKind::Train;
  int64_t rows = 0;
  llvm::StringMap<Variable> variables;
  llvm::StringMap<mlir::Value> values;    // of variables in this program
  llvm::StringMap<nn::AssignOp> assigned; // in this program
  llvm::StringMap<unsigned> randomLayers; // how often this program has each
  llvm::DenseSet<mlir::Value> masked;     // of this program: sums and counts of valid rows
};

} // namespace dlc::fe
