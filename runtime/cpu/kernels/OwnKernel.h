// Library kernels of this project, beside oneDNN's: in plans by names of their own.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

class OwnKernel {
public:
  virtual ~OwnKernel() = default;

  /// Enough for teams of up to the request's threads.
  virtual uint64_t workspaceBytes() const = 0;
  /// Of a run: what the efficiencies in tables are shares of.
  virtual uint64_t flops() const = 0;
  /// Buffers in the order of the request's operands, last the workspace, if there is one. On the
  /// calling thread's team.
  virtual void run(std::span<void *const> buffers) const = 0;
};

/// True if all operands of a request have layouts.
bool hasLayouts(const KernelRequest &request);

/// The layouts, one for each operand; nothing if the request wants another one of some operand.
std::optional<std::vector<Layout>> ifWanted(const KernelRequest &request,
                                            std::vector<Layout> layouts);

/// True of the name of an implementation that is ours.
bool isOwnKernel(const std::string &implementation);

/// The kernel of that name for a request whose layouts are given; null unless it computes the
/// request on this processor.
std::shared_ptr<const OwnKernel> makeOwnKernel(const std::string &implementation,
                                               const KernelRequest &request);

} // namespace dlc::rt
