#include "runtime/data/ArrayRows.h"

#include <algorithm>

namespace dlc::rt {

bool isOfHeldArray(const Sample &sample) {
  if (!sample.unread)
    return false;
  const View &view = *sample.unread;
  return view.isHeld && unsignedBits(view.type) > 0 && !view.axes.empty() &&
         view.axes.size() <= ArrayRow().axes.size() &&
         (!view.scaling || view.scaling->shift.size() <= ArrayRow::mostScaled);
}

ArrayRow arrayRow(const View &view) {
  ArrayRow row;
  row.array = view.bytes;
  row.owner = view.owner;
  row.type = unsignedBits(view.type) == 16 ? artifact::DType::U16 : artifact::DType::U8;
  row.isMask = view.isMask;
  row.first = view.first;
  for (size_t i = 0; i < view.axes.size(); ++i) {
    const View::Axis &axis = view.axes[i];
    size_t at = i == 0 ? 0 : row.axes.size() - view.axes.size() + i;
    row.axes[at] = {axis.extent, axis.stride, axis.low, axis.high};
  }
  row.isScaled = view.scaling != nullptr;
  if (row.isScaled) {
    std::ranges::copy(view.scaling->shift, row.shift.begin());
    std::ranges::copy(view.scaling->scale, row.scale.begin());
  }
  for (const View::Spot &spot : view.spots)
    row.spots.push_back({view.offsetOf(spot.at), spot.value});
  return row;
}

} // namespace dlc::rt
