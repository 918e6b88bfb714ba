#include "runtime/comm/Socket.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace dlc::rt {
namespace {

constexpr int queued = 1024; // connections that wait to be accepted

void set(int descriptor, int level, int option, int value) {
  setsockopt(descriptor, level, option, &value, sizeof value);
}

/// At every address of the kind, or at the loopback's.
bool bindTo(int descriptor, bool isIpv6, uint16_t port, bool onlyLoopback) {
  if (isIpv6) {
    set(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_any;
    return bind(descriptor, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(onlyLoopback ? INADDR_LOOPBACK : INADDR_ANY);
  return bind(descriptor, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
}

} // namespace

bool givesSocketBuffers(const char *limit) {
  long most = 0;
  return std::ifstream(limit) >> most && most >= socketBufferBytes;
}

Socket &Socket::operator=(Socket &&other) noexcept {
  std::swap(descriptor, other.descriptor);
  return *this;
}

Socket::~Socket() {
  if (descriptor >= 0)
    close(descriptor);
}

Socket Socket::listen(uint16_t port, bool onlyLoopback, bool isHeld) {
  int failure = 0;
  for (bool isIpv6 : {true, false}) {
    if (isIpv6 && onlyLoopback)
      continue;
    Socket socket(::socket(isIpv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket) // a host without that protocol
      continue;
    set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1); // of connections that ended a moment ago
    if (isHeld)
      set(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1);
    if (bindTo(socket.get(), isIpv6, port, onlyLoopback) && ::listen(socket.get(), queued) == 0)
      return socket;
    failure = errno;
    if (failure == EADDRINUSE)
      break;
  }
  throw Error(ErrorCode::BadInput,
              "cannot wait for the other ranks at port " + std::to_string(port) + ": " +
                  std::strerror(failure ? failure : errno) +
                  (failure == EADDRINUSE ? "; end what uses it, or start the ranks anew" : ""));
}

Socket Socket::hold() {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  if (!socket || !bindTo(socket.get(), false, 0, true))
    throw Error(ErrorCode::Runtime,
                std::string("cannot get a port for the ranks: ") + std::strerror(errno));
  return socket;
}

uint16_t Socket::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(descriptor, reinterpret_cast<sockaddr *>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 *>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in *>(&address)->sin_port);
}

namespace {

/// Of one end of a connection: the numeric address, and its port.
std::pair<std::string, std::string> endOf(int descriptor, decltype(getpeername) *which) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  which(descriptor, reinterpret_cast<sockaddr *>(&address), &size);
  getnameinfo(reinterpret_cast<sockaddr *>(&address), size, host.data(), host.size(), port.data(),
              port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  return {host.data(), port.data()};
}

} // namespace

std::string Socket::peerAddress() const {
  constexpr std::string_view mapped = "::ffff:"; // of a host that may know IPv4 alone
  std::string address = endOf(descriptor, getpeername).first;
  return address.starts_with(mapped) ? address.substr(mapped.size()) : address;
}

bool Socket::isLocal() const {
  std::string peer = peerAddress();
  auto isLoopback = [](std::string_view address) {
    return address.starts_with("127.") || address == "::1";
  };
  return isLoopback(peer) || endOf(descriptor, getsockname).first.ends_with(peer);
}

bool Socket::wait(short events, Deadline deadline) const {
  for (;;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() < 0)
      return false;
    pollfd waited{descriptor, events, 0};
    int ready = poll(&waited, 1, static_cast<int>(std::min<int64_t>(left.count() + 1, 1000)));
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      return false;
  }
}

Socket Socket::accept(Deadline deadline) const {
  return wait(POLLIN, deadline) ? Socket(accept4(descriptor, nullptr, nullptr, SOCK_CLOEXEC))
                                : Socket();
}

Socket Socket::connect(const std::string &host, uint16_t port, std::string &reason) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int failure = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found)) {
    reason = gai_strerror(failure);
    return Socket();
  }
  std::unique_ptr<addrinfo, void (*)(addrinfo *)> addresses(found, freeaddrinfo);
  for (const addrinfo *each = found; each; each = each->ai_next) {
    Socket socket(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {
      reason = std::strerror(errno);
      continue;
    }
    int failure = ::connect(socket.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (failure == EINPROGRESS) {
      socklen_t size = sizeof failure;
      if (!socket.wait(POLLOUT, std::chrono::steady_clock::now() + std::chrono::seconds(3)))
        failure = ETIMEDOUT;
      else
        getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    }
    // At a port that hosts give to whoever asks, a socket may have met itself.
    if (failure == 0 && endOf(socket.get(), getpeername) == endOf(socket.get(), getsockname))
      failure = ECONNREFUSED;
    if (failure == 0)
      return socket;
    reason = std::strerror(failure);
  }
  return Socket();
}

bool Socket::send(std::span<const std::byte> data, Deadline deadline) const {
  while (!data.empty()) {
    if (!wait(POLLOUT, deadline))
      return false;
    ssize_t sent = ::send(descriptor, data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EINTR && errno != EAGAIN)
      return false;
    data = data.subspan(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

bool Socket::receive(std::span<std::byte> data, Deadline deadline) const {
  while (!data.empty()) {
    if (!wait(POLLIN, deadline))
      return false;
    ssize_t got = recv(descriptor, data.data(), data.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
      return false;
    data = data.subspan(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  return true;
}

void Socket::prepare() const {
  set(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  if (givesSocketBuffers("/proc/sys/net/core/wmem_max"))
    set(descriptor, SOL_SOCKET, SO_SNDBUF, socketBufferBytes);
  if (givesSocketBuffers("/proc/sys/net/core/rmem_max"))
    set(descriptor, SOL_SOCKET, SO_RCVBUF, socketBufferBytes);
}

} // namespace dlc::rt
