// dlc-run: replays artifacts. The launching process compiles models and starts ranks; every rank
// carries out the command.
#include "runtime/core/Error.h"
#include "tools/dlc-run/Check.h"
#include "tools/dlc-run/Launcher.h"
#include "tools/dlc-run/ModelFile.h"
#include "tools/dlc-run/RunRank.h"
#include "tools/dlc-run/Sweep.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

using namespace dlc;

/// The arguments of the ranks: ours without -np and what is for the compiler, with FILE replaced.
static std::vector<std::string> rankArguments(int argc, char **argv, const std::string &file,
                                              const std::string &artifact) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] == "-np" || arguments[i] == "--np")
      arguments.erase(arguments.begin() + static_cast<ptrdiff_t>(i),
                      arguments.begin() + static_cast<ptrdiff_t>(i) + 2);
  std::replace(arguments.begin(), arguments.end(), file, artifact);
  if (::isatty(STDOUT_FILENO))
    arguments.emplace_back("--terminal");
  return arguments;
}

static int runCommand(run::Command command, int argc, char **argv) {
  if (command.verb == run::Verb::Check)
    return command.calibrate.empty() ? run::check() : run::calibrate(command.calibrate);
  bool launched = run::detectLaunch(command).mpi;
  if (launched && command.ranks > 0)
    throw rt::Error(rt::ErrorCode::BadInput,
                    "this process is one of several ranks already; leave -np out");
  if (run::isSweep(command) && launched)
    throw rt::Error(rt::ErrorCode::BadInput,
                    "a sweep starts its ranks itself; run it as one process");
  std::string file = command.file;
  if (!run::isModel(file) && !launched)
    if (std::string option = run::optionForModels(command); !option.empty()) {
      run::printError(option + " is for a model; '" + file + "' is compiled already");
      return 2;
    }
  if (run::isSweep(command))
    return run::runSweep(command);
  if (run::isModel(file)) {
    if (launched)
      throw rt::Error(rt::ErrorCode::BadInput,
                      "only the launching process compiles: dlc compile " + file +
                          " -o MODEL.dlx first, or start the ranks with dlc-run -np N");
    run::CompiledModel compiled = run::compileModel(file, command.compileOptions, command.threads);
    if (compiled.artifact.empty())
      return compiled.exitCode;
    command.file = compiled.artifact;
  }
  if (command.ranks > 1)
    return run::launchRanks(command.ranks, rankArguments(argc, argv, file, command.file));
  return run::runRank(command);
}

int main(int argc, char **argv) {
  try {
    run::ParsedCommand parsed = run::parseCommandLine(argc, argv);
    return parsed.command ? runCommand(std::move(*parsed.command), argc, argv) : parsed.exitCode;
  } catch (const std::exception &error) {
    run::printError(error.what());
    return 1;
  }
}
