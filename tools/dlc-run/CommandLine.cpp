#include "tools/dlc-run/CommandLine.h"

#include "runtime/artifact/Ranges.h"
#include "tools/UnknownOption.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <map>

namespace dlc::run {

namespace {

/// CLI11's own checks of ranges print the largest double.
CLI::Validator number(const std::string &wanted, bool (*isGood)(double)) {
  auto check = [=](const std::string &text) {
    double value = 0;
    bool good = CLI::detail::lexical_cast(text, value) && isGood(value);
    return good ? std::string() : "wants " + wanted + ", got '" + text + "'";
  };
  return CLI::Validator(check, "");
}
CLI::Validator seconds() {
  return number("a number above 0, up to 1e15",
                [](double value) { return value > 0 && value <= 1e15; });
}
CLI::Validator finiteRate() {
  return number("a finite number, 0 or more",
                [](double value) { return value >= 0 && std::isfinite(value); });
}

/// A whole number, as its digits: CLI11 does not convert 1e6. For CLI::Option::transform.
CLI::Validator whole(const rt::Range &range) {
  auto convert = [range](std::string &text) {
    double value = 0;
    bool good = CLI::detail::lexical_cast(text, value) && range.contains(value) &&
                value == std::floor(value);
    if (!good)
      return "wants a whole number " + range.text() + ", got '" + text + "'";
    text = std::to_string(static_cast<int64_t>(value));
    return std::string();
  };
  return CLI::Validator(convert, "");
}
CLI::Validator count() { return whole(rt::ranges::count); }
CLI::Validator positiveCount() { return whole(rt::ranges::positiveCount); }
CLI::Validator rankCount() { return whole(rt::ranges::ranks); }
/// A seed has 64 bits, more than a double.
CLI::Validator seedNumber() {
  auto check = [](const std::string &text) {
    uint64_t value = 0;
    const char *end = text.data() + text.size();
    auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end
               ? std::string()
               : "wants a whole number from 0 to below 2^64, got '" + text + "'";
  };
  return CLI::Validator(check, "");
}

/// One of the words, as its value. CLI11's own check prints its tables.
template <typename Value> CLI::Validator oneOf(const std::map<std::string, Value> &words) {
  auto convert = [words](std::string &text) {
    if (auto found = words.find(text); found != words.end()) {
      text = std::to_string(static_cast<int>(found->second));
      return std::string();
    }
    std::string wanted;
    for (const auto &[word, value] : words)
      wanted += (wanted.empty() ? "" : ", ") + word;
    return "wants one of " + wanted + ", got '" + text + "'";
  };
  return CLI::Validator(convert, "");
}

/// INPUT=PATH.
void addPaths(CLI::App &app, const std::string &name, rt::DataPaths &paths,
              const std::string &text) {
  app.add_option_function<std::vector<std::string>>(
         name,
         [&paths, name](const std::vector<std::string> &items) {
           for (const std::string &item : items) {
             size_t equals = item.find('=');
             if (equals == std::string::npos || equals == 0 || equals + 1 == item.size())
               throw CLI::ValidationError(name, "wants INPUT=PATH, got '" + item + "'");
             paths.emplace_back(item.substr(0, equals), item.substr(equals + 1));
           }
         },
         text)
      ->type_name("INPUT=PATH")
      ->type_size(1)
      ->allow_extra_args(false);
}

/// Options that say how to compile FILE if it is a model.
void addCompileOptions(CLI::App &app, std::vector<std::string> &options) {
  auto pass = [&](const std::string &name, const std::string &type, const std::string &text) {
    app.add_option_function<std::vector<std::string>>(
           "--" + name,
           [&options, name](const std::vector<std::string> &values) {
             for (const std::string &value : values)
               options.push_back("--" + name + "=" + value);
           },
           text)
        ->type_name(type)
        ->type_size(1)
        ->allow_extra_args(false)
        ->group("If FILE is a model");
  };
  pass("set", "NAME=VALUE", "Set a parameter of the model");
  pass("target", "TARGET", "What to compile for, e.g. cpu:native");
  pass("math", "strict|fast", "Algorithms that may be chosen");
  pass("precision", "TYPE", "Storage type of activations");
  pass("source", "NAME=u8|u16", "What the files of a source hold, which training then takes");
  pass("wire", "TYPE", "Type of gradients on the wire");
  pass("link", "GBIT[:US]|shm", "Link that the overlap is planned for");
  pass("bucket-size", "BYTES", "Size of all-reduce buckets");
  pass("memory-limit", "BYTES", "Refuse a larger memory plan");
  app.add_flag_callback(
         "--no-overlap", [&options] { options.emplace_back("--no-overlap"); },
         "Do not overlap all-reduces with compute")
      ->group("If FILE is a model");
}

void addCommon(CLI::App &app, Command &command) {
  app.add_option("FILE", command.file, "Artifact (.dlx) or model (.dl, .mlir)")->required();
  app.add_option("--threads", command.threads, "Threads per rank")
      ->transform(whole(rt::ranges::threads))
      ->type_name("T");
  app.add_option("--timeout", command.timeout, "Seconds after which a collective is an error")
      ->check(seconds())
      ->type_name("S")
      ->capture_default_str();
  static const std::map<std::string, Bind> binds = {
      {"none", Bind::None}, {"compact", Bind::Compact}, {"spread", Bind::Spread}};
  app.add_option("--bind", command.bind, "How ranks pin themselves to cores")
      ->transform(oneOf(binds))
      ->type_name("none|compact|spread");
  app.add_flag("--no-graph", command.noGraph,
               "On a GPU: run instructions one by one, to find the one that fails");
  addCompileOptions(app, command.compileOptions);
}

template <typename Value>
void addOptional(CLI::App &app, const std::string &name, std::optional<Value> &value,
                 const std::string &type, const std::string &text,
                 const CLI::Validator &validator) {
  app.add_option(name, value, text)->type_name(type)->transform(validator);
}

/// How training goes.
void addTraining(CLI::App *train, rt::TrainOptions &options) {
  addOptional(*train, "--epochs", options.epochs, "N", "Total epochs", positiveCount());
  addOptional(*train, "--steps", options.steps, "N", "Total steps", positiveCount());
  addOptional(*train, "--lr", options.learningRate, "X", "Base learning rate", finiteRate());
  addOptional(*train, "--accumulate", options.accumulate, "K",
              "Batches that a rank sums gradients over before an update", rankCount());
  train
      ->add_option_function<std::string>(
          "--scale-lr", [&](const std::string &how) { options.scaleRate = how == "linear"; },
          "Multiply the learning rate by the number of ranks, times --accumulate")
      ->check(CLI::IsMember({"none", "linear"}));
  train->add_flag_callback(
      "--scale-epochs", [&] { options.scaleEpochs = true; },
      "Divide the epochs by the number of ranks, times --accumulate, rounded up");
  addOptional(*train, "--seed", options.seed, "N", "Seed of all random draws", seedNumber());
  train
      ->add_flag_callback(
          "--shuffle", [&] { options.shuffle = true; }, "Shuffle samples anew in every epoch")
      ->excludes(train->add_flag_callback(
          "--no-shuffle", [&] { options.shuffle = false; }, "Take samples in the files' order"));
  train
      ->add_option_function<std::string>(
          "--on-nan", [&](const std::string &what) { options.stopOnNan = what == "stop"; },
          "What a loss that is not finite does")
      ->check(CLI::IsMember({"stop", "continue"}));
}

/// What training reads and writes.
void addTrainingFiles(CLI::App *train, rt::TrainOptions &options) {
  addPaths(*train, "--data", options.data,
           "Training data of an input or source; --resume finds it again");
  addPaths(*train, "--val", options.validation, "Validation data");
  CLI::Option *init = train->add_option("--init", options.init, "Weights to start from")
                          ->type_name("W.safetensors");
  train
      ->add_option("--init-except", options.initExcept,
                   "Names, with * and ?, that keep their initial values, e.g. of another head")
      ->delimiter(',')
      ->type_name("PATTERN,...")
      ->type_size(1)
      ->allow_extra_args(false)
      ->needs(init);
  train->add_option("--save", options.save, "Where the weights go at the end")
      ->type_name("W.safetensors");
  addOptional(*train, "--save-every", options.saveEvery, "STEPS",
              "Write a checkpoint every so many steps, too, while training goes on",
              positiveCount());
  train->add_option("--run", options.runDirectory, "Run directory; default runs/MODEL-k")
      ->type_name("DIR");
  CLI::Option *resume = train->add_flag("--resume", options.resume, "Continue the run in --run");
  resume->needs("--run")->excludes("--init");
  train
      ->add_option("--override", options.overrides,
                   "What --resume changes although the run had it otherwise, e.g. lr")
      ->delimiter(',')
      ->type_name("FLAG,...")
      ->type_size(1)
      ->allow_extra_args(false)
      ->needs(resume);
  train->add_option("--trace", options.trace, "Chrome trace of the first steps")
      ->type_name("TRACE.json");
  train->add_option("--log", options.log, "A further copy of the run's log")
      ->type_name("RUN.jsonl");
}

void addTrain(CLI::App &app, Command &command) {
  CLI::App *train = app.add_subcommand("train", "Train a model");
  addCommon(*train, command);
  addTrainingFiles(train, command.train);
  addTraining(train, command.train);
  train->callback([&] { command.verb = Verb::Train; });
}

void addEval(CLI::App &app, Command &command) {
  CLI::App *eval = app.add_subcommand("eval", "Losses and metrics over data");
  addCommon(*eval, command);
  addPaths(*eval, "--data", command.train.data, "Data of an input or source");
  eval->get_option("--data")->required();
  eval->add_option("--init", command.train.init, "Weights")->type_name("W.safetensors")->required();
  eval->add_flag("--json", command.json, "Print one flat JSON object");
  eval->callback([&] { command.verb = Verb::Eval; });
}

void addPredict(CLI::App &app, Command &command) {
  CLI::App *predict = app.add_subcommand("predict", "Apply a model to data");
  addCommon(*predict, command);
  addPaths(*predict, "--data", command.predict.data, "Data of an input or source");
  predict->get_option("--data")->required();
  predict->add_option("--init", command.predict.init, "Weights")
      ->type_name("W.safetensors")
      ->required();
  predict->add_option("-o", command.predict.directory, "Directory of the outputs")
      ->type_name("DIR")
      ->required();
  using rt::PredictionFormat;
  static const std::map<std::string, PredictionFormat> formats = {
      {"npy", PredictionFormat::Npy},
      {"png", PredictionFormat::Png},
      {"tiff", PredictionFormat::Tiff},
      {"tiff8", PredictionFormat::Tiff8},
      {"tiff16", PredictionFormat::Tiff16}};
  predict
      ->add_option("--format", command.predict.formats,
                   "Files to write, separated by commas: npy, png, tiff, tiff8, tiff16; default "
                   "npy, and tiff where tiff was read, else png")
      ->transform(oneOf(formats))
      ->delimiter(',')
      ->type_name("LIST")
      ->type_size(1)
      ->allow_extra_args(false);
  predict->add_flag(
      "--tta", command.predict.averagesTurns,
      "Average over the 8 flips and turns by 90 degrees of the images (the YX plane)");
  predict->callback([&] { command.verb = Verb::Predict; });
}

/// `bench` over several batch sizes or numbers of ranks.
void addSweep(CLI::App *bench, SweepOptions &sweep) {
  auto list = [&](const std::string &name, std::vector<int64_t> &values, const std::string &text) {
    return bench->add_option(name, values, text)
        ->delimiter(',')
        ->transform(positiveCount())
        ->type_name("N,N,...")
        ->type_size(1)
        ->allow_extra_args(false)
        ->group("Sweeps");
  };
  CLI::Option *batches = list("--batches", sweep.batches, "Measure a model at these batch sizes");
  CLI::Option *scaling =
      bench->add_option("--scaling", sweep.scaling, "Measure on several numbers of ranks")
          ->check(CLI::IsMember({"weak", "strong"}))
          ->type_name("weak|strong")
          ->group("Sweeps");
  CLI::Option *ranks =
      list("--ranks", sweep.ranks, "Numbers of ranks, the first one the reference");
  bench
      ->add_option("--global-batch", sweep.globalBatch,
                   "Batch of all ranks in strong scaling; default the model's batch")
      ->transform(positiveCount())
      ->type_name("B")
      ->needs(scaling)
      ->group("Sweeps");
  bench->add_option("-o", sweep.output, "Where the table goes as .csv, and a picture as .svg")
      ->type_name("STEM")
      ->group("Sweeps");
  bench
      ->add_option("--peers", sweep.peers,
                   "Measure others, too: COMMAND RANKS BATCH THREADS prints milliseconds per step, "
                   "as bench/ddp_ranks.py does of PyTorch's DistributedDataParallel")
      ->type_name("COMMAND")
      ->group("Sweeps");
  scaling->needs(ranks)->excludes(batches);
  ranks->needs(scaling);
}

/// What options of a sweep cannot be combined with.
void checkSweep(const Command &command) {
  const SweepOptions &sweep = command.sweep;
  bool isSweep = !sweep.batches.empty() || !sweep.scaling.empty();
  if (!sweep.output.empty() && !isSweep)
    throw CLI::RequiredError("--batches or --scaling for -o");
  if (!sweep.peers.empty() && !isSweep)
    throw CLI::RequiredError("--batches or --scaling for --peers");
  if (isSweep && command.bench.profile != rt::Profile::None)
    throw CLI::ExcludesError("--profile", "--batches and --scaling");
  if (!sweep.scaling.empty() && command.ranks > 0)
    throw CLI::ExcludesError("-np", "--scaling, which has --ranks");
  if (sweep.globalBatch && sweep.scaling != "strong")
    throw CLI::RequiredError("--scaling=strong for --global-batch");
}

void addBench(CLI::App &app, Command &command) {
  CLI::App *bench = app.add_subcommand("bench", "Measure training steps on synthetic data");
  rt::BenchOptions &options = command.bench;
  addCommon(*bench, command);
  bench->add_option("--warmup,--num-warmup-batches", options.warmup, "Batches before measuring")
      ->transform(count())
      ->capture_default_str();
  bench->add_option("--iters,--num-iters", options.iterations, "Iterations")
      ->transform(positiveCount())
      ->capture_default_str();
  bench
      ->add_option("--batches-per-iter,--num-batches-per-iter", options.batchesPerIteration,
                   "Batches an iteration")
      ->transform(positiveCount())
      ->capture_default_str();
  bench->add_flag("--json", options.json, "Print one flat JSON object");
  static const std::map<std::string, rt::Profile> profiles{{"kinds", rt::Profile::Kinds},
                                                           {"kernels", rt::Profile::Kernels}};
  bench
      ->add_flag("--profile{kinds}", options.profile,
                 "Split the step by kind of kernel; --profile=kernels: and by kernel")
      ->transform(oneOf(profiles));
  addSweep(bench, command.sweep);
  bench->callback([&] { command.verb = Verb::Bench; });
}

void addTune(CLI::App &app, Command &command) {
  CLI::App *tune = app.add_subcommand(
      "tune", "Choose an artifact's convolutions anew by their times on this machine's GPU");
  tune->add_option("file", command.file, "Artifact (.dlx)")->required()->type_name("FILE");
  tune->add_option("-o", command.tuned, "Where it goes; default FILE itself")->type_name("OUT.dlx");
  tune->callback([&] { command.verb = Verb::Tune; });
}

} // namespace

std::string optionForModels(const Command &command) {
  if (!command.compileOptions.empty())
    return command.compileOptions.front();
  if (!command.sweep.batches.empty())
    return "--batches";
  return command.sweep.scaling == "strong" ? "--scaling=strong" : "";
}

ParsedCommand parseCommandLine(int argc, char **argv) {
  Command command;
  CLI::App app("Runs what dlc compile makes: training, evaluation, prediction, measurement.",
               "dlc-run");
  bool check = false;
  // MPI's spelling has one dash, which CLI11 takes for two short options.
  app.add_option("--np", command.ranks, "Ranks to start on this machine (also -np N)")
      ->transform(rankCount())
      ->type_name("N");
  // What the launching process tells its ranks.
  app.add_option("--artifact", command.artifact)->group("");
  app.add_flag("--terminal", command.terminal)->group("");
  app.add_flag("--check", check, "Say what this build and this machine can do");
  app.add_option("--calibrate", command.calibrate,
                 "Measure this machine for a cost table, which --target=FILE.json takes")
      ->type_name("FILE.json")
      ->needs("--check");
  app.add_option("--device-json", command.deviceFile,
                 "Write what describes the first GPU, a target's \"properties\"")
      ->type_name("FILE.json")
      ->needs("--check")
      ->excludes("--calibrate");
  app.add_option("--kernels", command.kernels,
                 "Run each library kernel of an artifact here, twice, beside sums in f64")
      ->check(CLI::ExistingFile)
      ->type_name("FILE.dlx")
      ->excludes("--np")
      ->needs("--check")
      ->excludes("--calibrate")
      ->excludes("--device-json");
  app.fallthrough(); // inherited by the verbs: -np may stand behind them, too
  addTrain(app, command);
  addEval(app, command);
  addPredict(app, command);
  addBench(app, command);
  addTune(app, command);
  app.require_subcommand(0, 1);

  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string &argument : arguments)
    if (argument == "-np" || argument.starts_with("-np="))
      argument.insert(0, "-");
  std::reverse(arguments.begin(), arguments.end()); // as CLI11 wants them
  try {
    app.parse(arguments);
    if (check == !app.get_subcommands().empty())
      throw CLI::RequiredError(check ? "--check alone"
                                     : "train, eval, predict, bench, tune or --check");
    if (command.verb == Verb::Train && command.train.data.empty() && !command.train.resume)
      throw CLI::RequiredError("--data");
    if (command.train.scaleEpochs && command.train.steps && !command.train.epochs)
      throw CLI::RequiredError("--epochs beside --steps for --scale-epochs");
    checkSweep(command);
  } catch (const CLI::ParseError &error) {
    bool isHelp = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (isHelp)
      return {std::nullopt, app.exit(error)};
    std::string text;
    // A wrong value may be what was not found, as in "-np train".
    if (!dynamic_cast<const CLI::ValidationError *>(&error)) {
      text = unknownCommand(app);
      if (text.empty())
        text = unknownOption(app, command.file);
    }
    if (text.empty())
      text = error.what();
    std::cerr << "dlc-run: error: " << text << (text.ends_with('?') ? " see" : "; see")
              << " dlc-run --help\n";
    return {std::nullopt, 2};
  }
  return {command, 0};
}

} // namespace dlc::run
