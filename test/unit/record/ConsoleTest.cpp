#include "runtime/record/Console.h"

#include <gtest/gtest.h>
#include <thread>

namespace dlc::rt {
namespace {

/// What a console prints in `body`.
template <typename Body> std::string printed(bool speaks, bool terminal, Body body) {
  char *buffer = nullptr;
  size_t size = 0;
  std::FILE *out = ::open_memstream(&buffer, &size);
  {
    Console console(speaks, terminal, out);
    body(console);
  }
  std::fclose(out);
  std::string text(buffer, size);
  std::free(buffer);
  return text;
}

TEST(Console, ATerminalGetsOneBarBelowTheLines) {
  std::string text = printed(true, true, [](Console &console) {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    console.progress({2, 20, 3, 6, 0.25, 12.5, 65});
    console.progress({2, 20, 4, 6, 0.25, 12.5, 65}); // too soon
    console.line("done");
  });
  EXPECT_EQ(text, "\repoch 2/20  [============            ] step 3/6  loss 0.2500  12.5 samples/s  "
                  "ETA 1:05\033[K\r\033[Kdone\n");
}

TEST(Console, APipeGetsPlainLines) {
  EXPECT_EQ(printed(true, false,
                    [](Console &console) {
                      console.progress({1, 1, 1, 1, 0, 0, 0});
                      console.line("epoch 1");
                    }),
            "epoch 1\n");
}

TEST(Console, OtherRanksAreSilent) {
  EXPECT_EQ(printed(false, true, [](Console &console) { console.line("epoch 1"); }), "");
}

TEST(Console, DurationsHaveHoursWhenTheyNeedThem) {
  EXPECT_EQ(durationText(65.2), "1:05");
  EXPECT_EQ(durationText(3723), "1:02:03");
  EXPECT_EQ(durationText(1.0 / 0.0), "?");
}

} // namespace
} // namespace dlc::rt
