// A logical tensor in f64, row-major, and the loops over its indices. Integers and booleans are
// kept as f64, too: all that occur are far below 2^53.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace dlc::reference {

using Shape = llvm::SmallVector<int64_t, 5>;

struct Tensor {
  Shape shape;
  std::vector<double> data;

  Tensor() : data(1) {}
  explicit Tensor(llvm::ArrayRef<int64_t> shape, double fill = 0)
      : shape(shape), data(llvm::product_of(shape), fill) {}

  int64_t size() const { return static_cast<int64_t>(data.size()); }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  int64_t offset(llvm::ArrayRef<int64_t> index) const {
    int64_t offset = 0;
    for (auto [extent, i] : llvm::zip(shape, index))
      offset = offset * extent + i;
    return offset;
  }
  double &at(llvm::ArrayRef<int64_t> index) { return data[offset(index)]; }
  double at(llvm::ArrayRef<int64_t> index) const { return data[offset(index)]; }
  double scalar() const { return data.front(); }
};

using Tensors = std::map<std::string, Tensor, std::less<>>;

/// Calls `body` with every index, in row-major order.
template <typename Body> void forEachIndex(llvm::ArrayRef<int64_t> shape, Body body) {
  Shape index(shape.size(), 0);
  for (int64_t left = llvm::product_of(shape); left > 0; --left) {
    body(llvm::ArrayRef<int64_t>(index));
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

} // namespace dlc::reference
