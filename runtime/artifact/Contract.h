// What the code of a generated kernel was made for: its iterations and its buffers.
//
// Code takes both on trust, so the compiler puts the contract into the code, which is compared with
// the artifact's tables before the kernel runs: a CPU's kernels have it beside them, those of GPUs
// in their names. Header-only: the compiler and the runtime use it.
#pragma once

#include "runtime/artifact/Hash.h"
#include "runtime/artifact/LayoutIo.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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

/// As the artifact has it; its operands' types are well-formed.
inline uint64_t contractOf(const artifact::Kernel &kernel) {
  KernelContract contract(kernel.extent(), kernel.chunk());
  for (uint32_t i = 0; kernel.operands() && i < kernel.operands()->size(); ++i) {
    const artifact::TensorType &type = *kernel.operands()->Get(i);
    contract.add(type.dtype(), readShape(type), *readLayout(type));
  }
  return contract.value();
}

/// The contracts of all stages of a cluster. On GPUs its kernels are called
/// CLUSTER_SIGNATURE_STAGE; code written by hand has no signature.
class ClusterSignature {
public:
  void add(const std::string &stage, uint64_t contract) { contracts.emplace(stage, contract); }

  /// Eight digits.
  std::string text() const {
    std::string all, digits;
    for (const auto &[stage, contract] : contracts)
      all += stage + ": " + std::to_string(contract) + "; ";
    uint64_t hash = hash64({reinterpret_cast<const uint8_t *>(all.data()), all.size()});
    for (size_t i = 0; i < length; ++i)
      digits += digit[hash >> (4 * i) & 15];
    return digits;
  }

  /// True if a name without its stage is signed, and not by this.
  bool contradicts(std::string_view name) const {
    size_t begin = name.size() - std::min(name.size(), length);
    bool isSigned = begin > 0 && name[begin - 1] == '_' &&
                    name.find_first_not_of(digit, begin) == std::string_view::npos;
    return isSigned && name.substr(begin) != text();
  }

private:
  static constexpr std::string_view digit = "0123456789abcdef";
  static constexpr size_t length = 8;
  std::set<std::pair<std::string, uint64_t>> contracts;
};

} // namespace dlc::rt
