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

TEST(Checkpoint, KeepsStatisticsAndNamesOfClasses) {
  DataRecord data{{{"data.image.mean", {1, 2}}}, {{"label", {"cat", "d\xf6g"}}}}; // no UTF-8
  TensorFile file;
  data.addTo(file);
  DataRecord read = DataRecord::of(file, "w.safetensors");
  EXPECT_EQ(read.statistics, data.statistics);
  auto compared = [&](const Dataset::Classes &given) {
    return test::errorOf(
        [&] { requireSameClasses(read.classes, "training", given, "--data", "do so"); });
  };
  EXPECT_EQ(compared(data.classes), "no error");
  EXPECT_EQ(compared({}), "no error");
  EXPECT_EQ(compared({{"label", {"cat"}}}),
            "the folders that number the classes of label differ: --data lacks d\ufffdg; do so");
  EXPECT_EQ(compared({{"label", {"bat", "cat"}}}),
            "the folders that number the classes of label differ: training lacks bat; do so");
  file.metadata["dlc.classes"] = "[1]";
  EXPECT_EQ(test::errorOf([&] { (void)DataRecord::of(file, "w.safetensors"); }),
            "'w.safetensors': its metadata dlc.classes are no lists of names: take another copy of "
            "the file");
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

/// A head of other classes, of another name: what is left fits.
TEST(Checkpoint, LeavesOutWhatPatternsMatch) {
  TensorFile file;
  file.tensors["conv.weight"].shape = {4, 1, 3, 3};
  file.tensors["conv.bias"].shape = {2};
  file.tensors["fc.bias"].shape = {7};
  std::vector<VariableInfo> variables = wanted();
  EXPECT_NE(test::errorOf([&] {
              checkTensors(variables, file, "w", "tiny", true);
            }).find("or train from the rest with --init-except conv.weight,fc.bias"),
            std::string::npos);
  leaveOut({"*.weight", "fc.*"}, variables, file, "w");
  ASSERT_EQ(variables.size(), 1u);
  EXPECT_EQ(variables[0].name, "conv.bias");
  EXPECT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(test::errorOf([&] { checkTensors(variables, file, "w", "tiny", true); }), "no error");
}

TEST(Checkpoint, NamesPatternsThatMatchNothing) {
  std::vector<VariableInfo> variables = wanted();
  TensorFile file;
  file.tensors["conv.weight"].shape = {2, 1, 3, 3};
  EXPECT_EQ(test::errorOf([&] { leaveOut({"*.bia"}, variables, file, "w"); }),
            "--init-except *.bia matches nothing of the model and of 'w'; near it are 'conv.bias', "
            "'conv.weight'");
}

TEST(Checkpoint, SaysThatTheOptimizerIsAnother) {
  std::vector<VariableInfo> variables = wanted();
  variables.push_back({"conv.bias.m", "optimizer.m.conv.bias", {2}, artifact::VariableKind::Slot});
  TensorFile file;
  file.tensors["conv.weight"].shape = {2, 1, 3, 3};
  file.tensors["conv.bias"].shape = {2};
  file.tensors["optimizer.momentum.conv.bias"].shape = {2};
  EXPECT_EQ(test::errorOf([&] { checkTensors(variables, file, "last", "tiny"); }),
            "'last' was trained with another optimizer, or in another precision, than model tiny "
            "has: it lacks optimizer.m.conv.bias (2); compile the model as it was then, or start a "
            "new run from the weights with --init");
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
  state.stepsPerEpoch = 7;
  state.recipe = {{"lr", 0.1}, {"seed", 0xFFFFFFFFFFFFFFFF}};
  state.ranks = 2;
  state.batch = 8;
  state.scheduleHash = "123";
  state.monitor = {false, 0, true, 0.1 + 0.2, 1, 1};
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

/// 17 steps, an epoch of 4 among them, before epochs of 7 steps began within the second one.
TEST(RunState, EpochsOfOtherStepsSurvive) {
  RunState state;
  state.since = {17, 1, 2};
  state.stepsPerEpoch = 7;
  state.step = 23;
  state.epoch = 2;
  state.stepInEpoch = 1;
  state.monitor.epochsWithout = 2;
  EXPECT_EQ(RunState::fromJson(state.toJson(), "x").toJson(), state.toJson());
}

TEST(RunState, ForeignTextIsAnError) {
  EXPECT_THROW(RunState::fromJson("{}", "x"), Error);
  EXPECT_THROW(RunState::fromJson("nonsense", "x"), Error);
  auto sound = nlohmann::json::parse(RunState().toJson());
  for (const char *key : {"step", "epoch", "step_in_epoch", "steps_per_epoch", "world", "batch"})
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
  state.stepsPerEpoch = 7;
  state.monitor.epochsWithout = 2;
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
  expect("/step_in_epoch", "2", "sample_position is 3, wanted step_in_epoch x batch x world");
  expect("/world", "1000000000", "sample_position is 3, wanted step_in_epoch x batch x world");
  expect("/told", "1", "told is 1, wanted true or false");
  expect("/schedule_hash", "[]", "schedule_hash is [], wanted a text");
  expect("/monitor", "7", "it lacks monitor.has_best");
  expect("/monitor/best", "null", "monitor.best is null, wanted a number");
  expect("/monitor/best_epoch", "-1",
         "monitor.best_epoch is -1, wanted a whole number from 0 to 1000000000");
  for (auto [name, values, wanted] :
       {std::tuple("lr", "[-1, \"a\", 1e39]", "a finite number, 0 or more"),
        std::tuple("scale-epochs", "1", "true or false"),
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

/// Two entries that cannot both have been written, each within its own bounds.
TEST(RunState, WhatContradictsEachOtherIsNamed) {
  RunState state;
  state.step = 17;
  state.epoch = 2;
  state.stepInEpoch = 3;
  state.stepsPerEpoch = 7;
  state.batch = 6;
  state.monitor = {false, 0, true, 0.5, 1, 1};
  state.plateaus.emplace_back();
  state.totals = {1, 2};
  state.overrides = {{{"after_step", 5}, {"name", "lr"}, {"was", 1}, {"now", 2}},
                     {{"after_step", 9}, {"name", "lr"}, {"was", 2}, {"now", 3}}};
  state.recipe = {{"batch", 3}, {"accumulate", 2}, {"schedule", {{{"name", "reduce_on_plateau"}}}}};
  using Json = nlohmann::json;
  auto expect = [](const RunState &sound, const Json &patch, const std::string &why) {
    Json edited = Json::parse(sound.toJson());
    edited.merge_patch(patch);
    EXPECT_EQ(test::errorOf([&] { RunState::fromJson(edited.dump(), "x"); }),
              why.empty() ? "no error"
                          : "'x' is no checkpoint of a run: " + why +
                                "; start a new run from its weights with --init");
  };
  expect(state, Json::object(), "");
  const std::string place = ", wanted 17: epoch is 2, step_in_epoch 3, steps_per_epoch 7";
  expect(state, {{"step", 2}}, "step is 2" + place);
  expect(state, {{"step", 18}}, "step is 18" + place);
  expect(state, {{"epoch", 3}},
         "step is 17, wanted 24: epoch is 3, step_in_epoch 3, steps_per_epoch 7");
  expect(state, {{"steps_per_epoch", 8}},
         "step is 17, wanted 19: epoch is 2, step_in_epoch 3, steps_per_epoch 8");
  expect(state, {{"step_in_epoch", 10}, {"sample_position", 60}, {"epoch", 1}},
         "step_in_epoch is 10, wanted at most steps_per_epoch 7");
  auto since = [](int64_t step, int64_t epoch, int64_t stepInEpoch) {
    return Json{{"steps_per_epoch_since",
                 {{"step", step}, {"epoch", epoch}, {"step_in_epoch", stepInEpoch}}}};
  };
  expect(state, since(7, 1, 0), "");
  expect(state, since(8, 1, 0),
         "step is 17, wanted 18: epoch is 2, step_in_epoch 3, steps_per_epoch 7 since step 8");
  expect(state, since(20, 2, 6),
         "step is 17, wanted at least 20: epoch is 2, step_in_epoch 3, steps_per_epoch 7 since "
         "step 20");
  expect(state, since(3, 0, 8),
         "steps_per_epoch_since.step_in_epoch is 8, wanted at most steps_per_epoch 7");
  expect(state, since(2, 2, 2),
         "steps_per_epoch_since.step is 2, wanted as many as its epoch 2 and step_in_epoch 2 take");
  expect(state, {{"monitor", {{"best_epoch", 3}}}},
         "monitor.best_epoch is 3, wanted an epoch that has been: epoch is 2");
  expect(state, {{"monitor", {{"best_epoch", 0}}}},
         "monitor.has_best is true, wanted false: best_epoch is 0");
  expect(state, {{"monitor", {{"has_best", false}}}},
         "monitor.has_best is false, wanted true: best_epoch is 1");
  expect(state, {{"monitor", {{"epochs_without", 0}}}},
         "monitor.epochs_without is 0, wanted 1: epoch is 2, best_epoch 1");
  expect(state, {{"batch", 9}, {"sample_position", 27}},
         "batch is 9, wanted 6, recipe.batch x recipe.accumulate");
  expect(state, {{"plateaus", Json::array()}},
         "plateaus is [], wanted 1 of them, one for each reduce_on_plateau of recipe.schedule");
  Json plateaus = Json::parse(state.toJson())["plateaus"];
  plateaus[0]["bad_epochs"] = 3;
  expect(state, {{"plateaus", plateaus}},
         "plateaus[0].bad_epochs is 3, wanted at most the epochs done: epoch is 2");
  Json overrides = state.overrides;
  overrides[0]["after_step"] = 12;
  expect(state, {{"overrides", overrides}},
         "overrides[1].after_step is 9, wanted a step from 12, that of the one before, to 17, the "
         "run's step");
  overrides[1]["after_step"] = 18;
  expect(state, {{"overrides", overrides}},
         "overrides[1].after_step is 18, wanted a step from 12, that of the one before, to 17, the "
         "run's step");
  RunState between = state;
  between.step = 14;
  between.stepInEpoch = 0;
  between.totals.clear();
  expect(between, Json::object(), "");
  expect(between, {{"told", false}}, "told is false, wanted true: step_in_epoch is 0");
  expect(between, {{"totals", {0, 0}}},
         "totals is [0,0], wanted an empty list: step_in_epoch is 0");
}

} // namespace
} // namespace dlc::rt
