// A cluster as the CPU runs it, which knows no epilogues: what follows reductions is a cluster of
// its own.
#pragma once

#include "test/unit/passes/ClusterRunner.h"

namespace dlc::test {

class SplitCluster {
public:
  explicit SplitCluster(mlir::Region &body);

  /// The results of the whole cluster, of its logical operands.
  std::vector<reference::Tensor> run(const std::vector<reference::Tensor> &operands);

private:
  void split(mlir::Block &before, mlir::Block &after);

  std::vector<bool> isEpilogue;   // by result of the cluster
  std::vector<size_t> reductions; // results of the first that are the last operands of the second
  std::optional<ClusterRunner> first, second;
};

} // namespace dlc::test
