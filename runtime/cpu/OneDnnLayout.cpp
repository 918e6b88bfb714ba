// Dimensions are renamed on our side, so the conversion proper sees equal ranks only. Reading a
// descriptor sorts the outer dimensions by stride; extent breaks ties, because a dimension of
// extent 1 may carry the stride of its outer or its inner neighbour.

#include "runtime/cpu/OneDnnLayout.h"

#include "runtime/core/LayoutFamily.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace dlc::rt {
namespace {

using Kind = OperandView::Kind;

Layout renamed(const Layout &layout, const std::vector<uint8_t> &newName) {
  Layout result = layout;
  for (uint8_t &dim : result.order)
    dim = newName[dim];
  for (Layout::Block &block : result.blocks)
    block.dim = newName[block.dim];
  return result;
}

Layout swapped(const Layout &layout, uint8_t first) {
  std::vector<uint8_t> names(layout.rank());
  std::iota(names.begin(), names.end(), uint8_t{0});
  std::swap(names[first], names[first + 1]);
  return renamed(layout, names);
}

// Dimension 0 becomes (group, member). Its blocks go to the member, or to the group if there is one
// member each (depthwise).
std::optional<Layout> splitGroups(const Layout &layout, int64_t perGroup) {
  if (perGroup > 1 && perGroup % layout.blockOf(0) != 0)
    return std::nullopt;
  Layout result;
  for (uint8_t dim : layout.order) {
    if (dim == 0)
      result.order.push_back(0);
    result.order.push_back(static_cast<uint8_t>(dim + 1));
  }
  for (Layout::Block block : layout.blocks) {
    bool group = block.dim == 0 && perGroup == 1;
    result.blocks.push_back({static_cast<uint8_t>(group ? 0 : block.dim + 1), block.size});
  }
  return result;
}

std::optional<Layout> mergeGroups(const Layout &layout, int64_t perGroup) {
  Layout result;
  for (size_t i = 0; i < layout.order.size(); ++i) {
    uint8_t dim = layout.order[i];
    if (dim == 0 && perGroup > 1 && (i + 1 == layout.order.size() || layout.order[i + 1] != 1))
      return std::nullopt;
    bool first = perGroup > 1 ? dim == 1 : dim == 0;
    if (first)
      result.order.push_back(0);
    else if (dim > 1)
      result.order.push_back(static_cast<uint8_t>(dim - 1));
  }
  for (Layout::Block block : layout.blocks) {
    if (block.dim == (perGroup == 1 ? 1 : 0))
      return std::nullopt;
    result.blocks.push_back({static_cast<uint8_t>(block.dim == 0 ? 0 : block.dim - 1), block.size});
  }
  if (perGroup > 1 && perGroup % result.blockOf(0) != 0)
    return std::nullopt;
  return result;
}

/// What a tensor of ours must have for its pixels to be rows, or its only one to vanish.
Layout pixelLayout(const OperandView &view) {
  return layoutIn(view.kind == Kind::OnePixel ? LayoutFamily::Plain : LayoutFamily::ChannelsLast,
                  view.rank, /*channelBlock=*/1);
}

std::optional<Layout> viewLayout(const OperandView &view, const std::vector<int64_t> &shape,
                                 const Layout &layout) {
  switch (view.kind) {
  case Kind::Same:
    return layout;
  case Kind::Swapped:
    return swapped(layout, 0);
  case Kind::Row:
    return layout.blocks.empty() ? std::optional(Layout::rowMajor(2)) : std::nullopt;
  case Kind::Pixels:
  case Kind::PixelsSwapped:
  case Kind::OnePixel:
    if (layout != pixelLayout(view))
      return std::nullopt;
    return view.kind == Kind::PixelsSwapped ? swapped(Layout::rowMajor(2), 0) : Layout::rowMajor(2);
  case Kind::Grouped:
    return splitGroups(layout, shape[0] / view.groups);
  case Kind::GroupedSwapped: {
    std::optional<Layout> split = splitGroups(layout, shape[0] / view.groups);
    return split ? std::optional(swapped(*split, 1)) : std::nullopt;
  }
  }
  return std::nullopt;
}

std::optional<Layout> unviewLayout(const OperandView &view, const dnnl_memory_desc_t &desc,
                                   const Layout &layout) {
  switch (view.kind) {
  case Kind::Same:
    return layout;
  case Kind::Swapped:
    return swapped(layout, 0);
  case Kind::Row:
    return layout.blocks.empty() ? std::optional(Layout::rowMajor(1)) : std::nullopt;
  case Kind::Pixels:
  case Kind::PixelsSwapped:
  case Kind::OnePixel:
    if (!layout.blocks.empty() || layout.isRowMajor() == (view.kind == Kind::PixelsSwapped))
      return std::nullopt;
    return pixelLayout(view);
  case Kind::Grouped:
    return mergeGroups(layout, desc.dims[1]);
  case Kind::GroupedSwapped:
    return mergeGroups(swapped(layout, 1), desc.dims[2]);
  }
  return std::nullopt;
}

std::optional<Layout> denseLayout(const dnnl_memory_desc_t &desc) {
  if (desc.format_kind != dnnl_blocked || desc.offset0 != 0 || desc.extra.flags != 0)
    return std::nullopt;
  const dnnl_blocking_desc_t &blocking = desc.format_desc.blocking;
  Layout layout = Layout::rowMajor(desc.ndims);
  int64_t inner = 1;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    layout.blocks.push_back({static_cast<uint8_t>(blocking.inner_idxs[i]),
                             static_cast<uint16_t>(blocking.inner_blks[i])});
    inner *= blocking.inner_blks[i];
  }
  std::vector<int64_t> extent(desc.ndims);
  for (int dim = 0; dim < desc.ndims; ++dim) {
    int64_t block = layout.blockOf(dim);
    extent[dim] = (desc.dims[dim] + block - 1) / block;
    if (desc.padded_offsets[dim] != 0 || desc.padded_dims[dim] != extent[dim] * block)
      return std::nullopt;
  }
  std::ranges::sort(layout.order, [&](uint8_t a, uint8_t b) {
    return std::tuple(-blocking.strides[a], -extent[a], a) <
           std::tuple(-blocking.strides[b], -extent[b], b);
  });
  for (size_t i = layout.order.size(); i-- > 0;) {
    uint8_t dim = layout.order[i];
    if (extent[dim] != 1 && blocking.strides[dim] != inner)
      return std::nullopt;
    inner *= extent[dim];
  }
  return layout;
}

} // namespace

dnnl_data_type_t toDnnl(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return dnnl_f32;
  case DType::BF16:
    return dnnl_bf16;
  case DType::F16:
    return dnnl_f16;
  case DType::I8:
    return dnnl_s8;
  case DType::U8:
  case DType::Bool:
    return dnnl_u8;
  case DType::I32:
    return dnnl_s32;
  default:
    return dnnl_data_type_undef;
  }
}

std::vector<int64_t> viewShape(const OperandView &view, const std::vector<int64_t> &shape) {
  std::vector<int64_t> result = shape;
  switch (view.kind) {
  case Kind::Same:
    break;
  case Kind::Swapped:
    std::swap(result[0], result[1]);
    break;
  case Kind::Row:
    result.insert(result.begin(), 1);
    break;
  case Kind::Pixels:
  case Kind::PixelsSwapped:
  case Kind::OnePixel: {
    int64_t pixels = shape[0];
    for (size_t dim = 2; dim < shape.size(); ++dim)
      pixels *= shape[dim];
    result = {pixels, shape[1]};
    if (view.kind == Kind::PixelsSwapped)
      std::swap(result[0], result[1]);
    break;
  }
  case Kind::Grouped:
  case Kind::GroupedSwapped:
    result[0] /= view.groups;
    if (view.kind == Kind::GroupedSwapped)
      std::swap(result[0], result[1]);
    result.insert(result.begin(), view.groups);
    break;
  }
  return result;
}

std::optional<dnnl_memory_desc_t> toMemoryDesc(const OperandType &operand, const Layout &layout,
                                               const OperandView &view) {
  std::vector<int64_t> shape = viewShape(view, operand.shape);
  std::optional<Layout> physical = viewLayout(view, operand.shape, layout);
  if (!physical || physical->rank() != shape.size() || shape.size() > DNNL_MAX_NDIMS ||
      physical->blocks.size() > DNNL_MAX_NDIMS)
    return std::nullopt;
  dnnl_memory_desc_t desc = {};
  desc.ndims = static_cast<int>(shape.size());
  desc.data_type = toDnnl(operand.dtype);
  desc.format_kind = dnnl_blocked;
  dnnl_blocking_desc_t &blocking = desc.format_desc.blocking;
  blocking.inner_nblks = static_cast<int>(physical->blocks.size());
  int64_t stride = 1;
  for (size_t i = 0; i < physical->blocks.size(); ++i) {
    blocking.inner_blks[i] = physical->blocks[i].size;
    blocking.inner_idxs[i] = physical->blocks[i].dim;
    stride *= physical->blocks[i].size;
  }
  for (size_t i = shape.size(); i-- > 0;) {
    uint8_t dim = physical->order[i];
    int64_t block = physical->blockOf(dim);
    int64_t outer = (shape[dim] + block - 1) / block;
    desc.dims[dim] = shape[dim];
    desc.padded_dims[dim] = outer * block;
    blocking.strides[dim] = stride;
    stride *= outer;
  }
  return desc;
}

dnnl_memory_desc_t anyMemoryDesc(const OperandType &operand, const OperandView &view) {
  if (view.kind == Kind::Pixels || view.kind == Kind::PixelsSwapped || view.kind == Kind::OnePixel)
    if (auto only = toMemoryDesc(operand, pixelLayout(view), view))
      return *only;
  std::vector<int64_t> shape = viewShape(view, operand.shape);
  dnnl_memory_desc_t desc = {};
  dnnl::error::wrap_c_api(dnnl_memory_desc_init_by_tag(&desc, static_cast<int>(shape.size()),
                                                       shape.data(), toDnnl(operand.dtype),
                                                       dnnl_format_tag_any),
                          "describe an operand");
  return desc;
}

std::optional<Layout> toLayout(const dnnl_memory_desc_t &desc, const OperandView &view) {
  std::optional<Layout> layout = denseLayout(desc);
  return layout ? unviewLayout(view, desc, *layout) : std::nullopt;
}

} // namespace dlc::rt
