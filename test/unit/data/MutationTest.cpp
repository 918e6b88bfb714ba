// Damaged files: every seed of the fuzzers, cut short, with bytes changed and with fields set to
// extremes, is read or refused by one line. Draws are fixed, so that a failure comes again.
#include "runtime/artifact/Error.h"
#include "runtime/core/Philox.h"
#include "runtime/data/Safetensors.h"
#include "runtime/data/readers/Readers.h"
#include "test/unit/data/TestFiles.h"

#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dlc::rt::test {
namespace {

namespace fs = std::filesystem;

/// 1 to 4 places, each with a random byte, a flipped bit, or 2, 4 or 8 bytes of an extreme.
std::string mutated(std::string bytes, uint32_t round) {
  uint32_t draws = 1 + philox(1, {round, 0, 0, 0})[0] % 4;
  for (uint32_t i = 0; i < draws; ++i) {
    std::array<uint32_t, 4> draw = philox(1, {round, 1, i, 0});
    size_t at = draw[0] % bytes.size();
    constexpr uint64_t extremes[] = {0,          1,          0x7f,     0xff,       0xffff,
                                     0x7fffffff, 0xffffffff, 1u << 31, 1ull << 62, ~0ull};
    uint64_t extreme = extremes[draw[3] % std::size(extremes)];
    size_t width = std::min(size_t{2} << draw[2] % 3, bytes.size() - at);
    if (draw[1] % 3 == 0)
      bytes[at] = static_cast<char>(draw[2]);
    else if (draw[1] % 3 == 1)
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << draw[2] % 8);
    else
      std::memcpy(bytes.data() + at, &extreme, width);
  }
  return bytes;
}

class Mutations : public ::testing::TestWithParam<const char *> {
protected:
  /// Whether the bytes are read; if not, one line of BadInput says why.
  bool read(const std::string &bytes, const std::string &what) {
    bool isRead = true;
    int file = ::memfd_create("input", MFD_CLOEXEC); // readers take paths, and disks are slow
    std::string path = "/proc/self/fd/" + std::to_string(file);
    EXPECT_EQ(::write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    try {
      if (std::string_view(GetParam()) == "safetensors")
        readSafetensors(path);
      else
        readArray(path);
    } catch (const Error &error) {
      isRead = false;
      EXPECT_EQ(error.code, ErrorCode::BadInput) << what;
      EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << what;
    }
    ::close(file);
    return isRead;
  }
};

TEST_P(Mutations, AreReadOrRefused) {
  ::testing::internal::CaptureStderr();
  int seeds = 0, sound = 0;
  for (const fs::directory_entry &seed : fs::directory_iterator(fs::path(DLC_SEEDS) / GetParam())) {
    std::string bytes = test::contentOf(seed.path()), name = seed.path().filename().string();
    ++seeds;
    sound += read(bytes, name);
    for (size_t size = 0; size < bytes.size(); ++size)
      read(bytes.substr(0, size), name + " cut to " + std::to_string(size) + " bytes");
    for (uint32_t round = 0; round < 500; ++round)
      read(mutated(bytes, round), name + " in round " + std::to_string(round));
  }
  EXPECT_GT(sound, seeds / 2) << "of " << seeds << " seeds; some are damaged on purpose";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), ""); // of libraries
}

INSTANTIATE_TEST_SUITE_P(Readers, Mutations,
                         ::testing::Values("tiff", "png", "jpeg", "npy", "idx", "safetensors"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace dlc::rt::test
