// The images of a directory in the order of their stems, which name them; as one array where they
// are planes of one size.

#include "runtime/artifact/Error.h"
#include "runtime/data/Readers.h"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace dlc::rt {

namespace fs = std::filesystem;

/// Names that begin with a dot are other programs' notes on files.
static bool isImage(const fs::path &path) {
  if (path.filename().string().starts_with('.'))
    return false;
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view known[] = {".png", ".tif", ".tiff", ".jpg", ".jpeg"};
  return std::find(std::begin(known), std::end(known), extension) != std::end(known);
}

std::map<std::string, std::string> imageFiles(const std::string &path) {
  std::map<std::string, std::string> files;
  std::error_code error;
  fs::directory_iterator entries(path, error);
  if (error)
    throw Error(ErrorCode::BadInput,
                "cannot read the directory '" + path + "': " + error.message());
  for (const fs::directory_entry &entry : entries)
    if (isImage(entry.path()) &&
        !files.emplace(entry.path().stem().string(), entry.path().string()).second)
      throw Error(ErrorCode::BadInput,
                  "'" + path + "' holds two images named " + entry.path().stem().string());
  if (files.empty())
    throw Error(ErrorCode::BadInput, "'" + path + "' holds no PNG, TIFF or JPEG images");
  return files;
}

bool imagesDiffer(const std::string &path) {
  std::optional<Array> first;
  for (const auto &[stem, file] : imageFiles(path)) {
    Array image = readArray(file);
    if (first && (image.shape() != first->shape() || image.type() != first->type()))
      return true;
    if (!first)
      first.emplace(std::move(image));
  }
  return false;
}

static std::vector<Array> readImages(const std::string &path) {
  std::vector<Array> images;
  for (const auto &[stem, file] : imageFiles(path)) {
    Array image = readArray(file);
    if (!images.empty() && image.type() != images.front().type())
      throw Error(ErrorCode::BadInput, "the images of a directory are of one type, but '" + file +
                                           "' is " + std::string(nameOf(image.type())) +
                                           " and the first is " +
                                           std::string(nameOf(images.front().type())));
    image.names = {stem};
    images.push_back(std::move(image));
  }
  return images;
}

/// Planes of one size as one array.
static Array stacked(const std::string &path, std::span<const Array> images) try {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  std::vector<std::string> names;
  for (const Array &image : images) {
    bytes->insert(bytes->end(), image.bytes().begin(), image.bytes().end());
    names.push_back(image.names.front());
  }
  std::vector<int64_t> shape = images.front().shape();
  shape[0] = static_cast<int64_t>(names.size());
  ArrayHeader header = images.front().header();
  header.path = path;
  header.shape = std::move(shape);
  Array array(std::move(header), *bytes, bytes);
  array.names = std::move(names);
  return array;
} catch (const std::bad_alloc &) {
  throw Error(ErrorCode::BadInput, "the images of '" + path + "' do not fit into memory");
}

std::vector<Array> readArrays(const std::string &path) {
  std::error_code ignored;
  std::vector<Array> arrays;
  if (!fs::is_directory(path, ignored)) {
    arrays.push_back(readArray(path));
    return arrays;
  }
  arrays = readImages(path);
  bool areAlike = std::all_of(arrays.begin(), arrays.end(), [&](const Array &image) {
    return image.shape()[0] == 1 && image.shape() == arrays.front().shape();
  });
  if (areAlike) {
    Array stack = stacked(path, arrays);
    arrays.clear();
    arrays.push_back(std::move(stack));
  }
  return arrays;
}

} // namespace dlc::rt
