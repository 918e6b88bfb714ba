#include "runtime/core/HostFeatures.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <sys/syscall.h>
#include <unistd.h>

namespace dlc::rt {
namespace {

// Value of the first line of /proc/cpuinfo that starts with this key.
std::string cpuInfo(const std::string &key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos)
      return colon + 2 <= line.size() ? line.substr(colon + 2) : "";
  }
  return "";
}

// The kernel writes amx_bf16 and avx512_bf16 where LLVM writes amx-bf16 and avx512bf16.
std::string llvmSpelling(std::string flag) {
  if (flag.starts_with("avx512_"))
    return "avx512" + flag.substr(7);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

// AMX registers belong to processes that have asked for them (Linux, x86/xstate.rst).
bool requestAmx() {
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

} // namespace

std::vector<std::string> hostFeatures() {
  std::vector<std::string> features;
  std::istringstream flags(cpuInfo("flags"));
  for (std::string flag; flags >> flag;)
    features.push_back(llvmSpelling(flag));
  auto isAmx = [](const std::string &feature) { return feature.starts_with("amx-"); };
  if (std::ranges::any_of(features, isAmx) && !requestAmx())
    std::erase_if(features, isAmx);
  return features;
}

std::vector<std::string> missingFeatures(const std::vector<std::string> &wanted) {
  std::vector<std::string> host = hostFeatures();
  std::vector<std::string> missing;
  for (const std::string &feature : wanted)
    if (std::ranges::find(host, feature) == host.end())
      missing.push_back(feature);
  return missing;
}

std::string hostProcessor() { return cpuInfo("model name"); }

std::string hostFamily() { return cpuInfo("vendor_id") + " " + cpuInfo("cpu family"); }

} // namespace dlc::rt
