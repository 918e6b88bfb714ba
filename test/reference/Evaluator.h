// Reference evaluator of the nn and comm dialects: the semantics of every op in f64, by loops that
// one can read.
//
// All ranks of a run are simulated in one process, op by op in program order, so a collective sees
// every rank's operands. Layouts are ignored (values are logical), comm.wait completes what
// comm.start began. Results of type bf16 and f16 are rounded, to nearest even: that is a decision
// about storage, which the backward pass has to see; f32 is not rounded to.
#pragma once

#include "dialects/Comm/Comm.h"
#include "dialects/NN/NN.h"
#include "test/reference/Tensor.h"

namespace dlc::reference {

/// What leaves a program on one rank.
struct Outcome {
  struct Fraction {
    std::string name; // of a metric
    double weight = 1;
    double sum = 0;
    double count = 0;
  };
  std::vector<Fraction> losses;
  std::vector<Fraction> metrics;
  Tensors outputs;
  Tensors gradients; // nn.gradient
  Tensors assigned;  // nn.assign
};

/// How a program's arithmetic differs from that of f64.
struct Arithmetic {
  /// Random errors of the size that arithmetic in f32 makes: how far they move a result says how
  /// far a correct program's may be from the exact one. Where an op rounds, its results get a
  /// relative error of at most `noise` (of sums: relative to the tensor's root mean square at
  /// least, as terms may cancel) and are rounded to f32. What f32 represents exactly stays as it
  /// is: it was not rounded.
  double noise = 0;
  uint64_t noiseSeed = 0;
  /// Convolutions and matrix products round factors of f32 to TF32, as tensor cores do.
  bool isTf32 = false;
};

/// Runs a program on inputs.size() ranks. A variable missing in `variables` has its initial value
/// if that is a constant; of the scalars that describe the run, inverse_world, first_row and
/// valid_rows follow from the number of ranks and the model's batch. Emits an error at the op that
/// cannot be evaluated.
llvm::FailureOr<std::vector<Outcome>> evaluate(nn::ProgramOp program, const Tensors &variables,
                                               llvm::ArrayRef<Tensors> inputs,
                                               Arithmetic arithmetic = {});

/// Sum over losses of weight * sum / count, sums and counts over all ranks.
double totalLoss(llvm::ArrayRef<Outcome> ranks);

// Results of one op, by kind; nothing if it is of another kind.
using Operands = llvm::ArrayRef<const Tensor *>;
using Results = std::optional<std::vector<Tensor>>;
Results evaluateElementwise(mlir::Operation *op, Operands operands);
Results evaluateShape(mlir::Operation *op, Operands operands);
Results evaluateNetwork(mlir::Operation *op, Operands operands);

/// Zeros of a value's shape.
inline Tensor zerosFor(mlir::Value value) { return Tensor(nn::tensorType(value).getShape()); }

} // namespace dlc::reference
