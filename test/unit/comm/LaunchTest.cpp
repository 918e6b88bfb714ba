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

/// What srun sets on two nodes.
Variables stepOf(const std::string &rank, const std::string &nodes) {
  return {{"SLURM_STEP_NUM_TASKS", "4"},  {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", rank},
          {"SLURM_STEP_NODELIST", nodes}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}};
}

TEST(Launch, RanksOfSrunWithoutAnMpiPluginMeetAtTheFirstNode) {
  Launch launch = detect(stepOf("2", "node[03-07,9],x1"));
  EXPECT_FALSE(launch.mpi);
  ASSERT_TRUE(launch.tcp);
  EXPECT_EQ(launch.tcp->rank, 2);
  EXPECT_EQ(launch.tcp->ranks, 4);
  EXPECT_EQ(launch.tcp->host, "node03");
  EXPECT_GE(launch.tcp->port, 20000);
  EXPECT_LT(launch.tcp->port, 30000);
  // All ranks of a step meet at one place; those of another have another key.
  Variables other = stepOf("0", "node[03-07,9],x1");
  EXPECT_EQ(detect(other).tcp->port, launch.tcp->port);
  EXPECT_EQ(detect(other).tcp->key, launch.tcp->key);
  other["SLURM_STEP_ID"] = "1";
  EXPECT_NE(detect(other).tcp->key, launch.tcp->key);

  for (const auto &[nodes, first] :
       Variables{{"a", "a"}, {"a,b", "a"}, {"a[1,5]", "a1"}, {"r[1-2]n[07-9]x,b", "r1n07x"}})
    EXPECT_EQ(detect(stepOf("0", nodes)).tcp->host, first);
  for (const char *rank : {"4", "-1", "x", ""})
    EXPECT_NE(refusal(stepOf(rank, "a")), "accepted") << rank;
  EXPECT_FALSE(detect(stepOf("0", "a"), /*ranksGiven=*/true).isRank());
}

TEST(Launch, RanksOfTorchrunMeetBesideItsAgent) {
  Variables variables = {{"RANK", "1"},        {"LOCAL_RANK", "1"},      {"WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "h"}, {"MASTER_PORT", "29500"}, {"SLURM_NTASKS", "2"}};
  Launch launch = detect(variables);
  ASSERT_TRUE(launch.tcp);
  EXPECT_EQ(launch.tcp->rank, 1);
  EXPECT_EQ(launch.tcp->ranks, 2);
  EXPECT_EQ(launch.tcp->host, "h");
  EXPECT_EQ(launch.tcp->port, 29501);
  // Its agent may itself be of another launcher.
  variables["TORCHELASTIC_RUN_ID"] = "other";
  Variables within = variables;
  for (const char *outer :
       {"PMIX_RANK", "PMI_RANK", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"})
    within[outer] = "1";
  within["TORCHELASTIC_RESTART_COUNT"] = "2"; // of which agents have counts of their own
  ASSERT_TRUE(detect(within).tcp);
  EXPECT_EQ(detect(within).tcp->key, detect(variables).tcp->key);
  Variables alone = stepOf("1", "a");
  alone.insert(variables.begin(), variables.end());
  alone["RANK"] = "0";
  alone["WORLD_SIZE"] = "1";
  EXPECT_FALSE(detect(alone).isRank());
  EXPECT_NE(detect(variables).tcp->key, launch.tcp->key);
  for (const auto &[name, value] :
       Variables{{"RANK", "2"}, {"MASTER_PORT", "65535"}, {"MASTER_ADDR", ""}}) {
    Variables wrong = variables;
    wrong[name] = value;
    EXPECT_NE(refusal(wrong), "accepted") << name;
  }
}

TEST(Launch, OwnRanksAreBelievedInsideAnything) {
  MeetingPlace place{1, 3, "", 4567, 89};
  Variables variables = stepOf("0", "a");
  variables["OMPI_COMM_WORLD_SIZE"] = "2";
  for (const std::string &variable : launchVariables(place)) {
    size_t equals = variable.find('=');
    variables[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  Launch launch = detect(variables, /*ranksGiven=*/true);
  ASSERT_TRUE(launch.tcp);
  EXPECT_EQ(launch.tcp->rank, 1);
  EXPECT_EQ(launch.tcp->ranks, 3);
  EXPECT_EQ(launch.tcp->host, "127.0.0.1");
  EXPECT_EQ(launch.tcp->port, 4567);
}

TEST(Launch, ABatchScriptThatForgetsSrunIsRefusedUnlessTheUserSaysHowMany) {
  Variables batch = {{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}};
  EXPECT_EQ(refusal(batch),
            "SLURM_NTASKS=4 promises 4 ranks, but no launcher says which of them this process is: "
            "use srun dlc-run, or dlc-run -np 4 (-np 1 for one rank alone)");
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
    makeControlPlane({true, {}, 2, "OMPI_COMM_WORLD_SIZE=2"}, "/nonexistent/module.so", 1);
    FAIL() << "no error";
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/module.so"), std::string::npos);
  }
}

} // namespace
} // namespace dlc::rt::test
