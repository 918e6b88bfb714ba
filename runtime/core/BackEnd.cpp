#include "runtime/core/BackEnd.h"

#include <dlfcn.h>
#include <filesystem>

namespace dlc::rt {
namespace {

// Modules lie in ../lib or ../lib/dlc beside the program, or next to it.
std::string modulePath(const std::string &file) {
  std::error_code ignored;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  std::filesystem::path directory = program.parent_path();
  for (const char *place : {"../lib", "../lib/dlc", "."}) {
    std::filesystem::path candidate = directory / place / file;
    if (std::filesystem::exists(candidate, ignored))
      return candidate.lexically_normal();
  }
  return "";
}

} // namespace

const BackEnd *findBackEnd(const std::string &target, std::string &reason) noexcept {
  size_t colon = target.find(':');
  // A name without a colon is a file of the CPU's costs, or wrong: its planner says what was meant.
  std::string kind = colon == std::string::npos ? "cpu" : target.substr(0, colon);
  bool plausible =
      !kind.empty() && kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string::npos;
  std::string path = plausible ? modulePath("dlc_" + kind + ".so") : "";
  if (path.empty()) {
    reason = "this build has no back end for target '" + target + "'";
    return nullptr;
  }
  void *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module) {
    const char *error = dlerror();
    reason = "cannot open " + path + ": " + (error ? error : "unknown reason");
    return nullptr;
  }
  auto entry = reinterpret_cast<decltype(&dlc_back_end)>(dlsym(module, "dlc_back_end"));
  const BackEnd *backEnd = entry ? entry() : nullptr;
  if (!backEnd || backEnd->version != BackEnd::currentVersion) {
    reason = path + " is of another version of dlc; install them together";
    return nullptr;
  }
  return backEnd;
}

} // namespace dlc::rt
