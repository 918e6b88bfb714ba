// An artifact file, mapped and verified.
//
// The constructors establish the invariant: whoever holds an Artifact may follow every index, span
// and pointer in it without looking. Immutable, so any thread may read it.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace dlc::rt {

class Artifact {
public:
  /// Maps and verifies the file; throws Error(BadInput) if it cannot be read, Error(Artifact)
  /// naming the first fault otherwise.
  explicit Artifact(const std::string &path);
  /// Verifies bytes in memory; `name` is what messages call them.
  Artifact(std::vector<uint8_t> bytes, std::string name);

  const artifact::Artifact &root() const { return *content; }
  const artifact::Artifact *operator->() const { return content; }
  const std::string &name() const { return source; }

  /// The whole file.
  std::span<const uint8_t> bytes() const { return file; }
  /// The whole data section.
  std::span<const uint8_t> data() const { return dataSection; }
  std::span<const uint8_t> data(const artifact::Span &span) const {
    return dataSection.subspan(span.offset(), span.bytes());
  }

  bool isForGpu() const { return content->target()->name()->string_view().starts_with("cuda:"); }
  /// Null if the artifact has no program of this name.
  const artifact::Program *program(const std::string &name) const;
  /// Null if the artifact has no variable of this name.
  const artifact::Variable *variable(const std::string &name) const;

private:
  void verify();

  std::shared_ptr<const void> storage; // mapping or vector
  std::string source;
  const artifact::Artifact *content = nullptr;
  std::span<const uint8_t> file, dataSection;
};

} // namespace dlc::rt
