#include "runtime/train/Trainer.h"
#include "runtime/core/Error.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CollectiveError.h"
#include "runtime/train/FileLock.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"
#include "test/unit/train/CopyingArtifact.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

namespace dlc::rt {
namespace {

std::string contentOf(const std::string &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Runs whose parameter ends as the last sample trained on.
class TrainerTest : public ::testing::Test {
protected:
  TrainerTest() { writeData(std::vector<float>(samples, 2)); }

  /// `scale` times the sample's number is its x.
  void writeData(const std::vector<float> &losses, float scale = 1) {
    std::vector<float> x(samples * test::copiedElements);
    for (size_t i = 0; i < x.size(); ++i) {
      size_t sample = i / test::copiedElements;
      x[i] = scale * static_cast<float>(sample);
    }
    std::string n = std::to_string(samples) + ",";
    test::writeFile(directory / "x.npy", test::npyBytes("<f4", n + " 4", test::bytesOfVector(x)));
    test::writeFile(directory / "loss.npy", test::npyBytes("<f4", n, test::bytesOfVector(losses)));
  }

  TrainOptions options(const std::string &run) {
    TrainOptions options;
    for (const char *name : {"x", "loss"})
      options.data.emplace_back(name, directory / (std::string(name) + ".npy"));
    options.runDirectory = directory / run;
    options.seed = 5;
    return options;
  }

  /// `raised` is a signal that comes before the first step.
  void train(const TrainOptions &options, int ranks = 1, double validation = 0,
             test::Copying how = test::Copying::Reduced, int raised = 0) {
    test::CopyingArtifact copying(validation, how);
    if (edit)
      edit(copying.root.root);
    Artifact artifact(copying.pack(), "copying.dlx");
    StopSignal signals;
    if (raised)
      std::raise(raised);
    runInProcess(ranks, [&](Communicator &communicator) {
      Session session(artifact, communicator, {1, options.seed.value_or(0)});
      Console console(communicator.rank() == 0, false, out);
      Trainer(session, options, console, signals).run();
    });
    std::fflush(out);
  }

  std::string failure(const TrainOptions &options, int ranks = 1,
                      test::Copying how = test::Copying::Reduced) {
    return test::errorOf([&] { train(options, ranks, 0, how); });
  }

  /// What --resume --run DIR alone asks for.
  TrainOptions resumption(const std::string &run) {
    TrainOptions options;
    options.runDirectory = directory / run;
    options.resume = true;
    return options;
  }

  /// All that a run directory keeps but measured times, and events, which hold them throughout.
  std::map<std::string, std::string> kept(const std::string &run) {
    std::map<std::string, std::string> files;
    for (const auto &entry : std::filesystem::directory_iterator(directory / run)) {
      std::string name = entry.path().filename(), content = contentOf(entry.path());
      if (name.ends_with(".jsonl") || name.ends_with(".csv"))
        content = withoutTimes(content, name.ends_with(".jsonl"));
      if (!name.starts_with("events."))
        files[name] = content;
    }
    return files;
  }

  static std::string withoutTimes(const std::string &text, bool isJson) {
    std::istringstream lines(text);
    std::string result;
    for (std::string line; std::getline(lines, line);) {
      Record record = isJson ? Record::parse(line) : Record(line);
      if (isJson) {
        for (const char *key :
             {"seconds", "samples_per_s", "step_ms", "comm_ms", "exposed_comm_ms", "data_wait_ms"})
          record.erase(key);
        line = record.dump();
      } else {
        std::vector<std::string> cells; // seconds and samples_per_s are the last but one and two
        std::istringstream row(line);
        for (std::string cell; std::getline(row, cell, ',');)
          cells.push_back(cell);
        line.clear();
        for (size_t i = 0; i < cells.size(); ++i)
          line += i + 3 == cells.size() || i + 2 == cells.size() ? "" : cells[i] + ",";
      }
      result += line + "\n";
    }
    return result;
  }

  Record configuration(const std::string &run) {
    return Record::parse(contentOf(directory / (run + "/config.json")));
  }

  std::string printed() const { return {buffer, size}; }
  ~TrainerTest() override {
    std::fclose(out);
    std::free(buffer);
  }

  static constexpr int64_t samples = 7;
  test::TemporaryDirectory directory;
  std::function<void(artifact::ArtifactT &)> edit; // of the artifact trained
  char *buffer = nullptr;
  size_t size = 0;
  std::FILE *out = ::open_memstream(&buffer, &size);
};

TEST_F(TrainerTest, KeepsEverythingInTheRunDirectory) {
  TrainOptions run = options("run");
  run.log = directory / "copy.jsonl";
  run.save = directory / "weights";
  run.trace = directory / "trace.json";
  train(run);
  for (const char *name : {"run/last.safetensors", "run/best.safetensors", "run/log.jsonl",
                           "run/log.csv", "run/loss.svg", "run/config.json", "copy.jsonl"})
    EXPECT_TRUE(std::filesystem::exists(directory / name)) << name;
  EXPECT_EQ(printed().find("1 rank x batch 1 = 1 sample a step, 7 steps an epoch\n"), 0u);
  EXPECT_NE(printed().find("epoch 2/2  loss 2"), std::string::npos) << printed();
  TensorFile weights = readSafetensors(directory / "weights");
  EXPECT_TRUE(weights.metadata.empty());
  EXPECT_EQ(weights.tensors.size(), 1u);
  TensorFile last = readSafetensors(directory / "run/last.safetensors");
  EXPECT_EQ(last.tensors.count("optimizer.m.weight"), 1u);
  EXPECT_NE(contentOf(directory / "trace.json").find("\"rank 0\""), std::string::npos);
}

TEST_F(TrainerTest, StepRecordsAreFlat) {
  train(options("run"));
  std::ifstream log(directory / "run/log.jsonl");
  std::string line;
  std::getline(log, line);
  Record record = Record::parse(line);
  for (const char *key : {"event", "step", "epoch", "loss", "lr", "samples_per_s", "step_ms",
                          "exposed_comm_ms", "data_wait_ms"})
    EXPECT_TRUE(record.contains(key)) << key;
  EXPECT_EQ(record["event"], "step");
  EXPECT_EQ(record["loss"], 2.0);
}

void addCosine(artifact::ArtifactT &artifact) {
  auto cosine = std::make_unique<artifact::CallT>();
  cosine->name = "cosine";
  artifact.training->schedule.push_back(std::move(cosine));
}

void setOptimizer(artifact::ArtifactT &artifact, double rate, const char *name = "sgd") {
  artifact.training->optimizer = std::make_unique<artifact::CallT>();
  artifact.training->optimizer->name = name;
  auto argument = std::make_unique<artifact::ArgumentT>();
  argument->name = "lr";
  argument->floats = {rate};
  artifact.training->optimizer->arguments.push_back(std::move(argument));
}

/// Cut anywhere, a resumed run keeps what an uninterrupted one keeps: `best`, too, is of a whole
/// epoch, and the schedule counts to the same end.
TEST_F(TrainerTest, ResumingEqualsNotStopping) {
  writeData({1, 2, 3, 4, 5, 6, 7});
  edit = addCosine;
  for (double validation : {0.0, 0.3}) {
    std::string suffix = validation ? "-validated/run" : "/run"; // pictures show the last name
    TrainOptions whole = options("whole" + suffix);
    whole.save = directory / "whole.safetensors";
    train(whole, 1, validation);
    for (int64_t cut : {2, 3, 5, 6, 7, 8, 9}) {
      std::string run = "part" + std::to_string(cut) + suffix;
      TrainOptions part = options(run);
      part.epochs = 2;
      part.steps = cut;
      train(part, 1, validation);
      TrainOptions rest = resumption(run);
      rest.epochs = 2;
      rest.save = directory / "part.safetensors";
      train(rest, 1, validation);
      EXPECT_EQ(contentOf(rest.save), contentOf(whole.save)) << cut;
      EXPECT_EQ(kept(run), kept("whole" + suffix)) << cut;
    }
  }
}

/// What a run was told need not be told again.
TEST_F(TrainerTest, AnInterruptedRunNeedsNothingToResume) {
  writeData({1, 2, 3, 4, 5, 6, 7});
  edit = addCosine;
  for (const char *name : {"whole/run", "interrupted/run"}) {
    TrainOptions run = options(name);
    run.learningRate = 0.01;
    run.shuffle = false;
    run.scaleRate = true;
    run.stopOnNan = false;
    run.validation = run.data;
    run.epochs = 3;
    bool interrupted = name == std::string("interrupted/run");
    std::string error =
        test::errorOf([&] { train(run, 2, 0, test::Copying::Reduced, interrupted ? SIGTERM : 0); });
    EXPECT_EQ(error == "no error", !interrupted) << error;
  }
  train(resumption("interrupted/run"), 2);
  EXPECT_EQ(kept("interrupted/run"), kept("whole/run"));
  EXPECT_EQ(configuration("interrupted/run")["recipe"]["lr"], 0.01);
}

/// The last epoch was done, but neither validated nor compared.
TEST_F(TrainerTest, AnEpochInterruptedAtItsEndIsEnded) {
  TrainOptions run = options("interrupted/run");
  run.epochs = 1;
  run.validation = run.data;
  std::string error =
      test::errorOf([&] { train(run, samples, 0, test::Copying::Reduced, SIGTERM); });
  EXPECT_NE(error.find("interrupted by SIGTERM after step 1 of 1;"), std::string::npos) << error;
  train(resumption("interrupted/run"), samples);
  run.runDirectory = directory / "whole/run";
  train(run, samples);
  EXPECT_EQ(kept("interrupted/run"), kept("whole/run"));
}

TEST_F(TrainerTest, APartOfAnEpochIsComparedWithNothing) {
  TrainOptions run = options("run");
  run.steps = 3;
  train(run);
  EXPECT_NE(printed().find("epoch 1 (part)  loss 2"), std::string::npos) << printed();
  EXPECT_EQ(printed().find("(best)"), std::string::npos) << printed();
  EXPECT_NE(printed().find("no epoch is whole, so none is best: " + run.runDirectory +
                           "/best.safetensors holds what " + run.runDirectory +
                           "/last.safetensors does\n"),
            std::string::npos)
      << printed();
  EXPECT_EQ(contentOf(directory / "run/best.safetensors"),
            contentOf(directory / "run/last.safetensors"));
  run.runDirectory = directory / "longer";
  run.steps = 9;
  train(run);
  EXPECT_NE(printed().find("epoch 2 (part)  "), std::string::npos) << printed();
  EXPECT_NE(printed().find("best epoch 1: loss 2"), std::string::npos) << printed();
}

TEST_F(TrainerTest, OneProcessTrainsInADirectory) {
  std::filesystem::create_directory(directory / "run");
  std::string refusal = "another process trains in '" + directory / "run" + "'; let it end";
  {
    FileLock other;
    EXPECT_TRUE(other.take(directory / "run/lock"));
    EXPECT_EQ(failure(options("run"), 2).find(refusal), 0u);
  }
  train(options("run"));
  FileLock other;
  EXPECT_TRUE(other.take(directory / "run/lock"));
  EXPECT_EQ(failure(resumption("run"), 2).find(refusal), 0u);
}

//===- What determines a run ------------------------------------------------------------------===//

TEST_F(TrainerTest, WhatContradictsTheRunIsRefused) {
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

TEST_F(TrainerTest, WhatIsOverriddenIsRecordedAndStays) {
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
  std::istringstream log(contentOf(directory / "run/log.jsonl"));
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

TEST_F(TrainerTest, AnOverrideThatChangesNothingSaysSo) {
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
TEST_F(TrainerTest, AnotherModelIsRefused) {
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

TEST_F(TrainerTest, DataMayMoveButNotChange) {
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

TEST_F(TrainerTest, ACheckpointWithoutARecipeIsRefused) {
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

TEST_F(TrainerTest, ADamagedConfigurationIsNamed) {
  TrainOptions run = options("run");
  run.epochs = 1;
  train(run);
  std::string config = directory / "run/config.json", whole = contentOf(config);
  for (const std::string &damaged :
       {whole.substr(0, whole.size() / 2), std::string(), std::string("[]"), std::string("{}"),
        std::string(R"({"data": {"x": 1}, "val": {}, "init": ""})"),
        std::string(R"({"data": {}, "val": {}, "init": "", "epochs": "2"})")}) {
    test::writeFile(config, damaged);
    EXPECT_EQ(failure(resumption("run"), 2),
              "'" + config +
                  "' is damaged; remove it, and say again what it said: --data, --val, --epochs, "
                  "--steps")
        << damaged;
  }
  std::filesystem::remove(config);
  TrainOptions rest = options("run");
  rest.resume = true;
  EXPECT_EQ(failure(rest), "no error");
}

TEST_F(TrainerTest, SaysWhatTheScheduleCountsTo) {
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
TEST_F(TrainerTest, TheScheduleKeepsItsLength) {
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
  EXPECT_NE(
      contentOf(directory / "run/log.jsonl").find(R"("step":8,"epoch":2,"loss":2.0,"lr":0.0,)"),
      std::string::npos)
      << contentOf(directory / "run/log.jsonl");
  rest.steps.reset();
  rest.overrides = {"length"};
  train(rest);
  EXPECT_EQ(configuration("run")["recipe"]["length"].dump(), R"({"epochs":2})");
  EXPECT_EQ(
      contentOf(directory / "run/log.jsonl").find(R"("step":9,"epoch":2,"loss":2.0,"lr":0.0,)"),
      std::string::npos);
}

//===- Ends -----------------------------------------------------------------------------------===//

/// 2 ranks do an epoch in 4 steps, of which 14 on one rank know nothing.
TEST_F(TrainerTest, EpochsCountTheSameOnOtherRanks) {
  train(options("run"));
  TrainOptions rest = resumption("run");
  rest.epochs = 3;
  train(rest, 2);
  EXPECT_NE(printed().find("resuming after step 14 of 18\n"), std::string::npos) << printed();
  EXPECT_NE(printed().find("epoch 3/3  "), std::string::npos) << printed();
}

TEST_F(TrainerTest, ARunThatIsDoneSaysHowToGoOn) {
  train(options("run"));
  std::map<std::string, std::string> before = kept("run");
  TrainOptions rest = resumption("run");
  rest.steps = 5;
  train(rest);
  EXPECT_EQ(printed().find("resuming after"), std::string::npos) << printed();
  EXPECT_NE(printed().find("nothing to do: the run has done 14 steps, 2 whole epochs, and was to "
                           "do 5 steps; go on with --steps above 14 or --epochs above 2\n"),
            std::string::npos)
      << printed();
  EXPECT_EQ(kept("run"), before);
}

TEST_F(TrainerTest, ALossOfNothingStopsTheRun) {
  writeData({1, 0, 3, 4, 5, 6, 7});
  TrainOptions run = options("run");
  run.shuffle = false;
  std::string message = failure(run, 1, test::Copying::Counted);
  EXPECT_NE(message.find("the loss is a mean of nothing in step 2 (epoch 1), its count is 0"),
            std::string::npos)
      << message;
}

TEST_F(TrainerTest, SaysWhichEpochIsBest) {
  auto watchAccuracy = [](artifact::ArtifactT &model) {
    for (const auto &program : model.programs) {
      auto metric = std::make_unique<artifact::ResultT>(*program->results[0]);
      metric->kind = artifact::ResultKind::Metric;
      metric->name = "accuracy";
      program->results.push_back(std::move(metric));
    }
    model.training->monitor = "accuracy";
    model.training->goal = artifact::Goal::Max;
  };
  edit = watchAccuracy;
  TrainOptions run = options("run");
  train(run);
  EXPECT_NE(printed().find("best is the epoch of the lowest training loss: there is no "
                           "val_accuracy without validation data (--val)\n"),
            std::string::npos)
      << printed();
  edit = nullptr;
  run.runDirectory = directory / "validated";
  run.validation = run.data;
  train(run);
  EXPECT_NE(printed().find("best is the epoch of the lowest val_loss\n"), std::string::npos)
      << printed();
  edit = watchAccuracy;
  run.runDirectory = directory / "watched";
  train(run);
  EXPECT_NE(printed().find("best is the epoch of the highest val_accuracy\n"), std::string::npos)
      << printed();
  EXPECT_EQ(configuration("watched")["recipe"]["monitor"], "max(accuracy)");
}

TEST_F(TrainerTest, LossIsExactOverRanks) {
  writeData({1, 2, 3, 4, 5, 6, 7});
  TrainOptions run = options("run");
  run.epochs = 1;
  run.shuffle = false;
  train(run, 2);
  // Four steps of two samples; the last one wraps around to the first.
  EXPECT_NE(printed().find("2 ranks x batch 1 = 2 samples a step, 4 steps an epoch"),
            std::string::npos);
  EXPECT_NE(printed().find("epoch 1/1  loss 3.625"), std::string::npos) << printed();
}

/// The padding repeats the last sample, whose loss is 0, and does not count.
TEST_F(TrainerTest, ValidationCountsEverySampleOnce) {
  writeData({1, 2, 3, 4, 5, 6, 0});
  TrainOptions run = options("run");
  run.validation = run.data;
  run.epochs = 1;
  train(run, 3);
  EXPECT_NE(printed().find("val_loss 3  "), std::string::npos) << printed();
}

TEST_F(TrainerTest, ANonFiniteLossStopsTheRun) {
  writeData({1, 2, 3, 4, 5, 6, 7}, 5e37F);
  TrainOptions run = options("run");
  run.shuffle = false; // samples 4 and 5 are the first whose sum f32 does not hold
  std::string message = failure(run, 2, test::Copying::Summed);
  EXPECT_NE(message.find("the loss is inf in step 3 (epoch 1)"), std::string::npos) << message;
  TrainOptions persistent = options("other");
  persistent.shuffle = persistent.stopOnNan = false;
  EXPECT_EQ(failure(persistent, 2, test::Copying::Summed), "no error");
}

/// Nobody waits for the rank that lacks its batch, and nobody goes on.
TEST_F(TrainerTest, ABatchThatCannotBeLoadedStopsAllRanksAtItsStep) {
  writeData({1, 2, 3, 4, 5, NAN, 7});
  Artifact artifact(test::CopyingArtifact().pack(), "copying.dlx");
  TrainOptions run = options("run");
  run.shuffle = false; // sample 5 is rank 1's in step 3
  std::array<std::string, 2> errors;
  runInProcess(2, [&](Communicator &communicator) {
    Session session(artifact, communicator, {1, 5});
    Console console(false, false, out);
    StopSignal signals;
    try {
      Trainer(session, run, console, signals).run();
    } catch (const CollectiveError &error) {
      errors[static_cast<size_t>(communicator.rank())] = error.what();
    }
  });
  EXPECT_EQ(errors[0].find("'" + (directory / "loss.npy") + "': sample 5 holds nan"), 0u);
  EXPECT_EQ(errors[0], errors[1]);
  std::string log = contentOf(directory / "run/log.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
  EXPECT_FALSE(std::filesystem::exists(directory / "run/last.safetensors"));
}

TEST_F(TrainerTest, RanksThatDivergeStopTheRunAndKeepTheCheckpoint) {
  TrainOptions run = options("run");
  run.epochs = 1;
  run.shuffle = false; // samples 0, 1, 2; 3, 4, 5; 6, 0, 1: ranks 1 and 2 are not as rank 0
  train(run, 3);
  std::string last = run.runDirectory + "/last.safetensors", before = contentOf(last);
  run.epochs = 2;
  run.resume = true;
  run.save = directory / "weights.safetensors";
  std::string message = failure(run, 3, test::Copying::Diverging);
  EXPECT_NE(message.find("ranks do not hold the same variables after step 6: weight of rank 1, 2 "
                         "differs from that of rank 0"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("the last checkpoint is '" + last), std::string::npos) << message;
  EXPECT_EQ(contentOf(last), before);
  EXPECT_FALSE(std::filesystem::exists(run.save));
  EXPECT_EQ(failure(options("alone"), 1, test::Copying::Diverging), "no error");
}

TEST_F(TrainerTest, ASignalLeavesAResumableRun) {
  Artifact artifact(test::CopyingArtifact().pack(), "copying.dlx");
  TrainOptions run = options("run");
  std::unique_ptr<Communicator> communicator = makeSingleCommunicator();
  Session session(artifact, *communicator, {1, 5});
  Console console(true, false, out);
  StopSignal signals;
  std::raise(SIGTERM);
  try {
    Trainer(session, run, console, signals).run();
    FAIL() << "not interrupted";
  } catch (const CollectiveError &error) {
    EXPECT_EQ(error.code, ErrorCode::Interrupted);
    EXPECT_NE(std::string(error.what())
                  .find("interrupted by SIGTERM after step 1 of 14; continue "
                        "with --resume --run "),
              std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(readSafetensors(directory / "run/last.safetensors").metadata.contains("dlc.run"));
}

TEST_F(TrainerTest, RunDirectoriesAreNotMixedUp) {
  TrainOptions run = options("run");
  run.resume = true;
  EXPECT_NE(failure(run, 2).find("cannot resume: there is no"), std::string::npos);
  run.resume = false;
  train(run);
  EXPECT_NE(failure(run).find("holds a run already; add --resume"), std::string::npos);
  run.runDirectory = "/proc/none";
  EXPECT_NE(failure(run).find("cannot write the run directory '/proc/none'"), std::string::npos);
}

TEST_F(TrainerTest, ATruncatedCheckpointIsNamed) {
  TrainOptions run = options("run");
  train(run);
  std::string last = run.runDirectory + "/last.safetensors";
  std::filesystem::resize_file(last, std::filesystem::file_size(last) - 4);
  run.resume = true;
  run.epochs = 4;
  EXPECT_NE(failure(run).find("last.safetensors': it is truncated"), std::string::npos);
}

TEST_F(TrainerTest, OtherSeedsGiveOtherOrders) {
  TrainOptions one = options("one"), two = options("two");
  one.save = directory / "one.safetensors";
  two.save = directory / "two.safetensors";
  two.seed = 6;
  train(one);
  train(two);
  EXPECT_NE(contentOf(one.save), contentOf(two.save));
}

} // namespace
} // namespace dlc::rt
