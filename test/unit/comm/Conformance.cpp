// What every communicator promises, whatever carries its data.
#include "test/unit/comm/Conformance.h"

#include "runtime/artifact/Error.h"
#include "test/unit/comm/Values.h"

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

namespace dlc::rt::test {
namespace {

using artifact::DType;

std::span<float> allocateFloats(Communicator &communicator, size_t elements) {
  std::span<std::byte> memory = communicator.allocateShared(elements * sizeof(float));
  return {reinterpret_cast<float *>(memory.data()), elements};
}

void allReduce(Communicator &communicator, std::span<float> data, DType wire = DType::F32) {
  communicator.wait(communicator.startAllReduce(data.data(), data.size(), wire, {}));
}

void expectSameBits(std::span<const float> got, std::span<const float> wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  EXPECT_EQ(firstDifference(got, wanted), wanted.size());
}

constexpr size_t oddSizes[] = {0, 1, 15, 16, 17, 33, 1000, 65537, 1'000'003};

TEST_P(CommunicatorTest, KnowsItsRanks) {
  run([&](Communicator &c) {
    EXPECT_EQ(c.size(), GetParam().ranks);
    EXPECT_GE(c.rank(), 0);
    EXPECT_LT(c.rank(), c.size());
    EXPECT_LT(c.localRank(), c.localSize());
    EXPECT_LE(c.localSize(), c.size());
  });
}

TEST_P(CommunicatorTest, SharedMemoryIsZeroedAndAligned) {
  run([](Communicator &c) {
    for (size_t bytes : {64, 100'000}) {
      std::span<std::byte> memory = c.allocateShared(bytes);
      ASSERT_EQ(memory.size(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0u);
      for (std::byte b : memory)
        ASSERT_EQ(b, std::byte{0});
    }
  });
}

TEST_P(CommunicatorTest, SumsInRankOrderBitForBit) {
  run([](Communicator &c) {
    for (size_t elements : oddSizes) {
      std::span<float> data = allocateFloats(c, elements);
      fillOperand(data, c.rank());
      allReduce(c, data);
      expectSameBits(data, serialSum(elements, c.size()));
    }
  });
}

TEST_P(CommunicatorTest, SumsMemoryOfAnyOrigin) {
  run([](Communicator &c) {
    for (size_t elements : oddSizes) {
      std::vector<float> data(elements);
      fillOperand(data, c.rank());
      allReduce(c, data);
      expectSameBits(data, serialSum(elements, c.size()));
    }
  });
}

TEST_P(CommunicatorTest, SumsSharedMemoryAtAnyOffset) {
  run([](Communicator &c) {
    std::span<float> memory = allocateFloats(c, 5000);
    std::span<float> data = memory.subspan(13, 4001);
    fillOperand(data, c.rank());
    allReduce(c, data);
    expectSameBits(data, serialSum(data.size(), c.size()));
    EXPECT_EQ(memory[12], 0.0f);
    EXPECT_EQ(memory[13 + 4001], 0.0f);
  });
}

TEST_P(CommunicatorTest, BucketsDoNotChangeBits) {
  run([](Communicator &c) {
    constexpr size_t elements = 30'011;
    std::span<float> data = allocateFloats(c, elements);
    std::vector<float> wanted = serialSum(elements, c.size());
    for (size_t bucket : {elements, size_t{10'000}, size_t{4096}, size_t{1000}, size_t{77}}) {
      fillOperand(data, c.rank());
      std::vector<Communicator::Ticket> tickets;
      for (size_t at = 0; at < elements; at += bucket)
        tickets.push_back(
            c.startAllReduce(data.data() + at, std::min(bucket, elements - at), DType::F32, {}));
      for (Communicator::Ticket ticket : tickets)
        c.wait(ticket);
      expectSameBits(data, wanted);
    }
  });
}

TEST_P(CommunicatorTest, WaitsInAnyOrderOnManyOutstanding) {
  run([](Communicator &c) {
    constexpr size_t count = 600;
    constexpr size_t elements = 35;
    std::span<float> data = allocateFloats(c, count * elements);
    std::vector<Communicator::Ticket> tickets(count);
    for (unsigned i = 0; i < count; ++i) {
      std::span<float> part = data.subspan(i * elements, elements);
      fillOperand(part, c.rank(), i);
      tickets[i] = c.startAllReduce(part.data(), elements, DType::F32, {});
      c.progress();
    }
    for (unsigned i = count; i-- > 0;) {
      c.wait(tickets[i]);
      EXPECT_TRUE(c.isComplete(tickets[i]));
    }
    for (unsigned i = 0; i < count; ++i)
      expectSameBits(data.subspan(i * elements, elements), serialSum(elements, c.size(), i));
  });
}

// Mixed kinds of memory, outstanding together, over several steps and with uneven ranks.
TEST_P(CommunicatorTest, RepeatsStepsWithUnevenRanks) {
  run([](Communicator &c) {
    constexpr size_t elements = 20'001;
    std::span<float> shared = allocateFloats(c, elements);
    std::vector<float> own(elements);
    for (unsigned step = 0; step < 12; ++step) {
      fillOperand(shared, c.rank(), step);
      fillOperand(own, c.rank(), step + 100);
      auto first = c.startAllReduce(shared.data(), elements, DType::F32, {});
      for (unsigned i = 0; i < step % 4; ++i)
        c.progress();
      if (step % static_cast<unsigned>(c.size()) == static_cast<unsigned>(c.rank()))
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      auto second = c.startAllReduce(own.data(), elements, DType::F32, {});
      c.wait(step % 2 ? second : first);
      c.wait(step % 2 ? first : second);
      expectSameBits(shared, serialSum(elements, c.size(), step));
      expectSameBits(own, serialSum(elements, c.size(), step + 100));
    }
  });
}

TEST_P(CommunicatorTest, RoundsToBf16OnTheWire) {
  run([](Communicator &c) {
    for (size_t elements : {size_t{1}, size_t{17}, size_t{40'003}}) {
      std::vector<float> wanted = serialBf16Sum(elements, c.size());
      std::span<float> shared = allocateFloats(c, elements);
      fillOperand(shared, c.rank());
      allReduce(c, shared, DType::BF16);
      expectSameBits(shared, wanted);
      std::vector<float> own(elements);
      fillOperand(own, c.rank());
      allReduce(c, own, DType::BF16);
      expectSameBits(own, wanted);
    }
  });
}

TEST_P(CommunicatorTest, WaitsForALateRank) {
  run([](Communicator &c) {
    std::span<float> data = allocateFloats(c, 1000);
    fillOperand(data, c.rank());
    if (c.rank() == c.size() - 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(150));
    allReduce(c, data);
    expectSameBits(data, serialSum(data.size(), c.size()));
  });
}

TEST_P(CommunicatorTest, TimeoutNamesWhatAndWho) {
  if (GetParam().ranks == 1)
    GTEST_SKIP() << "nobody to wait for";
  run([](Communicator &c) {
    constexpr size_t elements = 1000; // enough for every rank to own a part
    std::span<float> data = allocateFloats(c, elements);
    std::vector<std::string> members = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"};
    fillOperand(data, c.rank());
    int late = c.size() - 1;
    if (c.rank() == late) // far longer than what a busy machine delays the others
      std::this_thread::sleep_for(std::chrono::seconds(2));
    auto ticket = c.startAllReduce(data.data(), elements, DType::F32, {3, 17, members});
    if (c.rank() != late) {
      c.setTimeout(0.2);
      try {
        c.wait(ticket);
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
    c.setTimeout(30);
    c.wait(ticket);
    expectSameBits(data, serialSum(elements, c.size()));
  });
}

TEST_P(CommunicatorTest, AddsDoublesInRankOrder) {
  run([](Communicator &c) {
    std::vector<double> values = {0.1 * (c.rank() + 1), 1e300 / (c.rank() + 3), 1.0};
    std::vector<double> wanted = {0.1, 1e300 / 3, 1.0};
    for (int r = 1; r < c.size(); ++r) {
      wanted[0] += 0.1 * (r + 1);
      wanted[1] += 1e300 / (r + 3);
      wanted[2] += 1.0;
    }
    c.allReduceSum(values, "sum");
    EXPECT_EQ(values, wanted);
    c.allReduceSum({}, "sum");
  });
}

TEST_P(CommunicatorTest, GathersUnequalSizes) {
  run([](Communicator &c) {
    auto bytesOf = [](int rank) {
      std::vector<std::byte> bytes(static_cast<size_t>(rank) * 70'000);
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(rank));
      return bytes;
    };
    auto all = c.allGather(bytesOf(c.rank()), "gathering");
    ASSERT_EQ(all.size(), static_cast<size_t>(c.size()));
    for (int r = 0; r < c.size(); ++r)
      EXPECT_EQ(all[r], bytesOf(r));
  });
}

TEST_P(CommunicatorTest, BroadcastsFromEveryRank) {
  run([](Communicator &c) {
    for (int root = 0; root < c.size(); ++root) {
      std::vector<int> values(50'000, c.rank());
      if (c.rank() == root)
        std::iota(values.begin(), values.end(), root);
      c.broadcast(std::as_writable_bytes(std::span(values)), root);
      EXPECT_EQ(values.front(), root);
      EXPECT_EQ(values.back(), root + 49'999);
    }
  });
}

TEST_P(CommunicatorTest, BarrierHoldsUntilTheLast) {
  run([](Communicator &c) {
    c.barrier("barrier");
    auto begin = std::chrono::steady_clock::now();
    if (c.rank() == c.size() - 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    c.barrier("barrier");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(80));
  });
}

} // namespace
} // namespace dlc::rt::test
