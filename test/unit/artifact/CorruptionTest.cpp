// Ten thousand damaged artifacts, half of them with a fitting hash, so that the verifiers behind
// the hash are what is tested: each is refused with one line or is still sound; none crashes.

#include "test/unit/CompiledModel.h"
#include "test/unit/artifact/TinyArtifact.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

using namespace dlc::rt;

namespace {
/// A few random edits of bytes, words or the length.
void damage(std::vector<uint8_t> &file, std::mt19937_64 &random) {
  for (uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
    size_t at = random() % file.size();
    switch (random() % 4) {
    case 0:
      file[at] ^= static_cast<uint8_t>(1 << random() % 8);
      break;
    case 1:
      file[at] = static_cast<uint8_t>(random());
      break;
    case 2: // a wild 32-bit value, as offsets and counts are
      for (size_t i = at & ~size_t{3}; i < file.size() && i < (at & ~size_t{3}) + 4; ++i)
        file[i] = random() % 2 ? 0xff : static_cast<uint8_t>(random());
      break;
    default:
      if (file.size() > 64 && random() % 8 == 0)
        file.resize(file.size() - random() % 48);
    }
  }
}

/// Loads ten thousand damaged copies; every other one has a fitting hash. Returns how many were
/// refused.
int survive(const std::vector<uint8_t> &sound) {
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 10000; ++round) {
    std::vector<uint8_t> file = sound;
    damage(file, random);
    if (round % 2 == 1)
      sealArtifact(file);
    try {
      Artifact artifact(std::move(file), "file");
    } catch (const Error &error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  return refused;
}
} // namespace

TEST(Artifact, SurvivesTenThousandCorruptions) {
  EXPECT_GT(survive(test::TinyArtifact().pack()), 7000);
}

// Most bytes of a compiled model are code and weights of no structure: damage there passes once the
// hash fits.
TEST(Artifact, SurvivesTenThousandCorruptionsOfACompiledModel) {
  if (!test::hasCompiler())
    GTEST_SKIP() << "this build has no compiler";
  std::ifstream stream(test::compiledModel(test::models / "mnist_cnn.dl", "--set batch=2"),
                       std::ios::binary);
  std::vector<uint8_t> sound((std::istreambuf_iterator<char>(stream)),
                             std::istreambuf_iterator<char>());
  EXPECT_GE(survive(sound), 5000);
}
