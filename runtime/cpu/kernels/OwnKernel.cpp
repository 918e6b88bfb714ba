#include "runtime/cpu/kernels/OwnKernel.h"

#include "runtime/cpu/kernels/TileConvolution.h"
#include "runtime/cpu/kernels/TileFilterGradient.h"
#include "runtime/cpu/kernels/Tiles.h"
#include "runtime/cpu/kernels/WeightPacking.h"
#include "runtime/cpu/kernels/WinogradConv.h"

namespace dlc::rt {

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
