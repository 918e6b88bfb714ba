// Tests that every rank runs in the same order: rank 0 tells of all, the others of failures alone.
#pragma once

#include "runtime/core/ControlPlane.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

namespace dlc::rt::test {

class FailurePrinter final : public testing::EmptyTestEventListener {
public:
  explicit FailurePrinter(int rank) : rank(rank) {}

private:
  void OnTestPartResult(const testing::TestPartResult &result) override {
    if (result.failed())
      std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank, result.file_name(), result.line_number(),
                   result.message());
  }

  int rank;
};

/// The exit status of all ranks.
inline int runRankTests(ControlPlane &control, int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  if (control.rank() != 0) {
    auto &listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(control.rank()));
  }
  std::vector<double> failures = {static_cast<double>(RUN_ALL_TESTS() != 0)};
  control.sum(failures, "sum of failures");
  return failures[0] != 0;
}

} // namespace dlc::rt::test
