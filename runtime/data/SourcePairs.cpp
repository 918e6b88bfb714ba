#include "runtime/data/SourcePairs.h"

#include "runtime/artifact/Error.h"

#include <algorithm>
#include <filesystem>

namespace dlc::rt {

void requirePair(const Source &a, const Source &b) {
  const std::vector<std::string> &left = a.sampleNames(), &right = b.sampleNames();
  auto requireAll = [](const Source &having, const Source &lacking) {
    const std::vector<std::string> &some = having.sampleNames(), &others = lacking.sampleNames();
    for (size_t i = 0; i < some.size(); ++i)
      if (!std::binary_search(others.begin(), others.end(), some[i]))
        throw Error(ErrorCode::BadInput, "'" + having.path() + "' has " + some[i] + " for " +
                                             having.name() + ", but '" + lacking.path() +
                                             "' has no image named " + some[i] + " or " + some[i] +
                                             "_" + lacking.name() + " for " + lacking.name() +
                                             ": add it, or take the other away");
  };
  bool haveImages = a.classes().empty() && b.classes().empty();
  if (!left.empty() && !right.empty()) {
    if (haveImages && a.fileOf(0).path == b.fileOf(0).path)
      throw Error(ErrorCode::BadInput, "'" + a.fileOf(0).path + "' would be read for " + a.name() +
                                           " and for " + b.name() + ": name the images of " +
                                           b.name() + " x_" + b.name() +
                                           ", or give them a directory of their own");
    requireAll(a, b);
    requireAll(b, a);
  }
  if (a.samples() != b.samples())
    throw Error(ErrorCode::BadInput, "'" + a.path() + "' has " + std::to_string(a.samples()) +
                                         " samples, '" + b.path() + "' has " +
                                         std::to_string(b.samples()));
}

std::string noteOnPairs(const Source &one, const Source &other) {
  auto fileName = [](const Source &source, int64_t sample) {
    return std::filesystem::path(source.fileOf(sample).path).filename().string();
  };
  std::string text;
  for (int64_t i = 0; i < std::min<int64_t>(one.samples(), 3); ++i)
    text += (i ? ", " : "") + fileName(one, i) + " with " + fileName(other, i);
  return one.name() + " and " + other.name() + " pair " + text + (one.samples() > 3 ? ", ..." : "");
}

std::string noteOnClasses(const Source &source) {
  const std::vector<std::string> &classes = source.classes();
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(classes.size(), 10); ++i)
    text += (i ? ", " : "") + std::to_string(i) + " " + printable(classes[i]);
  return source.name() + " numbers the folders of '" + source.path() + "': " + text +
         (classes.size() > 10 ? ", ..." : "");
}

} // namespace dlc::rt
