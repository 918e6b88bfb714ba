#include "runtime/cpu/OneDnnKernel.h"

#include "runtime/artifact/Error.h"
#include "runtime/cpu/OneDnnOperation.h"

namespace dlc::rt {
namespace {

std::string libraryVersion() {
  const dnnl_version_t *version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

} // namespace

OneDnnKernel::OneDnnKernel(const dnnl::engine &engine, const std::string &name,
                           const CpuPlan &plan) {
  LayoutChoice layouts;
  for (const OperandType &operand : plan.request.operands)
    layouts.push_back(operand.layout);
  std::string offered;
  try {
    OneDnnOperation operation(engine, plan.request, layouts, algorithmOf(plan.implementation));
    bool rebuilt = operation.anyOf([&](const OneDnnImplementation &found) {
      if (offered.empty())
        offered = found.name;
      if (found.name != plan.implementation || found.workspaceBytes > plan.workspaceBytes)
        return false;
      dnnl_primitive_t created = nullptr;
      dnnl::error::wrap_c_api(dnnl_primitive_create(&created, found.descriptor.get()),
                              "create a primitive");
      primitive.reset(created);
      operands = found.operands;
      argumentIndices = found.arguments;
      if (plan.workspaceBytes == 0)
        return true;
      const dnnl_memory_desc_t *scratchpad =
          dnnl_primitive_desc_query_md(found.descriptor.get(), dnnl_query_scratchpad_md, 0);
      operands.push_back(*scratchpad);
      argumentIndices.push_back(DNNL_ARG_SCRATCHPAD);
      return true;
    });
    if (rebuilt)
      return;
  } catch (const dnnl::error &error) {
    offered = std::string("nothing (it cannot ") + error.what() + ")";
  }
  throw Error(ErrorCode::Artifact, "kernel " + name + " was planned as " + plan.implementation +
                                       ", but " + libraryVersion() + " here offers " +
                                       (offered.empty() ? "nothing that fits" : offered) +
                                       "; compile the model on this machine");
}

OneDnnKernel::Binding::Binding(const OneDnnKernel &kernel, const dnnl::engine &engine,
                               std::span<void *const> buffers)
    : primitive(kernel.primitive) {
  if (buffers.size() != kernel.operands.size())
    throw Error(ErrorCode::Artifact, "a library kernel wants " +
                                         std::to_string(kernel.operands.size()) + " buffers, got " +
                                         std::to_string(buffers.size()));
  for (size_t i = 0; i < buffers.size(); ++i) {
    memories.emplace_back(dnnl::memory::desc(kernel.operands[i]), engine, buffers[i]);
    arguments.push_back({kernel.argumentIndices[i], memories.back().get()});
  }
}

void OneDnnKernel::Binding::launch(const dnnl::stream &stream) const {
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), stream.get(),
                                                 static_cast<int>(arguments.size()),
                                                 arguments.data()),
                          "run a library kernel");
}

} // namespace dlc::rt
