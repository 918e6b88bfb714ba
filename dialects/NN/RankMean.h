// Normalisation by the statistics of all ranks' batches: the arithmetic is the dialect's, how ranks
// meet is the caller's.
#pragma once

#include "dialects/NN/NN.h"

namespace dlc::nn {

/// The mean over ranks of a tensor of f32.
using RankMean = llvm::function_ref<mlir::Value(mlir::Value)>;

/// What stands for a training nn.batch_norm or nn.batch_norm_grad with `sync`: its results.
llvm::SmallVector<mlir::Value> decomposeOverRanks(mlir::OpBuilder &builder, mlir::Operation *op,
                                                  RankMean meanOverRanks);

} // namespace dlc::nn
