// Tensor types between the schema's tables and Layout. Header-only: the compiler and the runtime
// use it.
#pragma once

#include "runtime/artifact/Layout.h"
#include "runtime/artifact/artifact_generated.h"

namespace dlc::rt {

/// True of floating-point elements.
inline bool isFloating(artifact::DType dtype) {
  using artifact::DType;
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

/// Bytes of one element.
inline uint64_t sizeOf(artifact::DType dtype) {
  switch (dtype) {
  case artifact::DType::F64:
  case artifact::DType::I64:
    return 8;
  case artifact::DType::F32:
  case artifact::DType::I32:
    return 4;
  case artifact::DType::BF16:
  case artifact::DType::F16:
  case artifact::DType::U16:
    return 2;
  default:
    return 1;
  }
}

/// Layout of a stored type, row-major if it names none; nothing if it is malformed, its rank
/// differs from the shape's, or rank or blocks are beyond reason.
inline std::optional<Layout> readLayout(const artifact::TensorType &type) {
  constexpr size_t maxRank = 8;
  constexpr uint64_t maxBlock = 1 << 20;
  size_t rank = type.shape() ? type.shape()->size() : 0;
  const artifact::Layout *stored = type.layout();
  if (rank > maxRank)
    return std::nullopt;
  if (!stored)
    return Layout::rowMajor(rank);
  Layout layout;
  if (stored->order())
    layout.order.assign(stored->order()->begin(), stored->order()->end());
  size_t blocks = stored->block_dims() ? stored->block_dims()->size() : 0;
  if (blocks != (stored->block_sizes() ? stored->block_sizes()->size() : 0))
    return std::nullopt;
  uint64_t product = 1;
  for (size_t i = 0; i < blocks; ++i) {
    layout.blocks.push_back({stored->block_dims()->Get(static_cast<unsigned>(i)),
                             stored->block_sizes()->Get(static_cast<unsigned>(i))});
    product *= layout.blocks.back().size;
    if (product > maxBlock)
      return std::nullopt;
  }
  return layout.rank() == rank && layout.isValid() ? std::optional(layout) : std::nullopt;
}

inline std::vector<int64_t> readShape(const artifact::TensorType &type) {
  return type.shape() ? std::vector<int64_t>(type.shape()->begin(), type.shape()->end())
                      : std::vector<int64_t>();
}

/// Bytes of the physical array, padding lanes included.
inline uint64_t physicalBytes(artifact::DType dtype, const std::vector<int64_t> &shape,
                              const Layout &layout) {
  return static_cast<uint64_t>(layout.physicalElements(shape)) * sizeOf(dtype);
}

inline flatbuffers::Offset<artifact::TensorType>
writeTensorType(flatbuffers::FlatBufferBuilder &builder, artifact::DType dtype,
                const std::vector<int64_t> &shape, const Layout &layout) {
  flatbuffers::Offset<artifact::Layout> stored;
  if (!layout.isRowMajor()) {
    std::vector<uint8_t> dims;
    std::vector<uint16_t> sizes;
    for (Layout::Block block : layout.blocks) {
      dims.push_back(block.dim);
      sizes.push_back(block.size);
    }
    stored = artifact::CreateLayout(builder, builder.CreateVector(layout.order),
                                    builder.CreateVector(dims), builder.CreateVector(sizes));
  }
  return artifact::CreateTensorType(builder, dtype, builder.CreateVector(shape), stored);
}

} // namespace dlc::rt
