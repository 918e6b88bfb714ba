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
  RunLog(directory.path.string(), "", 2, 1);
  EXPECT_EQ(test::contentOf(directory / "log.jsonl"),
            stepRecord(1).dump() + "\n" + change.dump() + "\n" + stepRecord(2).dump() + "\n");
  RunLog(directory.path.string(), "", 1, 1);
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
  RunLog(directory.path.string(), "", 2, 1);
  EXPECT_EQ(test::contentOf(directory / "log.jsonl"), stepRecord(1).dump() + "\n" +
                                                          epochRecord(1, 1, 0.5).dump() + "\n" +
                                                          stepRecord(2).dump() + "\n");
}

/// Whatever somebody has made of the lines.
TEST(RunLog, ResumingDropsWhatIsNoRecord) {
  test::TemporaryDirectory directory;
  const std::string sound = stepRecord(1).dump() + "\n";
  std::ofstream(directory / "log.jsonl") << R"({"step":1,"event":5}
{"step":1,"event":"epoch","epoch":"one"}
{"step":"1","event":"step"}
{"step":1,"event":"step","part":1}
{"event":"step"}
[1]
no record
)" << sound;
  RunLog(directory.path.string(), "", 4, 2);
  EXPECT_EQ(test::contentOf(directory / "log.jsonl"), R"({"step":1,"event":5})"
                                                      "\n" +
                                                          sound);
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
