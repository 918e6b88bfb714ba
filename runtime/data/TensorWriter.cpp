#include "runtime/data/TensorWriter.h"

#include "runtime/artifact/Error.h"

#include <cstring>

namespace dlc::rt {

static size_t bytesOf(artifact::DType dtype) {
  switch (dtype) {
  case artifact::DType::F32:
  case artifact::DType::I32:
    return 4;
  case artifact::DType::U16:
    return 2;
  case artifact::DType::U8:
  case artifact::DType::I8:
  case artifact::DType::Bool:
    return 1;
  default:
    throw Error(ErrorCode::Artifact,
                std::string("inputs of type ") + artifact::EnumNameDType(dtype) + " cannot be fed");
  }
}

TensorWriter::TensorWriter(artifact::DType dtype, std::vector<int64_t> shape, const Layout &layout)
    : dtype(dtype), shape(std::move(shape)),
      physicalElements(layout.physicalElements(this->shape)) {
  bytesOf(dtype);
  isRowMajor = layout == Layout::rowMajor(this->shape.size());
  for (size_t dim = 0; dim < this->shape.size(); ++dim) {
    std::vector<int64_t> index(this->shape.size(), 0);
    std::vector<int64_t> &places = this->places.emplace_back();
    for (index[dim] = 0; index[dim] < this->shape[dim]; ++index[dim])
      places.push_back(layout.offsetOf(this->shape, index));
    if (dim > 0)
      elementsPerRow *= this->shape[dim];
  }
}

size_t TensorWriter::tensorBytes() const {
  return static_cast<size_t>(physicalElements) * bytesOf(dtype);
}

bool TensorWriter::takesViews() const {
  return isRowMajor && (dtype == artifact::DType::U8 || dtype == artifact::DType::U16 ||
                        dtype == artifact::DType::F32);
}

bool TensorWriter::takes(const View &view) const {
  return takesViews() && (dtype == artifact::DType::F32 || !view.scaling);
}

template <typename T>
void TensorWriter::writeAs(int64_t row, std::span<const float> values,
                           std::span<std::byte> tensor) const {
  auto put = [&](int64_t offset, float value) {
    T converted = static_cast<T>(value);
    std::memcpy(tensor.data() + static_cast<size_t>(offset) * sizeof(T), &converted, sizeof(T));
  };
  if (isRowMajor) { // in vectors
    int64_t first = row * elementsPerRow;
    for (size_t i = 0; i < values.size(); ++i)
      put(first + static_cast<int64_t>(i), values[i]);
    return;
  }
  size_t rank = shape.size();
  int64_t base = rank ? places[0][static_cast<size_t>(row)] : 0;
  if (rank <= 1) {
    put(base, values[0]);
    return;
  }
  const std::vector<int64_t> &inner = places[rank - 1];
  std::vector<int64_t> index(rank, 0); // of the outer dimensions 1..rank-2
  for (size_t next = 0; next < values.size(); next += inner.size()) {
    int64_t outer = base;
    for (size_t dim = 1; dim + 1 < rank; ++dim)
      outer += places[dim][static_cast<size_t>(index[dim])];
    for (size_t i = 0; i < inner.size(); ++i)
      put(outer + inner[i], values[next + i]);
    for (size_t dim = rank - 2; dim >= 1 && ++index[dim] == shape[dim]; --dim)
      index[dim] = 0;
  }
}

void TensorWriter::writeRow(int64_t row, std::span<const float> values,
                            std::span<std::byte> tensor) const {
  switch (dtype) {
  case artifact::DType::I32:
    return writeAs<int32_t>(row, values, tensor);
  case artifact::DType::I8:
    return writeAs<int8_t>(row, values, tensor);
  case artifact::DType::U16:
    return writeAs<uint16_t>(row, values, tensor);
  case artifact::DType::U8:
  case artifact::DType::Bool:
    return writeAs<uint8_t>(row, values, tensor);
  default:
    return writeAs<float>(row, values, tensor);
  }
}

void TensorWriter::writeRow(int64_t row, Sample &sample, std::span<std::byte> tensor) const {
  size_t bytes = static_cast<size_t>(elementsPerRow) * bytesOf(dtype);
  std::span<std::byte> into = tensor.subspan(static_cast<size_t>(row) * bytes);
  if (sample.unread && takes(*sample.unread)) {
    if (dtype == artifact::DType::U8)
      return sample.unread->read<uint8_t>(into);
    if (dtype == artifact::DType::U16)
      return sample.unread->read<uint16_t>(into);
    return sample.unread->read<float>(into);
  }
  sample.settle();
  writeRow(row, sample.values, tensor);
}

} // namespace dlc::rt
