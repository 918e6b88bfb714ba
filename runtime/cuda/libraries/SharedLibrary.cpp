#include "runtime/cuda/libraries/SharedLibrary.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <vector>

namespace dlc::rt {

SharedLibrary::SharedLibrary(const std::string &name) : name(name) {
  const char *home = std::getenv("CUDA_HOME");
  std::vector<std::string> places{name};
  for (const std::string &root : {std::string(home ? home : ""), std::string("/usr/local/cuda")})
    for (const char *directory : {"lib64", "lib"})
      if (!root.empty())
        places.push_back(root + "/" + directory + "/" + name);
  std::error_code ignored;
  for (const std::string &place : places) {
    handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) {
      missing.clear(); // of places before
      return;
    }
    const char *error = dlerror(); // says more than "not found" of a file that is there
    if (error && std::filesystem::exists(place, ignored))
      missing = "cannot open " + name + ": " + error;
  }
  if (missing.empty())
    missing = "cannot find " + name +
              ": it is neither on the loader's path nor in lib64 or lib of $CUDA_HOME or of "
              "/usr/local/cuda";
}

void *SharedLibrary::address(const char *symbol) {
  void *found = handle ? dlsym(handle, symbol) : nullptr;
  if (!found && missing.empty())
    missing = name + " lacks " + symbol + ": it is of another version";
  return found;
}

} // namespace dlc::rt
