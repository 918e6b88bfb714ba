// What artifacts for GPUs are refused for beside the rest: code that was made for other kernels
// than their tables say, and binaries of which a part is missing.

#include "test/unit/artifact/ArtifactFault.h"

#include "runtime/artifact/Contract.h"

#include <cstring>
#include <elf.h>

using namespace dlc::rt;
using namespace dlc::rt::test;
namespace artifact = dlc::artifact;

namespace {

/// For a GPU; the second and the third kernel are two stages of one cluster.
TinyArtifact signedForGpu() {
  TinyArtifact tiny;
  tiny.root.target->name = "cuda:h200";
  ClusterSignature signatures[2];
  constexpr struct {
    size_t cluster;
    const char *stage;
  } kernels[] = {{0, "0"}, {1, "0"}, {1, "1"}};
  for (size_t i = 0; i < std::size(kernels); ++i) {
    tiny.launch(i, 32);
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(artifact::Kernel::Pack(builder, tiny.root.kernels[i].get()));
    signatures[kernels[i].cluster].add(
        kernels[i].stage,
        contractOf(*flatbuffers::GetRoot<artifact::Kernel>(builder.GetBufferPointer())));
  }
  for (size_t i = 0; i < std::size(kernels); ++i)
    tiny.root.kernels[i]->symbol = "tiny_" + std::to_string(kernels[i].cluster) + "_" +
                                   signatures[kernels[i].cluster].text() + "_" + kernels[i].stage;
  return tiny;
}

std::string messageOfSigned(void (*change)(TinyArtifact &tiny)) {
  TinyArtifact tiny = signedForGpu();
  change(tiny);
  return messageOf(tiny.pack());
}

/// A header, a section of 10 bytes, one without bytes, and the two sections' headers.
std::vector<uint8_t> binary() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shoff = sizeof header + 10;
  header.e_shnum = 2;
  Elf64_Shdr sections[2]{};
  sections[0].sh_type = SHT_PROGBITS;
  sections[0].sh_offset = sizeof header;
  sections[0].sh_size = 10;
  sections[1].sh_type = SHT_NOBITS;
  sections[1].sh_size = 1 << 20;
  std::vector<uint8_t> file(sizeof header + 10 + sizeof sections);
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(&file[header.e_shoff], sections, sizeof sections);
  return file;
}

std::string messageOfBinary(std::vector<uint8_t> code) {
  TinyArtifact tiny = signedForGpu();
  tiny.root.modules[0]->architecture = "sm_90";
  tiny.code = std::move(code);
  return messageOf(tiny.pack());
}

} // namespace

TEST(GpuVerifier, ComparesKernelsWithTheNamesOfTheirCode) {
  const std::string other = "its code was generated for other iterations or buffers";
  EXPECT_EQ(messageOfSigned([](TinyArtifact &) {}), "");
  for (auto change :
       {+[](TinyArtifact &t) { ++t.root.kernels[1]->extent; },
        +[](TinyArtifact &t) { t.root.kernels[1]->chunk *= 2; },
        +[](TinyArtifact &t) {
          t.root.kernels[1]->operands.pop_back();
          t.root.kernels[1]->access.pop_back();
        },
        +[](TinyArtifact &t) { t.root.kernels[1]->operands[0]->dtype = artifact::DType::BF16; },
        +[](TinyArtifact &t) { t.root.kernels[1]->symbol.back() = '2'; },
        +[](TinyArtifact &t) { t.root.kernels[1]->symbol = t.root.kernels[0]->symbol; }}) {
    std::string message = messageOfSigned(change);
    EXPECT_NE(message.find(other), std::string::npos) << message;
  }
  // Code that was written by hand says nothing.
  EXPECT_EQ(messageOfSigned([](TinyArtifact &t) {
              for (auto &kernel : t.root.kernels)
                kernel->symbol = "by_hand";
              ++t.root.kernels[1]->extent;
            }),
            "");
}

TEST(GpuVerifier, WantsWholeBinaries) {
  const std::string damaged = "module 0 'sm_90': its code is damaged";
  std::vector<uint8_t> whole = binary();
  EXPECT_EQ(messageOfBinary(whole), "");
  auto expectDamaged = [&](std::vector<uint8_t> code) {
    std::string message = messageOfBinary(std::move(code));
    EXPECT_NE(message.find(damaged), std::string::npos) << message;
  };
  for (size_t bytes = 1; bytes < whole.size(); ++bytes)
    expectDamaged({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)});
  auto expectDamagedWith = [&](size_t at, uint64_t value) {
    std::vector<uint8_t> code = whole;
    std::memcpy(&code[at], &value, sizeof value);
    expectDamaged(code);
  };
  expectDamagedWith(0, 0);
  size_t section = sizeof(Elf64_Ehdr) + 10;
  for (uint64_t value : {uint64_t{1000}, ~uint64_t{0}}) {
    expectDamagedWith(offsetof(Elf64_Ehdr, e_shoff), value);
    expectDamagedWith(section + offsetof(Elf64_Shdr, sh_offset), value);
    expectDamagedWith(section + offsetof(Elf64_Shdr, sh_size), value);
  }
}
