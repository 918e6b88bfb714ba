// Layout: text form, physical extents, offsets.

#include "runtime/artifact/Layout.h"

#include <gtest/gtest.h>

#include <set>

using namespace dlc::rt;

TEST(Layout, ReadsBackItsTextForm) {
  for (const char *text :
       {"nchw", "nhwc", "nChw16c", "NChw16c16n", "ncdhw", "nCdhw8c", "nc", "n"}) {
    std::optional<Layout> layout = Layout::parse(text);
    ASSERT_TRUE(layout) << text;
    EXPECT_EQ(layout->toString(), text);
  }
  EXPECT_EQ(Layout::parse("OIhw16i16o"), Layout::parse("NChw16c16n"));
}

TEST(Layout, RefusesWhatIsNoLayout) {
  for (const char *text : {"", "nchwx", "nnhw", "nChw", "nchw16c", "nChw1c", "nChw16", "nChw16z"})
    EXPECT_FALSE(Layout::parse(text)) << text;
}

TEST(Layout, PadsBlockedDimensions) {
  Layout layout = *Layout::parse("nChw16c");
  EXPECT_EQ(layout.physicalShape({8, 33, 28, 28}), (std::vector<int64_t>{8, 3, 28, 28, 16}));
  EXPECT_EQ(layout.physicalElements({8, 33, 28, 28}), 8 * 48 * 28 * 28);
  EXPECT_EQ(layout.offsetOf({8, 33, 28, 28}, {0, 17, 0, 2}), 28 * 28 * 16 + 2 * 16 + 1);
}

// Every element has a place of its own inside the physical array.
TEST(Layout, OffsetsAreUnique) {
  std::vector<int64_t> shape{5, 6, 3, 2};
  for (const char *text : {"nchw", "nhwc", "cwhn", "nChw4c", "NChw4c2n", "NChw2n2c2n"}) {
    Layout layout = *Layout::parse(text);
    std::set<int64_t> offsets;
    for (int64_t n = 0; n < shape[0]; ++n)
      for (int64_t c = 0; c < shape[1]; ++c)
        for (int64_t h = 0; h < shape[2]; ++h)
          for (int64_t w = 0; w < shape[3]; ++w)
            offsets.insert(layout.offsetOf(shape, {n, c, h, w}));
    EXPECT_EQ(offsets.size(), 5u * 6 * 3 * 2) << text;
    EXPECT_LT(*offsets.rbegin(), layout.physicalElements(shape)) << text;
    EXPECT_EQ(*offsets.begin(), 0) << text;
  }
}
