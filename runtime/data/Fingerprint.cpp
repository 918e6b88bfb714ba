#include "runtime/data/Fingerprint.h"

#include "runtime/artifact/Hash.h"
#include "runtime/artifact/MappedFile.h"
#include "runtime/data/readers/ImageDirectory.h"

#include <cstdio>
#include <filesystem>
#include <vector>

namespace dlc::rt {

static constexpr size_t pieces = 16, pieceBytes = 4096;

static uint64_t hashOf(std::span<const std::byte> bytes) {
  return hash64({reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()});
}

static uint64_t hashOfPieces(std::span<const std::byte> bytes) {
  if (bytes.size() <= pieces * pieceBytes)
    return hashOf(bytes);
  std::vector<std::byte> sample;
  size_t last = bytes.size() - pieceBytes; // where the last piece starts
  for (size_t piece = 0; piece < pieces; ++piece) {
    auto part = bytes.subspan(last * piece / (pieces - 1), pieceBytes);
    sample.insert(sample.end(), part.begin(), part.end());
  }
  return hashOf(sample);
}

static std::string text(size_t bytes, uint64_t hash) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return std::to_string(bytes) + " bytes, hash " + digits;
}

std::string fingerprint(const std::string &path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    MappedFile file(path);
    return text(file.bytes().size(), hashOfPieces(file.bytes()));
  }
  std::map<std::string, std::string> files = imageFiles(path);
  std::string images;
  size_t bytes = 0;
  for (const auto &[stem, image] : files) {
    MappedFile file(image);
    bytes += file.bytes().size();
    images += stem + '\0' + std::to_string(file.bytes().size()) + ' ' +
              std::to_string(hashOfPieces(file.bytes())) + '\n';
  }
  return std::to_string(files.size()) + (files.size() == 1 ? " image, " : " images, ") +
         text(bytes, hashOf(std::as_bytes(std::span(images))));
}

} // namespace dlc::rt
