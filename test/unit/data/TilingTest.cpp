// Tiles: every pixel once, off the edges of tiles inside the image, within the image's mirror.

#include "runtime/data/Tiling.h"

#include "test/unit/ErrorOf.h"

#include <gtest/gtest.h>
#include <numeric>

using namespace dlc::rt;

TEST(Tiling, OneTileWhereTheImageFits) {
  EXPECT_EQ(tilesAlong(64, 64, 8, 4), (std::vector<TileSpan>{{0, 0, 64}}));
  EXPECT_EQ(tilesAlong(1, 64, 40, 4), (std::vector<TileSpan>{{0, 0, 1}}));
}

TEST(Tiling, LastTileIsFlushWithTheEnd) {
  EXPECT_EQ(tilesAlong(100, 64, 8, 4), (std::vector<TileSpan>{{0, 0, 44}, {36, 44, 100}}));
  // No multiple of the alignment: three pixels of mirror.
  EXPECT_EQ(tilesAlong(97, 64, 8, 4), (std::vector<TileSpan>{{0, 0, 44}, {36, 44, 97}}));
}

TEST(Tiling, NoInteriorNoTiles) {
  EXPECT_TRUE(tilesAlong(65, 64, 32, 4).empty());
  EXPECT_TRUE(tilesAlong(65, 64, 31, 4).empty()); // less than one step
}

TEST(Tiling, CoversEveryPixelOnceAndExactly) {
  for (int64_t alignment : {1, 2, 3, 8})
    for (int64_t overlap = 0; overlap <= 24; overlap += alignment)
      for (int64_t extent = 1; extent < 300; extent += 7) {
        int64_t tile = 64, next = 0;
        std::vector<TileSpan> spans = tilesAlong(extent, tile, overlap, alignment);
        ASSERT_FALSE(spans.empty());
        for (const TileSpan &span : spans) {
          EXPECT_EQ(span.keepBegin, next);
          EXPECT_EQ(span.start % alignment, 0);
          EXPECT_TRUE(span.start == 0 || span.keepBegin - span.start >= overlap);
          EXPECT_TRUE(span.keepEnd == extent || span.start + tile - span.keepEnd >= overlap);
          EXPECT_LE(span.keepEnd, span.start + tile);
          next = span.keepEnd;
        }
        EXPECT_EQ(next, extent);
        EXPECT_LT(spans.back().start + tile - extent, std::max(alignment, tile - extent + 1));
      }
}

/// Tiles of [32, 40] with reach 16 and stride 4.
static Tiling tilesOf32(const std::vector<std::string> &parameters = {}) {
  dlc::artifact::TilingT tiling;
  tiling.overlap = {16, 16};
  tiling.alignment = {4, 4};
  tiling.parameters = parameters;
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(dlc::artifact::Tiling::Pack(builder, &tiling));
  const auto *planned = flatbuffers::GetRoot<dlc::artifact::Tiling>(builder.GetBufferPointer());
  return {planned, {32, 40}};
}

/// Images of a label have no channels; those of one channel are cut alike.
TEST(Tiling, CutsImagesWithoutChannels) {
  Sample label{{50, 60}, std::vector<float>(50 * 60)};
  std::iota(label.values.begin(), label.values.end(), 0.0f);
  Tile at = {{20, 36, 50}, {24, 40, 60}};
  std::vector<float> cut = tilesOf32().cut(label, at);
  ASSERT_EQ(cut.size(), 32u * 40u);
  EXPECT_EQ(cut[0], 20 * 60 + 24);
  EXPECT_EQ(cut[40 * 29 + 35], 49 * 60 + 59); // the last pixel
  EXPECT_EQ(cut[40 * 31 + 37], 47 * 60 + 57); // mirrored
  label.shape = {1, 50, 60};
  EXPECT_EQ(tilesOf32().cut(label, at), cut);
}

/// What tiles() says of an image that cannot be covered.
static std::string refusal(const std::vector<std::string> &parameters,
                           const std::vector<int64_t> &extents) {
  return test::errorOf([&] { (void)tilesOf32(parameters).tiles(extents); });
}

TEST(Tiling, ARefusalSaysWhichSizeWouldDo) {
  std::string lists = refusal({"patch[0]", "patch[1]"}, {500, 500});
  EXPECT_NE(lists.find("tiles of 32 x 40 have no interior"), std::string::npos) << lists;
  EXPECT_NE(lists.find("larger tiles: --set 'predict.patch=[64,40]'"), std::string::npos) << lists;
  std::string numbers = refusal({"height", "width"}, {500, 500});
  EXPECT_NE(numbers.find("--set predict.height=64 --set predict.width=40"), std::string::npos);
  // One parameter for both; no larger than the image, but a multiple of the stride.
  std::string one = refusal({"size", "size"}, {49, 60});
  EXPECT_NE(one.find("--set predict.size=52"), std::string::npos) << one;
  // Sizes that no parameter sets.
  std::string none = refusal({"size", ""}, {500, 500});
  EXPECT_NE(none.find("larger tiles, above 32"), std::string::npos) << none;
}
