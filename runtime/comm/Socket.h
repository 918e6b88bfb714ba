// Sockets as the ranks of a run use them: streams, of IPv6 or IPv4 alike.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace dlc::rt {

using Deadline = std::chrono::steady_clock::time_point;

/// While a rank computes, the buffers of its sockets are all that keeps the wire busy: these are
/// what 1 Gbit/s carries in 34 ms.
constexpr long socketBufferBytes = 4 << 20;
/// False if the host, whose limit stands in the file, gives less: then it does better by itself.
bool givesSocketBuffers(const char *limit);

/// Owns a file descriptor.
class Socket {
public:
  explicit Socket(int descriptor = -1) : descriptor(descriptor) {}
  Socket(Socket &&other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
  Socket &operator=(Socket &&other) noexcept;
  ~Socket();

  int get() const { return descriptor; }
  explicit operator bool() const { return descriptor >= 0; }

  /// Waits for connections at a port of all interfaces, 0 for any port, or of the loopback alone.
  /// Throws Error(BadInput) if the port is taken, unless it is held.
  static Socket listen(uint16_t port, bool onlyLoopback, bool isHeld);
  /// Has a port of the loopback, at which it does not listen but another socket of this user may.
  static Socket hold();
  uint16_t port() const;
  /// The next connection before the deadline; none after it.
  Socket accept(Deadline deadline) const;
  /// A connection to a host's port; none with `reason` set if there is none yet.
  static Socket connect(const std::string &host, uint16_t port, std::string &reason);
  /// The numeric address of the other end.
  std::string peerAddress() const;

  /// True if the other end is in the same network, so that it has no address for other hosts.
  bool isLocal() const;

  /// Both wait; false if the other end closes or the deadline passes.
  bool send(std::span<const std::byte> data, Deadline deadline) const;
  bool receive(std::span<std::byte> data, Deadline deadline) const;

  /// For messages between ranks: nothing waits from now on, nothing is held back.
  void prepare() const;

private:
  bool wait(short events, Deadline deadline) const;

  int descriptor;
};

} // namespace dlc::rt
