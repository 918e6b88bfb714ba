// Files that are written whole or not at all, and what is no file. Pipes stand for devices, which a
// broken version would replace.
#include "runtime/data/AtomicFile.h"

#include "runtime/artifact/Writer.h"
#include "test/unit/data/TestFiles.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dlc::rt::test {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
protected:
  /// A pipe whose other end is open, so that writing does not wait for a reader.
  AtomicFileTest() {
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  }
  ~AtomicFileTest() override { ::close(reader); }

  std::string readPipe() const {
    char text[64];
    ssize_t got = ::read(reader, text, sizeof text);
    return got > 0 ? std::string(text, static_cast<size_t>(got)) : "";
  }

  TemporaryDirectory directory;
  std::string pipe = directory / "pipe";
  int reader = -1;
};

} // namespace

TEST_F(AtomicFileTest, APipeIsWrittenAndStays) {
  {
    AtomicFile file(pipe);
    file.write(std::as_bytes(std::span("bytes", 5)));
    file.commit();
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(readPipe(), "bytes");
  {
    AtomicFile abandoned(pipe);
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(AtomicFileTest, AnArtifactGoesIntoAPipe) {
  std::vector<uint8_t> bytes = {'d', 'l', 'x'};
  EXPECT_EQ(ArtifactWriter::writeFile(pipe, bytes), "");
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(readPipe(), "dlx");
}

TEST_F(AtomicFileTest, AFileIsReplacedByCommitAlone) {
  std::string path = directory / "file";
  auto write = [&](const std::string &text, bool commits) {
    AtomicFile file(path);
    file.write(std::as_bytes(std::span(text)));
    if (commits)
      file.commit();
  };
  auto content = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  write("old", true);
  write("new", false);
  EXPECT_EQ(content(), "old");
  write("newer", true);
  EXPECT_EQ(content(), "newer");
  EXPECT_FALSE(fs::exists(path + ".partial"));
}

} // namespace dlc::rt::test
