#include "runtime/data/StoredTypes.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/readers/Readers.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace dlc::rt {

/// The images of a directory are of one type.
static std::string firstFile(const std::string &path, const ImageRule &rule) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored))
    return path;
  std::map<std::string, std::string> images = imageFiles(path, rule);
  return images.empty() ? path : images.begin()->second;
}

/// Bits of an unsigned integer; more than 16 for everything else.
static int bitsOf(const std::string &path, const ImageRule &rule) {
  constexpr int other = 64;
  try {
    int bits = unsignedBits(fileHeader(firstFile(path, rule)).type);
    return bits > 0 ? bits : other;
  } catch (const Error &) {
    return other;
  }
}

std::vector<std::string> storedTypes(const DataPaths &data, const DataPaths &validation) {
  std::vector<std::string> names;
  for (const auto &[name, path] : data)
    names.push_back(name);
  std::map<std::string, int> bits;
  for (const DataPaths *paths : {&data, &validation})
    for (const auto &[name, path] : *paths)
      bits[name] = std::max(bits[name], bitsOf(path, imageRule(name, names, *paths)));
  std::vector<std::string> types;
  for (const auto &[name, width] : bits)
    if (width <= 16)
      types.push_back(name + "=u" + std::to_string(width));
  return types;
}

} // namespace dlc::rt
