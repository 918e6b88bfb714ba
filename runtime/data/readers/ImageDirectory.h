// The images of a directory, and what they are called.
//
// A directory holds images, or a folder of them for each class, as torchvision's ImageFolder does:
// then the classes are numbered in the order of the folders' names, and an image is called
// CLASS/STEM. Throws Error(BadInput) in one line. May be used from any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace dlc::rt {

/// Whose images are asked for. Images called x_SOURCE are samples x of that source.
struct ImageRule {
  std::string source = {};
  std::vector<std::string> others = {}; // that the model reads, too
  bool isShared = false;                // by another source: the rest of the directory is its own
};

/// Paths of images by what they are called, without the source's suffix.
std::map<std::string, std::string> imageFiles(const std::string &directory,
                                              const ImageRule &rule = {});

/// The names of the folders, sorted; none if the directory holds images itself.
std::vector<std::string> classFolders(const std::string &directory);

/// Order of slices: by name, numbers by their value, so that z2 comes before z10.
bool comesBefore(const std::string &name, const std::string &other);

/// True if the images have more than one size or type.
bool imagesDiffer(const std::map<std::string, std::string> &images);

} // namespace dlc::rt
