#include "runtime/train/CollectiveError.h"

namespace dlc::rt {

std::string firstError(Communicator &communicator, const std::string &mine) {
  for (const std::vector<std::byte> &text :
       communicator.allGather(std::as_bytes(std::span(mine)), "collection of the ranks' errors"))
    if (!text.empty())
      return {reinterpret_cast<const char *>(text.data()), text.size()};
  return "";
}

} // namespace dlc::rt
