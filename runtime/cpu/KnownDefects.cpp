#include "runtime/cpu/KnownDefects.h"

#include <algorithm>

namespace dlc::rt {

static bool isVolume(const KernelRequest &request) { return request.operands[0].shape.size() == 5; }

// Columns of a row are sorted by their place modulo the stride before they are multiplied, in a
// workspace of which the places that an image narrower than the stride lacks are not cleared.
static bool isNarrowerThanStride(const KernelRequest &request) {
  return request.operands[0].shape.back() < request.strides.back();
}

// Where a window begins in the padding ahead of a volume and the stride does not divide that
// padding, the source is taken one stride too far on.
static bool stepsOverFrontPadding(const KernelRequest &request) {
  return isVolume(request) && request.strides[0] > 1 &&
         request.paddingLow[0] % request.strides[0] != 0;
}

// The last block of channels, if it is not full, steps over the rows of a dilated window twice; the
// only one does so in tiles alone.
static bool dilatesRaggedChannels(const KernelRequest &request, bool tiles) {
  int64_t channels = request.operands[0].shape[1];
  return channels % 16 != 0 && (tiles || channels > 16) &&
         std::ranges::any_of(request.dilations, [](int64_t dilation) { return dilation > 1; });
}

// Tiles take 32 channels; of what is left over behind full ones a volume's kernel reads other
// pixels'.
static bool leavesChannelsOver(const KernelRequest &request) {
  int64_t channels = request.operands[0].shape[1];
  return isVolume(request) && channels > 32 && channels % 32 != 0;
}

// Pairs of channels are multiplied; of an odd number the last pair has the next pixel's first, or
// what lies behind the last pixel.
static bool hasOddChannelsLast(const KernelRequest &request, const std::vector<Layout> &layouts) {
  return request.operands[0].shape[1] % 2 != 0 && layouts[0].blocks.empty() &&
         layouts[0].order.back() == 1;
}

// What several windows add to an element of 16 bits is rounded at each addition, unless planes are
// widened first, as those of plain tensors are.
static bool roundsEachWindow(const KernelRequest &request, const std::vector<Layout> &layouts) {
  return request.operands[0].dtype != DType::F32 && windowsOverlap(request) &&
         !layouts[0].isRowMajor();
}

bool isDefective(const KernelRequest &request, const std::vector<Layout> &layouts,
                 std::string_view implementation) {
  bool tiles = implementation.find("amx") != std::string_view::npos;
  if (request.op == KernelOp::MaxPoolGrad)
    return roundsEachWindow(request, layouts);
  if (request.op == KernelOp::Conv)
    return tiles && implementation.starts_with("brgconv") && leavesChannelsOver(request);
  if (request.op == KernelOp::ConvGradData)
    return implementation.starts_with("jit_bf16_1x1:") && hasOddChannelsLast(request, layouts);
  if (request.op != KernelOp::ConvGradFilter)
    return false;
  if (!tiles && !implementation.starts_with("jit_bf16:"))
    return false;
  return isNarrowerThanStride(request) || stepsOverFrontPadding(request) ||
         dilatesRaggedChannels(request, tiles);
}

} // namespace dlc::rt
