// What tests of whole runs share: data, runs, and what a run directory keeps.
#pragma once

#include "runtime/comm/ControlPlanes.h"
#include "runtime/train/Trainer.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/data/TestFiles.h"
#include "test/unit/device/Devices.h"
#include "test/unit/train/CopyingArtifact.h"

#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

namespace dlc::rt {

/// Runs whose parameter ends as the last sample trained on, on devices that run at once and ahead.
class TrainerTest : public ::testing::TestWithParam<test::DeviceKind> {
protected:
  TrainerTest() { writeData(std::vector<float>(samples, 2)); }

  /// `scale` times the sample's number is its x.
  void writeData(const std::vector<float> &losses, float scale = 1) {
    std::vector<float> x(samples * test::copiedElements);
    for (size_t i = 0; i < x.size(); ++i) {
      size_t sample = i / test::copiedElements;
      x[i] = scale * static_cast<float>(sample);
    }
    std::string n = std::to_string(samples) + ",";
    test::writeFile(directory / "x.npy", test::npyBytes("<f4", n + " 4", test::bytesOfVector(x)));
    test::writeFile(directory / "loss.npy", test::npyBytes("<f4", n, test::bytesOfVector(losses)));
  }

  TrainOptions options(const std::string &run) {
    TrainOptions options;
    for (const char *name : {"x", "loss"})
      options.data.emplace_back(name, directory / (std::string(name) + ".npy"));
    options.runDirectory = directory / run;
    options.seed = 5;
    return options;
  }

  /// `raised` is a signal that comes before the first step.
  void train(const TrainOptions &options, int ranks = 1, double validation = 0,
             test::Copying how = test::Copying::Reduced, int raised = 0) {
    test::CopyingArtifact copying(validation, how);
    if (edit)
      edit(copying.root.root);
    Artifact artifact(copying.pack(), "copying.dlx");
    StopSignal signals;
    if (raised)
      std::raise(raised);
    runInProcess(ranks, [&](ControlPlane &control) {
      Session session(artifact, control, {1, options.seed.value_or(0), GetParam().make});
      Console console(control.rank() == 0, false, out);
      Trainer(session, options, console, signals).run();
    });
    std::fflush(out);
  }

  std::string failure(const TrainOptions &options, int ranks = 1,
                      test::Copying how = test::Copying::Reduced) {
    return test::errorOf([&] { train(options, ranks, 0, how); });
  }

  /// What --resume --run DIR alone asks for.
  TrainOptions resumption(const std::string &run) {
    TrainOptions options;
    options.runDirectory = directory / run;
    options.resume = true;
    return options;
  }

  /// All that a run directory keeps but measured times, and events, which hold them throughout.
  std::map<std::string, std::string> kept(const std::string &run) {
    std::map<std::string, std::string> files;
    for (const auto &entry : std::filesystem::directory_iterator(directory / run)) {
      std::string name = entry.path().filename(), content = test::contentOf(entry.path());
      if (name.ends_with(".jsonl") || name.ends_with(".csv"))
        content = withoutTimes(content, name.ends_with(".jsonl"));
      if (!name.starts_with("events."))
        files[name] = content;
    }
    return files;
  }

  static std::string withoutTimes(const std::string &text, bool isJson) {
    std::istringstream lines(text);
    std::string result;
    for (std::string line; std::getline(lines, line);) {
      Record record = isJson ? Record::parse(line) : Record(line);
      if (isJson) {
        for (const char *key :
             {"seconds", "samples_per_s", "step_ms", "comm_ms", "exposed_comm_ms", "data_wait_ms"})
          record.erase(key);
        line = record.dump();
      } else {
        std::vector<std::string> cells; // seconds and samples_per_s are the last but one and two
        std::istringstream row(line);
        for (std::string cell; std::getline(row, cell, ',');)
          cells.push_back(cell);
        line.clear();
        for (size_t i = 0; i < cells.size(); ++i)
          line += i + 3 == cells.size() || i + 2 == cells.size() ? "" : cells[i] + ",";
      }
      result += line + "\n";
    }
    return result;
  }

  static void addCosine(artifact::ArtifactT &artifact) {
    auto cosine = std::make_unique<artifact::CallT>();
    cosine->name = "cosine";
    artifact.training->schedule.push_back(std::move(cosine));
  }

  Record configuration(const std::string &run) {
    return Record::parse(test::contentOf(directory / (run + "/config.json")));
  }

  std::string printed() const { return {buffer, size}; }
  ~TrainerTest() override {
    std::fclose(out);
    std::free(buffer);
  }

  static constexpr int64_t samples = 7;
  test::TemporaryDirectory directory;
  std::function<void(artifact::ArtifactT &)> edit; // of the artifact trained
  char *buffer = nullptr;
  size_t size = 0;
  std::FILE *out = ::open_memstream(&buffer, &size);
};

inline auto trainingDevices() {
  return testing::Values(test::cpuDevice(), test::asynchronousDevice(1));
}

inline std::string deviceName(const testing::TestParamInfo<test::DeviceKind> &info) {
  return info.param.name;
}

} // namespace dlc::rt
