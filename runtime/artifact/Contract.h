// What the code of a generated kernel was made for: its iterations and its buffers.
//
// Code takes both on trust, so the compiler puts the contract into the code, and the device
// compares it with the artifact's tables before it runs the kernel. Header-only: the compiler and
// the runtime use it.
#pragma once

#include "runtime/artifact/Hash.h"
#include "runtime/artifact/Layout.h"
#include "runtime/artifact/artifact_generated.h"

#include <string>
#include <vector>

namespace dlc::rt {

class KernelContract {
public:
  KernelContract(int64_t extent, int64_t chunk)
      : text(std::to_string(extent) + " in " + std::to_string(chunk)) {}

  /// The next buffer, in the function's order.
  void add(artifact::DType dtype, const std::vector<int64_t> &shape, const Layout &layout) {
    text += "; " + std::to_string(static_cast<int>(dtype));
    for (int64_t extent : layout.physicalShape(shape))
      text += " " + std::to_string(extent);
    text += " as " + layout.toString();
  }

  uint64_t value() const {
    return hash64({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  }

private:
  std::string text;
};

} // namespace dlc::rt
