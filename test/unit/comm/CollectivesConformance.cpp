// What all collectives promise, whatever carries their data.
#include "test/unit/comm/Conformance.h"

#include "runtime/artifact/Error.h"
#include "test/unit/comm/Values.h"

#include <chrono>
#include <thread>

namespace dlc::rt::test {
namespace {

using artifact::DType;
using Ticket = Collectives::Ticket;

Ticket start(Rank &c, DeviceSpan data, DType wire = DType::F32, const CollectiveLabel &label = {}) {
  CollectiveOperation operation;
  operation.memory = data;
  operation.wire = wire;
  return c.collectives().start(operation, label);
}

void allReduce(Rank &c, DeviceSpan data, DType wire = DType::F32) {
  c.collectives().wait(start(c, data, wire));
}

/// This rank's contribution.
void fill(Rank &c, DeviceSpan data, unsigned salt = 0) {
  std::vector<float> values(data.bytes / sizeof(float));
  fillOperand(values, c.rank(), salt);
  c.write(data, values);
}

void expectBits(Rank &c, DeviceSpan data, std::span<const float> wanted) {
  std::vector<float> got = c.read(data);
  ASSERT_EQ(got.size(), wanted.size());
  EXPECT_EQ(firstDifference(got, wanted), wanted.size());
}

void expectSum(Rank &c, DeviceSpan data, unsigned salt = 0) {
  expectBits(c, data, serialSum(data.bytes / sizeof(float), c.size(), salt));
}

DeviceSpan elementsOf(DeviceSpan data, size_t first, size_t count) {
  return data.subspan(first * sizeof(float), count * sizeof(float));
}

constexpr size_t oddSizes[] = {0, 1, 15, 16, 17, 33, 1000, 65537, 1'000'003};

TEST_P(CollectivesTest, MemoryIsZeroedAndAligned) {
  run([](Rank &c) {
    for (size_t elements : {16, 25'000}) {
      DeviceSpan memory = c.allocate(elements);
      ASSERT_EQ(memory.bytes, elements * sizeof(float));
      EXPECT_EQ(memory.address % 64, 0u);
      EXPECT_EQ(c.read(memory), std::vector<float>(elements));
    }
  });
}

TEST_P(CollectivesTest, SumsInRankOrderBitForBit) {
  run([](Rank &c) {
    for (size_t elements : oddSizes) {
      DeviceSpan data = c.allocate(elements);
      fill(c, data);
      allReduce(c, data);
      expectSum(c, data);
    }
  });
}

TEST_P(CollectivesTest, SumsMemoryOfAnyOrigin) {
  run([](Rank &c) {
    for (size_t elements : oddSizes) {
      DeviceSpan data = c.allocatePrivate(elements);
      fill(c, data);
      allReduce(c, data);
      expectSum(c, data);
    }
  });
}

TEST_P(CollectivesTest, SumsMemoryThatIsRegisteredLate) {
  run([](Rank &c) {
    DeviceSpan data = c.allocatePrivate(5000);
    for (unsigned step = 0; step < 2; ++step) {
      c.collectives().registerMemory(data);
      fill(c, data, step);
      allReduce(c, data);
      expectSum(c, data, step);
      c.collectives().unregisterMemory(data);
    }
  });
}

TEST_P(CollectivesTest, SumsRegisteredMemoryAtAnyOffset) {
  run([](Rank &c) {
    DeviceSpan memory = c.allocate(5000);
    DeviceSpan data = elementsOf(memory, 13, 4001);
    fill(c, data);
    allReduce(c, data);
    expectSum(c, data);
    std::vector<float> all = c.read(memory);
    EXPECT_EQ(all[12], 0.0f);
    EXPECT_EQ(all[13 + 4001], 0.0f);
  });
}

// Whoever gives memory back may register other memory in its place, and so again and again.
TEST_P(CollectivesTest, MemoryComesAndGoes) {
  run([](Rank &c) {
    for (unsigned step = 0; step < 3; ++step) {
      DeviceSpan kept = c.allocate(1000), other = c.allocate(20'000);
      fill(c, other, step);
      allReduce(c, other);
      expectSum(c, other, step);
      c.collectives().unregisterMemory(other);
      fill(c, kept, step + 10);
      allReduce(c, kept);
      expectSum(c, kept, step + 10);
    }
  });
}

TEST_P(CollectivesTest, BucketsDoNotChangeBits) {
  run([](Rank &c) {
    constexpr size_t elements = 30'011;
    DeviceSpan data = c.allocate(elements);
    for (size_t bucket : {elements, size_t{10'000}, size_t{4096}, size_t{1000}, size_t{77}}) {
      fill(c, data);
      std::vector<Ticket> tickets;
      for (size_t at = 0; at < elements; at += bucket)
        tickets.push_back(start(c, elementsOf(data, at, std::min(bucket, elements - at))));
      for (Ticket ticket : tickets)
        c.collectives().wait(ticket);
      expectSum(c, data);
    }
  });
}

TEST_P(CollectivesTest, WaitsInAnyOrderOnManyOutstanding) {
  run([](Rank &c) {
    constexpr size_t count = 600;
    constexpr size_t elements = 35;
    DeviceSpan data = c.allocate(count * elements);
    auto part = [&](size_t i) { return elementsOf(data, i * elements, elements); };
    std::vector<Ticket> tickets(count);
    for (unsigned i = 0; i < count; ++i) {
      fill(c, part(i), i);
      tickets[i] = start(c, part(i));
      c.collectives().progress();
    }
    for (unsigned i = count; i-- > 0;) {
      c.collectives().wait(tickets[i]);
      EXPECT_TRUE(c.collectives().isComplete(tickets[i]));
    }
    for (unsigned i = 0; i < count; ++i)
      expectSum(c, part(i), i);
  });
}

// Mixed kinds of memory, outstanding together, over several steps and with uneven ranks.
TEST_P(CollectivesTest, RepeatsStepsWithUnevenRanks) {
  run([](Rank &c) {
    constexpr size_t elements = 20'001;
    DeviceSpan shared = c.allocate(elements), own = c.allocatePrivate(elements);
    for (unsigned step = 0; step < 12; ++step) {
      fill(c, shared, step);
      fill(c, own, step + 100);
      Ticket first = start(c, shared);
      for (unsigned i = 0; i < step % 4; ++i)
        c.collectives().progress();
      if (step % static_cast<unsigned>(c.size()) == static_cast<unsigned>(c.rank()))
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      Ticket second = start(c, own);
      c.collectives().wait(step % 2 ? second : first);
      c.collectives().wait(step % 2 ? first : second);
      expectSum(c, shared, step);
      expectSum(c, own, step + 100);
    }
  });
}

TEST_P(CollectivesTest, RoundsToBf16OnTheWire) {
  run([](Rank &c) {
    for (size_t elements : {size_t{1}, size_t{17}, size_t{40'003}}) {
      std::vector<float> wanted = serialBf16Sum(elements, c.size());
      for (DeviceSpan data : {c.allocate(elements), c.allocatePrivate(elements)}) {
        fill(c, data);
        allReduce(c, data, DType::BF16);
        expectBits(c, data, wanted);
      }
    }
  });
}

TEST_P(CollectivesTest, WaitsForALateRank) {
  run([](Rank &c) {
    DeviceSpan data = c.allocate(1000);
    fill(c, data);
    if (c.rank() == c.size() - 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
    allReduce(c, data);
    expectSum(c, data);
  });
}

TEST_P(CollectivesTest, TimeoutNamesWhatAndWho) {
  if (GetParam().ranks == 1)
    GTEST_SKIP() << "nobody to wait for";
  run([](Rank &c) {
    DeviceSpan data = c.allocate(1000); // enough for every rank to own a part
    std::vector<std::string> members = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"};
    fill(c, data);
    int late = c.size() - 1;
    if (c.rank() == late) // far longer than what a busy machine delays the others
      std::this_thread::sleep_for(std::chrono::seconds(2));
    Ticket ticket = start(c, data, DType::F32, {3, 17, members});
    if (c.rank() != late) {
      c.control().setTimeout(0.2);
      try {
        c.collectives().wait(ticket);
        ADD_FAILURE() << "no timeout";
      } catch (const Error &error) {
        EXPECT_EQ(error.code, ErrorCode::Peer);
        std::string text = error.what();
        std::string wanted = "all-reduce of bucket 3 (conv1.weight, conv1.bias, conv2.weight and 1 "
                             "more) in step 17 did not complete within 0.2 s: rank " +
                             std::to_string(late);
        EXPECT_EQ(text.substr(0, wanted.size()), wanted);
        EXPECT_NE(text.find("has not started it"), std::string::npos) << text;
        EXPECT_EQ(text.find(','), text.find(", conv1.bias")) << "names one rank alone: " << text;
      }
    }
    c.control().setTimeout(30);
    c.collectives().wait(ticket);
    expectSum(c, data);
  });
}

} // namespace
} // namespace dlc::rt::test
