#include "runtime/comm/Launch.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/Hash.h"
#include "runtime/comm/ControlPlanes.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

namespace dlc::rt {
namespace {

struct Promise {
  int ranks = 0; // none made
  std::string source;
};

/// The first of the variables that holds a positive number.
Promise readCount(const Environment &environment, std::initializer_list<const char *> names) {
  for (const char *name : names) {
    const char *text = environment(name);
    int count = 0;
    if (text && std::from_chars(text, text + std::strlen(text), count).ec == std::errc() &&
        count > 0)
      return {count, std::string(name) + "=" + text};
  }
  return {};
}

std::string readText(const Environment &environment, const char *name) {
  const char *text = environment(name);
  return text ? text : "";
}

/// A number from 0 to `most`, -1 for other texts.
int64_t readNumber(const Environment &environment, const char *name, int64_t most) {
  std::string text = readText(environment, name);
  int64_t number = -1;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool isNumber = failure == std::errc() && end == text.data() + text.size();
  return isNumber && number >= 0 && number <= most ? number : -1;
}

uint64_t hashOf(const std::string &text) {
  return hash64({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

/// The first host of Slurm's list: "node[03-07,9],x1" begins with node03.
std::string firstHost(const std::string &list) {
  std::string host;
  for (size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      host += list[at];
      continue;
    }
    size_t end = std::min(list.find(']', at), list.size());
    std::string_view numbers = std::string_view(list).substr(at + 1, end - at - 1);
    host += numbers.substr(0, numbers.find_first_of("-,"));
    at = end;
  }
  return host;
}

/// Ports that hosts do not give to whoever asks for any.
uint16_t portOf(uint64_t hash) { return static_cast<uint16_t>(20000 + hash % 10000); }

constexpr int mostRanks = 1 << 20;
constexpr const char *ownRank = "DLC_RANK", *ownRanks = "DLC_RANKS", *ownPort = "DLC_PORT",
                     *ownKey = "DLC_KEY";

/// One of ranks that dlc-run itself has started on this host.
std::optional<MeetingPlace> ownLaunch(const Environment &environment) {
  int64_t rank = readNumber(environment, ownRank, mostRanks),
          ranks = readNumber(environment, ownRanks, mostRanks),
          port = readNumber(environment, ownPort, 65535);
  if (rank < 0 || rank >= ranks || port <= 0)
    return {};
  return MeetingPlace{static_cast<int>(rank),
                      static_cast<int>(ranks),
                      "127.0.0.1",
                      static_cast<uint16_t>(port),
                      hashOf(readText(environment, ownKey)),
                      /*isHeld=*/true};
}

/// Agents of several nodes count restarts each for itself, so that these are no part of the key.
/// torchrun's agent itself listens at its port.
std::optional<MeetingPlace> torchrunLaunch(const Environment &environment) {
  int64_t rank = readNumber(environment, "RANK", mostRanks),
          ranks = readNumber(environment, "WORLD_SIZE", mostRanks),
          port = readNumber(environment, "MASTER_PORT", 65534);
  std::string host = readText(environment, "MASTER_ADDR");
  if (rank < 0 || rank >= ranks || ranks < 1 || port <= 0 || host.empty())
    return {};
  std::string run =
      host + ":" + std::to_string(port) + " " + readText(environment, "TORCHELASTIC_RUN_ID");
  return MeetingPlace{static_cast<int>(rank), static_cast<int>(ranks), host,
                      static_cast<uint16_t>(port + 1), hashOf("torchrun " + run)};
}

/// A step of srun without an MPI plugin.
std::optional<MeetingPlace> slurmLaunch(const Environment &environment) {
  int64_t rank = readNumber(environment, "SLURM_PROCID", mostRanks),
          ranks = readNumber(environment, "SLURM_STEP_NUM_TASKS", mostRanks);
  std::string host = firstHost(readText(environment, "SLURM_STEP_NODELIST"));
  if (rank < 0 || rank >= ranks || ranks < 2 || host.empty())
    return {};
  std::string step = "slurm " + readText(environment, "SLURM_JOB_ID") + "." +
                     readText(environment, "SLURM_STEP_ID");
  return MeetingPlace{static_cast<int>(rank), static_cast<int>(ranks), host, portOf(hashOf(step)),
                      hashOf(step + " " + host)};
}

/// Workers and chief of TensorFlow's cluster description; none if it cannot be read as one.
Promise readTfConfig(const Environment &environment) {
  const char *text = environment("TF_CONFIG");
  auto config = nlohmann::json::parse(text ? text : "", nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("cluster") || !config["cluster"].is_object())
    return {};
  size_t count = 0;
  for (const char *role : {"chief", "worker"})
    if (config["cluster"].contains(role) && config["cluster"][role].is_array())
      count += config["cluster"][role].size();
  return {static_cast<int>(count), "TF_CONFIG with " + std::to_string(count) + " workers"};
}

[[noreturn]] void refuse(const Promise &promise, const std::string &fix) {
  throw Error(ErrorCode::BadInput,
              promise.source + " promises " + std::to_string(promise.ranks) +
                  " ranks, but no launcher says which of them this process is: " + fix);
}

/// A -np of the user overrules the numbers of ranks that allocations and launchers promise.
void refuseUnmetPromises(const Environment &environment) {
  const std::string alone = " (-np 1 for one rank alone)";
  auto np = [](const Promise &p) { return "dlc-run -np " + std::to_string(p.ranks); };

  // In an allocation's shell or batch script this is the only process.
  if (auto tasks = readCount(environment, {"SLURM_NTASKS", "SLURM_NPROCS"}); tasks.ranks > 1)
    refuse(tasks, "use srun dlc-run, or " + np(tasks) + alone);
  if (auto world = readCount(environment, {"WORLD_SIZE"}); world.ranks > 1)
    refuse(world, "RANK, MASTER_ADDR and MASTER_PORT are missing beside it; use " + np(world) +
                      alone + ", torchrun or mpirun");
  if (auto cluster = readTfConfig(environment); cluster.ranks > 1)
    refuse(cluster, "use " + np(cluster) + alone + ", or mpirun, and unset TF_CONFIG");
}

} // namespace

Launch detectLaunch(const Environment &environment, bool ranksGiven) {
  auto byTcp = [](const std::optional<MeetingPlace> &place, const char *source) {
    return Launch{false, place, place->ranks, source};
  };
  if (auto own = ownLaunch(environment))
    return byTcp(own, ownRanks);
  // torchrun's agents are often started by srun or mpirun, whose variables their ranks inherit.
  if (environment("TORCHELASTIC_RUN_ID") && !ranksGiven)
    if (auto place = torchrunLaunch(environment))
      return place->ranks > 1 ? byTcp(place, "WORLD_SIZE") : Launch{};
  // Open MPI's own launcher is the surest: its ranks may run inside any allocation.
  auto promise = readCount(environment, {"OMPI_COMM_WORLD_SIZE"});
  bool launched = promise.ranks > 0;
  if (!launched && (environment("PMIX_RANK") || environment("PMI_RANK"))) {
    launched = true;
    promise = readCount(environment, {"PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  }
  if (launched) {
    if (promise.ranks == 0)
      return {true, {}, 0, "PMIX_RANK"};
    // One rank needs no MPI, whoever started it.
    return {promise.ranks > 1, {}, promise.ranks, promise.source};
  }
  if (ranksGiven)
    return {};
  if (auto place = torchrunLaunch(environment); place && place->ranks > 1)
    return byTcp(place, "WORLD_SIZE");
  if (auto place = slurmLaunch(environment))
    return byTcp(place, "SLURM_STEP_NUM_TASKS");
  refuseUnmetPromises(environment);
  return {};
}

std::vector<std::string> launchVariables(const MeetingPlace &place) {
  auto variable = [](const char *name, uint64_t value) {
    return std::string(name) + "=" + std::to_string(value);
  };
  return {variable(ownRank, static_cast<uint64_t>(place.rank)),
          variable(ownRanks, static_cast<uint64_t>(place.ranks)), variable(ownPort, place.port),
          variable(ownKey, place.key)};
}

std::unique_ptr<ControlPlane> makeControlPlane(const Launch &launch,
                                               const std::string &mpiModulePath, double timeout) {
  if (launch.tcp && launch.ranks > 1)
    return makeTcpControlPlane(*launch.tcp, timeout);
  if (!launch.mpi)
    return makeSingleControlPlane();
  auto control = makeMpiControlPlane(mpiModulePath);
  control->setTimeout(timeout);
  if (launch.ranks > 0 && control->size() != launch.ranks)
    throw Error(ErrorCode::BadInput,
                launch.source + " promises " + std::to_string(launch.ranks) +
                    " ranks, but MPI finds " + std::to_string(control->size()) +
                    ": the launcher belongs to another MPI; use dlc-run -np " +
                    std::to_string(launch.ranks) + ", Open MPI's mpirun, or srun --mpi=pmix");
  return control;
}

} // namespace dlc::rt
