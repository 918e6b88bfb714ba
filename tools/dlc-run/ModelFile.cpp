#include "tools/dlc-run/ModelFile.h"

#include "runtime/artifact/Hash.h"
#include "runtime/core/Error.h"
#include "runtime/core/HostFeatures.h"
#include "tools/dlc-run/Process.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <unistd.h>

namespace dlc::run {

namespace fs = std::filesystem;
using rt::Error;
using rt::ErrorCode;

bool isModel(const std::string &file) {
  fs::path extension = fs::path(file).extension();
  return extension == ".dl" || extension == ".mlir";
}

static std::string contentOf(const fs::path &path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Texts of a model and of what it imports, in a fixed order.
static void collectTexts(const fs::path &file, std::set<fs::path> &seen, std::string &texts) {
  if (!seen.insert(file.lexically_normal()).second)
    return;
  std::string text = contentOf(file);
  texts += file.filename().string() + '\0' + text + '\0';
  static const std::regex import("import\\s*\"([^\"]*)\"");
  for (std::sregex_iterator match(text.begin(), text.end(), import), end; match != end; ++match)
    collectTexts(file.parent_path() / (*match)[1].str(), seen, texts);
}

/// Changes whenever the program is rebuilt.
static std::string identityOf(const fs::path &program) {
  std::error_code error;
  auto time = fs::last_write_time(program, error).time_since_epoch().count();
  return program.string() + " " + std::to_string(error ? 0 : time) + " ";
}

static fs::path cacheDirectory() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  fs::path directory = cache && *cache ? fs::path(cache)
                       : home && *home ? fs::path(home) / ".cache"
                                       : fs::temp_directory_path();
  directory /= "dlc";
  std::error_code error;
  fs::create_directories(directory, error);
  if (error || ::access(directory.c_str(), W_OK) != 0)
    throw Error(ErrorCode::Runtime, "cannot keep compiled models in '" + directory.string() +
                                        "'; set XDG_CACHE_HOME, or compile with dlc compile first");
  return directory;
}

static std::string keyOf(const std::string &file, const std::vector<std::string> &arguments,
                         const fs::path &compiler) {
  std::string key;
  std::set<fs::path> seen;
  collectTexts(fs::absolute(file), seen, key);
  for (const std::string &argument : arguments) {
    key += argument + '\0';
    // A table of costs decides as much as the model does.
    static const std::regex table("--target=(?:cpu:)?(.*\\.json)");
    if (std::smatch match; std::regex_match(argument, match, table))
      key += contentOf(match[1].str());
  }
  fs::path root = compiler.parent_path().parent_path();
  key += identityOf(compiler) + identityOf(root / "lib/dlc_cpu.so") + rt::hostProcessor();
  for (const std::string &feature : rt::hostFeatures())
    key += ' ' + feature;
  key += std::to_string(::sysconf(_SC_NPROCESSORS_ONLN));
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(
                    rt::hash64({reinterpret_cast<const uint8_t *>(key.data()), key.size()})));
  return text;
}

CompiledModel compileModel(const std::string &file, const std::vector<std::string> &options,
                           unsigned threads) {
  if (!fs::exists(file))
    throw Error(ErrorCode::BadInput, "cannot open '" + file + "': No such file or directory");
  fs::path compiler = fs::path(ownPath()).parent_path() / "dlc";
  if (!fs::exists(compiler))
    throw Error(ErrorCode::BadInput, "'" + file + "' is a model, and there is no compiler '" +
                                         compiler.string() + "'; give an artifact (.dlx)");
  std::vector<std::string> arguments = options;
  if (threads)
    arguments.push_back("--threads=" + std::to_string(threads));
  fs::path directory = cacheDirectory();
  std::string name = fs::path(file).stem().string() + "-" + keyOf(file, arguments, compiler);
  fs::path artifact = directory / (name + ".dlx");
  if (fs::exists(artifact))
    return {artifact.string(), 0};
  fs::path partial = directory / (name + "." + std::to_string(::getpid()) + ".dlx");
  std::vector<std::string> call = {compiler.string(), "compile", file, "-o", partial.string()};
  call.insert(call.end(), arguments.begin(), arguments.end());
  int exitCode = runProcess(call);
  std::error_code error;
  if (exitCode == 0)
    fs::rename(partial, artifact, error);
  if (exitCode == 0 && error)
    throw Error(ErrorCode::Runtime, "cannot keep '" + artifact.string() + "': " + error.message());
  fs::remove(partial, error);
  return {exitCode == 0 ? artifact.string() : "", exitCode};
}

} // namespace dlc::run
