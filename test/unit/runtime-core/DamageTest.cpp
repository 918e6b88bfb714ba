// Damage that the hash does not show: sessions of damaged artifacts end in an error or run, and
// never touch memory that is not theirs (the build with AddressSanitizer would say so).

#include "test/fuzz/IdleDevice.h"
#include "test/fuzz/RunPrograms.h"
#include "test/unit/CompiledModel.h"
#include "test/unit/ErrorOf.h"
#include "test/unit/artifact/TinyArtifact.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <random>

using namespace dlc::rt;
using dlc::rt::test::errorOf;
using dlc::rt::test::TinyArtifact;
namespace artifact = dlc::artifact;

static SessionOptions idle() {
  SessionOptions options;
  options.threads = 1;
  options.makeDevice = [](const artifact::Target &, unsigned, ControlPlane &control) {
    return std::make_unique<test::IdleDevice>(control);
  };
  return options;
}

TEST(DamagedArtifact, RunsOnADeviceThatExecutesNothing) {
  TinyArtifact counting;
  counting.countAhead();
  const std::array sound = {TinyArtifact().pack(), counting.pack()};
  for (const std::vector<uint8_t> &file : sound)
    EXPECT_EQ(errorOf([&] { test::runPrograms(Artifact(file, "x"), idle()); }), "no error");
  std::mt19937_64 random(11);
  int ran = 0, refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<uint8_t> file = sound[static_cast<size_t>(round) % 2];
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits)
      file[12 + random() % (file.size() - 20)] ^= static_cast<uint8_t>(1 << random() % 8);
    sealArtifact(file);
    std::string error = errorOf([&] { test::runPrograms(Artifact(std::move(file), "x"), idle()); });
    ++(error == "no error" ? ran : refused);
  }
  EXPECT_GT(ran, 100);
  EXPECT_GT(refused, 1000);
}

// Generated code takes its iterations and its buffers' sizes on trust; it says what they must be.
TEST(DamagedArtifact, GeneratedCodeIsCalledForWhatItWasMadeFor) {
  if (!test::hasCompiler())
    GTEST_SKIP() << "this build has no compiler";
  Artifact sound(test::compiledModel(test::models / "mnist_cnn.dl", "--set batch=2"));
  auto errorAfter = [&](auto change) {
    artifact::ArtifactT root;
    sound->UnPackTo(&root);
    for (auto &kernel : root.kernels)
      if (kernel->kind == artifact::KernelKind::Generated) {
        change(*kernel);
        break;
      }
    ArtifactWriter writer;
    *root.modules[0]->code = writer.addData(sound.data(*sound->modules()->Get(0)->code()));
    Artifact changed(writer.finish(artifact::Artifact::Pack(writer.builder(), &root)), "changed");
    SessionOptions options;
    options.threads = 1;
    return errorOf([&] { test::runPrograms(changed, options); });
  };
  EXPECT_EQ(errorAfter([](artifact::KernelT &) {}), "no error");
  const std::string message = "its code was generated for other iterations or buffers";
  EXPECT_NE(errorAfter([](auto &kernel) { kernel.extent *= 512; }).find(message),
            std::string::npos);
  EXPECT_NE(errorAfter([](auto &kernel) { kernel.chunk += 1; }).find(message), std::string::npos);
}
