// A file that a library reads by its C handle.
#pragma once

#include "runtime/artifact/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace dlc::rt {

struct FileCloser {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
using InputFile = std::unique_ptr<std::FILE, FileCloser>;

inline InputFile openInput(const std::string &path) {
  InputFile file(std::fopen(path.c_str(), "rb"));
  if (!file)
    throw Error(ErrorCode::BadInput, "cannot open '" + path + "': " + std::strerror(errno));
  return file;
}

} // namespace dlc::rt
