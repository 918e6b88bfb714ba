// The operation graph of a stored cuDNN plan, computed by plain loops: sums in f32, results rounded
// to their type. What the library would compute is read from its own text, not from the dispatch.
#pragma once

#include "test/cuda/Tensors.h"

#include <map>

namespace dlc::rt::test {

class StoredGraph {
public:
  /// Throws Error(Artifact) if the text is no plan, or of other operations than dlc plans.
  explicit StoredGraph(const std::string &plan);

  /// Operand i is the tensor with the id i + 1. `isTf32`: factors of f32 are rounded to that.
  void run(std::span<const std::span<std::byte>> operands, bool isTf32) const;

private:
  enum class Kind : uint8_t { Forward, Data, Filter, Add, Relu };
  struct Node {
    Kind kind = Kind::Forward;
    std::string x, w, y; // image, filter and image of a convolution; a + b of an addition
    std::vector<int64_t> lower = {}, upper = {}; // padding
    std::vector<int64_t> strides = {}, dilations = {};
  };
  using Values = std::map<std::string, std::vector<float>>;

  bool fits(const Node &node) const;
  void convolve(const Node &node, Values &values) const;
  void addBias(const Node &node, Values &values) const;

  std::map<std::string, StoredTensor> tensors; // by id
  std::map<std::string, size_t> operands;      // place among a kernel's, of those that are stored
  std::vector<Node> nodes;
};

} // namespace dlc::rt::test
