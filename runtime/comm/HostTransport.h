// A transport whose ranks share memory by POSIX segments, whatever carries their messages.
#pragma once

#include "runtime/comm/Transport.h"
#include "runtime/core/Leftover.h"

#include <optional>

namespace dlc::rt {

class HostTransport : public Transport {
public:
  std::shared_ptr<Mapping> createSegment(size_t bytes, std::string &name) override;
  std::shared_ptr<Mapping> openSegment(const std::string &name, size_t bytes) override;
  void unlinkSegment(const std::string &name) noexcept override;

  /// With the host's name, where there are several.
  std::string describe(int peer) const override;

protected:
  /// `names[r]` is the name of rank r's host.
  HostTransport(int rank, std::vector<int> hosts, std::vector<std::string> names)
      : Transport(rank, std::move(hosts)), names(std::move(names)) {}

private:
  std::vector<std::string> names;
  unsigned segmentCount = 0;
  std::optional<Leftover> named; // the segment that has a name, of which there is one at a time
};

} // namespace dlc::rt
