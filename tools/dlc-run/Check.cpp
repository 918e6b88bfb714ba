#include "tools/dlc-run/Check.h"

#include "runtime/artifact/Error.h"
#include "runtime/comm/Launch.h"
#include "runtime/core/BackEnd.h"
#include "runtime/core/BytesText.h"
#include "runtime/core/HostFeatures.h"
#include "runtime/core/ParallelFor.h"
#include "runtime/profile/KernelCheck.h"
#include "tools/dlc-run/Binding.h"
#include "tools/dlc-run/Process.h"
#include "tools/dlc-run/RunRank.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/statvfs.h>
#include <unistd.h>

namespace dlc::run {

static void say(const char *what, const std::string &finding) {
  std::printf("%-12s %s\n", what, finding.c_str());
}

static std::string freeSharedMemory() {
  struct statvfs status;
  if (::statvfs("/dev/shm", &status) != 0)
    return "none: gradients of ranks on one host travel as messages";
  return rt::bytesText(uint64_t{status.f_bavail} * status.f_frsize) + " free in /dev/shm";
}

/// The choice in brackets of "always [madvise] never".
static std::string chosen(const char *path) {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (word.front() == '[')
      return word.substr(1, word.size() - 2);
  return "not known to this kernel";
}

static std::string hugePages() {
  const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
  return "private memory: " + chosen((folder + "enabled").c_str()) +
         ", shared memory: " + chosen((folder + "shmem_enabled").c_str());
}

static rt::BackEnd::Finding sayBackEnd(const char *name, const std::string &target) {
  std::string reason;
  const rt::BackEnd *backEnd = rt::findBackEnd(target, reason);
  rt::BackEnd::Finding finding =
      backEnd ? backEnd->describe() : rt::BackEnd::Finding{false, "not available: " + reason};
  say(name, finding.text);
  return finding;
}

static void writeDevice(const std::string &file, const rt::BackEnd::Finding &gpu) {
  if (gpu.properties.empty())
    throw rt::Error(rt::ErrorCode::Runtime, "no GPU to describe in '" + file + "': " + gpu.text);
  std::ofstream out(file);
  if (!(out << gpu.properties << "\n").flush())
    throw rt::Error(rt::ErrorCode::BadInput, "cannot write '" + file + "'");
}

int check(const std::string &deviceFile) {
  say("processor", rt::hostProcessor() + ", " + std::to_string(usableCores()) + " usable cores");
  std::string features;
  for (const std::string &feature : rt::hostFeatures())
    features += (features.empty() ? "" : " ") + feature;
  say("features", features);
  auto memory = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  say("memory", rt::bytesText(memory));
  say("shared", freeSharedMemory());
  say("huge pages", hugePages());
  bool multipliesBF16 = rt::missingFeatures({"avx512bf16"}).empty();
  say("bf16", multipliesBF16 ? "supported: --precision=bf16"
                             : "not supported: no avx512bf16, so --precision=f32 only");
  rt::BackEnd::Finding cpu = sayBackEnd("cpu", "cpu:native");
  rt::BackEnd::Finding gpu = sayBackEnd("cuda", "cuda:h200");
  std::filesystem::path bin = std::filesystem::path(ownPath()).parent_path();
  bool hasMpi = std::filesystem::exists(mpiModule());
  say("mpi", hasMpi ? "Open MPI module found" : "this build has no MPI module: ranks meet by TCP");
  bool hasCompiler = std::filesystem::exists(bin / "dlc");
  say("compiler",
      hasCompiler ? (bin / "dlc").string() : "none beside this program: artifacts only");
  if (!deviceFile.empty())
    writeDevice(deviceFile, gpu);
  return cpu.canRun || gpu.canRun ? 0 : 1;
}

int checkKernels(const std::string &file) {
  rt::Artifact artifact(file);
  const artifact::Target &target = *artifact->target();
  std::string reason;
  const rt::BackEnd *backEnd = rt::findBackEnd(target.name()->str(), reason);
  if (!backEnd)
    throw rt::Error(rt::ErrorCode::Runtime, reason);
  rt::setTeamSize(usableCores()); // which draws numbers, whatever the device
  constexpr double patience = 30;
  std::unique_ptr<rt::ControlPlane> control =
      rt::makeControlPlane(rt::Launch(), mpiModule(), patience);
  // As a run would have it: plans are for no more than they say.
  unsigned threads = std::min(usableCores(), std::max(target.threads(), 1u));
  std::unique_ptr<rt::Device> device = backEnd->makeDevice(target, threads, *control);
  auto said = std::chrono::steady_clock::now();
  rt::KernelCheck found =
      rt::checkKernels(artifact, *backEnd, *device, [&](const std::string &text) {
        auto now = std::chrono::steady_clock::now();
        if (now - said < std::chrono::seconds(5))
          return;
        said = now;
        std::printf("%s\n", text.c_str());
        std::fflush(stdout);
      });
  for (const std::string &fault : found.faults)
    std::printf("wrong: %s\n", fault.c_str());
  std::printf("%zu library kernels, %zu plans, %zu of them wrong", found.kernels, found.plans,
              found.faults.size());
  if (!found.kernel.empty())
    std::printf("; furthest from f64: %s, %.2f of what rounding may do", found.kernel.c_str(),
                found.error);
  std::printf("\n");
  return found.faults.empty() ? 0 : 1;
}

int calibrate(const std::string &file) {
  std::string reason;
  const rt::BackEnd *cpu = rt::findBackEnd("cpu:native", reason);
  if (!cpu)
    throw rt::Error(rt::ErrorCode::Runtime, reason);
  // Refused before minutes of measuring.
  if (!std::ofstream(file, std::ios::app))
    throw rt::Error(rt::ErrorCode::BadInput, "cannot write '" + file + "'");
  std::string table = cpu->calibrate([](const std::string &text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  });
  std::ofstream(file) << table;
  std::printf("%s written; dlc compile --target=%s plans with it\n", file.c_str(), file.c_str());
  return 0;
}

} // namespace dlc::run
