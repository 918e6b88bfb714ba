// A library kernel rebuilt from its plan, and its ties to buffers.
#pragma once

#include "runtime/cpu/CpuPlan.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

class OneDnnKernel {
public:
  /// Throws Error(Artifact) naming the kernel, the planned and the found implementation if the
  /// library does not offer the same one within the planned workspace.
  OneDnnKernel(const dnnl::engine &engine, const std::string &name, const CpuPlan &plan);

  /// Arguments of one execution, made once; the library's objects are theirs.
  class Binding {
  public:
    Binding(const OneDnnKernel &kernel, const dnnl::engine &engine, std::span<void *const> buffers);
    void launch(const dnnl::stream &stream) const;

  private:
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
  };

private:
  dnnl::primitive primitive;
  std::vector<dnnl_memory_desc_t> operands; // with the scratchpad, if any, last
  std::vector<int> argumentIndices;
};

} // namespace dlc::rt
