// What `dlc compile` tells while it works, and at its end.
#pragma once

#include "runtime/artifact/Artifact.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace dlc {

/// One line of a terminal that is written again and again; nothing where `os` is no terminal. What
/// others write there goes over it.
class Progress {
public:
  explicit Progress(llvm::raw_ostream &os) : os(os), shown(os.is_displayed()) {}
  ~Progress() { show(""); }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void show(llvm::StringRef text) {
    if (shown)
      os << "\r\033[K" << text << "\r";
  }

private:
  llvm::raw_ostream &os;
  bool shown;
};

/// An artifact in one line: its file, parameters, planned memory, forecast of a step.
std::string closingLine(const rt::Artifact &artifact, const std::string &path);

} // namespace dlc
