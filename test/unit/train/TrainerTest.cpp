#include "test/unit/train/TrainerTest.h"
#include "runtime/comm/ControlPlanes.h"
#include "runtime/data/FileLock.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CollectiveError.h"

#include <cmath>

namespace dlc::rt {
namespace {

INSTANTIATE_TEST_SUITE_P(Devices, TrainerTest, trainingDevices(), deviceName);

TEST_P(TrainerTest, KeepsEverythingInTheRunDirectory) {
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
  EXPECT_NE(test::contentOf(directory / "trace.json").find("\"rank 0\""), std::string::npos);
}

/// The step of this artifact leaves the average as it was, which is what the parameter started
/// from.
TEST_P(TrainerTest, BestAndSavedWeightsAreAverages) {
  edit = [](artifact::ArtifactT &artifact) { artifact.variables[1]->slot = "ema"; };
  TrainOptions run = options("run");
  run.save = directory / "weights";
  train(run);
  auto last = readSafetensors(directory / "run/last.safetensors").tensors;
  auto best = readSafetensors(directory / "run/best.safetensors").tensors;
  std::vector<float> average = last.at("optimizer.ema.weight").values;
  EXPECT_NE(average, std::vector<float>(test::copiedElements, 0));
  EXPECT_NE(average, last.at("weight").values);
  EXPECT_EQ(best.at("weight").values, average);
  EXPECT_EQ(readSafetensors(run.save).tensors.at("weight").values, average);

  // Evaluation takes averages from a checkpoint, training the parameters: there averages begin
  // anew.
  Artifact artifact(test::CopyingArtifact().pack(), "copying.dlx");
  runInProcess(1, [&](ControlPlane &control) {
    Session session(artifact, control, {1, 0, GetParam().make});
    loadWeights(session, directory / "run/last.safetensors");
    EXPECT_EQ(session.read("weight"), average);
    startFrom(session, directory / "run/last.safetensors", {});
    EXPECT_EQ(session.read("weight"), last.at("weight").values);
  });
}

TEST_P(TrainerTest, InitExceptKeepsInitialValues) {
  train(options("first"));
  TrainOptions run = options("run");
  run.init = directory / "first/last.safetensors";
  run.initExcept = {"weigh"};
  EXPECT_NE(failure(run).find("--init-except weigh matches nothing"), std::string::npos);
  run.initExcept = {"w*"};
  train(run);
  EXPECT_EQ(configuration("run")["init_except"], Record::array({"w*"}));
  Artifact artifact(test::CopyingArtifact().pack(), "copying.dlx");
  runInProcess(1, [&](ControlPlane &control) {
    Session session(artifact, control, {1, 0, GetParam().make});
    std::vector<float> initial = session.read("weight");
    startFrom(session, run.init, run.initExcept);
    EXPECT_EQ(session.read("weight"), initial);
    startFrom(session, run.init, {});
    EXPECT_NE(session.read("weight"), initial);
  });
}

TEST_P(TrainerTest, StepRecordsAreFlat) {
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

/// Cut anywhere, a resumed run keeps what an uninterrupted one keeps: `best`, too, is of a whole
/// epoch, and the schedule counts to the same end.
TEST_P(TrainerTest, ResumingEqualsNotStopping) {
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
      EXPECT_EQ(test::contentOf(rest.save), test::contentOf(whole.save)) << cut;
      EXPECT_EQ(kept(run), kept("whole" + suffix)) << cut;
    }
  }
}

/// What a run was told need not be told again.
TEST_P(TrainerTest, AnInterruptedRunNeedsNothingToResume) {
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
TEST_P(TrainerTest, AnEpochInterruptedAtItsEndIsEnded) {
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

/// The run ends at step 5 and saves nothing then: what it resumes from was written between steps.
TEST_P(TrainerTest, ResumingFromACheckpointBetweenStepsEqualsNotStopping) {
  writeData({1, 2, 3, 4, 0, 6, 7});
  TrainOptions run = options("part/run");
  run.shuffle = false;
  run.saveEvery = 4;
  std::string message = failure(run, 1, test::Copying::Counted);
  EXPECT_NE(message.find("in step 5 (epoch 1)"), std::string::npos) << message;
  EXPECT_NE(message.find("the last checkpoint is '" + run.runDirectory + "/last.safetensors"),
            std::string::npos)
      << message;
  EXPECT_NE(printed().find("the copy for --save-every takes 0.0 KiB of rank 0's memory"),
            std::string::npos)
      << printed();
  std::string last = run.runDirectory + "/last.safetensors";
  RunState state =
      RunState::fromJson(readSafetensors(last).metadata.at("dlc.run"), "last.safetensors");
  EXPECT_EQ(state.step, 4);
  EXPECT_EQ(state.stepInEpoch, 4);
  TensorFile saved = readSafetensors(last);
  EXPECT_EQ(saved.tensors.at("weight").values, std::vector<float>(test::copiedElements, 3));
  EXPECT_EQ(saved.tensors.count("optimizer.m.weight"), 1u);

  TrainOptions rest = resumption("part/run");
  rest.stopOnNan = false;
  rest.overrides = {"on-nan"};
  train(rest, 1, 0, test::Copying::Counted);
  EXPECT_EQ(configuration("part/run")["save_every"], 4); // which need not be said again
  TrainOptions whole = options("whole/run");
  whole.shuffle = whole.stopOnNan = false;
  train(whole, 1, 0, test::Copying::Counted);
  EXPECT_EQ(readSafetensors(last).tensors.at("weight").values,
            readSafetensors(whole.runDirectory + "/last.safetensors").tensors.at("weight").values);
  EXPECT_EQ(kept("part/run")["log.csv"], kept("whole/run")["log.csv"]);
  EXPECT_EQ(kept("part/run")["loss.svg"], kept("whole/run")["loss.svg"]);
}

/// A file that cannot be written is told at the next save, or at the end.
TEST_P(TrainerTest, AFailureToWriteBetweenStepsEndsTheRun) {
  TrainOptions run = options("run");
  run.epochs = 1;
  train(run);
  run.resume = true;
  run.epochs = 2;
  run.saveEvery = 3;
  std::filesystem::create_directory(run.runDirectory + "/last.safetensors.partial");
  std::string message = failure(run);
  EXPECT_EQ(message.find("cannot write '" + run.runDirectory + "/last.safetensors': "), 0u)
      << message;
  EXPECT_TRUE(readSafetensors(run.runDirectory + "/last.safetensors").metadata.contains("dlc.run"));
}

/// 5 epochs over 2 ranks are 3, at twice the rate, and the schedule counts to their end: of 12
/// steps, the cosine of the first is 1 and of the last (1 + cos(11 / 12 pi)) / 2.
TEST_P(TrainerTest, RanksMayScaleTheRateAndDivideEpochs) {
  edit = addCosine;
  TrainOptions run = options("run");
  run.epochs = 5;
  run.learningRate = 0.5;
  run.scaleRate = run.scaleEpochs = true;
  train(run, 2);
  EXPECT_NE(printed().find("note: 5 epochs / 2 = 3 (--scale-epochs)\n"), std::string::npos)
      << printed();
  EXPECT_NE(printed().find("note: learning rate 0.5 x 2 = 1 (--scale-lr=linear)\n"),
            std::string::npos)
      << printed();
  std::istringstream log(test::contentOf(directory / "run/log.jsonl"));
  std::vector<double> rates;
  for (std::string line; std::getline(log, line);)
    if (Record record = Record::parse(line); record["event"] == "step")
      rates.push_back(record["lr"]);
  ASSERT_EQ(rates.size(), 12u);
  EXPECT_EQ(rates.front(), 1);
  EXPECT_NEAR(rates.back(), 0.017037, 1e-6);
  EXPECT_EQ(configuration("run")["recipe"]["scale-epochs"], true);

  // A start that says nothing keeps it; 8 epochs are 4 of two ranks, and 8 of one.
  TrainOptions rest = resumption("run");
  rest.epochs = 8;
  train(rest, 2);
  EXPECT_NE(printed().find("epoch 4/4  "), std::string::npos) << printed();
  rest.epochs.reset();
  train(rest, 2);
  EXPECT_NE(printed().find("go on with --steps above 16 or --epochs above 8\n"), std::string::npos)
      << printed();
  rest.scaleEpochs = false;
  EXPECT_NE(failure(rest, 2).find("scale-epochs was true, is false; resume it as it was, or add "
                                  "--override scale-epochs"),
            std::string::npos);
}

TEST_P(TrainerTest, APartOfAnEpochIsComparedWithNothing) {
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
  EXPECT_EQ(test::contentOf(directory / "run/best.safetensors"),
            test::contentOf(directory / "run/last.safetensors"));
  run.runDirectory = directory / "longer";
  run.steps = 9;
  train(run);
  EXPECT_NE(printed().find("epoch 2 (part)  "), std::string::npos) << printed();
  EXPECT_NE(printed().find("best epoch 1: loss 2"), std::string::npos) << printed();
}

TEST_P(TrainerTest, OneProcessTrainsInADirectory) {
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

//===- Ends -----------------------------------------------------------------------------------===//

/// 2 ranks do an epoch in 4 steps, of which 14 on one rank know nothing.
TEST_P(TrainerTest, EpochsCountTheSameOnOtherRanks) {
  train(options("run"));
  TrainOptions rest = resumption("run");
  rest.epochs = 3;
  train(rest, 2);
  EXPECT_NE(printed().find("resuming after step 14 of 18\n"), std::string::npos) << printed();
  EXPECT_NE(printed().find("epoch 3/3  "), std::string::npos) << printed();
}

TEST_P(TrainerTest, ARunThatIsDoneSaysHowToGoOn) {
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

TEST_P(TrainerTest, ALossOfNothingStopsTheRun) {
  writeData({1, 0, 3, 4, 5, 6, 7});
  TrainOptions run = options("run");
  run.shuffle = false;
  std::string message = failure(run, 1, test::Copying::Counted);
  EXPECT_NE(message.find("the loss is a mean of nothing in step 2 (epoch 1), its count is 0"),
            std::string::npos)
      << message;
}

TEST_P(TrainerTest, SaysWhichEpochIsBest) {
  auto watchAccuracy = [](artifact::ArtifactT &model) {
    for (const auto &program : model.programs) {
      auto metric = std::make_unique<artifact::ResultT>(*program->results[0]);
      metric->kind = artifact::ResultKind::Metric;
      metric->name = "accuracy";
      artifact::DownloadT download;
      download.result = static_cast<uint32_t>(program->results.size());
      program->results.push_back(std::move(metric));
      program->instructions.push_back(std::make_unique<artifact::InstructionT>());
      program->instructions.back()->operation.Set(download);
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

TEST_P(TrainerTest, LossIsExactOverRanks) {
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
TEST_P(TrainerTest, ValidationCountsEverySampleOnce) {
  writeData({1, 2, 3, 4, 5, 6, 0});
  TrainOptions run = options("run");
  run.validation = run.data;
  run.epochs = 1;
  train(run, 3);
  EXPECT_NE(printed().find("val_loss 3  "), std::string::npos) << printed();
}

TEST_P(TrainerTest, ANonFiniteLossStopsTheRun) {
  writeData({1, 2, 3, 4, 5, 6, 7}, 5e37F);
  TrainOptions run = options("run");
  run.shuffle = false; // samples 4 and 5 are the first whose sum f32 does not hold
  std::string message = failure(run, 2, test::Copying::Summed);
  EXPECT_NE(message.find("the loss is inf in step 3 (epoch 1)"), std::string::npos) << message;
  TrainOptions persistent = options("other");
  persistent.shuffle = persistent.stopOnNan = false;
  EXPECT_EQ(failure(persistent, 2, test::Copying::Summed), "no error");
  TrainOptions rest = resumption("other");
  rest.epochs = 3;
  EXPECT_EQ(failure(rest, 2, test::Copying::Summed), "no error");
}

TEST_P(TrainerTest, RanksThatDivergeStopTheRunAndKeepTheCheckpoint) {
  TrainOptions run = options("run");
  run.epochs = 1;
  run.shuffle = false; // samples 0, 1, 2; 3, 4, 5; 6, 0, 1: ranks 1 and 2 are not as rank 0
  train(run, 3);
  std::string last = run.runDirectory + "/last.safetensors", before = test::contentOf(last);
  run.epochs = 2;
  run.resume = true;
  run.save = directory / "weights.safetensors";
  std::string message = failure(run, 3, test::Copying::Diverging);
  EXPECT_NE(message.find("ranks do not hold the same variables after step 6: weight of rank 1, 2 "
                         "differs from that of rank 0"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("the last checkpoint is '" + last), std::string::npos) << message;
  EXPECT_EQ(test::contentOf(last), before);
  EXPECT_FALSE(std::filesystem::exists(run.save));
  EXPECT_EQ(failure(options("alone"), 1, test::Copying::Diverging), "no error");
}

/// Rank 2 draws other start values than the others.
TEST_P(TrainerTest, RanksThatStartUnequalDoNotTrain) {
  Artifact artifact(test::CopyingArtifact().pack(), "copying.dlx");
  TrainOptions run = options("run");
  std::string message = test::errorOf([&] {
    runInProcess(3, [&](ControlPlane &control) {
      Session session(artifact, control, {1, control.rank() == 2 ? 6u : 5u, GetParam().make});
      Console console(control.rank() == 0, false, out);
      StopSignal signals;
      Trainer(session, run, console, signals).run();
    });
  });
  EXPECT_EQ(message, "ranks do not hold the same variables before step 1: weight of rank 2 differs "
                     "from that of rank 0; check that all hosts have the same processor and the "
                     "same programs");
  EXPECT_FALSE(std::filesystem::exists(run.runDirectory));
}

TEST_P(TrainerTest, ASignalLeavesAResumableRun) {
  Artifact artifact(test::CopyingArtifact().pack(), "copying.dlx");
  TrainOptions run = options("run");
  std::unique_ptr<ControlPlane> control = makeSingleControlPlane();
  Session session(artifact, *control, {1, 5, GetParam().make});
  Console console(true, false, out);
  StopSignal signals;
  int64_t steps = session.runsAhead() ? 2 : 1; // of which all ranks know when the first has ended
  std::raise(SIGTERM);
  try {
    Trainer(session, run, console, signals).run();
    FAIL() << "not interrupted";
  } catch (const CollectiveError &error) {
    EXPECT_EQ(error.code, ErrorCode::Interrupted);
    EXPECT_NE(std::string(error.what())
                  .find("interrupted by SIGTERM after step " + std::to_string(steps) +
                        " of 14; continue with --resume --run "),
              std::string::npos)
        << error.what();
  }
  TensorFile saved = readSafetensors(directory / "run/last.safetensors");
  EXPECT_EQ(RunState::fromJson(saved.metadata.at("dlc.run"), "last.safetensors").step, steps);
}

TEST_P(TrainerTest, WhatCannotBeWrittenIsToldWithHowToGoOn) {
  TrainOptions run = options("run");
  run.epochs = 1;
  run.log = "/dev/full";
  EXPECT_EQ(failure(run), "cannot write '/dev/full': No space left on device");
  run.log.clear();
  train(run);
  run.resume = true;
  run.epochs = 2;
  const std::string kept = "; the file that was there is kept",
                    further = "; once it can be written, continue with --resume --run " +
                              directory / "run";
  {
    test::FullDisk full(10);
    EXPECT_EQ(failure(run), "cannot write '" + directory / "run/config.json" + "': File too large" +
                                kept + further);
  }
  run.log = "/dev/full";
  EXPECT_EQ(failure(run), "cannot write '/dev/full': No space left on device" + further);
  run.log.clear();
  std::string table = directory / "run/log.csv";
  std::filesystem::remove(table);
  std::filesystem::create_symlink("/dev/full", table);
  EXPECT_EQ(failure(run), "cannot write '" + table + "': No space left on device" + kept + further);
}

TEST_P(TrainerTest, RunDirectoriesAreNotMixedUp) {
  TrainOptions run = options("run");
  run.resume = true;
  EXPECT_NE(failure(run, 2).find("cannot resume: there is no"), std::string::npos);
  run.resume = false;
  train(run);
  EXPECT_NE(failure(run).find("holds a run already; add --resume"), std::string::npos);
  run.runDirectory = "/proc/none";
  EXPECT_NE(failure(run).find("cannot write the run directory '/proc/none'"), std::string::npos);
}

/// A run that was killed, and a line that an editor has broken.
TEST_P(TrainerTest, AnEditedLogIsTold) {
  TrainOptions run = options("run");
  run.steps = 2;
  train(run);
  std::string log = directory / "run/log.jsonl", lines = test::contentOf(log);
  test::writeFile(log, "x" + lines + R"({"event":"step","step":3})" + "\n");
  TrainOptions rest = resumption("run");
  rest.steps = 3;
  train(rest);
  for (const std::string &note :
       {"'" + log + ":1' is no record of a run and is left out",
        "'" + log + "' lacks the records of step 1",
        "1 record in '" + log + "' of what follows step 2 is cut: the run goes on from there"})
    EXPECT_NE(printed().find("note: " + note + "\n"), std::string::npos) << note << printed();
}

TEST_P(TrainerTest, ATruncatedCheckpointIsNamed) {
  TrainOptions run = options("run");
  train(run);
  std::string last = run.runDirectory + "/last.safetensors";
  std::filesystem::resize_file(last, std::filesystem::file_size(last) - 4);
  run.resume = true;
  run.epochs = 4;
  EXPECT_NE(failure(run).find("last.safetensors': it is truncated"), std::string::npos);
}

TEST_P(TrainerTest, OtherSeedsGiveOtherOrders) {
  TrainOptions one = options("one"), two = options("two");
  one.save = directory / "one.safetensors";
  two.save = directory / "two.safetensors";
  two.seed = 6;
  train(one);
  train(two);
  EXPECT_NE(test::contentOf(one.save), test::contentOf(two.save));
}

} // namespace
} // namespace dlc::rt
