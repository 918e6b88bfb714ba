// The part of the host's memory that is nearest to a device: a NUMA node.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dlc::rt {

/// The node that the kernel names for a device of the PCI bus, as "0000:1b:00.0"; none if it names
/// none, as where there is one alone.
std::optional<unsigned> nodeOfPciDevice(std::string busId,
                                        const std::string &devices = "/sys/bus/pci/devices");

/// While it lives, new memory of the thread comes from the node as long as that has some. Does
/// nothing without a node, or where the kernel does not allow it.
class PreferNode {
public:
  explicit PreferNode(std::optional<unsigned> node);
  ~PreferNode();
  PreferNode(const PreferNode &) = delete;
  PreferNode &operator=(const PreferNode &) = delete;

private:
  bool isSet = false;
  int policy = 0; // before
  std::vector<unsigned long> nodes;
};

} // namespace dlc::rt
