// Layouts and oneDNN's memory descriptors say the same.

#include "runtime/cpu/OneDnnLayout.h"

#include <gtest/gtest.h>

using namespace dlc::rt;
using Kind = OperandView::Kind;

static OperandType tensor(std::vector<int64_t> shape) { return {DType::F32, std::move(shape), {}}; }

static dnnl_memory_desc_t byTag(std::vector<int64_t> shape, dnnl_format_tag_t tag) {
  dnnl_memory_desc_t desc;
  EXPECT_EQ(dnnl_memory_desc_init_by_tag(&desc, static_cast<int>(shape.size()), shape.data(),
                                         dnnl_f32, tag),
            dnnl_success);
  return desc;
}

struct TagCase {
  std::vector<int64_t> shape;
  const char *layout;
  dnnl_format_tag_t tag;
};

static const TagCase tagCases[] = {
    {{8}, "n", dnnl_a},
    {{8, 5}, "nc", dnnl_ab},
    {{8, 5}, "cn", dnnl_ba},
    {{2, 33, 7, 5}, "nchw", dnnl_nchw},
    {{2, 33, 7, 5}, "nhwc", dnnl_nhwc},
    {{2, 33, 7, 5}, "nChw16c", dnnl_nChw16c},
    {{2, 33, 7, 5}, "nChw8c", dnnl_nChw8c},
    {{2, 16, 4, 7, 5}, "nCdhw16c", dnnl_nCdhw16c},
    {{2, 16, 4, 7, 5}, "ndhwc", dnnl_ndhwc},
    {{33, 20, 3, 3}, "OIhw16i16o", dnnl_OIhw16i16o},
    {{33, 20, 3, 3}, "OIhw8i16o2i", dnnl_OIhw8i16o2i},
    {{33, 20, 3, 3}, "Ohwi16o", dnnl_Ohwi16o},
    {{2, 16, 9}, "nCw16c", dnnl_nCw16c},
    // Extents of 1, where strides alone do not tell the order.
    {{8, 1, 28, 28}, "nchw", dnnl_nchw},
    {{8, 1, 28, 28}, "nhwc", dnnl_nhwc},
    {{1, 1, 28, 28}, "nhwc", dnnl_nhwc},
    {{8, 128, 1, 1}, "nchw", dnnl_nchw},
};

TEST(OneDnnLayout, AgreesWithTheLibrarysTags) {
  for (const TagCase &test : tagCases) {
    SCOPED_TRACE(test.layout);
    Layout layout = *Layout::parse(test.layout);
    std::optional<dnnl_memory_desc_t> ours = toMemoryDesc(tensor(test.shape), layout);
    dnnl_memory_desc_t library = byTag(test.shape, test.tag);
    ASSERT_TRUE(ours);
    EXPECT_TRUE(dnnl_memory_desc_equal(&*ours, &library));
    EXPECT_EQ(toLayout(library), layout);
    EXPECT_EQ(dnnl_memory_desc_get_size(&*ours),
              static_cast<size_t>(layout.physicalElements(test.shape)) * sizeof(float));
  }
}

TEST(OneDnnLayout, RefusesWhatIsNotDense) {
  dnnl_memory_desc_t strided;
  int64_t shape[] = {2, 8, 4, 4}, strides[] = {512, 16, 4, 1};
  ASSERT_EQ(dnnl_memory_desc_init_by_strides(&strided, 4, shape, dnnl_f32, strides), dnnl_success);
  EXPECT_FALSE(toLayout(strided));
  dnnl_memory_desc_t any = anyMemoryDesc(tensor({2, 8, 4, 4}));
  EXPECT_FALSE(toLayout(any));
}

static void expectView(OperandView view, std::vector<int64_t> shape, const char *text,
                       std::vector<int64_t> librarys, dnnl_format_tag_t tag) {
  Layout layout = *Layout::parse(text);
  std::optional<dnnl_memory_desc_t> ours = toMemoryDesc(tensor(shape), layout, view);
  dnnl_memory_desc_t library = byTag(librarys, tag);
  ASSERT_TRUE(ours) << text;
  EXPECT_TRUE(dnnl_memory_desc_equal(&*ours, &library)) << text;
  EXPECT_EQ(toLayout(library, view), layout) << text;
}

TEST(OneDnnLayout, SeesTransposedMatricesAndRows) {
  expectView({Kind::Swapped}, {6, 4}, "nc", {4, 6}, dnnl_ba);
  expectView({Kind::Swapped}, {32, 16}, "NC16c16n", {16, 32}, dnnl_BA16a16b);
  expectView({Kind::Row}, {6}, "n", {1, 6}, dnnl_ab);
}

TEST(OneDnnLayout, SplitsGroups) {
  expectView({Kind::Grouped, 2}, {8, 3, 5, 5}, "nchw", {2, 4, 3, 5, 5}, dnnl_goihw);
  expectView({Kind::Grouped, 2}, {32, 16, 3, 3}, "OIhw16i16o", {2, 16, 16, 3, 3}, dnnl_gOIhw16i16o);
  expectView({Kind::Grouped, 32}, {32, 1, 3, 3}, "Oihw16o", {32, 1, 1, 3, 3}, dnnl_Goihw16g);
  expectView({Kind::GroupedSwapped, 2}, {8, 3, 5, 5}, "nchw", {2, 3, 4, 5, 5}, dnnl_giohw);
  // 4 channels of a group do not fill a block of 16.
  EXPECT_FALSE(toMemoryDesc(tensor({8, 3, 5, 5}), *Layout::parse("Oihw16o"), {Kind::Grouped, 2}));
}
