#include "runtime/comm/Launch.h"

#include "runtime/artifact/Error.h"
#include "runtime/comm/ControlPlanes.h"

#include <charconv>
#include <cstring>
#include <initializer_list>
#include <nlohmann/json.hpp>

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
  throw Error(ErrorCode::BadInput, promise.source + " promises " + std::to_string(promise.ranks) +
                                       " ranks, but no MPI launcher started this process: " + fix);
}

/// A -np of the user overrules the numbers of ranks that allocations and launchers promise.
void refuseUnmetPromises(const Environment &environment) {
  const std::string alone = " (-np 1 for one rank alone)";
  auto np = [](const Promise &p) { return "dlc-run -np " + std::to_string(p.ranks); };

  // Within a step of srun the other processes run already; in an allocation's shell or batch script
  // this is the only one.
  if (auto step = readCount(environment, {"SLURM_STEP_NUM_TASKS"}); step.ranks > 1)
    refuse(step, "start it with srun --mpi=pmix");
  if (auto tasks = readCount(environment, {"SLURM_NTASKS", "SLURM_NPROCS"}); tasks.ranks > 1)
    refuse(tasks, "use srun --mpi=pmix dlc-run, or " + np(tasks) + alone);
  if (auto world = readCount(environment, {"WORLD_SIZE"}); world.ranks > 1)
    refuse(world, "use " + np(world) + alone + ", or mpirun, in place of that launcher");
  if (auto cluster = readTfConfig(environment); cluster.ranks > 1)
    refuse(cluster, "use " + np(cluster) + alone + ", or mpirun, and unset TF_CONFIG");
}

} // namespace

Launch detectLaunch(const Environment &environment, bool ranksGiven) {
  // Open MPI's own launcher is the surest: its ranks may run inside any allocation.
  auto promise = readCount(environment, {"OMPI_COMM_WORLD_SIZE"});
  bool launched = promise.ranks > 0;
  if (!launched && (environment("PMIX_RANK") || environment("PMI_RANK"))) {
    launched = true;
    promise = readCount(environment, {"PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  }
  if (launched) {
    if (promise.ranks == 0)
      return {true, 0, "PMIX_RANK"};
    // One rank needs no MPI, whoever started it.
    return {promise.ranks > 1, promise.ranks, promise.source};
  }
  if (!ranksGiven)
    refuseUnmetPromises(environment);
  return {};
}

std::unique_ptr<ControlPlane> makeControlPlane(const Launch &launch,
                                               const std::string &mpiModulePath) {
  if (!launch.mpi)
    return makeSingleControlPlane();
  auto control = makeMpiControlPlane(mpiModulePath);
  if (launch.ranks > 0 && control->size() != launch.ranks)
    throw Error(ErrorCode::BadInput,
                launch.source + " promises " + std::to_string(launch.ranks) +
                    " ranks, but MPI finds " + std::to_string(control->size()) +
                    ": the launcher belongs to another MPI; use dlc-run -np " +
                    std::to_string(launch.ranks) + ", Open MPI's mpirun, or srun --mpi=pmix");
  return control;
}

} // namespace dlc::rt
