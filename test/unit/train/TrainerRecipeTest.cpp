// What determines a run: what resuming takes from the checkpoint, refuses, records and says.

#include "runtime/train/Checkpoint.h"
#include "test/unit/train/TrainerTest.h"

namespace dlc::rt {
namespace {

void setOptimizer(artifact::ArtifactT &artifact, double rate, const char *name = "sgd") {
  artifact.training->optimizer = std::make_unique<artifact::CallT>();
  artifact.training->optimizer->name = name;
  auto argument = std::make_unique<artifact::ArgumentT>();
  argument->name = "lr";
  argument->floats = {rate};
  artifact.training->optimizer->arguments.push_back(std::move(argument));
}

TEST_P(TrainerTest, WhatContradictsTheRunIsRefused) {
  TrainOptions run = options("run");
  run.learningRate = 0.01;
  run.shuffle = false;
  run.epochs = 1;
  train(run);
  std::map<std::string, std::string> before = kept("run");
  TrainOptions other = resumption("run");
  other.epochs = 2;
  other.learningRate = 0.4;
  other.shuffle = true;
  other.seed = 6;
  std::string message = failure(other);
  EXPECT_NE(message.find("/run/last.safetensors' was trained otherwise: lr was 0.01, is 0.4; seed "
                         "was 5, is 6; shuffle was false, is true; resume it as it was, or add "
                         "--override lr,seed,shuffle"),
            std::string::npos)
      << message;
  EXPECT_EQ(kept("run"), before);
  other.learningRate = 0.01;
  other.shuffle = false;
  other.seed = 5;
  EXPECT_EQ(failure(other), "no error");
  other.overrides = {"rate"};
  EXPECT_NE(failure(other).find("--override does not know 'rate'; what determines a run is lr, "),
            std::string::npos);
}

TEST_P(TrainerTest, WhatIsOverriddenIsRecordedAndStays) {
  TrainOptions run = options("run");
  run.learningRate = 0.01;
  run.epochs = 1;
  train(run);
  TrainOptions other = resumption("run");
  other.epochs = 2;
  other.learningRate = 0.4;
  other.overrides = {"lr"};
  train(other);
  EXPECT_NE(printed().find("note: lr was 0.01, is 0.4 from step 8 on (--override)\n"),
            std::string::npos)
      << printed();
  TrainOptions third = resumption("run");
  third.epochs = 3;
  train(third);
  std::istringstream log(test::contentOf(directory / "run/log.jsonl"));
  std::vector<double> rates;
  std::string changes;
  for (std::string line; std::getline(log, line);) {
    Record record = Record::parse(line);
    if (record["event"] == "step")
      rates.push_back(record["lr"]);
    else if (record["event"] == "override")
      changes += line;
  }
  std::vector<double> wanted(7, 0.01);
  wanted.resize(21, 0.4);
  EXPECT_EQ(rates, wanted);
  EXPECT_EQ(changes, R"({"event":"override","step":7,"name":"lr","was":0.01,"now":0.4})");
  Record config = configuration("run");
  EXPECT_EQ(config["recipe"]["lr"], 0.4);
  EXPECT_EQ(config["overrides"].dump(), R"([{"after_step":7,"name":"lr","now":0.4,"was":0.01}])");
}

TEST_P(TrainerTest, AnOverrideThatChangesNothingSaysSo) {
  TrainOptions run = options("run");
  run.learningRate = 0.01;
  run.epochs = 1;
  train(run);
  std::map<std::string, std::string> before = kept("run");
  TrainOptions other = resumption("run");
  other.learningRate = 0.4;
  other.seed = run.seed;
  other.overrides = {"lr", "seed"};
  EXPECT_EQ(failure(other, 2), "nothing to do with --override lr,seed: the run has done 7 steps, "
                               "1 whole epoch, and was to do 1 epoch; go on with --steps above 7 "
                               "or --epochs above 1");
  EXPECT_EQ(kept("run"), before);
  other.epochs = 2;
  train(other);
  EXPECT_NE(printed().find("note: --override seed changes nothing: seed is what it was; "),
            std::string::npos)
      << printed();
  EXPECT_EQ(printed().find("--override lr changes nothing"), std::string::npos) << printed();
}

/// Its rate, too, unless the command line gave another.
TEST_P(TrainerTest, AnotherModelIsRefused) {
  edit = [](auto &artifact) { setOptimizer(artifact, 0.25); };
  TrainOptions run = options("run");
  run.epochs = 1;
  train(run);
  TrainOptions rest = resumption("run");
  rest.epochs = 2;
  edit = [](auto &artifact) { setOptimizer(artifact, 0.5); };
  EXPECT_NE(failure(rest).find("otherwise: optimizer.lr was 0.25, is 0.5; resume it as it was, or "
                               "add --override optimizer"),
            std::string::npos)
      << failure(rest);
  EXPECT_EQ(failure(rest).find("--init"), std::string::npos) << failure(rest);
  edit = [](auto &artifact) { setOptimizer(artifact, 0.25, "adam"); };
  EXPECT_NE(failure(rest).find("otherwise: optimizer.name was sgd, is adam; resume it as it was, "
                               "or add --override optimizer; --init starts a new run from its "
                               "weights"),
            std::string::npos)
      << failure(rest);
  edit = [](auto &artifact) { setOptimizer(artifact, 0.5); };
  rest.overrides = {"optimizer"};
  train(rest);
  EXPECT_EQ(configuration("run")["recipe"]["lr"], 0.5);
  rest.overrides.clear();
  rest.epochs = 3;
  edit = [](auto &artifact) {
    setOptimizer(artifact, 0.5);
    artifact.target->math = "strict";
  };
  EXPECT_NE(failure(rest).find("math was none, is strict"), std::string::npos) << failure(rest);
}

TEST_P(TrainerTest, DataMayMoveButNotChange) {
  TrainOptions run = options("run");
  run.epochs = 1;
  train(run);
  TrainOptions rest = resumption("run");
  rest.epochs = 2;
  std::filesystem::rename(directory / "x.npy", directory / "moved.npy");
  EXPECT_NE(failure(rest).find("cannot open '" + (directory / "x.npy")), std::string::npos)
      << failure(rest);
  rest.data = {{"x", directory / "moved.npy"}};
  EXPECT_EQ(failure(rest), "no error");
  rest.epochs = 3;
  writeData({9, 2, 2, 2, 2, 2, 2});
  EXPECT_NE(failure(rest).find("otherwise: data.loss was "), std::string::npos) << failure(rest);
  EXPECT_EQ(failure(rest).find("data.x"), std::string::npos);
  rest.overrides = {"data"};
  EXPECT_EQ(failure(rest), "no error");
}

TEST_P(TrainerTest, ACheckpointWithoutARecipeIsRefused) {
  TrainOptions run = options("run");
  train(run);
  std::string last = run.runDirectory + "/last.safetensors";
  TensorFile file = readSafetensors(last);
  Record state = Record::parse(file.metadata["dlc.run"]);
  state.erase("recipe");
  file.metadata["dlc.run"] = state.dump();
  writeSafetensors(last, file);
  EXPECT_NE(failure(resumption("run")).find("does not say what its run was trained with"),
            std::string::npos);
}

/// Edits the run's state in a checkpoint.
void editState(const std::string &path, const std::function<void(Record &)> &edit) {
  TensorFile file = readSafetensors(path);
  Record state = Record::parse(file.metadata["dlc.run"]);
  edit(state);
  file.metadata["dlc.run"] = state.dump();
  writeSafetensors(path, file);
}

TEST_P(TrainerTest, TotalsThatDoNotFitAreRefused) {
  std::string last = directory / "run/last.safetensors";
  TrainOptions run = options("run");
  run.steps = 3;
  train(run);
  editState(last, [](Record &state) { state["totals"].erase(0); });
  run.steps = 9;
  run.resume = true;
  EXPECT_EQ(failure(run, 2),
            "'" + last +
                "' was saved within an epoch, and the length of its totals is 1; model copying "
                "wants 2, a sum and a count of each loss and metric: give the model that it was "
                "trained with, or start a new run from its weights with --init");
  run.runDirectory = directory / "whole";
  run.resume = false;
  run.steps = 7;
  train(run);
  last = directory / "whole/last.safetensors";
  editState(last, [](Record &state) { state["totals"] = {0, 0, 0}; });
  run.resume = true;
  run.steps = 9;
  EXPECT_EQ(failure(run, 2), "'" + last +
                                 "' is no checkpoint of a run: totals is [0,0,0], wanted an empty "
                                 "list: step_in_epoch is 0; start a new run from its weights with "
                                 "--init");
}

/// The state agrees with itself, but not with the data.
TEST_P(TrainerTest, EpochsThatTheDataDoNotHaveAreRefused) {
  std::string last = directory / "run/last.safetensors";
  TrainOptions run = options("run");
  run.epochs = 1;
  train(run);
  editState(last, [](Record &state) { state["step"] = state["steps_per_epoch"] = 5; });
  run = resumption("run");
  run.epochs = 2;
  for (int ranks : {1, 2})
    EXPECT_EQ(failure(run, ranks),
              "'" + last +
                  "' is no checkpoint of this run: steps_per_epoch is 5, wanted 7, what the data "
                  "give to batch 1 and world 1; start a new run from its weights with --init");
}

/// The first epoch has 3 steps of one rank, 1 of three and 1 of one; 2 ranks begin the second anew.
TEST_P(TrainerTest, ResumesOnOtherRanksAgainAndAgain) {
  TrainOptions run = options("run");
  for (auto [steps, ranks] : {std::pair(3, 1), {4, 3}, {6, 1}, {7, 2}}) {
    run.steps = steps;
    train(run, ranks);
    run = resumption("run");
  }
  run.epochs = 2;
  train(run);
  EXPECT_NE(printed().find("resuming after step 7 of 12\n"), std::string::npos) << printed();
}

/// Whole steps of the new size are what is done of the epoch: of 5 samples, two steps of 2, and the
/// fifth is trained on again. The parameter is the sum of the last step's samples, of which the
/// epoch has 0 to 6.
TEST_P(TrainerTest, ResumesWithOtherNumbersOfBatchesAStep) {
  TrainOptions run = options("run");
  run.shuffle = false;
  std::vector<float> sums;
  for (auto [steps, batches] : {std::pair(5, 1), {6, 2}, {7, 1}, {8, 3}}) {
    run.steps = steps;
    run.accumulate = batches;
    train(run, 1, 0, test::Copying::Accumulated);
    std::string last = directory / "run/last.safetensors";
    sums.push_back(readSafetensors(last).tensors.at("weight").values[0]);
    run = resumption("run");
    run.overrides = {"accumulate"};
  }
  EXPECT_EQ(sums, (std::vector<float>{4, 4 + 5, 6, 0 + 1 + 2}));
  EXPECT_NE(printed().find("resuming after step 7 of 8\n"), std::string::npos) << printed();
}

/// Of the epoch's losses 1 to 7 the fifth counts twice, and the first once more in the last step,
/// which goes round to it.
TEST_P(TrainerTest, LossesOfStepsThatAreDoneAgainCountTwice) {
  writeData({1, 2, 3, 4, 5, 6, 7});
  TrainOptions run = options("run");
  run.shuffle = false;
  run.steps = 5;
  train(run, 1, 0, test::Copying::Accumulated);
  run = resumption("run");
  run.epochs = 1;
  run.accumulate = 2;
  run.overrides = {"accumulate"};
  train(run, 1, 0, test::Copying::Accumulated);
  EXPECT_NE(printed().find("epoch 1/1  loss 3.778  "), std::string::npos) << printed();
}

/// The samples are trained on again, and their losses count once.
TEST_P(TrainerTest, LessThanAStepBeginsTheEpochAnew) {
  writeData({1, 2, 3, 4, 5, 6, 7});
  TrainOptions run = options("run");
  run.steps = 1;
  train(run);
  run = resumption("run");
  run.epochs = 1;
  train(run, samples);
  EXPECT_NE(printed().find("epoch 1/1  loss 4  "), std::string::npos) << printed();
}

TEST_P(TrainerTest, ABestEpochWhoseCheckpointIsGoneIsNamed) {
  train(options("run"));
  std::string best = directory / "run/best.safetensors", last = directory / "run/last.safetensors";
  std::filesystem::remove(best);
  EXPECT_EQ(failure(resumption("run"), 2),
            "cannot resume: there is no '" + best +
                "', the checkpoint of the best epoch (1); put it back, or copy '" + last +
                "' there, to do without that epoch's weights");
  test::writeFile(best, test::contentOf(last).substr(0, 100));
  EXPECT_EQ(failure(resumption("run"), 2).find("cannot resume: '" + best + "' cannot be read"), 0u);
  std::filesystem::remove(best);
  std::filesystem::copy(last, best);
  EXPECT_EQ(failure(resumption("run"), 2), "no error");
}

TEST_P(TrainerTest, ADamagedConfigurationIsNamed) {
  TrainOptions run = options("run");
  run.epochs = 1;
  train(run);
  std::string config = directory / "run/config.json", whole = test::contentOf(config);
  auto refused = [&](const std::string &content, const std::string &why) {
    test::writeFile(config, content);
    EXPECT_EQ(failure(resumption("run"), 2),
              "'" + config + "' is damaged" +
                  (why.empty() ? "; " : ": " + why + "; mend that, or ") +
                  "remove it, and say again what it said: --data, --val, --epochs, --steps")
        << content;
  };
  for (const std::string &torn :
       {whole.substr(0, whole.size() / 2), std::string(), std::string("[]")})
    refused(torn, "");
  refused("{}", "it lacks data");
  auto refusedKey = [&](const std::string &key, const std::string &value, const std::string &shown,
                        const std::string &wanted) {
    Record edited = Record::parse(whole);
    edited[key] = Record::parse(value);
    refused(edited.dump(), key + " is " + shown + ", wanted " + wanted);
  };
  for (const char *key : {"epochs", "steps"})
    for (const char *value : {"1e+300", "9223372036854775808", "-1", "0", "1.5", "\"2\"", "null"})
      refusedKey(key, value, value, "a whole number from 1 to 1000000000");
  for (const char *key : {"data", "val"})
    for (const char *value : {"\"s\"", "{\"x\":1}", "[\"x\"]", "null"})
      refusedKey(key, value, value, R"(an object of names and paths, as {"image": "image.npy"})");
  refusedKey("init", "7", "7", "a path, or \"\" for none");
  refusedKey("init", "[\"" + std::string(1000, 'x') + "\"]", "[\"" + std::string(58, 'x') + "...",
             "a path, or \"\" for none");
  refusedKey("init_except", "7", "7", "a list");
  std::filesystem::remove(config);
  std::filesystem::create_directory(config);
  EXPECT_EQ(
      failure(resumption("run"), 2)
          .find("'" + config + "' is a directory, in the place of a file of the run; remove it"),
      0u);
  std::filesystem::remove(config);
  TrainOptions rest = options("run");
  rest.resume = true;
  EXPECT_EQ(failure(rest), "no error");
}

TEST_P(TrainerTest, SaysWhatTheScheduleCountsTo) {
  auto startOf = [&](const std::string &name, std::optional<int64_t> epochs) {
    TrainOptions run = options(name);
    run.steps = 3;
    run.epochs = epochs;
    train(run);
    return printed();
  };
  EXPECT_EQ(startOf("constant", {}).find("the schedule"), std::string::npos) << printed();
  edit = addCosine;
  EXPECT_NE(startOf("steps", {})
                .find("note: the schedule counts to step 3, as --steps says; "
                      "--epochs beside it lets it count to their end\n"),
            std::string::npos)
      << printed();
  EXPECT_NE(startOf("epochs", 2).find("note: the schedule counts to step 14\n"), std::string::npos)
      << printed();
}

/// Cosine falls to 0 over the first run's length, unless told to count anew.
TEST_P(TrainerTest, TheScheduleKeepsItsLength) {
  edit = [](auto &artifact) {
    setOptimizer(artifact, 1);
    addCosine(artifact);
  };
  TrainOptions run = options("run");
  run.epochs = 1;
  train(run);
  TrainOptions rest = resumption("run");
  rest.epochs = 2;
  rest.steps = 8;
  train(rest);
  EXPECT_NE(printed().find("note: the schedule counts to step 7 and stays there"),
            std::string::npos)
      << printed();
  EXPECT_NE(test::contentOf(directory / "run/log.jsonl")
                .find(R"("step":8,"epoch":2,"loss":2.0,"lr":0.0,)"),
            std::string::npos)
      << test::contentOf(directory / "run/log.jsonl");
  rest.steps.reset();
  rest.overrides = {"length"};
  train(rest);
  EXPECT_EQ(configuration("run")["recipe"]["length"].dump(), R"({"epochs":2})");
  EXPECT_EQ(test::contentOf(directory / "run/log.jsonl")
                .find(R"("step":9,"epoch":2,"loss":2.0,"lr":0.0,)"),
            std::string::npos);
}

} // namespace
} // namespace dlc::rt
