// The proof of order against the closure of "happens before", computed by brute force over random
// programs.

#include "test/unit/artifact/HappensBefore.h"

#include "runtime/artifact/OrderProof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <random>
#include <string>

using namespace dlc::rt;
using dlc::rt::test::HappensBefore;
using dlc::rt::test::OrderStep;
namespace artifact = dlc::artifact;
using Stream = artifact::Stream;

namespace {

struct Step {
  enum Kind { Record, Wait, Access, Start, Finish } kind = Access;
  Stream stream = Stream::Compute;
  uint32_t number = 0; // of the event or collective
  ArenaRange range;
  bool writes = false;
  artifact::Operation operation = artifact::Operation::Dispatch; // if it is an access
  artifact::Phase phase = artifact::Phase::Forward;              // not of events
};
using Steps = std::vector<Step>;

ArenaRange randomRange(std::mt19937 &random) {
  auto begin = random() % 24;
  return {static_cast<uint32_t>(random() % 2), begin, begin + 1 + random() % 8};
}

/// Every event is recorded before it is waited for, every collective started before it is finished;
/// otherwise anything goes.
Steps randomSteps(std::mt19937 &random, size_t count) {
  Steps steps;
  uint32_t events = 0, collectives = 0;
  std::vector<uint32_t> open;
  std::map<uint32_t, artifact::Phase> phases; // of the collectives
  while (steps.size() < count) {
    Step step;
    step.stream = static_cast<Stream>(random() % 3);
    switch (random() % 8) {
    case 0:
    case 1:
      step.kind = Step::Record;
      step.number = events++;
      break;
    case 2:
    case 3:
      if (events == 0)
        continue;
      step.kind = Step::Wait;
      step.number = random() % 2 ? events - 1 : static_cast<uint32_t>(random() % events);
      break;
    case 4:
      step.kind = Step::Start;
      step.number = collectives++;
      step.range = randomRange(random);
      step.phase = random() % 2 ? artifact::Phase::Communication : artifact::Phase::Count;
      phases[step.number] = step.phase;
      open.push_back(step.number);
      break;
    case 5:
      if (open.empty())
        continue;
      step.kind = Step::Finish;
      step.number = open.back();
      step.phase = phases.at(step.number);
      open.pop_back();
      break;
    default:
      step.range = randomRange(random);
      step.writes = random() % 3 == 0;
      step.operation =
          std::array{artifact::Operation::Dispatch, artifact::Operation::Accumulate,
                     artifact::Operation::Recall, artifact::Operation::Download}[random() % 4];
      step.phase = std::array{artifact::Phase::Forward, artifact::Phase::Optimizer,
                              artifact::Phase::Count}[random() % 3];
    }
    steps.push_back(step);
  }
  return steps;
}

artifact::Operation operationOf(const Step &step) {
  switch (step.kind) {
  case Step::Record:
    return artifact::Operation::RecordEvent;
  case Step::Wait:
    return artifact::Operation::WaitEvent;
  case Step::Start:
    return artifact::Operation::CollectiveStart;
  case Step::Finish:
    return artifact::Operation::CollectiveWait;
  default:
    return step.operation;
  }
}

/// The first step that is not ordered with a conflicting one before it, as the proof says.
std::optional<uint32_t> provenFault(const Steps &steps) {
  StepOrderProof proof;
  for (uint32_t i = 0; i < steps.size(); ++i) {
    const Step &step = steps[i];
    std::optional<uint32_t> found;
    proof.begin(i, step.stream, operationOf(step), step.phase);
    switch (step.kind) {
    case Step::Record:
      proof.record(step.number);
      break;
    case Step::Wait:
      proof.wait(step.number);
      break;
    case Step::Access:
      found = step.writes ? proof.write(step.range) : proof.read(step.range);
      break;
    case Step::Start:
      found = proof.start(step.number, step.range);
      break;
    case Step::Finish:
      proof.finish(step.number);
      break;
    }
    if (found)
      return i;
  }
  return std::nullopt;
}

HappensBefore closureOf(const Steps &steps) {
  std::vector<OrderStep> order;
  for (const Step &step : steps) {
    static constexpr OrderStep::Kind kinds[] = {
        OrderStep::Record, OrderStep::Wait, OrderStep::Other, OrderStep::Start, OrderStep::Finish};
    order.push_back({kinds[step.kind], step.stream, step.number});
  }
  return HappensBefore(order);
}

/// The same by comparing all pairs, in a run of all steps.
std::optional<uint32_t> bruteForceFault(const Steps &steps) {
  HappensBefore isBefore = closureOf(steps);
  auto touches = [](const Step &step) {
    return step.kind == Step::Access || step.kind == Step::Start;
  };
  for (uint32_t j = 0; j < steps.size(); ++j)
    for (uint32_t i = 0; i < j; ++i) {
      const Step &first = steps[i], &second = steps[j];
      if (!touches(first) || !touches(second) || first.range.arena != second.range.arena ||
          first.range.begin >= second.range.end || second.range.begin >= first.range.end)
        continue;
      if (first.kind == Step::Access && second.kind == Step::Access && !first.writes &&
          !second.writes)
        continue;
      // A collective is complete with its wait.
      uint32_t end = i;
      if (first.kind == Step::Start) {
        while (end < j && (steps[end].kind != Step::Finish || steps[end].number != first.number))
          ++end;
        if (end == j)
          return j;
      }
      if (!isBefore(end, j))
        return j;
    }
  return std::nullopt;
}

/// What runs when, said once more and in other words.
bool runsIn(const std::string &pass, const Step &step) {
  bool counts = step.phase == artifact::Phase::Count;
  if (step.kind == Step::Record || step.kind == Step::Wait)
    return true;
  if (step.kind != Step::Access)
    return pass == "only" || pass == (counts ? "last count" : "last");
  switch (step.operation) {
  case artifact::Operation::Accumulate:
    return counts ? pass == "count" || pass == "last count" : pass == "before" || pass == "last";
  case artifact::Operation::Recall:
    return pass == "last count" || pass == "before" || pass == "last";
  case artifact::Operation::Download:
    return pass == "only" || pass == "before" || pass == "last";
  default:
    if (pass == "count" || pass == "last count")
      return counts;
    return pass != "before" || step.phase != artifact::Phase::Optimizer;
  }
}

/// The same in a run of the steps of one pass.
std::optional<uint32_t> bruteForceFault(const Steps &steps, const std::string &pass) {
  Steps part;
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < steps.size(); ++i)
    if (runsIn(pass, steps[i])) {
      part.push_back(steps[i]);
      places.push_back(i);
    }
  std::optional<uint32_t> found = bruteForceFault(part);
  return found ? std::optional(places[*found]) : std::nullopt;
}

} // namespace

TEST(OrderProof, AgreesWithTheClosureOnRandomPrograms) {
  size_t faulty = 0, sound = 0;
  std::map<std::string, size_t> alone; // faults that one pass alone has
  for (unsigned seed = 0; seed < 60000; ++seed) {
    std::mt19937 random(seed);
    Steps steps = randomSteps(random, 2 + seed % 24);
    std::optional<uint32_t> wanted;
    std::vector<std::string> at;
    for (std::string pass : {"only", "count", "last count", "before", "last"})
      if (std::optional<uint32_t> found = bruteForceFault(steps, pass)) {
        wanted = wanted ? std::min(*wanted, *found) : *found;
        at.push_back(pass);
      }
    ASSERT_EQ(provenFault(steps), wanted) << "seed " << seed;
    (wanted ? faulty : sound) += 1;
    if (at.size() == 1)
      ++alone[at[0]];
  }
  EXPECT_GT(faulty, 2000u);
  EXPECT_GT(sound, 2000u);
  for (std::string pass : {"only", "last count", "before", "last"}) // what counts runs in the last
    EXPECT_GT(alone[pass], 10u) << pass;
}

// Before the last micro-batch what counts has no collective to order its sum with what follows.
TEST(OrderProof, SumsOfCountsNeedTheirOwnOrder) {
  using artifact::Operation;
  auto fault = [](bool waits) {
    StepOrderProof proof;
    ArenaRange bucket{0, 0, 64};
    uint32_t number = 0;
    auto begin = [&](Stream stream, Operation operation) {
      proof.begin(number++, stream, operation, artifact::Phase::Count);
    };
    begin(Stream::Compute, Operation::Dispatch);
    EXPECT_FALSE(proof.write(bucket));
    begin(Stream::Compute, Operation::RecordEvent);
    proof.record(0);
    begin(Stream::Comm, Operation::WaitEvent);
    proof.wait(0);
    begin(Stream::Comm, Operation::Accumulate);
    EXPECT_FALSE(proof.write(bucket));
    begin(Stream::Comm, Operation::RecordEvent);
    proof.record(1);
    begin(Stream::Comm, Operation::CollectiveStart);
    EXPECT_FALSE(proof.start(0, bucket));
    begin(Stream::Compute, Operation::CollectiveWait);
    proof.finish(0);
    if (waits) {
      begin(Stream::Compute, Operation::WaitEvent);
      proof.wait(1);
    }
    begin(Stream::Compute, Operation::Dispatch);
    return proof.read(bucket);
  };
  EXPECT_EQ(fault(false), std::optional<uint32_t>(3));
  EXPECT_EQ(fault(true), std::nullopt);
}

// A bucket filled by many kernels, sent, and applied in one piece, for many buckets: 10^5
// instructions, which cost squared would take minutes.
TEST(OrderProof, OrdersManyBucketsOfManySlices) {
  constexpr uint32_t buckets = 2000, slices = 50;
  auto start = std::chrono::steady_clock::now();
  OrderProof proof;
  uint32_t instruction = 0;
  for (uint32_t bucket = 0; bucket < buckets; ++bucket) {
    uint64_t base = uint64_t{bucket} * slices * 64;
    for (uint32_t slice = 0; slice < slices; ++slice) {
      proof.begin(instruction++, Stream::Compute);
      ASSERT_FALSE(proof.write({0, base + slice * 64, base + slice * 64 + 60}));
    }
    proof.begin(instruction++, Stream::Compute);
    proof.record(bucket);
    proof.begin(instruction++, Stream::Comm);
    proof.wait(bucket);
    proof.begin(instruction++, Stream::Comm);
    ASSERT_FALSE(proof.start(bucket, {0, base, base + slices * 64}));
    proof.begin(instruction++, Stream::Compute);
    proof.finish(bucket);
    proof.begin(instruction++, Stream::Compute);
    ASSERT_FALSE(proof.read({0, base, base + slices * 64}));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}
