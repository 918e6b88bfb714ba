#include "passes/planning/BucketLayout.h"

#include "dialects/Exec/Exec.h"
#include "dialects/NN/NN.h"

#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dlc;

namespace {

class BucketLayoutTest : public testing::Test {
protected:
  BucketLayoutTest() { context.loadDialect<nn::NNDialect>(); }

  RankedTensorType tensor(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }

  MLIRContext context;
  Builder builder{&context};
  BucketLayout layout{builder.getF32Type()};
};

TEST_F(BucketLayoutTest, PlacesTensorsOnTheAlignmentOfBuffers) {
  EXPECT_EQ(layout.add(tensor({3})), 0);
  EXPECT_EQ(layout.add(tensor({16})), 64); // 12 bytes and padding
  EXPECT_EQ(layout.add(tensor({17})), 128);
  EXPECT_EQ(layout.add(tensor({1})), 256);
  EXPECT_EQ(layout.elementCount(), 80);
  EXPECT_EQ(layout.type(), tensor({80}));
}

TEST_F(BucketLayoutTest, CountsWhatALayoutPads) {
  auto blocked = nn::withLayout(tensor({1, 3, 2, 2}), *rt::Layout::parse("nChw16c"));
  layout.add(blocked);
  EXPECT_EQ(layout.elementCount(), 16 * 4);
}

TEST_F(BucketLayoutTest, MessagesHoldTheirOwnType) {
  layout.add(tensor({32}));
  EXPECT_EQ(layout.messageBytes(builder.getF32Type()), 128u);
  EXPECT_EQ(layout.messageBytes(builder.getBF16Type()), 64u);
}

TEST_F(BucketLayoutTest, RangesKeepVariablesOfAnyTypeAligned) {
  EXPECT_EQ(layout.addToRange(tensor({4})), 0);
  EXPECT_EQ(layout.addToRange(tensor({33})), 128); // 32 elements of 2 bytes are 64 bytes
  layout.extendTo(1024);
  layout.extendTo(8);
  EXPECT_EQ(layout.addToRange(tensor({1})), 4096);
}

TEST_F(BucketLayoutTest, HoldsNarrowElementsAlike) {
  BucketLayout narrow(builder.getBF16Type());
  auto type = RankedTensorType::get({3}, builder.getBF16Type());
  EXPECT_EQ(narrow.add(type), 0);
  EXPECT_EQ(narrow.add(type), 64);
  EXPECT_EQ(narrow.elementCount(), 64);
}

} // namespace
