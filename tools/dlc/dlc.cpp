// dlc: the compiler's command line.

#include "frontend/Frontend.h"
#include "passes/planning/Decisions.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/JsonText.h"
#include "runtime/core/BusError.h"
#include "tools/UnknownOption.h"
#include "tools/dlc/Compile.h"
#include "tools/dlc/InspectArtifact.h"

#include "llvm/Support/raw_ostream.h"
#include <CLI/CLI.hpp>

#include <csignal>
#include <fstream>
#include <iostream>

using namespace dlc;

static CLI::Validator linkValidator() {
  auto check = [](const std::string &text) {
    return Link::parse(text) ? std::string()
                             : "'" + text + "' is no link: expected " + std::string(Link::forms);
  };
  return CLI::Validator(check, "LINK");
}

static void addModelOptions(CLI::App &command, CompileOptions &options) {
  command
      .add_option("--set", options.sets,
                  "NAME=VALUE: a parameter of the model, or train.NAME, predict.NAME")
      ->allow_extra_args(false);
}

static void addCompileOptions(CLI::App &command, CompileOptions &options) {
  addModelOptions(command, options);
  command
      .add_option_function<std::string>(
          "--emit", [&options](const std::string &name) { options.output = *outputNamed(name); },
          "what to write")
      ->check(CLI::IsMember(outputNames()))
      ->default_str("dlx");
  command
      .add_option("--target", options.target,
                  "cpu:native|avx2|avx512|avx512-bf16|zen4|amx|FILE.json or "
                  "cuda:a100|h100|h200|b200|rtx4090|rtx5090|FILE.json")
      ->default_str(DefaultDecisions::target);
  command.add_option("--math", options.math, "strict: direct algorithms only; fast: Winograd too")
      ->check(CLI::IsMember({"strict", "fast"}))
      ->default_str(DefaultDecisions::math);
  command
      .add_option("--precision", options.precision,
                  "storage of activations and of weights as convolutions read them: f32, bf16 or, "
                  "on GPUs and with a dynamic loss scale, f16")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->default_str(DefaultDecisions::precision);
  command
      .add_option("--wire", options.wire,
                  "type of gradients between ranks; sums are f32, rounded once on each way")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->default_str(DefaultDecisions::wire);
  command
      .add_option("--source", options.sources,
                  "NAME=u8 or u16: what the files of a source of the data block hold; training "
                  "takes inputs so, and the device normalises them")
      ->allow_extra_args(false);
  command
      .add_option("--threads", options.threads,
                  "plan for 1..T threads per rank (default: this host's cores)")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--link", options.link,
                  "assumed link between ranks: " + std::string(Link::forms) +
                      " (default: 10:30; on GPUs that of their target)")
      ->check(linkValidator());
  command.add_option("--bucket-size", options.bucketSize,
                     "bytes of a gradient bucket (default: from the link)");
  command.add_flag_function(
      "--no-overlap", [&options](int64_t count) { options.noOverlap = count > 0; },
      "wait for each all-reduce where it starts");
  command
      .add_option("--memory-limit", options.memoryLimit,
                  "refuse a plan that needs more bytes per rank")
      ->transform(CLI::AsSizeValue(false));
  command.add_option("--dump-passes", options.dumpPasses,
                     "write the IR after each pass into this directory");
}

static int inspect(const std::string &file, const CompileOptions &options,
                   const InspectOptions &run, bool json) {
  if (!file.ends_with(".dlx"))
    return inspectModel(file, options, json);
  nlohmann::ordered_json description = describeArtifact(rt::Artifact(file), run);
  if (json)
    std::cout << rt::jsonText(description, 2) << "\n";
  else
    printDescription(description, std::cout);
  return 0;
}

static std::vector<uint64_t> readTimes(const std::string &path) {
  std::ifstream file(path);
  nlohmann::json record = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("instruction_ns"))
    throw rt::Error(rt::ErrorCode::BadInput, "'" + path + "' is no record of dlc-run bench --json");
  return record["instruction_ns"].get<std::vector<uint64_t>>();
}

static int run(int argc, char **argv) {
  CLI::App app("dlc: compiles training programs of convolutional networks", "dlc");
  app.require_subcommand(1);
  app.set_version_flag("--version", "dlc 0.1");
  app.set_help_flag("-h,--help", "print this help and exit");

  CompileOptions options;
  std::string input, output;
  CLI::App &compileCommand =
      *app.add_subcommand("compile", "compile a model to an artifact or to any stage");
  compileCommand.add_option("model", input, "MODEL.dl or MODEL.mlir (of any stage)")->required();
  compileCommand.add_option("-o", output, "output file; - is standard output");
  addCompileOptions(compileCommand, options);

  InspectOptions inspectOptions;
  std::string link, times;
  unsigned ranks = 0;
  bool json = false;
  CLI::App &inspectCommand = *app.add_subcommand("inspect", "what a model or an artifact holds");
  inspectCommand.add_option("file", input, "MODEL.dl, MODEL.mlir or FILE.dlx")->required();
  addModelOptions(inspectCommand, options);
  inspectCommand.add_flag("--json", json, "as JSON");
  inspectCommand.add_option("--ranks", ranks, "forecast for so many ranks")
      ->check(CLI::Range(1, 1 << 20));
  inspectCommand.add_option(
      "--times", times, "forecast from the kernels' times that dlc-run bench --json wrote here");
  inspectCommand.add_option("--link", link, "forecast for this link: " + std::string(Link::forms))
      ->check(linkValidator());

  std::string topic;
  bool markdown = false;
  CLI::App &helpCommand = *app.add_subcommand("help", "operators of the graph language");
  helpCommand.add_option("operator", topic, "an operator, data step, optimizer or schedule");
  helpCommand.add_flag("--markdown", markdown, "all of them, as docs/operators.md has them");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // --help, --version
      return app.exit(error);
    std::string text = unknownCommand(app);
    if (text.empty())
      text = unknownOption(app, input);
    std::cerr << "dlc: " << (text.empty() ? error.what() : text) << " (see dlc --help)\n";
    return 2;
  }
  if (compileCommand.parsed())
    return compileFile(input, output, options);
  if (helpCommand.parsed()) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (markdown) {
      fe::printReference(os);
      std::cout << text;
      return 0;
    }
    bool known = fe::printHelp(topic, os);
    (known ? std::cout : std::cerr) << text;
    return known ? 0 : 1;
  }
  if (ranks > 0)
    inspectOptions.ranks = ranks;
  if (!link.empty())
    inspectOptions.link = Link::parse(link);
  if (!times.empty())
    inspectOptions.trainTimes = readTimes(times);
  return inspect(input, options, inspectOptions, json);
}

int main(int argc, char **argv) {
  rt::reportLostFiles("dlc: ");
  std::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error like a full disk
  try {
    int exitCode = run(argc, argv);
    llvm::outs().flush();
    bool isWritten = std::cout.flush().good() && !llvm::outs().has_error();
    llvm::outs().clear_error(); // else told of as a defect of this program
    if (exitCode == 0 && !isWritten)
      throw rt::Error(rt::ErrorCode::Runtime,
                      "cannot write to the standard output: the disk may be full");
    return exitCode;
  } catch (const rt::Error &error) {
    std::cerr << "dlc: " << error.what() << "\n";
    return 1;
  }
}
