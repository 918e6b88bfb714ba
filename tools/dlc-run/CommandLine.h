// dlc-run's command line as data.
#pragma once

#include "runtime/predict/Predict.h"
#include "runtime/profile/Bench.h"
#include "runtime/train/TrainOptions.h"

#include <optional>
#include <string>
#include <vector>

namespace dlc::run {

enum class Verb { Train, Eval, Predict, Bench, Tune, Check };
enum class Bind { None, Compact, Spread };

/// `bench` over several batch sizes or numbers of ranks; empty: one measurement.
struct SweepOptions {
  std::vector<int64_t> batches, ranks;
  std::string scaling;     // "weak": batch per rank fixed; "strong": global batch fixed
  int64_t globalBatch = 0; // 0: the model's batch
  std::string peers;       // a command that measures others: COMMAND RANKS BATCH THREADS
  std::string output;      // of CSV and SVG, without extension
};

struct Command {
  Verb verb = Verb::Check;
  std::string file;                        // artifact or model
  std::vector<std::string> compileOptions; // for `dlc compile`, if FILE is a model
  std::string artifact;                    // in place of FILE, for ranks that -np started
  int ranks = 0;                           // -np; 0: not given
  unsigned threads = 0;                    // 0: chosen
  double timeout = 300;
  std::optional<Bind> bind;
  bool noGraph = false;  // on a GPU
  bool terminal = false; // the launching process writes to one
  bool json = false;
  rt::TrainOptions train; // also the data and weights of eval
  rt::PredictOptions predict;
  rt::BenchOptions bench;
  SweepOptions sweep;
  std::string tuned;      // where `tune` writes; empty: to FILE
  std::string calibrate;  // where the measured table goes, if asked for
  std::string deviceFile; // where the first GPU's description goes, if asked for
  std::string kernels;    // --check: the artifact whose library kernels are looked at
};

/// What the arguments ask for; or, after help or a message about wrong usage, the exit code.
struct ParsedCommand {
  std::optional<Command> command;
  int exitCode = 0;
};
ParsedCommand parseCommandLine(int argc, char **argv);

/// The first option given that only a model takes, empty if there is none.
std::string optionForModels(const Command &command);

} // namespace dlc::run
