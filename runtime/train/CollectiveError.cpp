#include "runtime/train/CollectiveError.h"

namespace dlc::rt {

void throwOnAllRanks(Communicator &communicator, const std::string &mine) {
  std::string first;
  for (const std::vector<std::byte> &text :
       communicator.allGather(std::as_bytes(std::span(mine)), "collection of the ranks' errors"))
    if (first.empty())
      first.assign(reinterpret_cast<const char *>(text.data()), text.size());
  throw CollectiveError(ErrorCode::BadInput, first);
}

} // namespace dlc::rt
