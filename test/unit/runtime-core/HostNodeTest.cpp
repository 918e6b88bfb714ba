// Where the kernel says that a device is, and that memory comes from there.
#include "runtime/core/HostNode.h"
#include "test/unit/data/TestFiles.h"

#include <array>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dlc::rt::test {
namespace {

TEST(HostNode, IsTheOneThatTheKernelNames) {
  TemporaryDirectory devices;
  auto nodeBy = [&](const std::string &text) {
    std::filesystem::create_directories(devices / "0000:1b:00.0");
    writeFile(devices / "0000:1b:00.0/numa_node", text);
    return nodeOfPciDevice("0000:1B:00.0", devices / ""); // CUDA's letters are capitals
  };
  EXPECT_EQ(nodeBy("1\n"), 1u);
  EXPECT_EQ(nodeBy("0\n"), 0u);
  EXPECT_EQ(nodeBy("-1\n"), std::nullopt);
  EXPECT_EQ(nodeBy("4096\n"), std::nullopt);
  EXPECT_EQ(nodeBy("none\n"), std::nullopt);
  EXPECT_EQ(nodeOfPciDevice("0000:1c:00.0", devices / ""), std::nullopt);
}

/// Policy and first nodes of the thread; nothing where the kernel does not tell.
std::optional<std::pair<int, unsigned long>> policy() {
  int mode = 0;
  std::array<unsigned long, 16> nodes{};
  if (syscall(SYS_get_mempolicy, &mode, nodes.data(), 8 * sizeof nodes, nullptr, 0UL) != 0)
    return std::nullopt;
  return std::pair(mode, nodes[0]);
}

TEST(HostNode, IsPreferredForAWhile) {
  if (!policy() || syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0UL) != 0)
    GTEST_SKIP() << "the kernel has no policies of memory, or allows none";
  auto before = policy();
  {
    PreferNode preferred(0);
    EXPECT_EQ(policy(), std::pair(int{MPOL_PREFERRED}, 1UL));
    PreferNode none(std::nullopt);
    EXPECT_EQ(policy(), std::pair(int{MPOL_PREFERRED}, 1UL));
  }
  EXPECT_EQ(policy(), before);
  {
    PreferNode missing(1000);
    EXPECT_EQ(policy(), before);
  }
  EXPECT_EQ(policy(), before);
}

} // namespace
} // namespace dlc::rt::test
