#include "test/cuda/Tensors.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/LayoutIo.h"
#include "runtime/core/Bf16.h"

#include <bit>
#include <cstring>
#include <functional>

namespace dlc::rt::test {
namespace {

template <typename Stored> Stored at(const std::byte *place) {
  Stored stored;
  std::memcpy(&stored, place, sizeof(stored));
  return stored;
}

float load(artifact::DType dtype, const std::byte *place) {
  switch (dtype) {
  case artifact::DType::F32:
    return at<float>(place);
  case artifact::DType::BF16:
    return floatFromBf16(at<uint16_t>(place));
  case artifact::DType::F16:
    return static_cast<float>(at<_Float16>(place));
  default:
    throw Error(ErrorCode::Artifact, "an operand of a library is of no floating type");
  }
}

void store(artifact::DType dtype, float value, std::byte *place) {
  switch (dtype) {
  case artifact::DType::F32:
    std::memcpy(place, &value, sizeof(value));
    return;
  case artifact::DType::BF16: {
    uint16_t stored = bf16FromFloat(value);
    std::memcpy(place, &stored, sizeof(stored));
    return;
  }
  case artifact::DType::F16: {
    auto stored = static_cast<_Float16>(value);
    std::memcpy(place, &stored, sizeof(stored));
    return;
  }
  default:
    throw Error(ErrorCode::Artifact, "an operand of a library is of no floating type");
  }
}

/// Calls `visit(byte offset)` for all elements in the order [N, S..., C].
void forEachPlace(const StoredTensor &tensor, size_t memory, const std::string &name,
                  const std::function<void(uint64_t)> &visit) {
  size_t rank = tensor.extents.size();
  std::vector<size_t> order{0};
  for (size_t dim = 2; dim < rank; ++dim)
    order.push_back(dim);
  if (rank > 1)
    order.push_back(1);
  uint64_t bytes = sizeOf(tensor.dtype);
  std::vector<int64_t> index(rank);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    int64_t offset = 0;
    for (size_t dim = 0; dim < rank; ++dim)
      offset += index[dim] * tensor.strides[dim];
    uint64_t place = static_cast<uint64_t>(offset) * bytes;
    if (place + bytes > memory)
      throw Error(ErrorCode::Artifact, "operand " + name + " is smaller than its plan says");
    visit(place);
    for (size_t k = rank; k-- > 0 && ++index[order[k]] == tensor.extents[order[k]];)
      index[order[k]] = 0;
  }
}

} // namespace

int64_t StoredTensor::elements() const {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  return count;
}

std::vector<float> StoredTensor::read(std::span<const std::byte> memory,
                                      const std::string &name) const {
  std::vector<float> values;
  values.reserve(static_cast<size_t>(elements()));
  forEachPlace(*this, memory.size(), name,
               [&](uint64_t place) { values.push_back(load(dtype, &memory[place])); });
  return values;
}

void StoredTensor::write(std::span<const float> values, std::span<std::byte> memory,
                         const std::string &name) const {
  auto next = values.begin();
  forEachPlace(*this, memory.size(), name,
               [&](uint64_t place) { store(dtype, *next++, &memory[place]); });
}

void roundToTf32(std::span<float> values) {
  constexpr uint32_t dropped = 13;
  for (float &value : values) {
    auto bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7F800000) != 0x7F800000) // neither infinite nor NaN; ties go away from zero
      value = std::bit_cast<float>((bits + (1U << (dropped - 1))) & ~((1U << dropped) - 1));
  }
}

} // namespace dlc::rt::test
