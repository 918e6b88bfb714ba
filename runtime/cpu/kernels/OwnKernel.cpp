#include "runtime/cpu/kernels/OwnKernel.h"

#include "runtime/cpu/kernels/TileFilterGradient.h"
#include "runtime/cpu/kernels/WeightPacking.h"
#include "runtime/cpu/kernels/WinogradConv.h"

namespace dlc::rt {

bool isOwnKernel(const std::string &implementation) {
  return WeightPacking::isName(implementation) || WinogradConv::isName(implementation) ||
         implementation == TileFilterGradient::name();
}

std::shared_ptr<const OwnKernel> makeOwnKernel(const std::string &implementation,
                                               const KernelRequest &request) {
  if (WeightPacking::isName(implementation))
    return WeightPacking::of(request);
  if (implementation == TileFilterGradient::name())
    return TileFilterGradient::of(request);
  return WinogradConv::of(implementation, request);
}

} // namespace dlc::rt
