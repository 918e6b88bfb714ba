#include "runtime/artifact/Artifact.h"

#include "runtime/artifact/Error.h"
#include "runtime/artifact/Hash.h"
#include "runtime/artifact/MappedFile.h"
#include "runtime/artifact/Verifier.h"
#include "runtime/artifact/Writer.h"

#include <cstring>
#include <optional>

namespace dlc::rt {

/// The version, read ahead of all else: tables of another one may look malformed.
static std::optional<uint32_t> versionOf(flatbuffers::Verifier &verifier, const uint8_t *file) {
  constexpr size_t root = sizeof(flatbuffers::uoffset_t); // behind the size
  size_t offset = verifier.VerifyOffset(root);
  if (offset == 0 || !verifier.VerifyTableStart(file + root + offset))
    return std::nullopt;
  const auto *table = reinterpret_cast<const flatbuffers::Table *>(file + root + offset);
  if (!table->VerifyField<uint32_t>(verifier, artifact::Artifact::VT_VERSION, sizeof(uint32_t)))
    return std::nullopt;
  return artifact::GetSizePrefixedArtifact(file)->version();
}

Artifact::Artifact(const std::string &path) : source(path) {
  auto mapping = std::make_shared<const MappedFile>(path);
  storage = mapping;
  std::span<const std::byte> bytes = mapping->bytes();
  file = {reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()};
  verify();
}

Artifact::Artifact(std::vector<uint8_t> bytes, std::string name) : source(std::move(name)) {
  auto owned = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
  storage = owned;
  file = *owned;
  verify();
}

void Artifact::verify() {
  auto refuse = [&](const std::string &what) {
    throw Error(ErrorCode::Artifact, source + " " + what);
  };
  // Size prefix, root offset and identifier, and at the end the hash.
  constexpr size_t start = 12, tail = sizeof(uint64_t);
  if (file.size() < start + tail ||
      std::memcmp(file.data() + 8, artifact::ArtifactIdentifier(), 4) != 0)
    refuse("is not a dlc artifact");
  std::span<const uint8_t> covered = file.first(file.size() - tail);
  uint64_t stored;
  std::memcpy(&stored, file.data() + covered.size(), tail);
  if (stored != hash64(covered))
    refuse("is damaged or truncated: its hash does not match; compile or copy it again");
  uint64_t flatBytes = uint64_t{flatbuffers::ReadScalar<uint32_t>(file.data())} + 4;
  uint64_t dataBegin = dataSectionBegin(flatBytes);
  if (dataBegin > covered.size())
    refuse("is corrupt: it ends inside its tables");
  flatbuffers::Verifier head(file.data(), flatBytes), tables(file.data(), flatBytes);
  if (std::optional<uint32_t> version = versionOf(head, file.data());
      version && *version != artifactVersion)
    refuse("is of version " + std::to_string(*version) + ", this program reads version " +
           std::to_string(artifactVersion) + ": compile the model again");
  if (!artifact::VerifySizePrefixedArtifactBuffer(tables))
    refuse("is corrupt: malformed tables");
  content = artifact::GetSizePrefixedArtifact(file.data());
  dataSection = covered.subspan(dataBegin);
  std::vector<std::string> faults = verifyArtifact(*content, dataSection);
  if (faults.empty())
    return;
  std::string more =
      faults.size() > 1 ? " (and " + std::to_string(faults.size() - 1) + " more)" : "";
  refuse("is corrupt: " + faults.front() + more);
}

const artifact::Program *Artifact::program(const std::string &name) const {
  if (content->programs())
    for (const artifact::Program *program : *content->programs())
      if (program->name()->string_view() == name)
        return program;
  return nullptr;
}

const artifact::Variable *Artifact::variable(const std::string &name) const {
  if (content->variables())
    for (const artifact::Variable *variable : *content->variables())
      if (variable->name()->string_view() == name)
        return variable;
  return nullptr;
}

} // namespace dlc::rt
