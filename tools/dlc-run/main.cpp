// dlc-run: replays artifacts. The launching process compiles models and starts ranks; every rank
// carries out the command.
#include "runtime/artifact/Error.h"
#include "runtime/core/BusError.h"
#include "runtime/data/StoredTypes.h"
#include "tools/dlc-run/Check.h"
#include "tools/dlc-run/Launcher.h"
#include "tools/dlc-run/ModelFile.h"
#include "tools/dlc-run/RunRank.h"
#include "tools/dlc-run/Sweep.h"
#include "tools/dlc-run/Tune.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <unistd.h>

using namespace dlc;

/// Ours, and what each rank has to know beside them.
static std::vector<std::string> rankArguments(int argc, char **argv, const std::string &artifact) {
  std::vector<std::string> arguments = {"--artifact=" + artifact};
  if (::isatty(STDOUT_FILENO))
    arguments.emplace_back("--terminal");
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  return arguments;
}

/// Those given, and for GPUs, which data reach by a bus, what the files hold. Text of a later stage
/// than .dl may have decided that.
static std::vector<std::string> compileOptions(const run::Command &command) {
  std::vector<std::string> options = command.compileOptions;
  bool isDecided = std::ranges::any_of(
      options, [](const std::string &option) { return option.starts_with("--source="); });
  if (command.verb == run::Verb::Train && command.file.ends_with(".dl") && !isDecided &&
      run::isForGpu(options))
    for (const std::string &type : rt::storedTypes(command.train.data, command.train.validation))
      options.push_back("--source=" + type);
  return options;
}

static int runCommand(run::Command command, int argc, char **argv, rt::StopSignal &stop) {
  if (command.verb == run::Verb::Check)
    return !command.kernels.empty()     ? run::checkKernels(command.kernels)
           : !command.calibrate.empty() ? run::calibrate(command.calibrate)
                                        : run::check(command.deviceFile);
  if (command.verb == run::Verb::Tune)
    return run::tune(command.file, command.tuned.empty() ? command.file : command.tuned);
  bool launched = run::detectLaunch(command).isRank();
  bool byUs = !command.artifact.empty();
  if (launched && command.ranks > 0 && !byUs)
    throw rt::Error(rt::ErrorCode::BadInput,
                    "this process is one of several ranks already; leave -np out");
  if (run::isSweep(command) && launched)
    throw rt::Error(rt::ErrorCode::BadInput,
                    "a sweep starts its ranks itself; run it as one process");
  std::string file = command.file;
  command.train.model = file;
  if (byUs)
    command.file = command.artifact;
  else if (!run::isModel(file) && !launched)
    if (std::string option = run::optionForModels(command); !option.empty()) {
      run::printError(option + " is for a model; '" + file + "' is compiled already");
      return 2;
    }
  if (run::isSweep(command)) {
    stop.noteAll();
    return run::runSweep(command, stop);
  }
  if (run::isModel(file) && !byUs) {
    if (launched)
      throw rt::Error(rt::ErrorCode::BadInput,
                      "only the launching process compiles: dlc compile " + file +
                          " -o MODEL.dlx first, or start the ranks with dlc-run -np N");
    stop.noteAll();
    run::CompiledModel compiled =
        run::compileModel(file, compileOptions(command), command.threads, stop);
    if (compiled.artifact.empty())
      return compiled.exitCode;
    command.file = compiled.artifact;
  }
  if (command.ranks > 1 && !byUs)
    return run::launchRanks(
        {command.ranks, rankArguments(argc, argv, command.file), command.verb == run::Verb::Train},
        stop);
  return run::runRank(command, stop);
}

int main(int argc, char **argv) {
  // Never destroyed: a request that comes while the process ends changes nothing any more.
  static rt::StopSignal &stop = *new rt::StopSignal;
  stop.endAtOnce(run::interruptedPrefix);
  rt::reportLostFiles(run::errorPrefix);
  std::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error like a full disk
  try {
    run::ParsedCommand parsed = run::parseCommandLine(argc, argv);
    int exitCode =
        parsed.command ? runCommand(std::move(*parsed.command), argc, argv, stop) : parsed.exitCode;
    if (exitCode == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout)))
      throw rt::Error(rt::ErrorCode::Runtime,
                      "cannot write to the standard output: the disk may be full");
    return exitCode;
  } catch (const std::exception &error) {
    stop.note();
    run::printError(error.what());
    return 1;
  }
}
