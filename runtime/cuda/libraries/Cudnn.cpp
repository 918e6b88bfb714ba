#include "runtime/cuda/libraries/Cudnn.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/libraries/SharedLibrary.h"

#include <optional>

namespace dlc::rt::cudnn {
namespace {

constexpr size_t leastVersion = 90800; // which takes descriptions of devices
// From which on engines are linked with the driver.
constexpr size_t firstWithDriver = 92700;

/// Opens the driver for a version's engines, or the toolkit's stub of it, with which they plan and
/// nothing runs.
std::string openDriver(const Functions &library) {
  if (library.getVersion() < firstWithDriver)
    return "";
  SharedLibrary driver("libcuda.so.1", "stubs/libcuda.so");
  int (*initialize)(unsigned flags) = nullptr;
  driver.find("cuInit", initialize);
  if (driver.failure().empty())
    return "";
  return nameOf(library) + " needs the driver's libcuda.so.1, or CUDA's stub of it to plan with: " +
         driver.failure() + "; install either, or cuDNN 9.26";
}

std::optional<Functions> load(std::string &reason) {
  SharedLibrary library("libcudnn.so.9");
  Functions found{};
  library.find("cudnnGetVersion", found.getVersion);
  library.find("cudnnGetErrorString", found.getErrorString);
  library.find("cudnnBackendCreateDescriptor", found.backendCreateDescriptor);
  library.find("cudnnBackendDestroyDescriptor", found.backendDestroyDescriptor);
  library.find("cudnnBackendFinalize", found.backendFinalize);
  library.find("cudnnBackendSetAttribute", found.backendSetAttribute);
  library.find("cudnnBackendGetAttribute", found.backendGetAttribute);
  library.find("cudnnCreate", found.create);
  library.find("cudnnDestroy", found.destroy);
  library.find("cudnnSetStream", found.setStream);
  library.find("cudnnBackendExecute", found.backendExecute);
  reason = library.failure();
  if (reason.empty() && found.getVersion() < leastVersion)
    reason = library.path() + " is " + nameOf(found) +
             ", which cannot plan without a GPU: install " + versionText(leastVersion) +
             " or newer";
  if (reason.empty())
    reason = openDriver(found);
  return reason.empty() ? std::optional(found) : std::nullopt;
}

} // namespace

void Functions::require(Status status, const std::string &doing) const {
  if (status != success)
    throw Error(ErrorCode::Runtime, "cannot " + doing + ": cuDNN says " + getErrorString(status));
}

const Functions *open(std::string &reason) {
  static std::string failure;
  static const std::optional<Functions> functions = load(failure);
  reason = failure;
  return functions ? &*functions : nullptr;
}

std::string versionText(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string nameOf(const Functions &library) {
  return "cuDNN " + versionText(library.getVersion());
}

} // namespace dlc::rt::cudnn
