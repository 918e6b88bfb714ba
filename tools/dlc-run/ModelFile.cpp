#include "tools/dlc-run/ModelFile.h"

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/Hash.h"
#include "runtime/core/HostFeatures.h"
#include "tools/dlc-run/Process.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace dlc::run {

namespace fs = std::filesystem;
using rt::Error;
using rt::ErrorCode;

bool isModel(const std::string &file) {
  fs::path extension = fs::path(file).extension();
  return extension == ".dl" || extension == ".mlir";
}

bool isForGpu(const std::vector<std::string> &options) {
  return std::ranges::any_of(
      options, [](const std::string &option) { return option.starts_with("--target=cuda:"); });
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

/// Why nothing in the directory may be run, empty if it may.
static std::string objectionTo(const fs::path &directory) {
  struct stat status = {};
  if (::stat(directory.c_str(), &status) != 0)
    return std::strerror(errno);
  if (!S_ISDIR(status.st_mode))
    return "it is no directory";
  if (status.st_uid != ::geteuid())
    return "it belongs to user " + std::to_string(status.st_uid) + ", not to user " +
           std::to_string(::geteuid());
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return "other users may write there";
  // Readable by others is no danger, but no one's business either.
  if ((status.st_mode & 0777) != 0700 && ::chmod(directory.c_str(), 0700) != 0)
    return std::strerror(errno);
  return ::access(directory.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
}

/// Where compiled models are kept; empty if there is no place.
static fs::path cacheDirectory() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (!(cache && *cache) && !(home && *home))
    return {};
  fs::path parent = cache && *cache ? fs::path(cache) : fs::path(home) / ".cache";
  fs::path directory = parent / "dlc";
  std::error_code ignored;
  fs::create_directories(parent, ignored);
  ::mkdir(directory.c_str(), 0700);
  std::string objection = objectionTo(directory);
  if (!objection.empty())
    throw Error(ErrorCode::Runtime, "cannot keep compiled models in '" + directory.string() +
                                        "': " + objection +
                                        "; set XDG_CACHE_HOME, or compile with dlc compile first");
  return directory;
}

namespace {

/// A directory that nobody else can know or enter, with all that is in it.
class PrivateDirectory {
public:
  PrivateDirectory() : path((fs::temp_directory_path() / "dlc-XXXXXX").string()) {
    if (!::mkdtemp(path.data()))
      throw Error(ErrorCode::Runtime,
                  "cannot make the directory '" + path + "': " + std::strerror(errno));
  }
  ~PrivateDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  PrivateDirectory(const PrivateDirectory &) = delete;
  PrivateDirectory &operator=(const PrivateDirectory &) = delete;

  std::string path;
};

} // namespace

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

/// Compiles; the exit code. Leaves the artifact, or nothing. Throws Error(Interrupted).
static int runCompiler(const fs::path &compiler, const std::string &file,
                       const std::vector<std::string> &options, const fs::path &artifact,
                       const rt::StopSignal &stop) {
  std::vector<std::string> call = {compiler.string(), "compile", file, "-o", artifact.string()};
  call.insert(call.end(), options.begin(), options.end());
  int exitCode = runProcess(call, stop);
  std::error_code ignored;
  if (exitCode != 0 || stop.received())
    for (const char *suffix : {"", ".partial"})
      fs::remove(artifact.string() + suffix, ignored);
  if (stop.received())
    throw Error(ErrorCode::Interrupted, "interrupted by " + stop.name());
  if (exitCode >= 128)
    throw Error(ErrorCode::Runtime, "the compiler was ended by signal " +
                                        std::to_string(exitCode - 128) + " on '" + file + "'");
  return exitCode;
}

/// Keeps the artifact open in place of the file.
static CompiledModel compileUnkept(const fs::path &compiler, const std::string &file,
                                   const std::vector<std::string> &options,
                                   const std::string &artifact, const rt::StopSignal &stop) {
  if (int exitCode = runCompiler(compiler, file, options, artifact, stop))
    return {"", exitCode};
  int descriptor = ::open(artifact.c_str(), O_RDONLY | O_CLOEXEC); // until the process ends
  if (descriptor < 0)
    throw Error(ErrorCode::Runtime, "cannot open '" + artifact + "': " + std::strerror(errno));
  return {"/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(descriptor), 0};
}

/// False of a kept artifact that a crash or a disk has damaged: it is made again.
static bool isSound(const fs::path &artifact) {
  try {
    return fs::exists(artifact) && (rt::Artifact(artifact.string()), true);
  } catch (const Error &) {
    return false;
  }
}

CompiledModel compileModel(const std::string &file, const std::vector<std::string> &options,
                           unsigned threads, const rt::StopSignal &stop) {
  if (::access(file.c_str(), R_OK) != 0)
    throw Error(ErrorCode::BadInput, "cannot open '" + file + "': " + std::strerror(errno));
  fs::path compiler = fs::path(ownPath()).parent_path() / "dlc";
  if (!fs::exists(compiler))
    throw Error(ErrorCode::BadInput, "'" + file + "' is a model, and there is no compiler '" +
                                         compiler.string() + "'; give an artifact (.dlx)");
  std::vector<std::string> arguments = options;
  if (threads)
    arguments.push_back("--threads=" + std::to_string(threads));
  fs::path directory = cacheDirectory();
  if (directory.empty()) {
    PrivateDirectory kept;
    return compileUnkept(compiler, file, arguments, kept.path + "/model.dlx", stop);
  }
  std::string name = fs::path(file).stem().string() + "-" + keyOf(file, arguments, compiler);
  fs::path artifact = directory / (name + ".dlx");
  if (isSound(artifact))
    return {artifact.string(), 0};
  fs::path partial = directory / (name + "." + std::to_string(::getpid()) + ".dlx");
  int exitCode = runCompiler(compiler, file, arguments, partial, stop);
  if (exitCode != 0)
    return {"", exitCode};
  std::error_code error;
  fs::rename(partial, artifact, error);
  if (error)
    throw Error(ErrorCode::Runtime, "cannot keep '" + artifact.string() + "': " + error.message());
  return {artifact.string(), 0};
}

} // namespace dlc::run
