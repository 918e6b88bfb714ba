// The physical offset of an element is a sum of one term per dimension, since blocks divide each
// dimension by itself: the terms are tabled once, and a walk over the elements adds them up.

#include "runtime/core/TensorIo.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace dlc::rt {
namespace {

using artifact::DType;

std::vector<std::vector<int64_t>> offsetTerms(const PhysicalType &type) {
  std::vector<std::vector<int64_t>> terms(type.shape.size());
  for (size_t dim = 0; dim < terms.size(); ++dim) {
    std::vector<int64_t> index(type.shape.size(), 0);
    for (; index[dim] < type.shape[dim]; ++index[dim])
      terms[dim].push_back(type.layout.offsetOf(type.shape, index));
  }
  return terms;
}

// Calls visit(logical, physical) for all elements in row-major order.
template <typename Visit> void forEachElement(const PhysicalType &type, Visit &&visit) {
  std::vector<std::vector<int64_t>> terms = offsetTerms(type);
  size_t rank = terms.size();
  if (rank == 0)
    return visit(size_t{0}, int64_t{0});
  std::vector<size_t> index(rank, 0);
  size_t logical = 0;
  for (size_t rows = type.logicalElements() / terms.back().size(); rows > 0; --rows) {
    int64_t base = 0;
    for (size_t dim = 0; dim + 1 < rank; ++dim)
      base += terms[dim][index[dim]];
    for (int64_t term : terms.back())
      visit(logical++, base + term);
    for (size_t dim = rank - 1; dim-- > 0;) {
      if (++index[dim] < terms[dim].size())
        break;
      index[dim] = 0;
    }
  }
}

float fromBFloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Rounds to nearest even; NaN stays NaN.
uint16_t toBFloat16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T> T load(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T> void store(std::byte *at, T value) { std::memcpy(at, &value, sizeof value); }

bool isRowMajorF32(const PhysicalType &type) {
  return type.dtype == DType::F32 && type.layout.isRowMajor();
}

} // namespace

double readScalar(DType dtype, const std::byte *at) {
  switch (dtype) {
  case DType::F32:
    return load<float>(at);
  case DType::F64:
    return load<double>(at);
  case DType::BF16:
    return fromBFloat16(load<uint16_t>(at));
  case DType::F16:
    return static_cast<double>(load<_Float16>(at));
  case DType::I8:
    return load<int8_t>(at);
  case DType::U8:
  case DType::Bool:
    return load<uint8_t>(at);
  case DType::I32:
    return load<int32_t>(at);
  case DType::I64:
    return static_cast<double>(load<int64_t>(at));
  }
  return 0;
}

void writeScalar(DType dtype, std::byte *at, double value) {
  switch (dtype) {
  case DType::F32:
    return store(at, static_cast<float>(value));
  case DType::F64:
    return store(at, value);
  case DType::BF16:
    return store(at, toBFloat16(static_cast<float>(value)));
  case DType::F16:
    return store(at, static_cast<_Float16>(value));
  case DType::I8:
    return store(at, static_cast<int8_t>(std::llrint(value)));
  case DType::U8:
  case DType::Bool:
    return store(at, static_cast<uint8_t>(std::llrint(value)));
  case DType::I32:
    return store(at, static_cast<int32_t>(std::llrint(value)));
  case DType::I64:
    return store(at, static_cast<int64_t>(std::llrint(value)));
  }
}

void writeTensor(const PhysicalType &type, std::span<const float> values,
                 std::span<std::byte> physical) {
  if (isRowMajorF32(type)) {
    std::memcpy(physical.data(), values.data(), values.size_bytes());
    return;
  }
  std::memset(physical.data(), 0, physical.size());
  if (type.dtype == DType::F32) {
    auto *floats = reinterpret_cast<float *>(physical.data());
    return forEachElement(type, [&](size_t logical, int64_t at) { floats[at] = values[logical]; });
  }
  size_t size = sizeOf(type.dtype);
  forEachElement(type, [&](size_t logical, int64_t at) {
    writeScalar(type.dtype, physical.data() + static_cast<size_t>(at) * size, values[logical]);
  });
}

void readTensor(const PhysicalType &type, std::span<const std::byte> physical,
                std::span<float> values) {
  if (isRowMajorF32(type)) {
    std::memcpy(values.data(), physical.data(), values.size_bytes());
    return;
  }
  if (type.dtype == DType::F32) {
    const auto *floats = reinterpret_cast<const float *>(physical.data());
    return forEachElement(type, [&](size_t logical, int64_t at) { values[logical] = floats[at]; });
  }
  size_t size = sizeOf(type.dtype);
  forEachElement(type, [&](size_t logical, int64_t at) {
    values[logical] = static_cast<float>(
        readScalar(type.dtype, physical.data() + static_cast<size_t>(at) * size));
  });
}

} // namespace dlc::rt
