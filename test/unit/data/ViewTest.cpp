// Where elements lie, and what of them is read.
#include "runtime/data/steps/View.h"
#include "runtime/data/TensorWriter.h"

#include <cstring>
#include <gtest/gtest.h>
#include <numeric>

namespace dlc::rt::test {
namespace {

/// 0, 1, 2, ... in one channel of `rows` times `columns`.
template <typename T> View counted(int64_t rows, int64_t columns) {
  std::vector<T> values(static_cast<size_t>(rows * columns));
  std::iota(values.begin(), values.end(), T{0});
  return View::of(std::move(values), {1, rows, columns});
}

template <typename T> std::vector<T> readAs(const View &view) {
  std::vector<T> values(view.elements(), T(99));
  view.read<T>(std::as_writable_bytes(std::span(values)));
  return values;
}

using Bytes = std::vector<uint8_t>;
using Floats = std::vector<float>;

// 0 1 2
// 3 4 5
TEST(View, MovesCompose) {
  View view = counted<uint8_t>(2, 3);
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{0, 1, 2, 3, 4, 5}));
  view.mirror(2);
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{2, 1, 0, 5, 4, 3}));
  view.cut(Extents{0, 1}, Extents{2, 2});
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{1, 0, 4, 3}));
  view.quarterTurn(); // the last column comes first
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{0, 3, 1, 4}));
  view.mirror(1);
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{1, 4, 0, 3}));
  EXPECT_EQ(view.shape(), (Extents{1, 2, 2}));
}

/// Zeros move along, and are no elements for the next cut either.
TEST(View, ZerosStandBeyondTheArray) {
  View view = counted<uint8_t>(2, 3);
  view.cut(Extents{-1, -2}, Extents{3, 4});
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 3, 4}));
  view.mirror(2);
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{0, 0, 0, 0, 1, 0, 0, 0, 4, 3, 0, 0}));
  view.cut(Extents{1, 0}, Extents{3, 3});
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{1, 0, 0, 4, 3, 0, 0, 0, 0}));
  view.quarterTurn();
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{0, 0, 0, 0, 3, 0, 1, 4, 0}));
  view.cut(Extents{7, 7}, Extents{1, 2}); // of nothing
  EXPECT_EQ(readAs<float>(view), (Floats{0, 0}));
}

/// As if they had been the array's elements from the start.
TEST(View, SpotsMoveAndAreScaledAsElementsAre) {
  std::vector<uint8_t> values(2 * 4 * 5 * 5), replaced;
  std::iota(values.begin(), values.end(), uint8_t{0});
  replaced = values;
  View view = View::of(values, {2, 4, 5, 5});
  for (View::Indices at :
       {View::Indices{0, 0, 0, 0}, {0, 3, 4, 4}, {1, 1, 2, 3}, {1, 2, 1, 2}, {0, 2, 1, 1}}) {
    view.spots.push_back({at, 250});
    replaced[view.offsetOf(at)] = 250;
  }
  View wanted = View::of(replaced, {2, 4, 5, 5});
  auto both = [&](auto &&move) {
    move(view), move(wanted);
    EXPECT_EQ(readAs<uint8_t>(view), readAs<uint8_t>(wanted));
  };
  EXPECT_NE(readAs<uint8_t>(view), values);
  both([](View &) {});
  both([](View &any) { any.mirror(1); });
  both([](View &any) { any.quarterTurn(); });
  both([](View &any) { any.mirror(3); });
  both([](View &any) { any.cut(Extents{0, 1, 0}, Extents{4, 4, 4}); });
  EXPECT_EQ(view.spots.size(), 3);
  both([](View &any) { any.quarterTurn(); });
  view.scale({{3, 5}, {2, 7}});
  wanted.scale({{3, 5}, {2, 7}});
  EXPECT_EQ(readAs<float>(view), readAs<float>(wanted));
  view.spots.push_back({{1, 0, 0, 0}, -0.5F}); // behind the scaling
  EXPECT_EQ(readAs<float>(view)[view.offsetOf(view.spots.back().at)], -0.5F);
  EXPECT_EQ(readAs<float>(view.zeros()), Floats(view.elements(), 0));
  EXPECT_TRUE(view.zeros().spots.empty());
}

/// Every one, in the order in which all are read.
void expectElementsAsRead(const View &view) {
  Floats read = readAs<float>(view);
  View::Indices at = {};
  for (float value : read) {
    EXPECT_EQ(view.element(at), value);
    for (size_t dim = view.axes.size(); dim-- > 0;) {
      if (++at[dim] < view.axes[dim].extent)
        break;
      at[dim] = 0;
    }
  }
}

TEST(View, ElementsAreReadAlone) {
  View view = counted<uint16_t>(3, 4);
  view.mirror(1);
  view.quarterTurn();
  view.cut(Extents{-1, 1}, Extents{4, 4});
  expectElementsAsRead(view);
  view.scale({{2}, {3}});
  expectElementsAsRead(view);
  view.isMask = true;
  expectElementsAsRead(view);
}

/// A spot may stand where a cut has reached beyond the array, and a cut takes it away.
TEST(View, SpotsStandInZeros) {
  View view = counted<uint8_t>(1, 2);
  view.cut(Extents{0, -1}, Extents{1, 4});
  view.spots = {{{0, 0, 0}, 9}, {{0, 0, 1}, 8}};
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{9, 8, 1, 0}));
  view.cut(Extents{0, 1}, Extents{2, 3});
  EXPECT_EQ(readAs<uint16_t>(view), (std::vector<uint16_t>{8, 1, 0, 0, 0, 0}));
}

/// Rows longer than what is turned in one go.
TEST(View, LargeImagesTurnAsSmallOnesDo) {
  View view = counted<uint16_t>(40, 40);
  view.quarterTurn();
  std::vector<uint16_t> turned = readAs<uint16_t>(view);
  for (size_t row = 0; row < 40; ++row)
    for (size_t column = 0; column < 40; ++column)
      ASSERT_EQ(turned[row * 40 + column], column * 40 + (39 - row)) << row << ", " << column;
}

TEST(View, ElementsAreConverted) {
  EXPECT_EQ(readAs<float>(counted<uint16_t>(1, 3)), (Floats{0, 1, 2}));
  EXPECT_EQ(readAs<uint16_t>(counted<uint8_t>(1, 3)), (std::vector<uint16_t>{0, 1, 2}));
  EXPECT_EQ(readAs<uint8_t>(View::of(Floats{0, 255, 3}, {3})), (Bytes{0, 255, 3}));
  std::vector<double> doubles = {0.5, -2};
  View view{ElementType::F64, std::as_bytes(std::span(doubles)), nullptr, 1};
  EXPECT_EQ(readAs<float>(view), (Floats{-2})); // a number alone
  View mask = View::of(Bytes{0, 255, 255}, {3});
  mask.isMask = true;
  EXPECT_EQ(readAs<uint8_t>(mask), (Bytes{0, 1, 1}));
  EXPECT_EQ(readAs<float>(mask), (Floats{0, 1, 1}));
}

TEST(View, ChannelsThatLieLastAreRead) {
  Bytes pixels = {1, 10, 2, 20, 3, 30, 4, 40}; // of 2 x 2, two channels each
  View view{ElementType::U8,
            std::as_bytes(std::span(pixels)),
            nullptr,
            0,
            {{2, 1, 0, 2}, {2, 4, 0, 2}, {2, 2, 0, 2}}};
  EXPECT_EQ(readAs<uint8_t>(view), (Bytes{1, 2, 3, 4, 10, 20, 30, 40}));
  view.quarterTurn();
  EXPECT_EQ(readAs<float>(view), (Floats{2, 4, 1, 3, 20, 40, 10, 30}));
}

/// Zeros that a cut adds are none of the array's; moves carry each channel's figures along.
TEST(View, WhatTheArrayHasIsScaled) {
  std::vector<uint16_t> values = {10, 20, 30, 40, 1, 2, 3, 4};
  View view = View::of(std::move(values), {2, 2, 2});
  view.scaling = std::make_shared<Scaling>(Scaling{{10, 1}, {0.5F, 4}});
  EXPECT_EQ(readAs<float>(view), (Floats{0, 5, 10, 15, 0, 4, 8, 12}));
  view.mirror(2);
  view.cut(Extents{1, -1}, Extents{2, 3});
  EXPECT_EQ(readAs<float>(view), (Floats{0, 15, 10, 0, 0, 0, 0, 12, 8, 0, 0, 0}));
  view.quarterTurn();
  EXPECT_EQ(readAs<float>(view), (Floats{10, 0, 15, 0, 0, 0, 8, 0, 12, 0, 0, 0}));
}

/// Zeros beside arrays of one pixel, and in rows of one.
TEST(View, ZerosBesideOnePixelAreNotScaled) {
  View view = View::of(Bytes{7, 9}, {1, 2, 1});
  view.scaling = std::make_shared<Scaling>(Scaling{{5}, {3}});
  View beside = view;
  beside.cut(Extents{-1, -1}, Extents{3, 1});
  EXPECT_EQ(readAs<float>(beside), (Floats{0, 0, 0}));
  view.cut(Extents{-1, 0}, Extents{4, 1});
  EXPECT_EQ(readAs<float>(view), (Floats{0, 6, 12, 0}));
}

TEST(View, OneRowIsScaledToo) {
  View view = View::of(Bytes{3, 5, 7}, {3});
  view.scaling = std::make_shared<Scaling>(Scaling{{3, 4, 5}, {1, 2, 3}});
  EXPECT_EQ(readAs<float>(view), (Floats{0, 2, 6}));
}

/// Whatever the input's type and layout, a row is what its values make it.
TEST(View, RowsAreWrittenAsTheirValuesWouldBe) {
  const std::vector<int64_t> shape = {2, 2, 3, 3};
  for (auto dtype :
       {artifact::DType::U8, artifact::DType::U16, artifact::DType::F32, artifact::DType::I32})
    for (const char *layout : {"nchw", "nhwc", "nChw2c"}) {
      TensorWriter writer(dtype, shape, *Layout::parse(layout));
      Bytes values(18);
      std::iota(values.begin(), values.end(), uint8_t{0});
      Sample sample{{2, 3, 3}, {}};
      sample.unread = View::of(std::move(values), sample.shape);
      sample.view().quarterTurn();
      Sample read = sample;
      read.settle();
      std::vector<std::byte> got(writer.tensorBytes()), wanted(writer.tensorBytes());
      writer.writeRow(1, sample, got);
      writer.writeRow(1, read.values, wanted);
      EXPECT_EQ(got, wanted) << layout;
      EXPECT_NE(got, std::vector<std::byte>(got.size())) << layout;
    }
}

} // namespace
} // namespace dlc::rt::test
