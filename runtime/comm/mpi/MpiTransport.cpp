#include "runtime/comm/mpi/MpiTransport.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <random>
#include <unistd.h>

namespace dlc::rt {
namespace {

void check(int status, const char *doing) {
  if (status == MPI_SUCCESS)
    return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  throw Error(ErrorCode::Peer,
              std::string(doing) + ": " + std::string(text.data(), static_cast<size_t>(length)));
}

/// While a rank computes, the buffers of its sockets are all that keeps the wire busy: 4 MB are
/// what 1 Gbit/s carries in 34 ms. The kernel doubles what it is asked for, but gives no more than
/// the host allows; where that is less, it does better by itself. Whoever set sizes keeps them.
void askForSocketBuffers() {
  constexpr long bytes = 4 << 20;
  auto ask = [](const char *limit, const char *parameter) {
    long most = 0;
    if (std::ifstream(limit) >> most && most >= bytes)
      setenv(parameter, std::to_string(bytes).c_str(), /*overwrite=*/0);
  };
  ask("/proc/sys/net/core/wmem_max", "OMPI_MCA_btl_tcp_sndbuf");
  ask("/proc/sys/net/core/rmem_max", "OMPI_MCA_btl_tcp_rcvbuf");
}

/// Open MPI looks at the machine through hwloc, one of whose plugins looks for graphics cards at X
/// displays, by TCP at the host "localhost": ten times as long as a name server takes to say
/// nothing.
void leaveDisplaysAlone() { setenv("HWLOC_COMPONENTS", "-gl", /*overwrite=*/0); }

} // namespace

MpiEnvironment::MpiEnvironment(int ranksPerHost) : exceptionsAtStart(std::uncaught_exceptions()) {
  askForSocketBuffers();
  leaveDisplaysAlone();
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "starting MPI");
  if (provided < MPI_THREAD_FUNNELED)
    throw Error(ErrorCode::Runtime, "this MPI was built without support for threads");
  check(MPI_Comm_dup(MPI_COMM_WORLD, &communicator), "copying MPI's world");
  check(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "setting MPI's error handler");
  int size = 0;
  check(MPI_Comm_rank(communicator, &rank), "asking MPI for the rank");
  check(MPI_Comm_size(communicator, &size), "asking MPI for the number of ranks");
  names = askNames(size);
  hosts = ranksPerHost > 0 ? pretendedHosts(size, ranksPerHost) : askHosts(size);
}

MpiEnvironment::~MpiEnvironment() {
  if (!idle || std::uncaught_exceptions() > exceptionsAtStart)
    return;
  // mpirun (4.1) hangs or crashes when it has to end a job some of whose ranks wait in
  // MPI_Finalize. So a rank goes there only when no other can fail any more, and waits for that
  // here.
  MPI_Request everyone = MPI_REQUEST_NULL;
  MPI_Ibarrier(communicator, &everyone);
  for (int done = 0; MPI_Test(&everyone, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done;)
    usleep(200);
  MPI_Comm_free(&communicator);
  MPI_Finalize();
}

std::vector<int> MpiEnvironment::askHosts(int size) const {
  MPI_Comm local = MPI_COMM_NULL;
  check(MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &local),
        "finding the ranks of this host");
  int first = rank;
  check(MPI_Bcast(&first, 1, MPI_INT, 0, local), "numbering hosts");
  MPI_Comm_free(&local);
  std::vector<int> hosts(static_cast<size_t>(size));
  check(MPI_Allgather(&first, 1, MPI_INT, hosts.data(), 1, MPI_INT, communicator),
        "numbering hosts");
  return hosts;
}

std::vector<std::string> MpiEnvironment::askNames(int size) const {
  std::array<char, MPI_MAX_PROCESSOR_NAME> mine{};
  int length = 0;
  check(MPI_Get_processor_name(mine.data(), &length), "asking for the host's name");
  std::vector<char> all(static_cast<size_t>(size) * mine.size());
  check(MPI_Allgather(mine.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all.data(),
                      MPI_MAX_PROCESSOR_NAME, MPI_CHAR, communicator),
        "exchanging host names");
  std::vector<std::string> names;
  for (size_t at = 0; at < all.size(); at += mine.size())
    names.emplace_back(all.data() + at);
  return names;
}

MpiTransport::MpiTransport(int ranksPerHost)
    : MpiEnvironment(ranksPerHost), Transport(MpiEnvironment::rank, MpiEnvironment::hosts) {}

MpiTransport::~MpiTransport() { idle = freeRequests.size() == requests.size(); }

std::string MpiTransport::describe(int peer) const {
  std::string text = Transport::describe(peer);
  bool oneHost = std::ranges::all_of(names, [&](const auto &name) { return name == names[0]; });
  return oneHost ? text : text + " on " + names[peer];
}

template <typename Byte, typename Start>
Transport::Request MpiTransport::begin(std::span<Byte> data, const char *doing, Start start) {
  // Open MPI sends up to 64 KB over TCP without asking the receiver. A longer message waits for its
  // answer, and every answer waits for kernels to end on both sides: the wire would be idle.
  constexpr size_t longest = size_t{60} << 10;
  if (freeRequests.empty()) {
    freeRequests.push_back(static_cast<Request>(requests.size()));
    requests.emplace_back();
  }
  Request request = freeRequests.back();
  freeRequests.pop_back();
  Parts &parts = requests[request];
  do {
    std::span<Byte> part = data.first(std::min(longest, data.size()));
    data = data.subspan(part.size());
    check(start(part.data(), static_cast<int>(part.size()),
                &parts.list.emplace_back(MPI_REQUEST_NULL)),
          doing);
  } while (!data.empty());
  return request;
}

Transport::Request MpiTransport::send(int peer, int tag, std::span<const std::byte> data) {
  return begin(data, "sending to a rank", [&](const void *part, int bytes, MPI_Request *request) {
    return MPI_Isend(part, bytes, MPI_BYTE, peer, tag, communicator, request);
  });
}

Transport::Request MpiTransport::receive(int peer, int tag, std::span<std::byte> data) {
  return begin(data, "receiving from a rank", [&](void *part, int bytes, MPI_Request *request) {
    return MPI_Irecv(part, bytes, MPI_BYTE, peer, tag, communicator, request);
  });
}

bool MpiTransport::test(Request request) {
  Parts &parts = requests[request];
  while (parts.done < parts.list.size()) {
    int done = 0;
    check(MPI_Test(&parts.list[parts.done], &done, MPI_STATUS_IGNORE),
          "moving messages between ranks");
    if (!done)
      return false;
    ++parts.done;
    ++movedParts;
  }
  parts.list.clear();
  parts.done = 0;
  freeRequests.push_back(request);
  return true;
}

std::shared_ptr<Mapping> MpiTransport::createSegment(size_t bytes, std::string &name) {
  // The random part keeps apart runs whose process numbers coincide, as they may in containers.
  name = "/dlc." + std::to_string(getpid()) + "." + std::to_string(segmentCount++) + "." +
         std::to_string(std::random_device()());
  named.emplace("/dev/shm" + name); // where Linux keeps it
  return std::make_shared<Mapping>(Mapping::createShared(name, bytes));
}

std::shared_ptr<Mapping> MpiTransport::openSegment(const std::string &name, size_t bytes) {
  return std::make_shared<Mapping>(Mapping::openShared(name, bytes));
}

void MpiTransport::unlinkSegment(const std::string &name) noexcept {
  Mapping::unlinkShared(name);
  named.reset();
}

void MpiTransport::abort(const std::string &) noexcept { MPI_Abort(MPI_COMM_WORLD, 1); }

} // namespace dlc::rt
