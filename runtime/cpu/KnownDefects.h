// Kernels that oneDNN 2.6.3 offers and that compute wrong numbers. Rules for convolutions were
// found by running every candidate of random ones against plain loops
// (test/unit/cpu/RandomConvTest.cpp), that for poolings by sums that are exact in any order
// (test/e2e/precision.py).
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <string_view>

namespace dlc::rt {

/// Whether the library's implementation of this name computes this request wrongly in these layouts
/// of its operands.
bool isDefective(const KernelRequest &request, const std::vector<Layout> &layouts,
                 std::string_view implementation);

} // namespace dlc::rt
