#include "tools/dlc-run/Ranks.h"

#include "runtime/core/Error.h"
#include "tools/dlc-run/Process.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace dlc::run {

using rt::Error;
using rt::ErrorCode;

static bool isSet(const char *name) { return std::getenv(name) != nullptr; }

bool isLaunched() {
  // Set for every rank by Open MPI's mpirun, by PMIx (srun --mpi=pmix) and by PMI.
  return isSet("OMPI_COMM_WORLD_SIZE") || isSet("PMIX_RANK") || isSet("PMI_RANK");
}

/// How many ranks the environment speaks of, and by which variable; 1 if of none.
static std::pair<long, std::string> promisedRanks() {
  for (const char *name : {"SLURM_NTASKS", "WORLD_SIZE"})
    if (const char *value = std::getenv(name))
      if (long ranks = std::strtol(value, nullptr, 10); ranks > 1)
        return {ranks, name};
  if (const char *config = std::getenv("TF_CONFIG")) {
    auto parsed = nlohmann::json::parse(config, nullptr, /*allow_exceptions=*/false);
    auto workers = nlohmann::json::json_pointer("/cluster/worker");
    if (parsed.is_object() && parsed.contains(workers) && parsed[workers].size() > 1)
      return {static_cast<long>(parsed[workers].size()), "TF_CONFIG"};
  }
  return {1, ""};
}

std::unique_ptr<rt::Communicator> makeCommunicator(double timeoutSeconds) {
  std::unique_ptr<rt::Communicator> communicator;
  if (isLaunched()) {
    auto bin = std::filesystem::path(ownPath()).parent_path();
    communicator = rt::makeMpiCommunicator(bin / "../lib/dlc_comm_mpi.so");
  } else {
    communicator = rt::makeSingleCommunicator();
  }
  auto [promised, variable] = promisedRanks();
  // Inside an allocation (salloc, sbatch) a single process is legitimate; as a task it is not.
  bool isTask = variable != "SLURM_NTASKS" || isSet("SLURM_STEP_ID");
  if (communicator->size() == 1 && promised > 1 && isTask)
    throw Error(ErrorCode::BadInput,
                variable + " tells of " + std::to_string(promised) +
                    " ranks, but MPI sees this process alone; start with dlc-run -np N, mpirun, or "
                    "srun --mpi=pmix");
  communicator->setTimeout(timeoutSeconds);
  return communicator;
}

} // namespace dlc::run
