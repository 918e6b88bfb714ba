// Physical layout of a tensor: a permutation of its logical dimensions plus inner blocks.
//
// The one definition of layouts: the nn dialect's #nn.layout, the kernel planners, the artifact and
// the checkpoint converter all use this struct. Header-only and free of dependencies. Text form:
// one letter per dimension from n c d h w (o i for weights read as n c), outermost first, upper
// case if the dimension is blocked, then the blocks as size + letter, outermost first: nchw, nhwc,
// nChw16c, OIhw16i16o.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlc::rt {

struct Layout {
  struct Block {
    uint8_t dim;
    uint16_t size;
    bool operator==(const Block &) const = default;
  };
  std::vector<uint8_t> order; // logical dims, outermost first
  std::vector<Block> blocks;  // inner blocks, outermost first

  bool operator==(const Layout &) const = default;

  static Layout rowMajor(size_t rank) {
    Layout layout;
    layout.order.resize(rank);
    for (size_t dim = 0; dim < rank; ++dim)
      layout.order[dim] = static_cast<uint8_t>(dim);
    return layout;
  }
  size_t rank() const { return order.size(); }
  bool isRowMajor() const {
    for (size_t dim = 0; dim < rank(); ++dim)
      if (order[dim] != dim)
        return false;
    return blocks.empty();
  }

  /// True if `order` is a permutation and every block names an existing dim with a size of at
  /// least 2.
  bool isValid() const {
    std::vector<bool> seen(rank(), false);
    for (uint8_t dim : order) {
      if (dim >= rank() || seen[dim])
        return false;
      seen[dim] = true;
    }
    for (Block block : blocks)
      if (block.dim >= rank() || block.size < 2)
        return false;
    return true;
  }

  /// Product of the blocks of a dimension: its physical extent is a multiple of this.
  int64_t blockOf(size_t dim) const {
    int64_t size = 1;
    for (Block block : blocks)
      if (block.dim == dim)
        size *= block.size;
    return size;
  }

  /// Extent of a dimension in the physical array, outside of its blocks.
  int64_t outerExtent(const std::vector<int64_t> &logical, size_t dim) const {
    return (logical[dim] + blockOf(dim) - 1) / blockOf(dim);
  }

  /// Extents of the physical array, outer dims in order, then one per block. [8,32,28,28] in
  /// nChw16c: [8,2,28,28,16].
  std::vector<int64_t> physicalShape(const std::vector<int64_t> &logical) const {
    std::vector<int64_t> physical;
    physical.reserve(order.size() + blocks.size());
    for (uint8_t dim : order)
      physical.push_back(outerExtent(logical, dim));
    for (Block block : blocks)
      physical.push_back(block.size);
    return physical;
  }

  /// Elements of the physical array, padding lanes included.
  int64_t physicalElements(const std::vector<int64_t> &logical) const {
    int64_t elements = 1;
    for (int64_t extent : physicalShape(logical))
      elements *= extent;
    return elements;
  }

  /// Position in the physical array of a logical index.
  int64_t offsetOf(const std::vector<int64_t> &logical, const std::vector<int64_t> &index) const {
    int64_t offset = 0;
    for (uint8_t dim : order)
      offset = offset * outerExtent(logical, dim) + index[dim] / blockOf(dim);
    for (size_t i = 0; i < blocks.size(); ++i) {
      int64_t inside = 1; // elements of the dim per step of this block
      for (size_t j = i + 1; j < blocks.size(); ++j)
        inside *= blocks[j].dim == blocks[i].dim ? blocks[j].size : 1;
      offset = offset * blocks[i].size + index[blocks[i].dim] / inside % blocks[i].size;
    }
    return offset;
  }

  /// Position of the element that is the `at`th along a dimension and the first along all others.
  int64_t offsetAlong(const std::vector<int64_t> &logical, size_t dim, int64_t at) const {
    std::vector<int64_t> index(logical.size(), 0);
    index[dim] = at;
    return offsetOf(logical, index);
  }

  /// Letters by rank: 1 n, 2 nc, 3 ncw, 4 nchw, 5 ncdhw.
  static std::string_view letters(size_t rank) {
    constexpr std::string_view byRank[] = {"", "n", "nc", "ncw", "nchw", "ncdhw"};
    return rank <= 5 ? byRank[rank] : std::string_view();
  }

  /// The text form; with ? for each dimension of a rank beyond those that have one.
  std::string toString() const {
    std::string text;
    std::string_view names = letters(rank());
    auto letter = [&](uint8_t dim) { return dim < names.size() ? names[dim] : '?'; };
    for (uint8_t dim : order)
      text += static_cast<char>(blockOf(dim) > 1 && !names.empty() ? letter(dim) - 'a' + 'A'
                                                                   : letter(dim));
    for (Block block : blocks)
      text += std::to_string(block.size) + letter(block.dim);
    return text;
  }

  /// Reads the text form; nothing if it is not one.
  static std::optional<Layout> parse(std::string_view text);
};

inline std::optional<Layout> Layout::parse(std::string_view text) {
  auto lower = [](char c) {
    char l = (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
    return l == 'o' ? 'n' : l == 'i' ? 'c' : l;
  };
  auto isLetter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  size_t rank = 0;
  while (rank < text.size() && isLetter(text[rank]))
    ++rank;
  std::string_view names = letters(rank);
  if (names.empty())
    return std::nullopt;
  Layout layout;
  std::vector<bool> upper(rank, false);
  for (size_t i = 0; i < rank; ++i) {
    size_t dim = names.find(lower(text[i]));
    if (dim == std::string_view::npos)
      return std::nullopt;
    layout.order.push_back(static_cast<uint8_t>(dim));
    upper[dim] = text[i] >= 'A' && text[i] <= 'Z';
  }
  for (size_t i = rank; i < text.size(); ++i) {
    unsigned size = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9' && size < 1000; ++i)
      size = size * 10 + static_cast<unsigned>(text[i] - '0');
    size_t dim = i < text.size() ? names.find(lower(text[i])) : std::string_view::npos;
    if (dim == std::string_view::npos)
      return std::nullopt;
    layout.blocks.push_back({static_cast<uint8_t>(dim), static_cast<uint16_t>(size)});
  }
  if (!layout.isValid())
    return std::nullopt;
  for (size_t dim = 0; dim < rank; ++dim)
    if (upper[dim] != (layout.blockOf(dim) > 1))
      return std::nullopt;
  return layout;
}

} // namespace dlc::rt
