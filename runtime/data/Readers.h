// One reader per file format; readArray chooses among them by content.
//
// All throw Error(BadInput) in one line that names the file. May be called from any thread.
#pragma once

#include "runtime/data/Array.h"

namespace dlc::rt {

/// numpy's `.npy`, versions 1 to 3, C order, little-endian; memory-mapped.
Array readNpy(const std::string &path);

/// MNIST's IDX, plain or gzipped (big-endian header and elements).
Array readIdx(const std::string &path);

} // namespace dlc::rt
