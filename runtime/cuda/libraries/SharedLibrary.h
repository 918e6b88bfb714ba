// A library of CUDA's that is opened at run time, so that dlc needs none of them to be built or to
// start.
#pragma once

#include <string>

namespace dlc::rt {

class SharedLibrary {
public:
  /// Opens `name`, as libcudnn.so.9, by the loader's own path, else in lib64 or lib of $CUDA_HOME
  /// or of /usr/local/cuda; where it is nowhere, what these have as `stub`, which is CUDA's word
  /// for a library to link with. It stays open.
  explicit SharedLibrary(const std::string &name, const std::string &stub = "");

  /// Sets a pointer to a function of the library, of its type by the caller's word.
  template <typename Function> void find(const char *symbol, Function *&function) {
    function = reinterpret_cast<Function *>(address(symbol));
  }

  /// What was missing, and where it was looked for; empty if nothing was.
  const std::string &failure() const { return missing; }

  /// Of the library, which is open.
  std::string path() const;

private:
  void *address(const char *symbol);

  std::string name;
  void *handle = nullptr;
  std::string missing;
};

} // namespace dlc::rt
