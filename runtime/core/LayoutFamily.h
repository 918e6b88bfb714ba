// The families of layouts that activations [N, C, S...] come in.
#pragma once

#include "runtime/artifact/Layout.h"

#include <algorithm>
#include <utility>

namespace dlc::rt {

enum class LayoutFamily : uint8_t { Plain, ChannelsLast, Blocked };

/// All of them, with their names in targets' tables.
constexpr std::pair<LayoutFamily, const char *> layoutFamilies[] = {
    {LayoutFamily::Plain, "plain"},
    {LayoutFamily::ChannelsLast, "channels_last"},
    {LayoutFamily::Blocked, "blocked"}};

inline const char *nameInTables(LayoutFamily family) {
  return layoutFamilies[static_cast<size_t>(family)].second;
}

/// The layout of a family for a tensor of this rank; `channelBlock` channels make a block.
inline Layout layoutIn(LayoutFamily family, size_t rank, unsigned channelBlock) {
  Layout layout = Layout::rowMajor(rank);
  if (rank < 3)
    return layout;
  if (family == LayoutFamily::ChannelsLast)
    std::rotate(layout.order.begin() + 1, layout.order.begin() + 2, layout.order.end());
  if (family == LayoutFamily::Blocked)
    layout.blocks.push_back({1, static_cast<uint16_t>(channelBlock)});
  return layout;
}

/// The family that an activation's layout belongs to.
inline LayoutFamily familyOf(const Layout &layout) {
  if (!layout.blocks.empty())
    return LayoutFamily::Blocked;
  return layout.isRowMajor() ? LayoutFamily::Plain : LayoutFamily::ChannelsLast;
}

} // namespace dlc::rt
