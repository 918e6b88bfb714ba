// All of the nn dialect, for tablegen.
include "dialects/NN/NNStructureOps.td"
include "dialects/NN/NNElementwiseOps.td"
include "dialects/NN/NNShapeOps.td"
include "dialects/NN/NNNetworkOps.td"
