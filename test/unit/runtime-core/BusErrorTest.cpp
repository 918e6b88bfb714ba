#include "runtime/core/BusError.h"
#include "runtime/artifact/MappedFile.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <unistd.h>
#include <vector>

namespace dlc::rt {
namespace {

class BusErrorTest : public ::testing::Test {
protected:
  BusErrorTest() { std::ofstream(path) << std::string(bytes, 'x'); }
  ~BusErrorTest() override { std::filesystem::remove(path); }

  static constexpr size_t bytes = 5 << 16;
  std::string path = ::testing::TempDir() + "mapped." + std::to_string(::getpid());
};

TEST_F(BusErrorTest, AFileThatIsCutWhileItIsMappedIsNamed) {
  auto read = [&] {
    reportLostFiles("the program: ");
    MappedFile file(path);
    std::filesystem::resize_file(path, bytes / 2);
    std::exit(file.bytes().back() == std::byte{'x'} ? 0 : 2);
  };
  EXPECT_EXIT(read(), ::testing::ExitedWithCode(1),
              "^the program: '" + path + "' became shorter while it was read.*--resume\\)\n$");
}

TEST_F(BusErrorTest, OthersEndTheProcessAsBefore) {
  auto raised = [&] {
    std::signal(SIGBUS, SIG_DFL); // sanitizers have a handler
    reportLostFiles("the program: ");
    MappedFile file(path);
    std::raise(SIGBUS);
  };
  EXPECT_EXIT(raised(), ::testing::KilledBySignal(SIGBUS), "^$");
}

TEST_F(BusErrorTest, MappingsAreKnownWhileTheyLast) {
  const std::byte *begin = nullptr;
  {
    MappedFile file(path), again(path);
    begin = file.bytes().data();
    EXPECT_EQ(MappedFile::pathAt(begin), path);
    EXPECT_EQ(MappedFile::pathAt(begin + bytes - 1), path);
    EXPECT_EQ(MappedFile::pathAt(static_cast<const void *>(&begin)), nullptr);
    std::vector<std::unique_ptr<MappedFile>> many; // more than have a name
    for (int i = 0; i < 50; ++i)
      many.push_back(std::make_unique<MappedFile>(path));
    EXPECT_EQ(many.back()->bytes().size(), bytes);
  }
  EXPECT_EQ(MappedFile::pathAt(begin), nullptr);
  MappedFile file(path);
  EXPECT_EQ(MappedFile::pathAt(file.bytes().data()), path);
}

} // namespace
} // namespace dlc::rt
