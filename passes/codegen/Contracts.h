// What the kernels of a model are generated for, as their code says it
// (runtime/artifact/Contract.h).
#pragma once

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"
#include "runtime/artifact/Contract.h"

namespace dlc {

rt::KernelContract contractOf(exec::KernelOp kernel);

/// Gives each cluster, and so the functions of its kernels, a name that ends in its signature.
void signClusters(nn::ModelOp model);

} // namespace dlc
