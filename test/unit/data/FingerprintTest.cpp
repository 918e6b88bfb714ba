#include "runtime/data/Fingerprint.h"
#include "runtime/artifact/Error.h"
#include "test/unit/data/TestFiles.h"

#include <gtest/gtest.h>

namespace dlc::rt::test {
namespace {

TEST(Fingerprint, TellsContentsApartButNotNames) {
  TemporaryDirectory directory;
  std::string small(1000, 'a'), large(1 << 20, 'a');
  std::string one = fingerprint(writeFile(directory / "one", small));
  EXPECT_TRUE(one.starts_with("1000 bytes, hash ")) << one;
  EXPECT_EQ(fingerprint(writeFile(directory / "two", small)), one);
  small[500] = 'b';
  EXPECT_NE(fingerprint(writeFile(directory / "one", small)), one);

  std::string whole = fingerprint(writeFile(directory / "large", large));
  for (size_t at : {size_t{0}, large.size() - 1}) {
    std::string changed = large;
    changed[at] = 'b';
    EXPECT_NE(fingerprint(writeFile(directory / "large", changed)), whole) << at;
  }
}

TEST(Fingerprint, OfADirectoryIsOfItsImagesAndTheirNames) {
  TemporaryDirectory directory;
  auto images = [&](const std::string &name, const std::string &second) {
    std::filesystem::create_directory(directory / name);
    writeFile(directory / (name + "/a.png"), "first");
    writeFile(directory / (name + "/" + second), "second");
    writeFile(directory / (name + "/notes.txt"), name);
    return fingerprint(directory / name);
  };
  std::string one = images("one", "b.png");
  EXPECT_TRUE(one.starts_with("2 images, 11 bytes, hash ")) << one;
  EXPECT_EQ(images("two", "b.png"), one);
  EXPECT_NE(images("three", "c.png"), one);
}

TEST(Fingerprint, NeedsTheFile) { EXPECT_THROW(fingerprint("/nonexistent"), Error); }

} // namespace
} // namespace dlc::rt::test
