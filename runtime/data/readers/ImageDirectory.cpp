#include "runtime/data/readers/ImageDirectory.h"

#include "runtime/artifact/Error.h"
#include "runtime/data/readers/Readers.h"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace dlc::rt {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

/// Names that begin with a dot are other programs' notes on files.
static bool isHidden(const fs::path &path) { return path.filename().string().starts_with('.'); }

static bool isImage(const fs::path &path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view known[] = {".png", ".tif", ".tiff", ".jpg", ".jpeg"};
  return !isHidden(path) &&
         std::find(std::begin(known), std::end(known), extension) != std::end(known);
}

/// What a directory holds: images, and folders.
static std::pair<std::vector<fs::path>, std::vector<fs::path>> entriesOf(const fs::path &path) {
  std::error_code error;
  fs::directory_iterator entries(path, error);
  if (error)
    throw Error(ErrorCode::BadInput,
                "cannot read the directory '" + path.string() + "': " + error.message());
  std::pair<std::vector<fs::path>, std::vector<fs::path>> found;
  for (const fs::directory_entry &entry : entries)
    if (entry.is_directory(error) && !isHidden(entry.path()))
      found.second.push_back(entry.path());
    else if (isImage(entry.path()))
      found.first.push_back(entry.path());
  std::sort(found.second.begin(), found.second.end());
  return found;
}

static void addImages(const fs::path &path, const std::string &prefix,
                      const std::vector<fs::path> &images, Files &files) {
  for (const fs::path &image : images)
    if (!files.emplace(prefix + image.stem().string(), image.string()).second)
      throw Error(ErrorCode::BadInput,
                  "'" + path.string() + "' holds two images named " + image.stem().string());
}

/// A class's folder may have folders of its own.
static void addClass(const fs::path &folder, const std::string &prefix, Files &files) {
  auto [images, folders] = entriesOf(folder);
  addImages(folder, prefix, images, files);
  for (const fs::path &each : folders)
    addClass(each, prefix + each.filename().string() + "/", files);
}

static Files allImages(const std::string &path) {
  auto [images, folders] = entriesOf(path);
  Files files;
  addImages(path, "", images, files);
  for (size_t i = 0; images.empty() && i < folders.size(); ++i) {
    size_t before = files.size();
    addClass(folders[i], folders[i].filename().string() + "/", files);
    if (files.size() == before)
      throw Error(ErrorCode::BadInput, "the folder '" + folders[i].string() +
                                           "' holds no PNG, TIFF or JPEG images: each folder of '" +
                                           path +
                                           "' is a class; put images into it, or take it away");
  }
  if (files.empty())
    throw Error(ErrorCode::BadInput, "'" + path + "' holds no PNG, TIFF or JPEG images");
  return files;
}

/// Without "_SOURCE"; nothing for a name that does not end so.
static std::optional<std::string> withoutSuffix(const std::string &name,
                                                const std::string &source) {
  std::string suffix = "_" + source;
  if (source.empty() || name.size() <= suffix.size() || !name.ends_with(suffix))
    return std::nullopt;
  return name.substr(0, name.size() - suffix.size());
}

/// In a directory of its own a source has all images but those that accompany one of its own.
static bool isOfAnother(const std::string &name, const Files &all, const ImageRule &rule) {
  return std::any_of(rule.others.begin(), rule.others.end(), [&](const std::string &other) {
    std::optional<std::string> base = withoutSuffix(name, other);
    return base &&
           (rule.isShared || all.contains(*base) || all.contains(*base + "_" + rule.source));
  });
}

Files imageFiles(const std::string &path, const ImageRule &rule) {
  Files all = allImages(path), plain, suffixed;
  for (const auto &[name, file] : all)
    if (std::optional<std::string> base = withoutSuffix(name, rule.source))
      suffixed.emplace(*base, file);
    else if (!isOfAnother(name, all, rule))
      plain.emplace(name, file);
  if (rule.isShared && !suffixed.empty())
    return suffixed;
  for (const auto &[name, file] : suffixed)
    if (!plain.emplace(name, file).second)
      throw Error(ErrorCode::BadInput, "'" + plain[name] + "' and '" + file + "' are both image " +
                                           name + " of " + rule.source + ": take one of them away");
  if (plain.empty())
    throw Error(ErrorCode::BadInput, "'" + path + "' holds no images for " + rule.source +
                                         ", only such as are named for other sources");
  return plain;
}

std::vector<std::string> classFolders(const std::string &path) {
  auto [images, folders] = entriesOf(path);
  std::vector<std::string> names;
  for (size_t i = 0; images.empty() && i < folders.size(); ++i)
    names.push_back(folders[i].filename().string());
  return names;
}

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// The number at a place of a name, without leading zeros, and where it ends.
static std::pair<std::string_view, size_t> numberAt(std::string_view name, size_t place) {
  size_t end = place;
  while (end < name.size() && isDigit(name[end]))
    ++end;
  while (place + 1 < end && name[place] == '0')
    ++place;
  return {name.substr(place, end - place), end};
}

bool comesBefore(const std::string &name, const std::string &other) {
  size_t i = 0, j = 0;
  while (i < name.size() && j < other.size()) {
    if (!isDigit(name[i]) || !isDigit(other[j])) {
      if (name[i] != other[j])
        return name[i] < other[j];
      ++i, ++j;
      continue;
    }
    auto [own, end] = numberAt(name, i);
    auto [others, othersEnd] = numberAt(other, j);
    if (own != others)
      return own.size() != others.size() ? own.size() < others.size() : own < others;
    i = end;
    j = othersEnd;
  }
  if (i < name.size() || j < other.size())
    return j < other.size();
  return name.size() != other.size() ? name.size() < other.size() : name < other;
}

bool imagesDiffer(const Files &images) {
  std::optional<ArrayHeader> first;
  for (const auto &[name, file] : images) {
    ArrayHeader image = imageHeader(file);
    if (first && (image.shape != first->shape || image.type != first->type))
      return true;
    first = std::move(image);
  }
  return false;
}

} // namespace dlc::rt
