// A directory of images of one size and type as one array: samples are named by the stems of their
// files, and in the order of these.

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
  return extension == ".png" || extension == ".tif" || extension == ".tiff";
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
    throw Error(ErrorCode::BadInput, "'" + path + "' holds no PNG or TIFF images");
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

Array readImageDirectory(const std::string &path) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  std::vector<std::string> names;
  std::vector<int64_t> shape;
  ElementType type = ElementType::U8;
  FileFormat format = FileFormat::Png;
  for (const auto &[stem, file] : imageFiles(path)) {
    Array image = readArray(file);
    if (names.empty()) {
      shape = image.shape();
      type = image.type();
      format = image.format;
    }
    if (image.shape() != shape || image.type() != type || shape[0] != 1)
      throw Error(ErrorCode::BadInput,
                  "the images of a directory are single ones of one size and type, but '" + file +
                      "' is " + shapeText(image.shape()) + " " + std::string(nameOf(image.type())) +
                      " and the first is " + shapeText(shape) + " " + std::string(nameOf(type)));
    bytes->insert(bytes->end(), image.bytes().begin(), image.bytes().end());
    names.push_back(stem);
  }
  shape[0] = static_cast<int64_t>(names.size());
  Array array(path, type, std::move(shape), *bytes, bytes);
  array.names = std::move(names);
  array.format = format;
  return array;
}

} // namespace dlc::rt
