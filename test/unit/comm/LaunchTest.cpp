// Every way of being started, by the variables that it leaves in the environment.
#include "runtime/comm/Launch.h"
#include "runtime/artifact/Error.h"

#include <gtest/gtest.h>

#include <map>

namespace dlc::rt::test {
namespace {

using Variables = std::map<std::string, std::string>;

Launch detect(const Variables &variables, bool ranksGiven = false) {
  return detectLaunch(
      [&](const char *name) {
        auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      ranksGiven);
}

std::string refusal(const Variables &variables) {
  try {
    detect(variables);
  } catch (const Error &error) {
    EXPECT_EQ(error.code, ErrorCode::BadInput);
    return error.what();
  }
  return "accepted";
}

void expectMpi(const Launch &launch, int ranks) {
  EXPECT_TRUE(launch.mpi);
  EXPECT_EQ(launch.ranks, ranks);
}

TEST(Launch, APlainStartIsOneRank) {
  EXPECT_FALSE(detect({}).mpi);
  EXPECT_FALSE(detect({{"WORLD_SIZE", "1"}, {"SLURM_NTASKS", "1"}}).mpi);
  EXPECT_FALSE(detect({{"WORLD_SIZE", "many"}, {"TF_CONFIG", "{"}}).mpi);
  EXPECT_FALSE(detect({{"TF_CONFIG", R"({"cluster": {"worker": ["a:1"]}})"}}).mpi);
}

TEST(Launch, MpirunIsBelievedInsideAnyAllocation) {
  expectMpi(detect({{"OMPI_COMM_WORLD_SIZE", "2"}}), 2);
  expectMpi(detect({{"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "1"}, {"SLURM_NTASKS", "8"}}), 2);
  EXPECT_FALSE(detect({{"OMPI_COMM_WORLD_SIZE", "1"}, {"SLURM_NTASKS", "8"}}).mpi)
      << "mpirun -np 1 was asked for";
}

TEST(Launch, SrunWithAnMpiPluginIsMpi) {
  expectMpi(detect({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "4"}}), 4);
  expectMpi(detect({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), 4);
  expectMpi(detect({{"PMIX_RANK", "0"}}), 0);
  EXPECT_FALSE(detect({{"PMIX_RANK", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}).mpi);
}

TEST(Launch, SrunWithoutAnMpiPluginIsRefused) {
  EXPECT_EQ(refusal({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "2"}}),
            "SLURM_STEP_NUM_TASKS=4 promises 4 ranks, but no MPI launcher started this process: "
            "start it with srun --mpi=pmix");
}

TEST(Launch, ABatchScriptThatForgetsSrunIsRefusedUnlessTheUserSaysHowMany) {
  Variables batch = {{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}};
  EXPECT_EQ(refusal(batch),
            "SLURM_NTASKS=4 promises 4 ranks, but no MPI launcher started this process: use srun "
            "--mpi=pmix dlc-run, or dlc-run -np 4 (-np 1 for one rank alone)");
  EXPECT_FALSE(detect(batch, /*ranksGiven=*/true).mpi);
}

TEST(Launch, OtherFrameworksLaunchersAreRefused) {
  EXPECT_NE(refusal({{"WORLD_SIZE", "8"}}).find("dlc-run -np 8"), std::string::npos);
  std::string text =
      refusal({{"TF_CONFIG", R"({"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]}})"}});
  EXPECT_NE(text.find("TF_CONFIG with 3 workers promises 3 ranks"), std::string::npos) << text;
}

TEST(Launch, AnMpiModuleThatIsNotThereIsOneLine) {
  try {
    makeControlPlane({true, 2, "OMPI_COMM_WORLD_SIZE=2"}, "/nonexistent/module.so");
    FAIL() << "no error";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/module.so"), std::string::npos);
  }
}

} // namespace
} // namespace dlc::rt::test
