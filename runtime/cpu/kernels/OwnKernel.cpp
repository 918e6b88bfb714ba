#include "runtime/cpu/kernels/OwnKernel.h"

#include "runtime/cpu/kernels/TileConvolution.h"
#include "runtime/cpu/kernels/TileFilterGradient.h"
#include "runtime/cpu/kernels/Tiles.h"
#include "runtime/cpu/kernels/WeightPacking.h"
#include "runtime/cpu/kernels/WinogradConv.h"

#include <algorithm>

namespace dlc::rt {

bool hasLayouts(const KernelRequest &request) {
  return std::ranges::all_of(request.operands,
                             [](const OperandType &operand) { return operand.layout.has_value(); });
}

std::optional<std::vector<Layout>> ifWanted(const KernelRequest &request,
                                            std::vector<Layout> layouts) {
  for (size_t i = 0; i < layouts.size(); ++i) {
    const std::optional<Layout> &wanted = request.operands[i].layout;
    if (wanted && *wanted != layouts[i])
      return std::nullopt;
  }
  return layouts;
}

bool isOwnKernel(const std::string &implementation) {
  return WeightPacking::isName(implementation) || WinogradConv::isName(implementation) ||
         implementation == tiles::name;
}

std::shared_ptr<const OwnKernel> makeOwnKernel(const std::string &implementation,
                                               const KernelRequest &request) {
  if (WeightPacking::isName(implementation))
    return WeightPacking::of(request);
  if (implementation == tiles::name && request.op == KernelOp::ConvGradFilter)
    return TileFilterGradient::of(request);
  if (implementation == tiles::name)
    return TileConvolution::of(request);
  return WinogradConv::of(implementation, request);
}

} // namespace dlc::rt
