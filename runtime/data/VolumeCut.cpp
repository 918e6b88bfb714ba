#include "runtime/data/VolumeCut.h"

#include "runtime/artifact/Error.h"

namespace dlc::rt {

DividedBox VolumeCut::parts(int64_t volume) const {
  Box whole = wholeBox(extents(volume));
  return keptApart == 0 ? DividedBox{whole, whole} : divideBox(whole, keptApart, patch);
}

void VolumeCut::refuse(int64_t volume, const Box &part, const std::string &purpose,
                       const std::string &place) const {
  throw Error(ErrorCode::BadInput, place + " (" + shapeText(extents(volume)) +
                                       ") with validation = " + numberText(keptApart) + " leaves " +
                                       shapeText(part.size) + " for " + purpose +
                                       ", which holds no patch of " + shapeText(patch) +
                                       ": set another share, take smaller patches, or give --val");
}

std::vector<int64_t> VolumeCut::divide(double share,
                                       const std::function<std::string(int64_t)> &place,
                                       std::vector<std::string> &notes) {
  keptApart = share;
  std::vector<int64_t> samples;
  bool isNoted = false;
  for (int64_t volume = 0; volume < static_cast<int64_t>(volumes.size()); ++volume) {
    DividedBox divided = parts(volume);
    int64_t patches = patchesOf(divided.training, patch);
    if (patches == 0)
      refuse(volume, divided.training, "training", place(volume));
    if (share > 0 && cellsOf(volume) == 0)
      refuse(volume, divided.validation, "validation", place(volume));
    if (divided.isRaised && !isNoted) {
      notes.push_back("validation = " + numberText(share) + " of " + shapeText(extents(volume)) +
                      " is less than a patch of " + shapeText(patch) + ": " +
                      shapeText(divided.validation.size) + " is kept apart");
      isNoted = true;
    }
    samples.insert(samples.end(), static_cast<size_t>(patches), volume);
  }
  return samples;
}

int64_t VolumeCut::cells() const {
  int64_t sum = 0;
  for (int64_t volume = 0; volume < static_cast<int64_t>(volumes.size()); ++volume)
    sum += cellsOf(volume);
  return sum;
}

std::pair<int64_t, Box> VolumeCut::cell(int64_t number) const {
  int64_t volume = 0;
  for (int64_t cells; number >= (cells = cellsOf(volume)); ++volume)
    number -= cells;
  return {volume, gridCell(parts(volume).validation, patch, number)};
}

} // namespace dlc::rt
