// The physical offset of an element is a sum of one term per dimension, since blocks divide each
// dimension by itself: the terms are tabled once, and a walk over the elements adds them up.
// Threads take parts of the logical order.

#include "runtime/core/TensorIo.h"

#include "runtime/core/Bf16.h"
#include "runtime/core/ParallelFor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace dlc::rt {
namespace {

using artifact::DType;

class ElementOffsets {
public:
  explicit ElementOffsets(const PhysicalType &type)
      : terms(std::max(type.shape.size(), size_t{1})) {
    if (type.shape.empty())
      terms[0] = {0};
    for (size_t dim = 0; dim < type.shape.size(); ++dim) {
      std::vector<int64_t> index(type.shape.size(), 0);
      for (; index[dim] < type.shape[dim]; ++index[dim])
        terms[dim].push_back(type.layout.offsetOf(type.shape, index));
    }
  }

  /// Calls visit(i, physical offset) for the logical elements first + i, i < count.
  template <typename Visit> void visit(size_t first, size_t count, Visit &&visit) const {
    std::vector<size_t> index(terms.size());
    for (size_t dim = terms.size(); dim-- > 0; first /= terms[dim].size())
      index[dim] = first % terms[dim].size();
    const std::vector<int64_t> &inner = terms.back();
    for (size_t i = 0; i < count; index.back() = 0) {
      int64_t base = 0;
      for (size_t dim = 0; dim + 1 < terms.size(); ++dim)
        base += terms[dim][index[dim]];
      for (size_t at = index.back(); at < inner.size() && i < count; ++at)
        visit(i++, base + inner[at]);
      for (size_t dim = terms.size() - 1; dim-- > 0; index[dim] = 0)
        if (++index[dim] < terms[dim].size())
          break;
    }
  }

private:
  std::vector<std::vector<int64_t>> terms;
};

// Calls part(first, count) on the team for the logical elements, in pieces of at most
// pieceElements. A thread gets whole blocks of the outermost dimension, so that it shares few cache
// lines.
constexpr size_t pieceElements = 1 << 12;

template <typename Part> void forEachPart(const PhysicalType &type, Part &&part) {
  size_t elements = type.logicalElements();
  if (type.shape.empty() || elements == 0)
    return part(size_t{0}, elements);
  auto rows = std::max<int64_t>(type.layout.blockOf(0), 16);
  size_t row = elements / static_cast<size_t>(type.shape[0]);
  parallelFor(type.shape[0], rows, [&](int64_t begin, int64_t end) {
    size_t last = static_cast<size_t>(end) * row;
    for (size_t at = static_cast<size_t>(begin) * row; at < last; at += pieceElements)
      part(at, std::min(pieceElements, last - at));
  });
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
    return floatFromBf16(load<uint16_t>(at));
  case DType::F16:
    return static_cast<double>(load<_Float16>(at));
  case DType::I8:
    return load<int8_t>(at);
  case DType::U8:
  case DType::Bool:
    return load<uint8_t>(at);
  case DType::U16:
    return load<uint16_t>(at);
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
    return store(at, bf16FromFloat(static_cast<float>(value)));
  case DType::F16:
    return store(at, static_cast<_Float16>(value));
  case DType::I8:
    return store(at, static_cast<int8_t>(std::llrint(value)));
  case DType::U8:
  case DType::Bool:
    return store(at, static_cast<uint8_t>(std::llrint(value)));
  case DType::U16:
    return store(at, static_cast<uint16_t>(std::llrint(value)));
  case DType::I32:
    return store(at, static_cast<int32_t>(std::llrint(value)));
  case DType::I64:
    return store(at, static_cast<int64_t>(std::llrint(value)));
  }
}

void narrow(std::span<const float> from, DType type, std::span<std::byte> into) {
  size_t size = sizeOf(type);
  if (type != DType::BF16) {
    for (size_t i = 0; i < from.size(); ++i)
      writeScalar(type, into.data() + i * size, from[i]);
    return;
  }
  for (size_t i = 0; i < from.size(); ++i)
    store(into.data() + i * size, bf16FromFloat(from[i]));
}

void writeTensor(const PhysicalType &type, const FillValues &fill, std::span<std::byte> physical) {
  if (isRowMajorF32(type)) {
    std::span floats(reinterpret_cast<float *>(physical.data()), type.logicalElements());
    return parallelFor(static_cast<int64_t>(floats.size()), int64_t{1} << 16,
                       [&](int64_t begin, int64_t end) {
                         auto first = static_cast<size_t>(begin);
                         fill(first, floats.subspan(first, static_cast<size_t>(end - begin)));
                       });
  }
  parallelFor(static_cast<int64_t>(physical.size()), int64_t{1} << 20,
              [&](int64_t begin, int64_t end) {
                std::memset(physical.data() + begin, 0, static_cast<size_t>(end - begin));
              });
  ElementOffsets offsets(type);
  size_t size = sizeOf(type.dtype);
  forEachPart(type, [&](size_t first, size_t count) {
    std::array<float, pieceElements> values;
    fill(first, std::span(values).first(count));
    if (type.dtype == DType::F32) {
      auto *floats = reinterpret_cast<float *>(physical.data());
      return offsets.visit(first, count, [&](size_t i, int64_t at) { floats[at] = values[i]; });
    }
    offsets.visit(first, count, [&](size_t i, int64_t at) {
      writeScalar(type.dtype, physical.data() + static_cast<size_t>(at) * size, values[i]);
    });
  });
}

void writeTensor(const PhysicalType &type, std::span<const float> values,
                 std::span<std::byte> physical) {
  auto copy = [&](size_t first, std::span<float> part) {
    std::ranges::copy(values.subspan(first, part.size()), part.begin());
  };
  writeTensor(type, copy, physical);
}

void readTensor(const PhysicalType &type, std::span<const std::byte> physical,
                std::span<float> values) {
  ElementOffsets offsets(type);
  size_t size = sizeOf(type.dtype);
  forEachPart(type, [&](size_t first, size_t count) {
    float *part = values.data() + first;
    const auto *floats = reinterpret_cast<const float *>(physical.data());
    if (isRowMajorF32(type))
      std::copy_n(floats + first, count, part);
    else if (type.dtype == DType::F32)
      offsets.visit(first, count, [&](size_t i, int64_t at) { part[i] = floats[at]; });
    else
      offsets.visit(first, count, [&](size_t i, int64_t at) {
        part[i] = static_cast<float>(
            readScalar(type.dtype, physical.data() + static_cast<size_t>(at) * size));
      });
  });
}

} // namespace dlc::rt
