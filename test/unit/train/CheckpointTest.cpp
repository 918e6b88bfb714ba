#include "runtime/train/Checkpoint.h"
#include "test/unit/ErrorOf.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace dlc::rt {
namespace {

std::vector<VariableInfo> wanted() {
  return {{"conv.weight", "conv.weight", {2, 1, 3, 3}}, {"conv.bias", "conv.bias", {2}}};
}

std::string problem(const TensorFile &file) {
  return test::errorOf([&] { checkTensors(wanted(), file, "w.safetensors", "tiny"); });
}

TEST(Checkpoint, AcceptsTheModelsTensorsAndKnownExtras) {
  TensorFile file;
  file.tensors["conv.weight"].shape = {2, 1, 3, 3};
  file.tensors["conv.bias"].shape = {2};
  file.tensors["optimizer.m.conv.bias"].shape = {2};
  file.tensors["data.image.mean"].shape = {1};
  file.tensors["bn.num_batches_tracked"];
  EXPECT_EQ(problem(file), "no error");
}

TEST(Checkpoint, ListsNamesAndShapesThatDoNotFit) {
  TensorFile file;
  file.tensors["conv.weight"].shape = {4, 1, 3, 3};
  file.tensors["head.bias"].shape = {7};
  EXPECT_EQ(problem(file), "'w.safetensors' does not fit model tiny: it lacks conv.bias (2); "
                           "conv.weight is 4 x 1 x 3 x 3, wanted 2 x 1 x 3 x 3; the model has no "
                           "head.bias (7); give the model that it was trained with, and its "
                           "parameters (--set of dlc compile)");
}

TEST(Checkpoint, SaysThatTheOptimizerIsAnother) {
  std::vector<VariableInfo> variables = wanted();
  variables.push_back({"conv.bias.m", "optimizer.m.conv.bias", {2}, artifact::VariableKind::Slot});
  TensorFile file;
  file.tensors["conv.weight"].shape = {2, 1, 3, 3};
  file.tensors["conv.bias"].shape = {2};
  file.tensors["optimizer.momentum.conv.bias"].shape = {2};
  EXPECT_EQ(test::errorOf([&] { checkTensors(variables, file, "last", "tiny"); }),
            "'last' was trained with another optimizer than model tiny has: it lacks "
            "optimizer.m.conv.bias (2); compile the model with that optimizer, or start a new run "
            "from the weights with --init");
}

TEST(Checkpoint, LongListsAreCut) {
  TensorFile file;
  file.tensors["conv.weight"].shape = {2, 1, 3, 3};
  file.tensors["conv.bias"].shape = {2};
  for (int i = 0; i < 9; ++i)
    file.tensors["extra" + std::to_string(i)].shape = {1};
  EXPECT_NE(problem(file).find("extra5 (1) and 3 more"), std::string::npos) << problem(file);
}

TEST(RunState, SurvivesTheRoundTripExactly) {
  RunState state;
  state.step = 17;
  state.epoch = 2;
  state.stepInEpoch = 3;
  state.recipe = {{"lr", 0.1}, {"seed", 0xFFFFFFFFFFFFFFFF}};
  state.ranks = 2;
  state.batch = 8;
  state.scheduleHash = "123";
  state.monitor = {false, 0, true, 0.1 + 0.2, 1, 4};
  state.plateaus.push_back({0.5, 3, 0.25, true, 1.0 / 3, 2});
  state.totals = {0.1, std::numeric_limits<double>::infinity(), NAN};
  RunState read = RunState::fromJson(state.toJson(), "x");
  EXPECT_EQ(read.toJson(), state.toJson());
  EXPECT_EQ(read.recipe, state.recipe);
  EXPECT_EQ(read.monitor.best, state.monitor.best);
  EXPECT_EQ(read.plateaus[0].scale, 0.25);
  EXPECT_TRUE(std::isnan(read.totals[2]));
  EXPECT_EQ(read.samplePosition(), 48);
}

TEST(RunState, ForeignTextIsAnError) {
  EXPECT_THROW(RunState::fromJson("{}", "x"), Error);
  EXPECT_THROW(RunState::fromJson("nonsense", "x"), Error);
  auto sound = nlohmann::json::parse(RunState().toJson());
  for (const char *key : {"step", "epoch", "step_in_epoch", "world", "batch"})
    for (const char *value : {"-1", "1.5", "1e300", "9223372036854775808", "\"1\""}) {
      nlohmann::json damaged = sound;
      damaged[key] = nlohmann::json::parse(value);
      EXPECT_EQ(test::errorOf([&] {
                  RunState::fromJson(damaged.dump(), "x");
                }).find("'x' is no checkpoint of a run: "),
                0u)
          << key << " " << value;
    }
}

/// Each entry that somebody has edited is named.
TEST(RunState, WhatIsWrongIsNamed) {
  RunState state;
  state.step = 17;
  state.epoch = 2;
  state.stepInEpoch = 3;
  state.plateaus.emplace_back();
  state.totals = {1, 2};
  state.overrides = {{{"after_step", 5}, {"name", "lr"}, {"was", 1}, {"now", 2}}};
  const auto sound = nlohmann::json::parse(state.toJson());
  auto expect = [&](const char *at, const char *value, const std::string &why) {
    nlohmann::json edited = sound;
    edited[nlohmann::json::json_pointer(at)] = nlohmann::json::parse(value);
    EXPECT_EQ(
        test::errorOf([&] { RunState::fromJson(edited.dump(), "x"); }),
        (why.empty() ? "'x' is no checkpoint of a run" : "'x' is no checkpoint of a run: " + why) +
            "; start a new run from its weights with --init");
  };
  expect("/step", "1.5", "step is 1.5, wanted a whole number from 0 to 1000000000000000");
  expect("/step", "2", "step is 2, wanted what agrees with epoch 2 and step_in_epoch 3");
  expect("/epoch", "17", "step is 17, wanted what agrees with epoch 17 and step_in_epoch 3");
  expect("/step_in_epoch", "2", "sample_position is 3, wanted step_in_epoch x batch x world");
  expect("/world", "1000000000", "sample_position is 3, wanted step_in_epoch x batch x world");
  expect("/told", "1", "told is 1, wanted true or false");
  expect("/schedule_hash", "[]", "schedule_hash is [], wanted a text");
  expect("/monitor", "7", "it lacks monitor.has_best");
  expect("/monitor/best", "null", "monitor.best is null, wanted a number");
  expect("/monitor/best_epoch", "-1",
         "monitor.best_epoch is -1, wanted a whole number from 0 to 1000000000");
  expect("/monitor/best_epoch", "3", "monitor.best_epoch is 3, wanted an epoch that has been");
  for (auto [name, values, wanted] :
       {std::tuple("lr", "[-1, \"a\", 1e39]", "a finite number, 0 or more"),
        std::tuple("scale-lr", "[\"foo\", 1]", "linear or none"),
        std::tuple("accumulate", "[0, -1, 1.5, 5000, \"x\"]", "a whole number from 1 to 4096"),
        std::tuple("seed", "[-7, 1.5, \"x\"]", "a whole number from 0 to below 2^64"),
        std::tuple("shuffle", "[3]", "true or false"),
        std::tuple("on-nan", "[\"foo\", 7]", "stop or continue"),
        std::tuple("length", "[-4, \"q\"]", "epochs or steps")})
    for (const nlohmann::json &value : nlohmann::json::parse(values))
      expect("/recipe", nlohmann::json({{name, value}}).dump().c_str(),
             "recipe." + std::string(name) + " is " + value.dump() + ", wanted " + wanted);
  expect("/recipe", R"({"length": {"steps": 0}})",
         "recipe.length.steps is 0, wanted a whole number from 1 to 1000000000");
  expect("/recipe", R"({"length": {}})", "it lacks recipe.length.epochs");
  expect("/plateaus", "\"none\"", "plateaus is \"none\", wanted a list");
  expect("/plateaus/0", "3", "it lacks plateaus[0].scale");
  expect("/plateaus/0/scale", "\"1\"", "plateaus[0].scale is \"1\", wanted a number");
  expect("/totals/1", "1.5", "totals[1] is 1.5, wanted the bits of a number, as a whole number");
  expect("/overrides/0/name", "0", "overrides[0].name is 0, wanted a text");
  expect("", "7", "");
}

} // namespace
} // namespace dlc::rt
