#include "runtime/comm/mpi/MpiTransport.h"

#include "runtime/artifact/Error.h"
#include "runtime/comm/Socket.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
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

/// Whoever set sizes keeps them.
void askForSocketBuffers() {
  std::string bytes = std::to_string(socketBufferBytes);
  if (givesSocketBuffers("/proc/sys/net/core/wmem_max"))
    setenv("OMPI_MCA_btl_tcp_sndbuf", bytes.c_str(), /*overwrite=*/0);
  if (givesSocketBuffers("/proc/sys/net/core/rmem_max"))
    setenv("OMPI_MCA_btl_tcp_rcvbuf", bytes.c_str(), /*overwrite=*/0);
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
    : MpiEnvironment(ranksPerHost),
      HostTransport(MpiEnvironment::rank, MpiEnvironment::hosts, MpiEnvironment::names) {}

MpiTransport::~MpiTransport() { idle = freeRequests.size() == requests.size(); }

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

std::optional<int> MpiTransport::senderOf(int tag) {
  int found = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, tag, communicator, &found, &status),
        "looking for messages of ranks");
  return found ? std::optional(status.MPI_SOURCE) : std::nullopt;
}

void MpiTransport::abort(const std::string &) noexcept { MPI_Abort(MPI_COMM_WORLD, 1); }

} // namespace dlc::rt
