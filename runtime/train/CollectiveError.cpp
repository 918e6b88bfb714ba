#include "runtime/train/CollectiveError.h"

namespace dlc::rt {

std::string firstError(ControlPlane &control, const std::string &mine) {
  for (const std::vector<std::byte> &text :
       control.allGather(std::as_bytes(std::span(mine)), "collection of the ranks' errors"))
    if (!text.empty())
      return {reinterpret_cast<const char *>(text.data()), text.size()};
  return "";
}

} // namespace dlc::rt
