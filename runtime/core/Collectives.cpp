#include "runtime/core/Collectives.h"

#include <sstream>

namespace dlc::rt {

std::string describe(const CollectiveLabel &label) {
  std::ostringstream text;
  text << "all-reduce of bucket " << label.bucket;
  constexpr size_t shown = 3;
  size_t count = label.members.size();
  for (size_t i = 0; i < count && i < shown; ++i)
    text << (i ? ", " : " (") << label.members[i];
  if (count > shown)
    text << " and " << count - shown << " more";
  text << (count ? ")" : "") << " in step " << label.step;
  return text.str();
}

} // namespace dlc::rt
