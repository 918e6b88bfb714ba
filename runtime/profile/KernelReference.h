// What a library kernel's result is by its definition, element by element, in f64.
#pragma once

#include "runtime/core/KernelPlanner.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dlc::rt {

/// A sum, and what tells how far another order or another type of its parts may move it.
struct ExactSum {
  double value = 0;
  double magnitudes = 0; // of the terms, added up
  double squares = 0;    // of the terms, added up
  uint64_t terms = 0;

  void add(double term);
};

/// Place of the first result among a kernel's operands: of two, the values of a pooling and their
/// index, which only the library reads.
size_t firstResult(const KernelRequest &request);

class KernelReference {
public:
  /// `operands` are the request's as they lie in memory; both outlive this.
  KernelReference(const KernelRequest &request, std::vector<std::span<const std::byte>> operands);

  /// The first result's element of a logical index; nothing for a pooling's gradient.
  std::optional<ExactSum> at(const std::vector<int64_t> &index) const;
  /// Where that element lies in memory.
  int64_t positionOf(const std::vector<int64_t> &index) const;

private:
  /// Places of elements in memory, to be added up over the dimensions.
  class Positions {
  public:
    explicit Positions(const OperandType &operand);
    int64_t of(size_t dim, int64_t index) const { return byDim[dim][static_cast<size_t>(index)]; }
    int64_t extent(size_t dim) const { return static_cast<int64_t>(byDim[dim].size()); }
    bool has(size_t dim, int64_t index) const { return index >= 0 && index < extent(dim); }

  private:
    std::vector<std::vector<int64_t>> byDim;
  };
  /// What is added up along one dimension: the first two operands' parts of their positions.
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;

  double read(size_t operand, int64_t position) const;
  ExactSum sumOfProducts(std::span<const Pairs> dims) const;
  Pairs channels(const std::vector<int64_t> &index) const;
  Pairs window(size_t space, int64_t index) const;
  ExactSum convolution(const std::vector<int64_t> &index) const;
  ExactSum matrixProduct(const std::vector<int64_t> &index) const;
  ExactSum largest(const std::vector<int64_t> &index) const;

  const KernelRequest &request;
  std::vector<std::span<const std::byte>> operands;
  std::vector<Positions> positions;
};

} // namespace dlc::rt
