// Copies of the host's arrays on a GPU, and the kernels that gather rows of inputs from them.
//
// An array goes up when the first row of it is gathered. How rows lie in arrays is known when they
// are drawn, so the kernels are text here and none of the compiler's. Used by the compute thread;
// others write the rows of inputs, as Executable::rows says.
#pragma once

#include "runtime/core/ArrayRow.h"
#include "runtime/cuda/CudaContext.h"

#include <map>
#include <string>

namespace dlc::rt {

/// One input's rows in one slot, on their way to the GPU.
struct GatheredInput {
  /// Of rows, of an input of a type, in `memory`. Throws Error(Runtime) if there is no memory.
  GatheredInput(const CudaContext &context, DeviceSpan memory, artifact::DType type, size_t count);

  DeviceSpan memory;
  artifact::DType type;
  std::vector<ArrayRow> rows;
  HostBlock packed; // what a kernel reads of them, page-locked
  Owned<void *> onDevice;
  HostBlock packedSpots; // likewise of their spots, with room for the most
  Owned<void *> spotsOnDevice;
};

class KeptArrays {
public:
  /// PTX for every device since Ampere, which the driver assembles: `gather`, a thread of which
  /// writes one element, blocks of a row next to each other, and then `replace`, likewise a spot.
  static std::string text();
  /// What gather reads of a row; `place` is the array's, in bytes behind the first one.
  struct PackedRow {
    uint64_t place = 0;
    int64_t first = 0;
    struct {
      uint32_t extent = 1, low = 0, high = 1, unused = 0;
      int64_t stride = 0;
    } axes[4];
    uint32_t elementBytes = 0; // 0: nothing is gathered
    uint32_t isMask = 0, isScaled = 0, unused = 0;
    std::array<float, ArrayRow::mostScaled> shift = {}, scale = {};
  };
  static PackedRow packed(const ArrayRow &row, uint64_t place);
  /// What replace reads of a spot.
  struct PackedSpot {
    uint64_t element = 0; // of the input
    uint32_t bits = 0;    // of the value, from the lowest one on
    uint32_t unused = 0;
  };
  /// Those of all rows of an input of the type, of so many elements each.
  static std::vector<PackedSpot> packedSpots(std::span<const ArrayRow> rows, artifact::DType type,
                                             uint64_t rowElements);
  static unsigned threads() { return 256; }

  /// Bytes of the room that arrays of these sizes take.
  static uint64_t bytesFor(std::span<const uint64_t> sizes);
  /// Over so much room. `context` outlives it. Throws Error(Runtime) if the driver does not take
  /// the text.
  KeptArrays(const CudaContext &context, Owned<void *> memory, uint64_t bytes);

  /// Whether a row is of an array that is still to go up. The host may wait for the stream then.
  bool wantsArrays(const GatheredInput &input) const;
  /// Writes those rows that are not staged, on the stream, and forgets them; what is staged is
  /// copied. False, and nothing is done, if all are staged.
  bool gather(GatheredInput &input, std::span<const std::byte> staged, cudart::Stream stream);

private:
  uint64_t placeOf(const ArrayRow &row, cudart::Stream stream);
  void replace(GatheredInput &input, std::span<const PackedSpot> spots,
               cudart::Stream stream) const;
  void launch(cudart::Kernel kernel, std::span<uint64_t> parameters, uint64_t blocks,
              cudart::Stream stream) const;
  void copy(uint64_t to, std::span<const std::byte> from, cudart::Stream stream) const;

  struct Kept {
    uint64_t place;
    std::shared_ptr<const void> owner; // so that no other array comes to lie there
  };

  const CudaContext &context;
  Owned<void *> memory;
  uint64_t room, used = 0;
  Owned<cudart::Library> library;
  cudart::Kernel gatherRows = nullptr, replaceSpots = nullptr;
  std::map<const std::byte *, Kept> arrays; // by where they lie in the host's memory
};

} // namespace dlc::rt
