#include "runtime/train/Trainer.h"
#include "runtime/core/Error.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CollectiveError.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"
#include "test/unit/train/CopyingArtifact.h"

#include <cmath>
#include <gtest/gtest.h>
#include <mutex>
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

  void writeData(const std::vector<float> &losses) {
    std::vector<float> x(samples * test::copiedElements);
    for (size_t i = 0; i < x.size(); ++i) {
      size_t sample = i / test::copiedElements;
      x[i] = static_cast<float>(sample);
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

  void train(const TrainOptions &options, int ranks = 1, double validation = 0,
             test::Copying how = test::Copying::Reduced) {
    Artifact artifact(test::CopyingArtifact(validation, how).pack(), "copying.dlx");
    StopSignal signals;
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

  std::string printed() const { return {buffer, size}; }
  ~TrainerTest() override {
    std::fclose(out);
    std::free(buffer);
  }

  static constexpr int64_t samples = 7;
  test::TemporaryDirectory directory;
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

/// Cut anywhere, a resumed run ends in the bytes of an uninterrupted one.
TEST_F(TrainerTest, ResumingEqualsNotStopping) {
  writeData({1, 2, 3, 4, 5, 6, 7});
  for (double validation : {0.0, 0.3}) {
    std::string suffix = validation ? "-validated" : "";
    TrainOptions whole = options("whole" + suffix);
    whole.save = directory / "whole.safetensors";
    train(whole, 1, validation);
    for (int64_t cut : {3, 5, 8}) {
      TrainOptions part = options("part" + std::to_string(cut) + suffix);
      part.epochs = 2;
      part.steps = cut;
      train(part, 1, validation);
      part.steps.reset();
      part.resume = true;
      part.seed.reset(); // the checkpoint knows it
      part.save = directory / "part.safetensors";
      train(part, 1, validation);
      EXPECT_EQ(contentOf(part.save), contentOf(whole.save)) << cut;
      EXPECT_EQ(contentOf(part.runDirectory + "/last.safetensors"),
                contentOf(whole.runDirectory + "/last.safetensors"))
          << cut;
    }
  }
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
  writeData({1, NAN, 3, 4, 5, 6, 7});
  TrainOptions run = options("run");
  run.shuffle = false;
  std::string message = failure(run, 2);
  EXPECT_NE(message.find("the loss is nan in step 1 (epoch 1)"), std::string::npos) << message;
  TrainOptions persistent = options("other");
  persistent.stopOnNan = false;
  EXPECT_EQ(failure(persistent), "no error");
}

TEST_F(TrainerTest, RanksThatDivergeStopTheRunAndKeepTheCheckpoint) {
  TrainOptions run = options("run");
  run.epochs = 1;
  train(run, 3);
  std::string last = run.runDirectory + "/last.safetensors", before = contentOf(last);
  run.epochs = 2;
  run.resume = true;
  run.save = directory / "weights.safetensors";
  run.shuffle = false; // samples 0, 1, 2; 3, 4, 5; 6, 0, 1: ranks 1 and 2 are not as rank 0
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
