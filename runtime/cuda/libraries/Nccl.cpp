#include "runtime/cuda/libraries/Nccl.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/libraries/Cudnn.h"
#include "runtime/cuda/libraries/SharedLibrary.h"

#include <optional>

namespace dlc::rt::nccl {
namespace {

constexpr int leastVersion = 21900; // which registers memory

std::optional<Functions> load(std::string &reason) {
  SharedLibrary library("libnccl.so.2");
  Functions found{};
  library.find("ncclGetVersion", found.getVersion);
  int version = leastVersion;
  if (library.failure().empty() && found.getVersion(&version) == success &&
      version < leastVersion) {
    reason = library.path() + " is NCCL " + cudnn::versionText(version) +
             ", which registers no memory: install " + cudnn::versionText(leastVersion) +
             " or newer";
    return std::nullopt;
  }
  library.find("ncclGetErrorString", found.getErrorString);
  library.find("ncclGetUniqueId", found.getUniqueId);
  library.find("ncclCommInitRank", found.commInitRank);
  library.find("ncclCommGetAsyncError", found.commGetAsyncError);
  library.find("ncclCommDestroy", found.commDestroy);
  library.find("ncclCommAbort", found.commAbort);
  library.find("ncclCommRegister", found.commRegister);
  library.find("ncclCommDeregister", found.commDeregister);
  library.find("ncclAllReduce", found.allReduce);
  library.find("ncclAllGather", found.allGather);
  library.find("ncclSend", found.send);
  library.find("ncclRecv", found.recv);
  library.find("ncclGroupStart", found.groupStart);
  library.find("ncclGroupEnd", found.groupEnd);
  reason = library.failure();
  return reason.empty() ? std::optional(found) : std::nullopt;
}

} // namespace

void Functions::require(Status status, const std::string &doing) const {
  if (status != success)
    throw Error(ErrorCode::Runtime, "cannot " + doing + ": NCCL says " + getErrorString(status));
}

const Functions *open(std::string &reason) {
  static std::string failure;
  static const std::optional<Functions> functions = load(failure);
  reason = failure;
  return functions ? &*functions : nullptr;
}

} // namespace dlc::rt::nccl
