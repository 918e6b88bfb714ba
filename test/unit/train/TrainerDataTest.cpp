// Runs whose data turn out to be wrong under way: what is kept, what is said, and how they go on.
#include "runtime/comm/ControlPlanes.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CollectiveError.h"
#include "test/unit/train/TrainerTest.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dlc::rt {
namespace {

/// Validation has a file of losses of its own.
class TrainerDataTest : public TrainerTest {
protected:
  void writeValidation(const std::vector<float> &losses) {
    std::string n = std::to_string(samples) + ",";
    test::writeFile(directory / "val.npy", test::npyBytes("<f4", n, test::bytesOfVector(losses)));
  }

  TrainOptions validated(const std::string &run) {
    TrainOptions options = TrainerTest::options(run);
    options.validation = {{"x", directory / "x.npy"}, {"loss", directory / "val.npy"}};
    return options;
  }

  int64_t stepsSaved(const std::string &run) {
    TensorFile last = readSafetensors(directory / (run + "/last.safetensors"));
    return RunState::fromJson(last.metadata.at("dlc.run"), run).step;
  }

  std::vector<float> weightSaved(const std::string &run) {
    return readSafetensors(directory / (run + "/last.safetensors")).tensors.at("weight").values;
  }

  /// What a run keeps, but for the facts of its data and that they were overridden.
  std::map<std::string, std::string> trained(const std::string &run) {
    std::map<std::string, std::string> files = kept(run);
    files.erase("config.json");
    for (const char *name : {"last.safetensors", "best.safetensors"}) {
      TensorFile file = readSafetensors(directory / (run + "/" + name));
      Record state = Record::parse(file.metadata.at("dlc.run"));
      state.erase("recipe");
      state.erase("overrides");
      files[name] = state.dump();
      for (const auto &[tensor, value] : file.tensors)
        files[std::string(name) + " " + tensor] = test::bytesOfVector(value.values);
    }
    std::istringstream lines(files["log.jsonl"]);
    files["log.jsonl"].clear();
    for (std::string line; std::getline(lines, line);)
      if (line.find(R"("event":"override")") == std::string::npos)
        files["log.jsonl"] += line + "\n";
    return files;
  }

  const std::vector<float> sound = {1, 2, 3, 4, 5, 6, 7}, damaged = {1, 2, 3, 4, 5, NAN, 7};
};

INSTANTIATE_TEST_SUITE_P(Devices, TrainerDataTest, trainingDevices(), deviceName);

/// Nobody waits for the rank that lacks its batch, nobody goes on, and all know how to.
TEST_P(TrainerDataTest, ABatchThatCannotBeLoadedStopsAllRanksAtItsStep) {
  writeData(damaged);
  Artifact artifact(test::CopyingArtifact().pack(), "copying.dlx");
  TrainOptions run = options("run");
  run.shuffle = false; // sample 5 is rank 1's in step 3
  std::array<std::string, 2> errors;
  StopSignal signals;
  runInProcess(2, [&](ControlPlane &control) {
    Session session(artifact, control, {1, 5, GetParam().make});
    Console console(false, false, out);
    try {
      Trainer(session, run, console, signals).run();
    } catch (const CollectiveError &error) {
      errors[static_cast<size_t>(control.rank())] = error.what();
    }
  });
  EXPECT_EQ(errors[0].find("'" + (directory / "loss.npy") + "': sample 5 holds nan"), 0u);
  EXPECT_TRUE(errors[0].ends_with("; what the steps up to 2 have trained is saved: once the data "
                                  "are mended, continue with --resume --override data --run " +
                                  directory / "run"))
      << errors[0];
  EXPECT_EQ(errors[0], errors[1]);
  std::string log = test::contentOf(directory / "run/log.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
  EXPECT_EQ(stepsSaved("run"), 2);
}

/// The step that lacks a batch has changed nothing, whichever of its batches that is.
TEST_P(TrainerDataTest, ARunGoesOnOnceItsDataAreMended) {
  edit = addCosine;
  for (int64_t pieces : {1, 2, 3})
    for (int ranks : {1, 2}) {
      std::string suffix = std::to_string(pieces) + "-" + std::to_string(ranks) + "/run";
      TrainOptions whole = options("whole" + suffix), cut = options("cut" + suffix);
      whole.accumulate = cut.accumulate = pieces;
      whole.shuffle = cut.shuffle = false;
      writeData(sound);
      train(whole, ranks, 0, test::Copying::Accumulated);
      writeData(damaged);
      int64_t done = 5 / (pieces * ranks);
      std::string message = failure(cut, ranks, test::Copying::Accumulated);
      std::string wanted =
          done ? "the steps up to " + std::to_string(done) + " have trained" : "sample 5 holds nan";
      EXPECT_NE(message.find(wanted), std::string::npos) << message;
      EXPECT_EQ(std::filesystem::exists(cut.runDirectory), done > 0);
      writeData(sound);
      if (done == 0)
        continue;
      TrainOptions part = cut;
      part.runDirectory = directory / ("part" + suffix);
      part.steps = done;
      train(part, ranks, 0, test::Copying::Accumulated);
      EXPECT_EQ(weightSaved("cut" + suffix), weightSaved("part" + suffix)) << suffix;
      TrainOptions rest = resumption("cut" + suffix);
      rest.overrides = {"data"};
      train(rest, ranks, 0, test::Copying::Accumulated);
      EXPECT_EQ(trained("cut" + suffix), trained("whole" + suffix)) << suffix;
    }
}

/// A failed validation costs no training, and is made up for.
TEST_P(TrainerDataTest, ValidationThatFailsLosesNoSteps) {
  writeData(sound);
  writeValidation(sound);
  train(validated("whole/run"), 2);
  writeValidation(damaged);
  TrainOptions cut = validated("cut/run");
  std::string message = failure(cut, 2);
  EXPECT_EQ(message.find("'" + (directory / "val.npy") + "': sample 5 holds nan"), 0u);
  EXPECT_TRUE(message.ends_with("; what the steps up to 4 have trained is saved: once the data are "
                                "mended, continue with --resume --override val --run " +
                                cut.runDirectory))
      << message;
  EXPECT_EQ(stepsSaved("cut/run"), 4);
  writeValidation(sound);
  TrainOptions rest = resumption("cut/run");
  rest.overrides = {"val"};
  train(rest, 2);
  EXPECT_EQ(trained("cut/run"), trained("whole/run"));
}

/// A training loss is no best figure of validation, whose losses may all be higher.
TEST_P(TrainerDataTest, TheBestBeginsAnewWhereValidationBegins) {
  writeData(sound);
  writeValidation({11, 12, 13, 14, 15, 16, 17});
  TrainOptions run = options("run");
  run.epochs = 1;
  train(run);
  TrainOptions rest = validated("run");
  rest.resume = true;
  rest.epochs = 3;
  rest.overrides = {"val"};
  train(rest);
  EXPECT_NE(printed().find("epochs are judged by another figure from now on: the best one so far, "
                           "1, counts no more"),
            std::string::npos)
      << printed();
  TensorFile last = readSafetensors(directory / "run/last.safetensors");
  Monitor monitor = RunState::fromJson(last.metadata.at("dlc.run"), "run").monitor;
  EXPECT_GE(monitor.bestEpoch, 2);
  EXPECT_GT(monitor.best, 10);
  EXPECT_EQ(monitor.epochsWithout, 3 - monitor.bestEpoch);
  run = resumption("run");
  run.validation = rest.validation;
  run.epochs = 4;
  EXPECT_EQ(failure(run), "no error");
}

TEST_P(TrainerDataTest, OtherDataAreJudgedAnewUnlessValidationHasItsOwn) {
  for (bool hasOwn : {true, false}) {
    writeData(sound);
    writeValidation(sound);
    std::string name = hasOwn ? "own" : "none";
    TrainOptions run = hasOwn ? validated(name) : options(name);
    run.epochs = 1;
    train(run);
    writeData({2, 3, 4, 5, 6, 7, 8});
    run.resume = true;
    run.epochs = 2;
    run.overrides = {"data"};
    train(run);
    EXPECT_EQ(printed().find("epochs are judged by another figure") == std::string::npos, hasOwn);
  }
}

TEST_P(TrainerDataTest, APartThatIsNotValidatedIsOnceItsDataAreMended) {
  for (int64_t steps : {1, 3}) { // of 4 in an epoch
    SCOPED_TRACE(steps);
    const std::string whole = "whole" + std::to_string(steps), cut = "cut" + std::to_string(steps);
    writeData(sound);
    writeValidation(sound);
    TrainOptions run = validated(whole + "/run");
    run.epochs.reset();
    run.steps = steps;
    train(run, 2);
    writeValidation(damaged);
    run.runDirectory = directory / (cut + "/run");
    EXPECT_NE(failure(run, 2).find("continue with --resume --override val"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(run.runDirectory + "/best.safetensors"));
    writeValidation(sound);
    TrainOptions rest = resumption(cut + "/run");
    rest.overrides = {"val"};
    train(rest, 2);
    EXPECT_EQ(trained(cut + "/run"), trained(whole + "/run"));
    EXPECT_EQ(stepsSaved(cut + "/run"), steps);
  }
}

TEST_P(TrainerDataTest, ARunWhoseFirstBatchIsBadLeavesNoDirectory) {
  writeData({NAN, 2, 3, 4, 5, 6, 7});
  TrainOptions run = options("new/run");
  run.shuffle = false;
  for (int ranks : {1, 2}) {
    EXPECT_TRUE(failure(run, ranks).ends_with("as numpy.nan_to_num does")) << failure(run, ranks);
    EXPECT_FALSE(std::filesystem::exists(run.runDirectory));
  }
  // What others made stays.
  std::filesystem::create_directories(run.runDirectory);
  test::writeFile(run.runDirectory + "/notes", "mine");
  failure(run);
  EXPECT_EQ(test::contentOf(run.runDirectory + "/notes"), "mine");
}

TEST_P(TrainerDataTest, AStartWhoseFirstBatchIsBadLeavesTheCheckpoint) {
  writeData(sound);
  TrainOptions run = options("run");
  run.shuffle = false;
  run.steps = 3;
  train(run);
  std::string before = test::contentOf(directory / "run/last.safetensors");
  writeData({1, 2, 3, NAN, 5, 6, 7});
  TrainOptions rest = resumption("run");
  rest.steps = 7;
  rest.overrides = {"data"};
  std::string message = failure(rest);
  EXPECT_NE(message.find("; what the steps up to 3 have trained is saved"), std::string::npos)
      << message;
  EXPECT_EQ(test::contentOf(directory / "run/last.safetensors"), before);
}

} // namespace
} // namespace dlc::rt
