// dlc-mutate FILE.dlx [--every N] [--seed S] [--all PATH] [--inspect DLC] | --seal FILE.dlx:
// changes one field of an artifact at a time, renews the hash, and runs what the verifier accepts.
//
// A mutant that is accepted runs steps of each of its programs in a child process, of training with
// several micro-batches, too: it may end in an error, never by a signal. Every field of every table
// is changed, those of the library's plans too; one mutant of N is tried, drawn by the seed, and
// every mutant of fields whose path begins with PATH, such as programs[0].instructions or, of all
// kernels, kernels[*].chunk. Machine code itself is not touched: what it does after damage nobody
// can say. With --inspect, DLC inspect describes each accepted mutant. Prints figures, and for each
// crash the mutation; exit code 1 if there was one. --seal renews the hash of a file that was
// changed otherwise.

#include "runtime/artifact/Artifact.h"
#include "runtime/artifact/Error.h"
#include "runtime/artifact/Hash.h"
#include "runtime/artifact/Writer.h"
#include "runtime/core/BackEnd.h"
#include "runtime/cpu/plan_generated.h"
#include "runtime/cuda/plans/plan_generated.h"
#include "test/fuzz/RunPrograms.h"
#include "test/mutation/FieldMutations.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

using namespace dlc::rt;

namespace {

std::vector<uint8_t> contentOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Options {
  std::string file, inspect, seal, all;
  uint64_t every = 1, seed = 0;
};

struct Figures {
  uint64_t tried = 0, accepted = 0, ran = 0, crashed = 0;
};

/// A plan with every number in place.
template <typename Plan> void giveDefaults(std::vector<uint8_t> &plan) {
  std::vector<uint64_t> aligned((plan.size() + 7) / 8);
  std::memcpy(aligned.data(), plan.data(), plan.size());
  typename Plan::NativeTableType stored;
  flatbuffers::GetRoot<Plan>(aligned.data())->UnPackTo(&stored);
  std::string identifier(flatbuffers::GetBufferIdentifier(aligned.data()),
                         flatbuffers::kFileIdentifierLength);
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  builder.Finish(Plan::Pack(builder, &stored), identifier.c_str());
  plan.assign(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
}

/// The artifact with every number in place, in plans too, so that each can be overwritten.
std::vector<uint8_t> withDefaults(const std::vector<uint8_t> &sound) {
  Artifact artifact(sound, "file");
  dlc::artifact::ArtifactT root;
  artifact->UnPackTo(&root);
  for (auto &kernel : root.kernels) {
    if (kernel->plan.empty())
      continue;
    if (artifact.isForGpu())
      giveDefaults<dlc::cuda::Plan>(kernel->plan);
    else
      giveDefaults<dlc::cpu::Plan>(kernel->plan);
  }
  ArtifactWriter writer;
  writer.builder().ForceDefaults(true);
  for (size_t i = 0; i < root.modules.size(); ++i)
    *root.modules[i]->code =
        writer.addData(artifact.data(*artifact->modules()->Get(static_cast<uint32_t>(i))->code()));
  return writer.finish(dlc::artifact::Artifact::Pack(writer.builder(), &root));
}

std::vector<test::FieldMutation> allMutations(const std::vector<uint8_t> &file) {
  test::Schema schema = contentOf(DLC_SCHEMAS "/artifact.bfbs");
  bool isForGpu = Artifact(file, "file").isForGpu();
  test::Schema planSchema =
      contentOf(std::string(DLC_SCHEMAS) + (isForGpu ? "/cuda" : "/cpu") + "/plan.bfbs");
  constexpr size_t prefix = sizeof(uint32_t);
  std::vector<test::FieldMutation> mutations = test::fieldMutations(schema, file, prefix);
  const dlc::artifact::Artifact &root = *dlc::artifact::GetSizePrefixedArtifact(file.data());
  for (uint32_t i = 0; root.kernels() && i < root.kernels()->size(); ++i) {
    const auto *plan = root.kernels()->Get(i)->plan();
    if (!plan || plan->size() == 0)
      continue;
    auto begin = static_cast<size_t>(plan->data() - file.data());
    for (test::FieldMutation &mutation :
         test::fieldMutations(planSchema, {plan->data(), plan->size()}, 0)) {
      mutation.path = "kernels[" + std::to_string(i) + "].plan." + mutation.path;
      mutation.at += begin;
      mutations.push_back(std::move(mutation));
    }
  }
  return mutations;
}

/// Exit code of a child that an Error ended. A sanitizer's report ends one with 1.
constexpr int refused = 3;

bool endedWith(int status, int code) { return WIFEXITED(status) && WEXITSTATUS(status) == code; }

/// Runs `body` in a child of its own, which may take some seconds. Returns how it ended, as
/// waitpid() says.
template <typename Body> int inChild(Body body) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    int code = 0;
    try {
      body();
    } catch (const Error &) {
      code = refused;
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

void inspect(const std::string &program, const std::vector<uint8_t> &file) {
  std::string path = "/tmp/dlc-mutate-" + std::to_string(getpid()) + ".dlx";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(file.data()),
             static_cast<std::streamsize>(file.size()));
  std::string command = "exec " + program + " inspect " + path + " >/dev/null 2>&1";
  // NOLINTNEXTLINE(bugprone-command-processor): the command is the caller's
  int status = std::system(command.c_str());
  unlink(path.c_str());
  if (WIFSIGNALED(status))
    raise(WTERMSIG(status));
}

void tryMutant(const test::FieldMutation &mutation, std::vector<uint8_t> file,
               const Options &options, Figures &figures) {
  ++figures.tried;
  std::memcpy(file.data() + mutation.at, mutation.bytes.data(), mutation.bytes.size());
  sealArtifact(file);
  int verified = inChild([&] { Artifact(file, "mutant"); });
  if (endedWith(verified, refused))
    return;
  ++figures.accepted;
  SessionOptions session;
  session.threads = 1;
  int ran = verified;
  if (endedWith(verified, 0))
    ran = inChild([&] { test::runPrograms(Artifact(file, "mutant"), session); });
  figures.ran += endedWith(ran, 0);
  bool isClean = endedWith(ran, 0) || endedWith(ran, refused);
  if (isClean && !options.inspect.empty())
    ran = inChild([&] { inspect(options.inspect, file); });
  if (endedWith(ran, 0) || endedWith(ran, refused))
    return;
  ++figures.crashed;
  std::printf("%s: %s %d\n", mutation.path.c_str(),
              WIFSIGNALED(ran) ? "ended by signal" : "exit code",
              WIFSIGNALED(ran) ? WTERMSIG(ran) : WEXITSTATUS(ran));
}

/// True if a path begins with another one, in which an index may be *.
bool beginsWith(std::string_view path, std::string_view begin) {
  while (!begin.empty()) {
    if (begin.starts_with("[*]") && path.starts_with("[")) {
      begin.remove_prefix(3);
      path.remove_prefix(std::min(path.find(']'), path.size() - 1) + 1);
    } else if (!path.empty() && path.front() == begin.front()) {
      begin.remove_prefix(1);
      path.remove_prefix(1);
    } else {
      return false;
    }
  }
  return true;
}

bool parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    bool hasValue = i + 1 < argc;
    if (word == "--every" && hasValue)
      options.every = std::max<uint64_t>(1, std::strtoull(argv[++i], nullptr, 10));
    else if (word == "--seed" && hasValue)
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (word == "--all" && hasValue)
      options.all = argv[++i];
    else if (word == "--inspect" && hasValue)
      options.inspect = argv[++i];
    else if (word == "--seal" && hasValue)
      options.seal = argv[++i];
    else if (options.file.empty() && !word.starts_with("-"))
      options.file = word;
    else
      return false;
  }
  return options.file.empty() != options.seal.empty();
}

} // namespace

static void seal(const std::string &path) {
  std::vector<uint8_t> file = contentOf(path);
  sealArtifact(file);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(file.data()),
             static_cast<std::streamsize>(file.size()));
}

int main(int argc, char **argv) try {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: dlc-mutate FILE.dlx [--every N] [--seed S] [--all PATH] "
                         "[--inspect DLC] | --seal FILE.dlx\n");
    return 2;
  }
  if (!options.seal.empty())
    return seal(options.seal), 0;
  std::vector<uint8_t> file = withDefaults(contentOf(options.file));
  // Opened here, so that no child has to.
  std::string reason;
  (void)findBackEnd(Artifact(file, "file")->target()->name()->str(), reason);
  if (int sound = inChild([&] {
        SessionOptions session;
        session.threads = 1;
        test::runPrograms(Artifact(file, "file"), session);
      });
      sound != 0) {
    std::fprintf(stderr, "dlc-mutate: the artifact does not run as it is\n");
    return 1;
  }
  Figures figures;
  std::vector<test::FieldMutation> mutations = allMutations(file);
  for (const test::FieldMutation &mutation : mutations) {
    std::string key = mutation.path + std::to_string(options.seed);
    bool isDrawn =
        hash64({reinterpret_cast<const uint8_t *>(key.data()), key.size()}) % options.every == 0;
    if (isDrawn || (!options.all.empty() && beginsWith(mutation.path, options.all)))
      tryMutant(mutation, file, options, figures);
  }
  std::printf("%zu mutations, %llu tried: %llu accepted, %llu of them ran, %llu crashed\n",
              mutations.size(), static_cast<unsigned long long>(figures.tried),
              static_cast<unsigned long long>(figures.accepted),
              static_cast<unsigned long long>(figures.ran),
              static_cast<unsigned long long>(figures.crashed));
  return figures.crashed ? 1 : 0;
} catch (const Error &error) {
  std::fprintf(stderr, "dlc-mutate: %s\n", error.what());
  return 1;
}
