#include "runtime/comm/HostTransport.h"

#include <algorithm>
#include <random>
#include <unistd.h>

namespace dlc::rt {

std::string HostTransport::describe(int peer) const {
  std::string text = Transport::describe(peer);
  bool oneHost = std::ranges::all_of(names, [&](const auto &name) { return name == names[0]; });
  return oneHost ? text : text + " on " + names[peer];
}

std::shared_ptr<Mapping> HostTransport::createSegment(size_t bytes, std::string &name) {
  // The random part keeps apart runs whose process numbers coincide, as they may in containers.
  name = "/dlc." + std::to_string(getpid()) + "." + std::to_string(segmentCount++) + "." +
         std::to_string(std::random_device()());
  named.emplace("/dev/shm" + name); // where Linux keeps it
  return std::make_shared<Mapping>(Mapping::createShared(name, bytes));
}

std::shared_ptr<Mapping> HostTransport::openSegment(const std::string &name, size_t bytes) {
  return std::make_shared<Mapping>(Mapping::openShared(name, bytes));
}

void HostTransport::unlinkSegment(const std::string &name) noexcept {
  Mapping::unlinkShared(name);
  named.reset();
}

} // namespace dlc::rt
