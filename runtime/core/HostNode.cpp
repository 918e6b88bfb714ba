#include "runtime/core/HostNode.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dlc::rt {

constexpr unsigned mostNodes = 1024; // as many as kernels can have

std::optional<unsigned> nodeOfPciDevice(std::string busId, const std::string &devices) {
  std::ranges::transform(busId, busId.begin(), [](unsigned char c) { return std::tolower(c); });
  std::ifstream file(devices + "/" + busId + "/numa_node");
  int node = -1;
  if (!(file >> node) || node < 0 || node >= static_cast<int>(mostNodes))
    return std::nullopt;
  return static_cast<unsigned>(node);
}

PreferNode::PreferNode(std::optional<unsigned> node) {
  constexpr unsigned bits = 8 * sizeof(unsigned long);
  nodes.resize(mostNodes / bits);
  if (!node || syscall(SYS_get_mempolicy, &policy, nodes.data(), mostNodes, nullptr, 0UL) != 0)
    return;
  std::vector<unsigned long> wanted(nodes.size());
  wanted[*node / bits] = 1UL << *node % bits;
  isSet = syscall(SYS_set_mempolicy, MPOL_PREFERRED, wanted.data(), mostNodes) == 0;
}

PreferNode::~PreferNode() {
  if (isSet)
    syscall(SYS_set_mempolicy, policy, nodes.data(), mostNodes);
}

} // namespace dlc::rt
