// The module's one entry. Nothing here runs: plans are made for their text.

#include "runtime/core/BackEnd.h"

#include "runtime/artifact/Error.h"
#include "test/backend/TestPlanner.h"

namespace dlc::rt {
namespace {

std::unique_ptr<KernelPlanner> makeTestPlanner(const std::string &target, unsigned,
                                               std::string &reason) noexcept {
  if (target != TestPlanner::rules && target != TestPlanner::small) {
    reason = "the targets for tests are test:rules and test:small";
    return nullptr;
  }
  return std::make_unique<TestPlanner>(target);
}

[[noreturn]] void refuse() { throw Error(ErrorCode::Runtime, "targets for tests have no device"); }

std::unique_ptr<Device> makeTestDevice(const artifact::Target &, unsigned, ControlPlane &) {
  refuse();
}
MachineSpeed measureTestMachine(int) { refuse(); }
std::string calibrateTest(const std::function<void(const std::string &)> &) { refuse(); }
std::vector<uint8_t> tuneTest(const Artifact &, const std::function<void(const std::string &)> &) {
  refuse();
}
StoredKernel readTestKernel(const artifact::Kernel &, const artifact::Target &) { refuse(); }
BackEnd::Finding describeTest() { return {true, "rules for tests"}; }

const BackEnd backEnd{BackEnd::currentVersion, makeTestPlanner, makeTestDevice, measureTestMachine,
                      calibrateTest,           tuneTest,        readTestKernel, describeTest};

} // namespace
} // namespace dlc::rt

extern "C" const dlc::rt::BackEnd *dlc_back_end() { return &dlc::rt::backEnd; }
