#include "runtime/cuda/libraries/Cudart.h"

#include "runtime/artifact/Error.h"
#include "runtime/cuda/libraries/SharedLibrary.h"

#include <optional>

namespace dlc::rt::cudart {
namespace {

std::optional<Functions> load(std::string &reason) {
  SharedLibrary library("libcudart.so.13");
  Functions found{};
  library.find("cudaGetErrorString", found.getErrorString);
  library.find("cudaGetLastError", found.getLastError);
  library.find("cudaRuntimeGetVersion", found.runtimeGetVersion);
  library.find("cudaDriverGetVersion", found.driverGetVersion);
  library.find("cudaGetDeviceCount", found.getDeviceCount);
  library.find("cudaSetDevice", found.setDevice);
  library.find("cudaGetDeviceProperties", found.getDeviceProperties);
  library.find("cudaDeviceGetAttribute", found.deviceGetAttribute);
  library.find("cudaDeviceGetPCIBusId", found.deviceGetPciBusId);
  library.find("cudaDeviceGetStreamPriorityRange", found.deviceGetStreamPriorityRange);
  library.find("cudaDeviceSynchronize", found.deviceSynchronize);
  library.find("cudaMemGetInfo", found.memGetInfo);
  library.find("cudaMalloc", found.malloc);
  library.find("cudaFree", found.free);
  library.find("cudaHostAlloc", found.hostAlloc);
  library.find("cudaFreeHost", found.freeHost);
  library.find("cudaMemcpy", found.memcpy);
  library.find("cudaMemcpyAsync", found.memcpyAsync);
  library.find("cudaStreamCreateWithPriority", found.streamCreateWithPriority);
  library.find("cudaStreamDestroy", found.streamDestroy);
  library.find("cudaStreamWaitEvent", found.streamWaitEvent);
  library.find("cudaStreamBeginCapture", found.streamBeginCapture);
  library.find("cudaStreamEndCapture", found.streamEndCapture);
  library.find("cudaEventCreateWithFlags", found.eventCreateWithFlags);
  library.find("cudaEventDestroy", found.eventDestroy);
  library.find("cudaEventRecord", found.eventRecord);
  library.find("cudaEventRecordWithFlags", found.eventRecordWithFlags);
  library.find("cudaEventQuery", found.eventQuery);
  library.find("cudaEventSynchronize", found.eventSynchronize);
  library.find("cudaEventElapsedTime", found.eventElapsedTime);
  library.find("cudaGraphInstantiate", found.graphInstantiate);
  library.find("cudaGraphLaunch", found.graphLaunch);
  library.find("cudaGraphDestroy", found.graphDestroy);
  library.find("cudaGraphExecDestroy", found.graphExecDestroy);
  library.find("cudaLibraryLoadData", found.libraryLoadData);
  library.find("cudaLibraryUnload", found.libraryUnload);
  library.find("cudaLibraryGetKernel", found.libraryGetKernel);
  library.find("cudaLaunchKernel", found.launchKernel);
  reason = library.failure();
  return reason.empty() ? std::optional(found) : std::nullopt;
}

} // namespace

void Functions::require(Status status, const std::string &doing) const {
  if (status == success)
    return;
  getLastError(); // is told here
  throw Error(ErrorCode::Runtime, "cannot " + doing + ": " + getErrorString(status));
}

Owned<Library> Functions::load(const std::string &code, const std::string &doing) const {
  Library library = nullptr;
  require(libraryLoadData(&library, code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), doing);
  return {library, {libraryUnload}};
}

const Functions *open(std::string &reason) {
  static std::string failure;
  static const std::optional<Functions> functions = load(failure);
  reason = failure;
  return functions ? &*functions : nullptr;
}

} // namespace dlc::rt::cudart
