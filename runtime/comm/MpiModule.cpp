#include "runtime/comm/MpiModule.h"

#include "runtime/artifact/Error.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/core/Leftover.h"

#include <dlfcn.h>

namespace dlc::rt {

std::unique_ptr<ControlPlane> makeMpiControlPlane(const std::string &modulePath, int ranksPerHost) {
  // Global, because Open MPI opens components of its own that look for its symbols. Never closed:
  // MPI cannot be unloaded.
  void *module = dlopen(modulePath.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!module)
    throw Error(ErrorCode::Runtime, std::string("cannot load the MPI module: ") + dlerror() +
                                        " (is Open MPI installed?)");
  auto *entry = reinterpret_cast<MpiModule::Entry *>(dlsym(module, MpiModule::entry));
  const MpiModule *table = entry ? entry() : nullptr;
  if (!table || table->version != MpiModule::currentVersion)
    throw Error(ErrorCode::Runtime, modulePath + " belongs to another version of dlc (got " +
                                        (table ? std::to_string(table->version) : "none") +
                                        ", wanted " + std::to_string(MpiModule::currentVersion) +
                                        "); install both from one build");
  Leftover::alsoRemove(table->removeLeftovers);
  return table->create(ranksPerHost);
}

} // namespace dlc::rt
