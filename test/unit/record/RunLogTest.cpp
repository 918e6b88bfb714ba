#include "runtime/record/RunLog.h"
#include "runtime/artifact/Error.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace dlc::rt {
namespace {

Record stepRecord(int64_t step) { return {{"event", "step"}, {"step", step}, {"loss", 0.5}}; }
Record epochRecord(int64_t step, int64_t epoch, double loss) {
  return {{"event", "epoch"}, {"step", step}, {"epoch", epoch}, {"loss", loss}, {"val_loss", NAN}};
}

/// Cuts a log as a run does that goes on after these steps.
void resume(const test::TemporaryDirectory &directory, int64_t steps, int64_t wholeEpochs) {
  RunLog log(directory.path.string(), "", steps, wholeEpochs);
}

TEST(RunLog, WritesLinesTableAndPicture) {
  test::TemporaryDirectory directory;
  RunLog log(directory.path.string(), directory / "copy.jsonl", 0, 0);
  log.step(stepRecord(1));
  log.epoch(epochRecord(1, 1, 0.5));
  EXPECT_EQ(test::contentOf(directory / "log.jsonl"),
            "{\"event\":\"step\",\"step\":1,\"loss\":0.5}\n"
            "{\"event\":\"epoch\",\"step\":1,\"epoch\":1,\"loss\":0.5,\"val_loss\":null}\n");
  EXPECT_EQ(test::contentOf(directory / "copy.jsonl"), test::contentOf(directory / "log.jsonl"));
  EXPECT_EQ(test::contentOf(directory / "log.csv"), "step,epoch,loss,val_loss\n1,1,0.5,\n");
  EXPECT_NE(test::contentOf(directory / "loss.svg").find("class=\"line s0\""), std::string::npos);
}

/// A long run does not write its table anew with every epoch.
TEST(RunLog, TheTableGrows) {
  test::TemporaryDirectory directory;
  std::string table = directory / "log.csv", other = directory / "other";
  RunLog log(directory.path.string(), "", 0, 0);
  log.epoch(epochRecord(1, 1, 0.5));
  std::filesystem::create_hard_link(table, other); // of a file that is replaced, the old one
  log.epoch(epochRecord(2, 2, NAN));
  EXPECT_EQ(test::contentOf(other), "step,epoch,loss,val_loss\n1,1,0.5,\n2,2,,\n");
  EXPECT_EQ(test::contentOf(table), test::contentOf(other));
}

/// A run that was killed after its checkpoint has logged steps that are about to be repeated.
TEST(RunLog, ResumingDropsWhatWillBeRepeated) {
  test::TemporaryDirectory directory;
  {
    RunLog log(directory.path.string(), "", 0, 0);
    log.step(stepRecord(1));
    log.epoch(epochRecord(1, 1, 0.5));
    log.step(stepRecord(2));
  }
  RunLog log(directory.path.string(), "", 1, 1);
  log.step(stepRecord(2));
  log.epoch(epochRecord(2, 2, 0.25));
  std::string lines = test::contentOf(directory / "log.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
  EXPECT_EQ(test::contentOf(directory / "log.csv"),
            "step,epoch,loss,val_loss\n1,1,0.5,\n2,2,0.25,\n");
}

/// The rest of an epoch that was cut follows; what was overridden is told anew, or was given up.
TEST(RunLog, ResumingDropsPartsAndOverrides) {
  test::TemporaryDirectory directory;
  Record part = epochRecord(2, 2, 0.4);
  part["part"] = true;
  Record change = {{"event", "override"}, {"step", 1}, {"name", "lr"}};
  {
    RunLog log(directory.path.string(), "", 0, 0);
    log.step(stepRecord(1));
    log.overridden(change);
    log.step(stepRecord(2));
    log.epoch(part);
  }
  resume(directory, 2, 1);
  EXPECT_EQ(test::contentOf(directory / "log.jsonl"),
            stepRecord(1).dump() + "\n" + change.dump() + "\n" + stepRecord(2).dump() + "\n");
  resume(directory, 1, 1);
  EXPECT_EQ(test::contentOf(directory / "log.jsonl"), stepRecord(1).dump() + "\n");
}

/// A run that was killed when its checkpoint waited for validation has an epoch to end again.
TEST(RunLog, ResumingDropsAnEpochThatIsNotEnded) {
  test::TemporaryDirectory directory;
  {
    RunLog log(directory.path.string(), "", 0, 0);
    log.step(stepRecord(1));
    log.epoch(epochRecord(1, 1, 0.5));
    log.step(stepRecord(2));
    log.epoch(epochRecord(2, 2, 0.4));
  }
  resume(directory, 2, 1);
  EXPECT_EQ(test::contentOf(directory / "log.jsonl"), stepRecord(1).dump() + "\n" +
                                                          epochRecord(1, 1, 0.5).dump() + "\n" +
                                                          stepRecord(2).dump() + "\n");
}

/// Whatever somebody has made of the lines.
TEST(RunLog, ResumingDropsWhatIsNoRecordAndSaysSo) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "log.jsonl",
                    sound = stepRecord(1).dump() + "\n" + R"({"step":1,"event":5})" + "\n";
  auto notesOf = [&](const std::string &lines) {
    std::ofstream(path) << lines;
    std::vector<std::string> notes = RunLog(directory.path.string(), "", 1, 0).notes();
    EXPECT_EQ(test::contentOf(path), sound);
    EXPECT_TRUE(RunLog(directory.path.string(), "", 1, 0).notes().empty()); // once
    return notes;
  };
  EXPECT_TRUE(notesOf(sound).empty());
  EXPECT_EQ(notesOf(R"({"step":1,"event":"epoch","epoch":"one"}
{"step":"1","event":"step"}
{"step":1,"event":"step","part":1}
{"event":"step"}
[1]

no record
)" + sound + "{\"st"),
            std::vector{"8 lines of '" + path +
                        "' are no records of a run and are left out: 1, 2, 3, 4, 5, 6 and 2 more"});
  EXPECT_EQ(notesOf(sound + "\xff\n"),
            std::vector{"'" + path + ":3' is no record of a run and is left out"});
}

TEST(RunLog, ResumingSaysWhatIsMissingAndWhatIsCut) {
  test::TemporaryDirectory directory;
  const std::string path = directory / "log.jsonl", copy = directory / "copy.jsonl";
  std::ofstream file(path), copied(copy);
  for (int64_t step : {2, 3, 6, 9, 10, 11, 12})
    file << stepRecord(step).dump() << '\n';
  file << epochRecord(3, 1, 0.5).dump() << '\n' << epochRecord(9, 3, 0.5).dump() << '\n';
  for (int64_t step : {8, 10}) // begun late
    copied << stepRecord(step).dump() << '\n';
  file.close();
  copied.close();
  auto notes = [&](int64_t steps, int64_t epochs) {
    return RunLog(directory.path.string(), copy, steps, epochs).notes();
  };
  EXPECT_EQ(notes(10, 3),
            (std::vector{"'" + path + "' lacks the records of step 1, 4 to 5, 7 to 8",
                         "'" + path + "' lacks the records of epoch 2",
                         "2 records in '" + path +
                             "' of what follows step 10 are cut: the run goes on from there",
                         "'" + copy + "' lacks the records of step 9"}));
  EXPECT_EQ(
      notes(9, 2),
      (std::vector{
          "'" + path + "' lacks the records of step 1, 4 to 5, 7 to 8",
          "'" + path + "' lacks the records of epoch 2",
          "2 records in '" + path + "' of what follows step 9 are cut: the run goes on from there",
          "'" + copy + "' lacks the records of step 9",
          "1 record in '" + copy + "' of what follows step 9 is cut: the run goes on from there"}));
  std::filesystem::remove(path);
  std::filesystem::remove(copy);
  EXPECT_EQ(notes(9, 2), std::vector{"there is no '" + path + "' of the steps up to 9"});
}

TEST(RunLog, ResumingKeepsTheOldLinesWhereItCannotWrite) {
  test::TemporaryDirectory directory;
  {
    RunLog log(directory.path.string(), "", 0, 0);
    for (int64_t step = 1; step <= 100; ++step)
      log.step(stepRecord(step));
  }
  const std::string before = test::contentOf(directory / "log.jsonl");
  std::string error = test::errorOf([&] {
    test::FullDisk full(1000); // less than what is to be kept
    RunLog(directory.path.string(), "", 90, 0);
  });
  EXPECT_TRUE(error.starts_with("cannot write '" + (directory / "log.jsonl") + "'")) << error;
  EXPECT_EQ(test::contentOf(directory / "log.jsonl"), before);
}

TEST(RunLog, NamesTheFileThatCannotBeWritten) {
  test::TemporaryDirectory directory;
  auto error = [&](const std::string &copy) {
    return test::errorOf([&] {
      RunLog log(directory.path.string(), copy, 1, 1); // which reads what is there before
      log.step(stepRecord(1));
      log.epoch(epochRecord(1, 1, 0.5));
    });
  };
  EXPECT_EQ(error("/dev/full"), "cannot write '/dev/full': No space left on device");
  for (const char *name : {"loss.svg", "log.csv", "log.jsonl"}) {
    std::filesystem::remove(directory / name);
    std::filesystem::create_directory(directory / name);
    EXPECT_TRUE(error("").starts_with("cannot write '" + (directory / name) + "': Is a directory"))
        << error("");
  }
}

TEST(RunLog, AnUnwritableDirectoryIsAnError) {
  EXPECT_THROW(RunLog("/nonexistent", "", 0, 0), Error);
}

// Test vectors of RFC 3720, B.4.
TEST(EventFile, ChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

/// Resuming within a second, too, makes a file of its own.
TEST(EventFile, EveryRunHasItsOwnFile) {
  test::TemporaryDirectory directory;
  EventFile first(directory.path.string(), 0), second(directory.path.string(), 5);
  size_t files = 0;
  for ([[maybe_unused]] const auto &entry : std::filesystem::directory_iterator(directory.path))
    ++files;
  EXPECT_EQ(files, 2u);
}

} // namespace
} // namespace dlc::rt
