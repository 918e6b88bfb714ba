// Our Layout and oneDNN's memory descriptors, converted both ways.
//
// A library operand may see our dimensions renamed: a transposed matrix, a group dimension split
// off a weight, a bias as a row. OperandView names that relation; conversions go through it, so
// that no other file knows it. Both directions are exact or refuse: opaque library formats have no
// Layout.
#pragma once

#include "runtime/artifact/Layout.h"
#include "runtime/core/KernelPlanner.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <optional>
#include <vector>

namespace dlc::rt {

/// How the library's dimensions follow from ours.
struct OperandView {
  enum class Kind {
    Same,
    Swapped,        // the first two dimensions exchanged
    Row,            // [N] as [1, N]
    Pixels,         // [N, C, S...] with channels last as [N S, C]
    PixelsSwapped,  // the same as [C, N S]
    OnePixel,       // [O, I, 1...] as [O, I]
    Grouped,        // [O, I, ...] as [G, O/G, I, ...]
    GroupedSwapped, // [O, I, ...] as [G, I, O/G, ...]
  } kind = Kind::Same;
  int64_t groups = 1;
  size_t rank = 0; // of our tensor, where pixels become rows
};

dnnl_data_type_t toDnnl(DType dtype);

/// Shape as the library sees it.
std::vector<int64_t> viewShape(const OperandView &view, const std::vector<int64_t> &shape);

/// Descriptor of a tensor in exactly this layout; nothing if the view cannot express it.
std::optional<dnnl_memory_desc_t> toMemoryDesc(const OperandType &operand, const Layout &layout,
                                               const OperandView &view = {});

/// Descriptor that leaves the layout to the library.
dnnl_memory_desc_t anyMemoryDesc(const OperandType &operand, const OperandView &view = {});

/// Layout of a dense descriptor of a tensor of ours; nothing for strided, offset, compensated or
/// opaque formats.
std::optional<Layout> toLayout(const dnnl_memory_desc_t &desc, const OperandView &view = {});

} // namespace dlc::rt
