// A kernel request as oneDNN operation descriptor, and the implementations that the library has of
// it.
//
// Built once with layouts left open (planning) and once with every layout fixed (rebuilding); both
// run through the same code, so what was planned is what is found again. Throws dnnl::error or
// Error. Results depend on the calling thread's OpenMP team size, as oneDNN's do.
#pragma once

#include "runtime/cpu/OneDnnLayout.h"

#include <functional>
#include <memory>
#include <string>
#include <variant>

namespace dlc::rt {

using LayoutChoice = std::vector<std::optional<Layout>>; // one per operand, empty: library's choice

/// How a convolution is computed. A filter gradient whose window is one pixel can be one product
/// of matrices, which have a row for each channel of dy and a column for each of x.
enum class Algorithm : uint8_t { Direct, Winograd, Product };

/// That of an implementation of this name.
Algorithm algorithmOf(const std::string &implementation);

/// One implementation: a primitive descriptor and what it wants of the operands.
struct OneDnnImplementation {
  std::shared_ptr<dnnl_primitive_desc> descriptor;
  std::string name;
  std::vector<Layout> layouts; // one per operand of the request
  std::vector<dnnl_memory_desc_t> operands;
  std::vector<int> arguments; // DNNL_ARG_* per operand
  uint64_t workspaceBytes = 0;
};

class OneDnnOperation {
public:
  OneDnnOperation(const dnnl::engine &engine, const KernelRequest &request,
                  const LayoutChoice &layouts, Algorithm algorithm = Algorithm::Direct);

  /// Shows the implementations in the library's order of preference, until `visit` returns true.
  /// Those with an opaque operand format are left out.
  bool anyOf(const std::function<bool(const OneDnnImplementation &)> &visit) const;

private:
  // A transposed convolution's descriptor is the same C struct as a convolution's.
  using Descriptor = std::variant<std::monostate, dnnl_convolution_desc_t, dnnl_pooling_v2_desc_t,
                                  dnnl_matmul_desc_t>;

  void describe();
  void describeConv();
  void describeConvGradData();
  void describeDeconvolution();
  void describeConvGradFilter();
  void describeFilterProduct();
  void describeMatmul();
  void describePool();
  void describePoolGrad();
  void describeReorder();

  const dnnl_memory_desc_t &desc(size_t operand) const { return descs[operand]; }
  /// The operand as the library types it.
  OperandType libraryOperand(size_t operand) const;
  void addOperand(int argument, OperandView view = {});
  /// Operands of an operation with weights, and the ReLU behind it.
  void addForwardOperands(OperandView source, OperandView weights, OperandView bias);
  std::optional<OneDnnImplementation> examine(std::shared_ptr<dnnl_primitive_desc> pd) const;
  bool visitOpDescriptor(const std::function<bool(const OneDnnImplementation &)> &visit) const;

  const dnnl::engine &engine;
  const KernelRequest &request;
  const LayoutChoice &layouts;
  Algorithm algorithm;
  bool expressible = true; // every fixed layout has a descriptor
  Descriptor descriptor;
  std::shared_ptr<dnnl_primitive_desc> hint; // forward pooling, for its gradient
  dnnl::primitive_attr attributes;
  std::vector<int> arguments;
  std::vector<OperandView> views;
  std::vector<dnnl_memory_desc_t> descs;
  std::vector<int64_t> dilates; // oneDNN counts dense as 0
};

/// True for the library's slow, generic code.
bool isReferenceCode(const std::string &implementation);

} // namespace dlc::rt
