// The kernels that gather rows of inputs, on the emulator, which finds accesses out of bounds and
// races, beside what the host reads of the same views.
#include "runtime/cuda/KeptArrays.h"

#include "runtime/data/BatchLoader.h"
#include "test/ptx/Emulator.h"
#include "test/unit/cuda/Assembler.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace dlc::rt::test {
namespace {

using artifact::DType;

/// A row-major array of drawn elements, none of which is outside of its bytes.
template <typename T> View drawnArray(std::mt19937 &random, const Extents &shape) {
  size_t elements = 1;
  for (int64_t extent : shape)
    elements *= static_cast<size_t>(extent);
  std::vector<T> values(elements);
  for (T &value : values)
    value = static_cast<T>(random());
  View view = View::of(std::move(values), shape);
  view.isHeld = true;
  return view;
}

/// Cuts, mirrors and turns it by chance, and cuts `size` out of what that leaves.
void move(std::mt19937 &random, View &view, const Extents &size) {
  auto drawn = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int i = 0; i < 4; ++i) {
    size_t dim = 1 + random() % (view.axes.size() - 1);
    if (drawn(0, 1))
      view.mirror(dim);
    if (view.axes.size() > 2 && drawn(0, 1))
      view.quarterTurn();
    if (drawn(0, 1)) { // beyond an end, so that zeros are there
      Extents corner, extents;
      for (size_t of = 1; of < view.axes.size(); ++of) {
        corner.push_back(drawn(-3, 2));
        extents.push_back(view.axes[of].extent + drawn(-2, 3));
      }
      view.cut(corner, extents);
    }
  }
  Extents corner;
  for (size_t dim = 1; dim < view.axes.size(); ++dim)
    corner.push_back(drawn(-1, std::max<int64_t>(view.axes[dim].extent - 1, 0)));
  view.cut(corner, size);
}

/// What the array has, as normalize does.
void scale(std::mt19937 &random, View &view) {
  Scaling scaling;
  for (int64_t channel = 0; channel < view.axes[0].extent; ++channel) {
    scaling.shift.push_back(static_cast<float>(random() % 1000) / 7);
    scaling.scale.push_back(1 / static_cast<float>(3 + random() % 100));
  }
  view.scaling = std::make_shared<Scaling>(std::move(scaling));
}

/// Every element by a chance of one in `every` is one of up to so many bits.
void replace(std::mt19937 &random, View &view, unsigned every, int bits) {
  View::Indices at = {};
  for (size_t left = view.elements(); left > 0; --left) {
    if (random() % every == 0)
      view.spots.push_back({at, static_cast<float>(random() % (1U << bits))});
    for (size_t dim = view.axes.size(); dim-- > 0;) {
      if (++at[dim] < view.axes[dim].extent)
        break;
      at[dim] = 0;
    }
  }
}

size_t sizeOf(DType type) { return type == DType::U8 ? 1 : type == DType::U16 ? 2 : 4; }

/// Rows of views of an array each, some of which are staged, as the kernel writes them.
class Gather {
public:
  Gather(std::vector<View> views, DType to) : views(std::move(views)), to(to) {}

  /// Returns how many spots are the device's.
  size_t expectWhatTheHostReads() {
    size_t rows = views.size(), elements = views[0].elements(), rowBytes = elements * sizeOf(to);
    TensorWriter writer(to, {static_cast<int64_t>(rows), static_cast<int64_t>(elements)},
                        Layout::rowMajor(2));
    std::vector<std::byte> wanted(rows * rowBytes), got(rows * rowBytes);
    std::vector<ArrayRow> told(rows);
    InputDestination destination{writer, {std::span(got), std::span(got)}, {told, told}};
    for (size_t row = 0; row < rows; ++row) {
      Sample sample{views[row].shape(), {}};
      sample.unread = views[row];
      writer.writeRow(static_cast<int64_t>(row), sample, wanted);
      sample.unread = views[row];
      destination.put(static_cast<int64_t>(row), sample, 0);
      EXPECT_EQ(told[row].isStaged(),
                !views[row].isHeld || views[row].spots.size() > ArrayRow::mostSpots(elements));
    }
    run(told, elements, got);
    EXPECT_EQ(got, wanted);
    size_t spots = 0;
    for (const ArrayRow &row : told)
      spots += row.spots.size();
    return spots;
  }

private:
  void run(const std::vector<ArrayRow> &told, size_t elements, std::vector<std::byte> &got) {
    std::string reason;
    ptx::Module module = ptx::parse(KeptArrays::text(), reason);
    ASSERT_EQ(reason, "");
    std::vector<std::byte> arrays;
    std::vector<KeptArrays::PackedRow> packed;
    size_t gathered = 0;
    for (const ArrayRow &row : told) {
      uint64_t place = arrays.size();
      arrays.insert(arrays.end(), row.array.begin(), row.array.end());
      arrays.resize((arrays.size() + 255) / 256 * 256);
      packed.push_back(row.isStaged() ? KeptArrays::PackedRow{} : KeptArrays::packed(row, place));
      gathered += !row.isStaged();
    }
    std::vector<KeptArrays::PackedSpot> spots = KeptArrays::packedSpots(told, to, elements);
    size_t spotBytes = spots.size() * sizeof(KeptArrays::PackedSpot);
    uint64_t elementShift = to == DType::U8 ? 0 : to == DType::U16 ? 1 : 2;
    uint64_t blocks = (elements + KeptArrays::threads() - 1) / KeptArrays::threads();
    ptx::Memory memory;
    uint64_t source = memory.add("arrays", arrays.size(), ptx::Use::Read),
             replaced = memory.add("spots", std::max<size_t>(spotBytes, 1), ptx::Use::Read),
             rows = memory.add("rows", packed.size() * sizeof packed[0], ptx::Use::Read),
             target = memory.add("to", got.size(), ptx::Use::ReadWrite);
    memory.write(source, arrays.data(), arrays.size());
    memory.write(rows, packed.data(), packed.size() * sizeof packed[0]);
    memory.write(replaced, spots.data(), spotBytes);
    memory.write(target, got.data(), got.size());
    ptx::Launch launch{"gather",
                       static_cast<uint32_t>(blocks * told.size()),
                       KeptArrays::threads(),
                       {source, rows, target, elements, blocks, elementShift},
                       {}};
    ptx::Report report = ptx::Emulator(module, memory).run(launch);
    for (const std::string &fault : report.faults)
      ADD_FAILURE() << fault;
    EXPECT_EQ(memory.writtenBytes(), gathered * elements * sizeOf(to));
    if (!spots.empty()) {
      auto spotBlocks = (spots.size() + KeptArrays::threads() - 1) / KeptArrays::threads();
      launch = {"replace",
                static_cast<uint32_t>(spotBlocks),
                KeptArrays::threads(),
                {replaced, target, spots.size(), elementShift},
                {}};
      for (const std::string &fault : ptx::Emulator(module, memory).run(launch).faults)
        ADD_FAILURE() << fault;
    }
    memory.read(target, got.data(), got.size());
  }

  std::vector<View> views;
  DType to;
};

TEST(KeptArrays, GatherWhatTheHostReads) {
  std::mt19937 random(7);
  const Extents shapes[] = {{1, 11}, {3, 9, 9}, {2, 6, 7, 7}};
  const Extents sizes[] = {{9}, {8, 5}, {3, 5, 6}};
  for (DType to : {DType::U8, DType::U16, DType::F32}) {
    size_t spots = 0;
    for (size_t which = 0; which < std::size(shapes); ++which)
      for (int draw = 0; draw < 20; ++draw) {
        std::vector<View> views;
        for (int row = 0; row < 5; ++row) {
          bool isWide = to != DType::U8 && row % 2;
          views.push_back(isWide ? drawnArray<uint16_t>(random, shapes[which])
                                 : drawnArray<uint8_t>(random, shapes[which]));
          if (row != 2) // some rows have more than there is room for
            replace(random, views.back(), draw % 2 ? 60 : 25, to == DType::U8 ? 8 : 16);
          move(random, views.back(), sizes[which]);
          views.back().isMask = row == 2 || (row == 1 && draw % 2);
          if (to == DType::F32 && row > 0)
            scale(random, views.back());
          views.back().isHeld = row != 3;
        }
        spots += Gather(views, to).expectWhatTheHostReads();
      }
    EXPECT_GT(spots, 10);
  }
}

/// Of more elements than a block has threads.
TEST(KeptArrays, GatherRowsOfManyBlocks) {
  std::mt19937 random(3);
  std::vector<View> views;
  for (int row = 0; row < 3; ++row) {
    views.push_back(drawnArray<uint8_t>(random, {3, 160, 150}));
    views.back().mirror(2);
    if (row == 2)
      views.back() = views.back().zeros(); // as the mask of blind spots
    if (row != 1)
      replace(random, views.back(), 300, 16);
    for (View::Spot &spot : views.back().spots)
      spot.value -= 0.5F;
  }
  EXPECT_GT(Gather(views, DType::F32).expectWhatTheHostReads(), KeptArrays::threads());
}

TEST(KeptArrays, Assemble) { expectAssembles(KeptArrays::text()); }

TEST(KeptArrays, HaveRoomForArraysAtMultiplesOf256) {
  EXPECT_EQ(KeptArrays::bytesFor({}), 0);
  EXPECT_EQ(KeptArrays::bytesFor(std::array<uint64_t, 3>{1, 256, 257}), 1024);
}

} // namespace
} // namespace dlc::rt::test
