// What every device promises, shown without looking at its memory.

#include "test/unit/device/Conformance.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace dlc::rt::test {
namespace {

using artifact::ArenaKind;
using artifact::Operation;
using artifact::Phase;
using artifact::Stream;

constexpr size_t elements = tinyElements;
constexpr size_t bytes = elements * sizeof(float);

Places everywhere(DeviceSpan memory) { return {memory, memory}; }

template <typename Operation>
void add(ResolvedProgram &program, Operation operation, Stream stream = Stream::Compute,
         const StepPasses &passes = everyPass) {
  program.instructions.push_back({stream, std::move(operation), passes});
}

TEST_P(DeviceTest, AllocatesArenasOfEveryKind) {
  run([](Bench &bench, ControlPlane &) {
    std::vector<DeviceSpan> spans;
    for (ArenaKind kind : artifact::EnumValuesArenaKind())
      for (size_t size : {0, 64, 100'000})
        spans.push_back(bench.allocate(kind, size));
    for (size_t i = 0; i < spans.size(); ++i) {
      EXPECT_EQ(spans[i].address % 64, 0u);
      for (size_t k = 0; k < i; ++k)
        EXPECT_TRUE(spans[i].address >= spans[k].address + spans[k].bytes ||
                    spans[k].address >= spans[i].address + spans[i].bytes)
            << i << " and " << k;
    }
  });
}

TEST_P(DeviceTest, GivesBackWhatWasUploaded) {
  run([](Bench &bench, ControlPlane &) {
    DeviceSpan memory = bench.allocate(ArenaKind::Variables, 5'000'000);
    std::vector<std::byte> data(5'000'000);
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<std::byte>(i * 7);
    bench.device->upload(data, memory);
    std::vector<std::byte> part(3'000'001);
    bench.device->download(memory.subspan(13, part.size()), part);
    EXPECT_TRUE(std::ranges::equal(part, std::span(data).subspan(13, part.size())));
    bench.device->upload(std::span(part).first(5), memory.subspan(100, 5));
    bench.device->download(memory.subspan(99, 7), std::span(part).first(7));
    EXPECT_EQ(part[0], data[99]);
    EXPECT_EQ(part[1], data[13]);
    EXPECT_EQ(part[6], data[105]);
  });
}

TEST_P(DeviceTest, UploadsWhatWasStaged) {
  run([](Bench &bench, ControlPlane &) {
    DeviceSpan memory = bench.variable(Floats(elements, 1));
    HostBlock block = bench.device->stage(memory);
    ASSERT_EQ(block.bytes.size(), bytes);
    Floats values(elements);
    std::iota(values.begin(), values.end(), 1.0f);
    std::memcpy(block.bytes.data(), values.data(), bytes);
    bench.device->upload(block.bytes, memory);
    EXPECT_EQ(bench.read(memory), values);
  });
}

/// An input goes up, for compute.
void addUpload(ResolvedProgram &program, const Places &input) {
  uint32_t event = program.events++;
  add(program, ResolvedProgram::Upload{{input}, {}}, Stream::Copy);
  add(program, ResolvedProgram::RecordEvent{event}, Stream::Copy);
  add(program, ResolvedProgram::WaitEvent{event});
}

/// input -> memory
ResolvedProgram copyingProgram(const Places &input, DeviceSpan to) {
  ResolvedProgram program;
  addUpload(program, input);
  add(program, ResolvedProgram::Copy{input, everywhere(to)});
  return program;
}

TEST_P(DeviceTest, InputsAreStagedInOnePlace) {
  run([](Bench &bench, ControlPlane &) {
    Places input = {bench.allocate(ArenaKind::Inputs), bench.allocate(ArenaKind::Inputs)};
    DeviceSpan copied = bench.variable(Floats(elements, 1));
    auto executable = bench.device->prepare(copyingProgram(input, copied));
    executable->run({1});
    EXPECT_EQ(bench.read(copied), Floats(elements)) << "zeros at first";
    HostBlock last = bench.device->stage(input[1].subspan(bytes - 4, 4));
    float value = 5;
    std::memcpy(last.bytes.data(), &value, 4);
    executable->run({1});
    EXPECT_EQ(bench.read(copied).back(), 5);
    executable->run({0});
    EXPECT_EQ(bench.read(copied), Floats(elements)) << "of the other slot";
  });
}

/// A row of the input's 4, which is an array backwards.
void tell(ArrayRow &row, const std::shared_ptr<std::vector<uint8_t>> &array) {
  auto length = static_cast<int64_t>(array->size());
  row = {std::as_bytes(std::span(*array)), array};
  row.first = length - 1;
  row.axes.back() = {length, -1, 0, length};
}

/// Where the device keeps arrays: some rows of an input come from them, others are staged, in the
/// one run that was told. Rows are counted in elements.
TEST_P(DeviceTest, RowsComeFromArraysThatItKeeps) {
  run([](Bench &bench, ControlPlane &) {
    Places input = {bench.allocate(ArenaKind::Inputs), bench.allocate(ArenaKind::Inputs)};
    DeviceSpan copied = bench.variable(Floats(elements));
    auto executable = bench.device->prepare(copyingProgram(input, copied));
    ASSERT_TRUE(executable->rows(input[0], artifact::DType::F32, 4).empty());
    constexpr size_t length = elements / 4;
    std::vector<uint64_t> sizes(3, length);
    uint64_t kept = bench.device->keepArrays(sizes);
    ASSERT_EQ(kept > 0, GetParam().kind.name == "cuda");
    if (kept == 0)
      return;
    std::vector<std::shared_ptr<std::vector<uint8_t>>> arrays;
    for (uint8_t first : {10, 50, 100}) {
      arrays.push_back(std::make_shared<std::vector<uint8_t>>(length));
      std::iota(arrays.back()->begin(), arrays.back()->end(), first);
    }
    for (unsigned slot : {0u, 1u})
      bench.stageInput(input[slot], 1 + static_cast<float>(slot));
    for (size_t step = 0; step < 6; ++step) {
      auto slot = static_cast<unsigned>(step % 2);
      Floats wanted(elements, 1 + static_cast<float>(slot));
      std::span<ArrayRow> rows = executable->rows(input[slot], artifact::DType::F32, 4);
      ASSERT_EQ(rows.size(), 4);
      for (size_t row = step % 3; step < 4 && row < 4; row += 2) { // the last steps are staged
        const auto &array = arrays[(step + row) % 3];
        tell(rows[row], array);
        std::copy(array->rbegin(), array->rend(), wanted.begin() + static_cast<long>(row * length));
        if (step != 1) { // of which a row of 25 elements may have one
          rows[row].spots = {{step + row, -0.5F}};
          wanted[row * length + step + row] = -0.5F;
        }
      }
      executable->run({slot});
      EXPECT_EQ(bench.read(copied), wanted) << "step " << step;
    }
  });
}

TEST_P(DeviceTest, RunsFollowEachOther) {
  run([](Bench &bench, ControlPlane &) {
    Places input = {bench.allocate(ArenaKind::Inputs), bench.allocate(ArenaKind::Inputs)};
    DeviceSpan copied = bench.variable(Floats(elements));
    auto executable = bench.device->prepare(copyingProgram(input, copied));
    bench.stageInput(input[0], 10);
    bench.stageInput(input[1], 11);
    for (unsigned last : {0u, 1u, 0u, 1u}) {
      for (unsigned i = 0; i < 7; ++i)
        executable->run({(i + last) % 2});
      EXPECT_EQ(bench.read(copied), Floats(elements, last ? 11 : 10));
    }
  });
}

TEST_P(DeviceTest, UploadsFollowRuns) {
  run([](Bench &bench, ControlPlane &) {
    DeviceSpan from = bench.variable(Floats(elements)), to = bench.variable(Floats(elements));
    ResolvedProgram program;
    add(program, ResolvedProgram::Copy{everywhere(from), everywhere(to)});
    auto executable = bench.device->prepare(program);
    for (float value : {1.0f, 2.0f, 3.0f, 4.0f}) {
      executable->run({});
      Floats next(elements, value);
      bench.device->upload(std::as_bytes(std::span(next)), from);
      EXPECT_EQ(bench.read(to), Floats(elements, value - 1));
      EXPECT_EQ(bench.read(from), next);
    }
  });
}

/// gradient = weight * input; weight -= rate * gradient, with the rate as the only scalar and
/// gradient's and weight's first elements as result.
struct Training {
  explicit Training(Bench &bench, bool accumulates = false)
      : weight(bench.variable(Floats(elements, 2))), rate(bench.allocate(ArenaKind::Variables, 64)),
        gradient(bench.allocate(ArenaKind::Gradients)) {
    input = {bench.allocate(ArenaKind::Inputs), bench.allocate(ArenaKind::Inputs)};
    addUpload(program, input);
    add(program, ResolvedProgram::Upload{{}, {{everywhere(rate.subspan(0, 4)), 8}}});
    uint32_t computed = program.events++;
    CollectiveOperation bucket;
    bucket.memory = gradient;
    program.collectives.push_back({bucket, {"weight"}});
    program.resultBytes = 8;
    add(program,
        ResolvedProgram::Launch{bench.load(0), {everywhere(weight), input, everywhere(gradient)}});
    if (accumulates)
      add(program,
          ResolvedProgram::Accumulate{bench.load(2), gradient, bench.allocate(ArenaKind::Sums)},
          Stream::Compute, passesOf(Operation::Accumulate, Phase::Backward));
    add(program, ResolvedProgram::RecordEvent{computed});
    add(program, ResolvedProgram::WaitEvent{computed}, Stream::Comm);
    StepPasses oncePerStep = passesOf(Operation::CollectiveStart, Phase::Communication);
    add(program, ResolvedProgram::Start{0}, Stream::Comm, oncePerStep);
    add(program, ResolvedProgram::Wait{0}, Stream::Compute, oncePerStep);
    add(program,
        ResolvedProgram::Launch{bench.load(1),
                                {everywhere(weight), everywhere(gradient), everywhere(rate)}},
        Stream::Compute, oncePerStep);
    add(program, ResolvedProgram::Download{{{everywhere(gradient.subspan(0, 4)), 0},
                                            {everywhere(weight.subspan(0, 4)), 4}}});
    executable = bench.device->prepare(program);
  }

  void run(unsigned slot, float newRate, MicroBatch part = {}, bool timed = false) {
    lastSlot = slot;
    std::vector<std::byte> block(12);
    std::memcpy(&block[8], &newRate, 4);
    executable->run({slot, 3, part, block, timed});
    std::ranges::fill(block, std::byte{0x55}); // which the run has taken over
  }
  std::array<float, 2> result() { return result(lastSlot); }
  std::array<float, 2> result(unsigned slot) {
    std::array<float, 2> pair;
    std::memcpy(pair.data(), executable->results(slot).data(), sizeof pair);
    return pair;
  }

  DeviceSpan weight, rate, gradient;
  Places input;
  ResolvedProgram program;
  std::unique_ptr<Executable> executable;
  unsigned lastSlot = 0;
};

TEST_P(DeviceTest, RunsKernelsWithScalarsAndResults) {
  run([](Bench &bench, ControlPlane &) {
    Training training(bench);
    bench.stageInput(training.input[0], 3);
    bench.stageInput(training.input[1], -1);
    training.run(0, 0.25f);
    EXPECT_EQ(training.result(), (std::array{6.0f, 0.5f}));
    EXPECT_EQ(bench.read(training.weight), Floats(elements, 0.5f));
    training.run(1, 0.5f);
    training.run(0, 1); // without a look at what came of the first
    EXPECT_EQ(training.result(), (std::array{2.25f, -1.5f}));
  });
}

/// Whatever is next to what in memory, in a block, or in both.
TEST_P(DeviceTest, ScalarsAndResultsLieAtTheirOffsets) {
  run([](Bench &bench, ControlPlane &) {
    DeviceSpan memory = bench.variable(Floats(4));
    auto at = [&](size_t place, size_t offset) {
      return ResolvedProgram::Transfer{everywhere(memory.subspan(4 * place, 4)), 4 * offset};
    };
    ResolvedProgram program;
    program.resultBytes = 16;
    add(program, ResolvedProgram::Upload{{}, {at(0, 1), at(1, 2), at(2, 0), at(3, 3)}});
    add(program, ResolvedProgram::Download{{at(0, 2), at(1, 3), at(2, 1), at(3, 0)}});
    auto executable = bench.device->prepare(program);
    Floats scalars = {10, 11, 12, 13};
    executable->run({.scalars = std::as_bytes(std::span(scalars))});
    EXPECT_EQ(bench.read(memory), (Floats{11, 12, 10, 13}));
    std::array<float, 4> results;
    std::memcpy(results.data(), executable->results(0).data(), sizeof results);
    EXPECT_EQ(results, (std::array{13.0f, 10.0f, 11.0f, 12.0f}));
  });
}

TEST_P(DeviceTest, RunsKeepTheirScalars) {
  run([](Bench &bench, ControlPlane &) {
    Training training(bench);
    bench.stageInput(training.input[0], 3);
    for (float rate : {0.25f, 0.5f, -1.0f}) // on one slot, without a look at what came of it
      training.run(0, rate);
    EXPECT_EQ(training.result(), (std::array{-0.75f, -1.0f}));
  });
}

TEST_P(DeviceTest, ResultsStayUntilTheirSlotRunsAgain) {
  run([](Bench &bench, ControlPlane &) {
    Training training(bench);
    bench.stageInput(training.input[0], 3);
    bench.stageInput(training.input[1], -1);
    for (int repeat = 0; repeat < 4; ++repeat) { // so that what a device records is used, too
      training.run(0, 0);
      training.run(1, 0);
      EXPECT_EQ(training.result(0), (std::array{6.0f, 2.0f}));
      EXPECT_EQ(training.result(1), (std::array{-2.0f, 2.0f}));
      EXPECT_FALSE(training.executable->isRunning());
    }
  });
}

TEST_P(DeviceTest, RanksAddUp) {
  run(
      [](Bench &bench, ControlPlane &control) {
        Training training(bench);
        for (unsigned step = 0; step < 6; ++step) {
          bench.stageInput(training.input[step % 2], static_cast<float>(control.rank()) + 1);
          training.run(step % 2, step ? 0 : 0.125f);
          EXPECT_EQ(training.result(),
                    step ? (std::array{3.75f, 1.25f}) : (std::array{6.0f, 1.25f}));
        }
      },
      2);
}

TEST_P(DeviceTest, MicroBatchesAddUp) {
  run(
      [](Bench &bench, ControlPlane &control) {
        Training training(bench, true);
        for (int64_t part = 0; part < 3; ++part) {
          auto input = static_cast<float>(1 + control.rank() * 3 + part); // 1 to 6
          bench.stageInput(training.input[part % 2], input);
          training.run(part % 2, 0.125f, {part, 3});
          if (part < 2) {
            EXPECT_EQ(training.result(), (std::array{2 * input, 2.0f}));
          }
        }
        EXPECT_EQ(training.result(), (std::array{42.0f, -3.25f}));
      },
      2);
}

/// What is counted ahead is the sum over all micro-batches and ranks in every one of them, and of
/// the inputs of the present one is what the result shows beside it.
TEST_P(DeviceTest, MicroBatchesRecallWhatWasCounted) {
  run(
      [](Bench &bench, ControlPlane &control) {
        ResolvedProgram program;
        Places input = {bench.allocate(ArenaKind::Inputs), bench.allocate(ArenaKind::Inputs)};
        DeviceSpan bucket = bench.allocate(ArenaKind::Gradients),
                   sum = bench.allocate(ArenaKind::Sums),
                   seen = bench.allocate(ArenaKind::Transient);
        addUpload(program, input);
        auto addCounting = [&](auto operation, Operation kind, Stream stream = Stream::Compute) {
          add(program, std::move(operation), stream, passesOf(kind, Phase::Count));
        };
        addCounting(ResolvedProgram::Copy{input, everywhere(bucket)}, Operation::Copy);
        addCounting(ResolvedProgram::Accumulate{bench.load(2), bucket, sum}, Operation::Accumulate);
        CollectiveOperation message;
        message.memory = bucket;
        program.collectives.push_back({message, {"count"}});
        uint32_t counted = program.events++;
        add(program, ResolvedProgram::RecordEvent{counted});
        add(program, ResolvedProgram::WaitEvent{counted}, Stream::Comm);
        addCounting(ResolvedProgram::Start{0}, Operation::CollectiveStart, Stream::Comm);
        addCounting(ResolvedProgram::Wait{0}, Operation::CollectiveWait);
        addCounting(ResolvedProgram::Recall{bucket, sum}, Operation::Recall);
        add(program, ResolvedProgram::Copy{everywhere(bucket), everywhere(seen)}, Stream::Compute,
            passesOf(Operation::Copy, Phase::Forward));
        program.resultBytes = 8;
        add(program,
            ResolvedProgram::Download{{{everywhere(seen.subspan(0, 4)), 0},
                                       {{input[0].subspan(0, 4), input[1].subspan(0, 4)}, 4}}},
            Stream::Compute, passesOf(Operation::Download, Phase::Communication));
        std::unique_ptr<Executable> executable = bench.device->prepare(program);
        for (int step = 0; step < 2; ++step)
          for (bool counts : {true, false})
            for (int64_t part = 0; part < 3; ++part) {
              auto value = static_cast<float>(1 + control.rank() * 3 + part + 10 * step);
              bench.stageInput(input[part % 2], value);
              executable->run({static_cast<unsigned>(part % 2), 3, {part, 3, counts}, {}, false});
              std::array<float, 2> found;
              std::memcpy(found.data(), executable->results(part % 2).data(), sizeof found);
              if (!counts) {
                EXPECT_EQ(found, (std::array{21.0f + 60.0f * static_cast<float>(step), value}));
              }
            }
      },
      2);
}

TEST_P(DeviceTest, TimesEveryInstruction) {
  run([](Bench &bench, ControlPlane &) {
    Training training(bench);
    bench.stageInput(training.input[0], 3);
    for (int round = 0; round < 2; ++round) {
      training.run(0, 0.25f, {}, true);
      std::vector<unsigned> seen;
      for (const TraceEvent &event : training.executable->times()) {
        EXPECT_LE(event.begin, event.end);
        seen.push_back(event.instruction);
      }
      std::ranges::sort(seen);
      std::vector<unsigned> wanted(training.program.instructions.size());
      std::iota(wanted.begin(), wanted.end(), 0);
      EXPECT_EQ(seen, wanted);
    }
  });
}

TEST_P(DeviceTest, OrdersStreamsByEvents) {
  run([](Bench &bench, ControlPlane &) {
    DeviceSpan a = bench.variable(Floats(elements, 1)), b = bench.variable(Floats(elements, 2));
    DeviceSpan early = bench.variable(Floats(elements, 3)), late = bench.variable(Floats(elements));
    ResolvedProgram program;
    program.events = 2;
    add(program, ResolvedProgram::Copy{everywhere(early), everywhere(a)});
    add(program, ResolvedProgram::RecordEvent{0});
    add(program, ResolvedProgram::WaitEvent{0}, Stream::Copy);
    add(program, ResolvedProgram::Copy{everywhere(a), everywhere(b)}, Stream::Copy);
    add(program, ResolvedProgram::RecordEvent{1}, Stream::Copy);
    add(program, ResolvedProgram::WaitEvent{1});
    add(program, ResolvedProgram::Copy{everywhere(late), everywhere(a)});
    auto executable = bench.device->prepare(program);
    executable->run({});
    EXPECT_EQ(bench.read(b), Floats(elements, 3));
    EXPECT_EQ(bench.read(a), Floats(elements));
  });
}

} // namespace
} // namespace dlc::rt::test
