#include "runtime/cpu/kernels/Tiles.h"

#include "runtime/core/HostFeatures.h"

#include <algorithm>

namespace dlc::rt::tiles {
namespace {

/// Of extents, paddings and how far a window reaches, so that places fit 32 bits.
constexpr int64_t mostExtent = int64_t{1} << 28;
/// Of what a request's plan grows with: a tensor, a team, a window, and phases of a data gradient's
/// steps, each of which is planned by itself.
constexpr int64_t mostElements = int64_t{1} << 31, mostTaps = 4096, mostPhases = 64;
constexpr unsigned mostThreads = 1024;

bool areSmall(const std::vector<int64_t> &values) {
  return std::ranges::all_of(values, [](int64_t value) { return value < mostExtent; });
}

bool isSmall(const OperandType &operand) {
  int64_t elements = 1;
  for (int64_t extent : operand.shape)
    if (extent >= mostExtent || (elements *= extent) > mostElements)
      return false;
  return true;
}

} // namespace

bool hasTiles() {
  static const bool has =
      missingFeatures({"avx512f", "avx512bw", "avx512vl", "avx512bf16", "amx-tile", "amx-bf16"})
          .empty();
  return has;
}

bool isBounded(const KernelRequest &request) {
  const std::vector<int64_t> &window = request.operands[*weightOperand(request.op)].shape;
  int64_t taps = 1, phases = 1;
  for (size_t i = 0; i < request.dilations.size(); ++i) {
    if (window[i + 2] > mostTaps || request.dilations[i] > mostExtent / mostTaps ||
        request.strides[i] > mostTaps)
      return false;
    taps *= window[i + 2];
    phases *= request.strides[i];
  }
  return request.threads >= 1 && request.threads <= mostThreads && taps <= mostTaps &&
         (request.op != KernelOp::ConvGradData || phases <= mostPhases) &&
         areSmall(request.paddingLow) && areSmall(request.paddingHigh) &&
         std::ranges::all_of(request.operands, isSmall);
}

Triple lifted(std::span<const int64_t> values, int64_t missing) {
  Triple result{missing, missing, missing};
  std::ranges::copy(values, result.end() - static_cast<std::ptrdiff_t>(values.size()));
  return result;
}

Images::Images(const OperandType &operand)
    : volumes(operand.shape[0]), channels(operand.shape[1]),
      extents(lifted(std::span(operand.shape).subspan(2), 1)) {
  std::vector<int64_t> ofDims;
  for (size_t dim = 0; dim < operand.shape.size(); ++dim)
    ofDims.push_back(operand.layout->offsetAlong(operand.shape, dim, 1));
  volumeStep = ofDims[0];
  steps = lifted(std::span(ofDims).subspan(2), 0);
}

Places placesIn(std::byte *memory, int64_t pixels) {
  auto *offsets = reinterpret_cast<int64_t *>(memory);
  auto *coordinates = reinterpret_cast<int32_t *>(offsets + 2 * pixels);
  return {offsets, offsets + pixels, coordinates, coordinates + pixels, coordinates + 2 * pixels};
}

void place(const Grid &grid, const Images &result, const Images &source, int64_t firstPixel,
           int64_t count, const Places &places) {
  auto [down, on, along] = grid.counts;
  for (int64_t done = 0; done < count;) { // a row, or the part of one
    int64_t pixel = firstPixel + done, row = pixel / along, slice = row / on, volume = slice / down;
    Triple at{slice % down, row % on, pixel % along}, from{}, to{};
    for (size_t d = 0; d < 3; ++d) {
      from[d] = at[d] * grid.sourceStep[d];
      to[d] = grid.first[d] + at[d] * grid.resultStep[d];
    }
    int64_t ofRow = std::min(along - at[2], count - done);
    int64_t ofResult = volume * result.volumeStep + result.offset(to);
    int64_t ofSource = volume * source.volumeStep + source.offset(from);
    for (int64_t i = 0; i < ofRow; ++i) {
      places.ofResult[done + i] = ofResult + i * grid.resultStep[2] * result.steps[2];
      places.ofSource[done + i] = ofSource + i * grid.sourceStep[2] * source.steps[2];
      places.depth[done + i] = static_cast<int32_t>(from[0]);
      places.row[done + i] = static_cast<int32_t>(from[1]);
      places.column[done + i] = static_cast<int32_t>(from[2] + i * grid.sourceStep[2]);
    }
    done += ofRow;
  }
}

void placeApart(const Images &images, const Triple &extents, int64_t firstPixel, int64_t count,
                int64_t *offsets) {
  int64_t before = std::clamp<int64_t>(-firstPixel, 0, count);
  std::fill_n(offsets, before, absent);
  for (int64_t done = before; done < count;) { // a row, or the part of one
    int64_t pixel = firstPixel + done, row = pixel / extents[2], slice = row / extents[1];
    int64_t volume = slice / extents[0], column = pixel % extents[2];
    Triple at{slice % extents[0], row % extents[1], column};
    int64_t ofRow = std::min(extents[2] - column, count - done), present = 0;
    if (volume < images.volumes && at[0] < images.extents[0] && at[1] < images.extents[1])
      present = std::clamp<int64_t>(images.extents[2] - column, 0, ofRow);
    int64_t offset = volume * images.volumeStep + images.offset(at);
    for (int64_t i = 0; i < present; ++i)
      offsets[done + i] = offset + i * images.steps[2];
    std::fill(offsets + done + present, offsets + done + ofRow, absent);
    done += ofRow;
  }
}

} // namespace dlc::rt::tiles
