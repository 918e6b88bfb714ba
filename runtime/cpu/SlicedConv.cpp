#include "runtime/cpu/SlicedConv.h"

#include "runtime/artifact/Align.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/ParallelFor.h"

#include <algorithm>
#include <cstring>

namespace dlc::rt {
namespace {

/// From this many on the library's matrices are large enough.
constexpr int64_t pixelsOfBundle = 64 * 64;
constexpr uint64_t pageBytes = 4096;
constexpr size_t volumeRank = 5, depthDim = 2;

int64_t pixelsOf(const std::vector<int64_t> &slice) { return slice[2] * slice[3]; }

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::byte *at(void *buffer, int64_t offset) { return static_cast<std::byte *>(buffer) + offset; }
const std::byte *at(const void *buffer, int64_t offset) {
  return static_cast<const std::byte *>(buffer) + offset;
}

/// True if dimensions stand in order and no other than the first two is blocked.
bool hasPieces(const Layout &layout) {
  return std::ranges::is_sorted(layout.order) &&
         std::ranges::all_of(layout.blocks, [](Layout::Block block) { return block.dim < 2; });
}

Layout ofRank(size_t rank, const Layout &layout) {
  Layout result = Layout::rowMajor(rank);
  result.blocks = layout.blocks;
  return result;
}

} // namespace

/// But for the extents, which are compared once it is known what they are.
static bool canBeSliced(const KernelRequest &volumes) {
  // A transposed convolution with a bias is no data gradient to the library.
  bool isTransposed = volumes.op == KernelOp::ConvGradData && (volumes.bias || volumes.relu);
  return weightOperand(volumes.op) && !isTransposed &&
         volumes.operands[0].shape.size() == volumeRank && volumes.groups == 1 &&
         volumes.strides[0] == 1 && volumes.dilations[0] == 1 &&
         std::ranges::all_of(volumes.operands, [](const OperandType &operand) {
           return operand.dtype == DType::F32;
         });
}

std::optional<SlicedConv> SlicedConv::of(const KernelRequest &volumes) {
  if (!canBeSliced(volumes))
    return std::nullopt;
  SlicedConv sliced;
  sliced.weight.operand = *weightOperand(volumes.op);
  sliced.stacked.operand = 0;
  sliced.single.operand = volumes.op == KernelOp::ConvGradFilter ? 1 : volumes.operands.size() - 1;
  for (Pieces *pieces : {&sliced.stacked, &sliced.single, &sliced.weight})
    pieces->depth = volumes.operands[pieces->operand].shape[depthDim];
  bool isDataGradient = volumes.op == KernelOp::ConvGradData;
  // The library sees no volume, so it does not compare what slices lack.
  int64_t image = isDataGradient ? sliced.single.depth : sliced.stacked.depth;
  int64_t windows = isDataGradient ? sliced.stacked.depth : sliced.single.depth;
  if (volumes.operands[sliced.stacked.operand].shape[0] !=
          volumes.operands[sliced.single.operand].shape[0] ||
      windows != image + volumes.paddingLow[0] + volumes.paddingHigh[0] - sliced.weight.depth + 1)
    return std::nullopt;
  sliced.first =
      isDataGradient ? volumes.paddingLow[0] - sliced.weight.depth + 1 : -volumes.paddingLow[0];
  const std::vector<int64_t> &shape = volumes.operands[sliced.single.operand].shape;
  sliced.slices = shape[0] * sliced.single.depth;
  int64_t wanted = ceilDiv(pixelsOfBundle, shape[3] * shape[4]);
  sliced.bundles = ceilDiv(sliced.slices, std::min(wanted, sliced.slices));
  sliced.bundleSize = ceilDiv(sliced.slices, sliced.bundles);
  sliced.request = volumes;
  sliced.dropDepth();
  return sliced;
}

/// Makes the request of volumes that of one bundle.
void SlicedConv::dropDepth() {
  for (std::vector<int64_t> *vector :
       {&request.strides, &request.paddingLow, &request.paddingHigh, &request.dilations})
    vector->erase(vector->begin());
  for (size_t i = 0; i < request.operands.size(); ++i) {
    OperandType &operand = request.operands[i];
    operand.layout.reset();
    if (operand.shape.size() != volumeRank) // a bias
      continue;
    operand.shape.erase(operand.shape.begin() + depthDim);
    if (i == weight.operand)
      operand.shape[stackedDim()] *= weight.depth;
    else
      operand.shape[0] = bundleSize;
  }
  request.operands[stacked.operand].shape[1] *= weight.depth;
}

std::optional<Layout> SlicedConv::sliceLayout(const Layout &volume) {
  if (volume.rank() != volumeRank)
    return volume;
  return hasPieces(volume) ? std::optional(ofRank(volumeRank - 1, volume)) : std::nullopt;
}

std::optional<Layout> SlicedConv::volumeLayout(const Layout &slice) {
  if (slice.rank() != volumeRank - 1)
    return slice;
  return hasPieces(slice) ? std::optional(ofRank(volumeRank, slice)) : std::nullopt;
}

bool SlicedConv::setLayouts(std::span<const Layout> layouts) {
  for (Pieces *pieces : {&stacked, &single, &weight}) {
    const Layout &layout = layouts[pieces->operand];
    const std::vector<int64_t> &shape = request.operands[pieces->operand].shape;
    if (!hasPieces(layout) || (pieces != &weight && layout.blockOf(0) != 1))
      return false;
    pieces->count = layout.outerExtent(shape, 1);
    pieces->bytes = pixelsOf(shape) * layout.blockOf(0) * layout.blockOf(1) *
                    static_cast<int64_t>(sizeof(float));
  }
  // `count` is of one slice of what is stacked, and of one plane of the window.
  const std::vector<int64_t> &weightShape = request.operands[weight.operand].shape;
  const Layout &weightLayout = layouts[weight.operand];
  size_t along = stackedDim();
  int64_t channelBlock = layouts[stacked.operand].blockOf(1);
  if (request.operands[stacked.operand].shape[1] % (weight.depth * channelBlock) != 0 ||
      weightShape[along] % (weight.depth * weightLayout.blockOf(along)) != 0)
    return false;
  stacked.count /= weight.depth;
  weightRows = weightLayout.outerExtent(weightShape, 0);
  weightColumns = weightLayout.outerExtent(weightShape, 1);
  (along == 0 ? weightRows : weightColumns) /= weight.depth;
  weight.count = weightRows * weightColumns;
  return true;
}

uint64_t SlicedConv::bundleBytes(const Pieces &pieces, int64_t copies) const {
  return alignUp(static_cast<uint64_t>(pieces.count * pieces.bytes * copies), pageBytes);
}

uint64_t SlicedConv::workspaceBytes() const {
  return bundleBytes(stacked, bundleSize * weight.depth) + bundleBytes(single, bundleSize) +
         bundleBytes(weight, weight.depth);
}

uint64_t SlicedConv::copiedBytes() const {
  uint64_t weights = bundleBytes(weight, weight.depth);
  return weights + (workspaceBytes() - weights) * static_cast<uint64_t>(bundles);
}

std::vector<void *> SlicedConv::sliceBuffers(std::span<void *const> volumes) const {
  std::vector<void *> buffers(volumes.begin(), volumes.end());
  auto *place = static_cast<std::byte *>(volumes.back());
  auto take = [&](const Pieces &pieces, int64_t copies) {
    buffers[pieces.operand] = place;
    place += bundleBytes(pieces, copies);
  };
  take(stacked, bundleSize * weight.depth);
  take(single, bundleSize);
  take(weight, weight.depth);
  buffers.back() = place;
  return buffers;
}

/// Place among the stacked weight's pieces of the volume's piece, which is (row, column, plane).
int64_t SlicedConv::stackedWeight(int64_t piece) const {
  int64_t plane = piece % weight.depth;
  int64_t row = piece / weight.depth / weightColumns, column = piece / weight.depth % weightColumns;
  if (request.op == KernelOp::ConvGradData)
    return ((weight.depth - 1 - plane) * weightRows + row) * weightColumns + column;
  return (row * weight.depth + plane) * weightColumns + column;
}

void SlicedConv::copyWeight(const Buffers &buffers) const {
  void *to = buffers.slices[weight.operand];
  const void *from = buffers.volumes[weight.operand];
  parallelFor(weight.count * weight.depth, 16, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece)
      std::memcpy(at(to, stackedWeight(piece) * weight.bytes), at(from, piece * weight.bytes),
                  static_cast<size_t>(weight.bytes));
  });
}

void SlicedConv::addWeight(int64_t piece, bool isFirst, const Buffers &buffers) const {
  const std::byte *from = at(buffers.slices[weight.operand], stackedWeight(piece) * weight.bytes);
  std::byte *to = at(buffers.volumes[weight.operand], piece * weight.bytes);
  if (isFirst) {
    std::memcpy(to, from, static_cast<size_t>(weight.bytes));
    return;
  }
  const auto *addend = reinterpret_cast<const float *>(from);
  auto *sum = reinterpret_cast<float *>(to);
  for (int64_t i = 0; i < weight.bytes / static_cast<int64_t>(sizeof(float)); ++i)
    sum[i] += addend[i];
}

/// Copies one piece of a bundle's stacked slices, or clears it where the window is in the padding.
void SlicedConv::stack(int64_t task, int64_t bundle, const Buffers &buffers) const {
  int64_t block = task % stacked.count, plane = task / stacked.count % weight.depth;
  int64_t slice = bundle * bundleSize + task / stacked.count / weight.depth;
  int64_t image = slice / single.depth, source = slice % single.depth + first + plane;
  std::byte *to = at(buffers.slices[stacked.operand], task * stacked.bytes);
  if (slice >= slices || source < 0 || source >= stacked.depth) {
    std::memset(to, 0, static_cast<size_t>(stacked.bytes));
    return;
  }
  int64_t piece = (image * stacked.count + block) * stacked.depth + source;
  std::memcpy(to, at(buffers.volumes[stacked.operand], piece * stacked.bytes),
              static_cast<size_t>(stacked.bytes));
}

/// Copies one piece of the other operand's slices: into the volume if they are the result.
void SlicedConv::moveSingle(int64_t task, int64_t bundle, const Buffers &buffers) const {
  int64_t block = task % single.count, slice = bundle * bundleSize + task / single.count;
  if (slice >= slices) // what stands there is multiplied by zeros, or nobody reads it
    return;
  std::byte *ofBundle = at(buffers.slices[single.operand], task * single.bytes);
  int64_t image = slice / single.depth;
  int64_t piece = (image * single.count + block) * single.depth + slice % single.depth;
  std::byte *ofVolume = at(buffers.volumes[single.operand], piece * single.bytes);
  if (isFilterGradient())
    std::memcpy(ofBundle, ofVolume, static_cast<size_t>(single.bytes));
  else
    std::memcpy(ofVolume, ofBundle, static_cast<size_t>(single.bytes));
}

/// Takes the last bundle's results out of the slices and puts this one's operands in, in one call
/// of the team.
void SlicedConv::exchange(int64_t bundle, const Buffers &buffers) const {
  int64_t singles = bundleSize * single.count;
  int64_t results = isFilterGradient() ? weight.count * weight.depth : singles;
  int64_t stacking = bundleSize * weight.depth * stacked.count;
  int64_t gathering = isFilterGradient() ? singles : 0;
  if (bundle == 0)
    results = 0;
  if (bundle == bundles)
    stacking = gathering = 0;
  parallelFor(results + stacking + gathering, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task)
      if (task >= results + stacking)
        moveSingle(task - results - stacking, bundle, buffers);
      else if (task >= results)
        stack(task - results, bundle, buffers);
      else if (isFilterGradient())
        addWeight(task, /*isFirst=*/bundle == 1, buffers);
      else
        moveSingle(task, bundle - 1, buffers);
  });
}

void SlicedConv::run(std::span<void *const> volumes, std::span<void *const> ofSlices,
                     const std::function<void()> &convolve) const {
  Buffers buffers{volumes, ofSlices};
  if (!isFilterGradient())
    copyWeight(buffers);
  for (int64_t bundle = 0; bundle < bundles; ++bundle) {
    exchange(bundle, buffers);
    convolve();
  }
  exchange(bundles, buffers);
}

} // namespace dlc::rt
