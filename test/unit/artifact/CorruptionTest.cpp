// Ten thousand damaged artifacts, half of them with a fitting hash, so that the verifiers behind
// the hash are what is tested: each is refused with one line or is still sound; none crashes.

#include "test/unit/artifact/TinyArtifact.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/core/Error.h"

#include <gtest/gtest.h>

#include <random>

using namespace dlc::rt;

TEST(Artifact, SurvivesTenThousandCorruptions) {
  const std::vector<uint8_t> sound = test::TinyArtifact().pack();
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 10000; ++round) {
    std::vector<uint8_t> file = sound;
    bool reseal = round % 2 == 1;
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
    if (reseal)
      sealArtifact(file);
    try {
      Artifact artifact(std::move(file), "file");
    } catch (const Error &error) {
      ++refused;
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(refused, 7000);
}
