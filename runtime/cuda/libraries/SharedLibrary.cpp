#include "runtime/cuda/libraries/SharedLibrary.h"

#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <vector>

namespace dlc::rt {

SharedLibrary::SharedLibrary(const std::string &name, const std::string &stub) : name(name) {
  const char *home = std::getenv("CUDA_HOME");
  std::vector<std::string> places{name};
  for (const std::string &file : {name, stub})
    for (const std::string &root : {std::string(home ? home : ""), std::string("/usr/local/cuda")})
      for (const char *directory : {"lib64", "lib"})
        if (!root.empty() && !file.empty())
          places.push_back(root + "/" + directory + "/" + file);
  for (const std::string &place : places) {
    handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) {
      missing.clear(); // of places before
      return;
    }
    std::string error = dlerror();
    if (error != place + ": cannot open shared object file: No such file or directory")
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
    missing = path() + " lacks " + symbol + ": it is of another version";
  return found;
}

std::string SharedLibrary::path() const {
  link_map *loaded = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void *>(&loaded)) == 0 ? loaded->l_name : name;
}

} // namespace dlc::rt
