// What the host is doing, as NVIDIA's tools show it on a timeline (NVTX), Nsight Systems among
// them.
//
// A range costs nanoseconds where no tool listens. In a build without NVTX's headers, which are the
// toolkit's, there are none.
#pragma once

#include <cstdint>

namespace dlc::rt {

class Range {
public:
  /// Until the end of the scope; of null, nothing. `number`: which step, say.
  explicit Range(const char *name, uint64_t number = 0);
  ~Range();
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

private:
  bool isOpen;
};

} // namespace dlc::rt
