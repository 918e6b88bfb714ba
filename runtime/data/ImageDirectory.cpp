// The images of a directory in the order of their stems, which name them.

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
  std::optional<ArrayHeader> first;
  for (const auto &[stem, file] : imageFiles(path)) {
    ArrayHeader image = imageHeader(file);
    if (first && (image.shape != first->shape || image.type != first->type))
      return true;
    first = std::move(image);
  }
  return false;
}

} // namespace dlc::rt
