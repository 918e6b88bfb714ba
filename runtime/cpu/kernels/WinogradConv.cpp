#include "runtime/cpu/kernels/WinogradConv.h"

#include "runtime/core/HostFeatures.h"
#include "runtime/cpu/kernels/VectorUnits.h"
#include "runtime/cpu/kernels/WinogradRequest.h"
#include "runtime/cpu/kernels/WinogradUnits.h"

#include <algorithm>

namespace dlc::rt {
namespace {

/// Code for some instructions.
struct Variant {
  const char *implementation;
  unsigned vectorBits;
  winograd::Abilities abilities;
  std::unique_ptr<const WinogradPlan> (*make)(const KernelRequest &);
  bool isProcessorFit;
};

const std::vector<Variant> &variants() {
  static const std::vector<Variant> all = {
      {"winograd:avx512",
       512,
       {Avx512::lanes, Avx512::readsBF16},
       winograd::makeAvx512,
       missingFeatures({"avx512f", "avx512bw"}).empty()},
      {"winograd:avx2",
       256,
       {Avx2::lanes, Avx2::readsBF16},
       winograd::makeAvx2,
       missingFeatures({"avx2", "fma"}).empty()},
  };
  return all;
}

const Variant *find(const std::string &implementation) {
  for (const Variant &variant : variants())
    if (variant.implementation == implementation)
      return &variant;
  return nullptr;
}

} // namespace

const char *WinogradConv::nameFor(unsigned vectorBits) {
  auto found = std::ranges::find(variants(), vectorBits, &Variant::vectorBits);
  return found == variants().end() ? nullptr : found->implementation;
}

bool WinogradConv::isName(const std::string &implementation) { return find(implementation); }

std::optional<std::vector<Layout>> WinogradConv::layouts(const std::string &implementation,
                                                         const KernelRequest &request,
                                                         LayoutFamily family) {
  const Variant *variant = find(implementation);
  if (!variant || !variant->isProcessorFit || family == LayoutFamily::Plain ||
      !winograd::isComputed(request, variant->abilities))
    return std::nullopt;
  int64_t block = variant->abilities.block;
  std::vector<Layout> layouts;
  for (size_t i = 0; i < request.operands.size(); ++i) {
    size_t rank = request.operands[i].shape.size();
    layouts.push_back(i == *weightOperand(request.op) ? winograd::weightLayout(rank, block)
                                                      : layoutIn(family, rank, block));
  }
  return ifWanted(request, std::move(layouts));
}

std::unique_ptr<const OwnKernel> WinogradConv::of(const std::string &implementation,
                                                  const KernelRequest &request) {
  if (!hasLayouts(request) || (!layouts(implementation, request, LayoutFamily::Blocked) &&
                               !layouts(implementation, request, LayoutFamily::ChannelsLast)))
    return nullptr;
  return find(implementation)->make(request);
}

} // namespace dlc::rt
